//! A document as one page that loads nothing.

use super::document::{Block, Document, Mark};
use super::escape::html as escape;
use super::table::{Align, Cell, Table};
use super::words::{Span, Tone, Words};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;color:#1f2328;max-width:1240px;\
margin:2rem auto;padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .6rem;text-align:left;\
vertical-align:top;border-bottom:1px solid #e4e7eb}td.r,th.r{text-align:right;white-space:nowrap}\
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}pre{overflow-x:auto}\
.n,.quiet,footer{color:#59636e}.good{color:#1a7f37}.warning{color:#9a6700}.bad{color:#cf222e}\
svg{max-width:100%;height:auto}li{margin:.5rem 0}li p{margin:0}meter{width:100%;min-width:6rem}\
dt{float:left;clear:left;width:8rem;color:#59636e}dd{margin-left:8rem}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}\
td,th{border-color:#30363d}svg{background:#fff}}";

/// The page.
pub fn render_html(document: &Document) -> String {
    let body: String = document.blocks.iter().map(|b| block(b, 2)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\
         <style>{STYLE}</style>\n{body}</html>\n",
        escape(&document.title)
    )
}

/// A part of the page; `level` is that of tables' titles.
fn block(b: &Block, level: usize) -> String {
    match b {
        Block::Heading(n, text) => {
            let h = level - 2 + usize::from(*n);
            format!("<h{h}>{}</h{h}>\n", words(text))
        }
        Block::Paragraph(text) => format!("<p>{}</p>\n", words(text)),
        Block::Facts(facts) => {
            let rows = facts
                .iter()
                .map(|f| format!("<dt>{}</dt><dd>{}</dd>", escape(f.name), words(&f.value)));
            format!("<dl>{}</dl>\n", rows.collect::<String>())
        }
        Block::Table(t) => table(t, level),
        Block::List(items) => {
            let ordered = items.iter().all(|i| matches!(i.mark, Mark::Number(_)));
            let tag = if ordered { "ol" } else { "ul" };
            let items = items.iter().map(|i| {
                let mark = match i.mark {
                    Mark::Yes => "<span class=\"good\">✓</span> ",
                    Mark::No => "<span class=\"warning\">✗</span> ",
                    Mark::Bullet | Mark::Number(_) => "",
                };
                let inside: String = i.blocks.iter().map(|b| entry(b, level)).collect();
                format!("<li>{mark}{inside}</li>\n")
            });
            format!("<{tag}>\n{}</{tag}>\n", items.collect::<String>())
        }
        Block::Code { text, .. } => {
            let lines: Vec<String> = text.lines().map(escape).collect();
            format!("<pre><code>{}</code></pre>\n", lines.join("\n"))
        }
        Block::Details { summary, blocks } => {
            let inside: String = blocks.iter().map(|b| block(b, level + 1)).collect();
            let summary = words(summary);
            format!("<details><summary>{summary}</summary>\n{inside}</details>\n")
        }
        Block::Timeline { .. } => String::new(),
        Block::Picture { file, caption } => format!(
            "<figure><img src=\"{}\" alt=\"{}\"></figure>\n",
            escape(file),
            escape(caption)
        ),
        Block::Drawing { svg, caption } => format!(
            "<figure role=\"img\" aria-label=\"{}\">{svg}</figure>\n",
            escape(caption)
        ),
        Block::Footer(text) => format!("<footer>{}</footer>\n", words(text)),
    }
}

/// A part of a list's entry: a paragraph is a line there.
fn entry(b: &Block, level: usize) -> String {
    match b {
        Block::Paragraph(text) => format!("<p>{}</p>", words(text)),
        other => block(other, level),
    }
}

/// Running text with its tones; a newline breaks the line.
pub(super) fn words(words: &Words) -> String {
    let show = |s: &Span| {
        let lines: Vec<String> = s.text.split('\n').map(escape).collect();
        let text = lines.join("<br>");
        match s.tone {
            Tone::Plain | Tone::Drawn => text,
            Tone::Code | Tone::Quoted | Tone::Path => format!("<code>{text}</code>"),
            Tone::Strong => format!("<b>{text}</b>"),
            Tone::Quiet => format!("<span class=\"quiet\">{text}</span>"),
            Tone::Good => format!("<span class=\"good\">{text}</span>"),
            Tone::Warning => format!("<span class=\"warning\">{text}</span>"),
            Tone::Bad => format!("<span class=\"bad\">{text}</span>"),
            // Only what surely is an address becomes one.
            Tone::Link if !s.text.starts_with("https://") => text,
            Tone::Link => format!("<a href=\"{text}\">{text}</a>"),
        }
    };
    words.0.iter().map(show).collect()
}

fn table(t: &Table, level: usize) -> String {
    let class = |a: Align| match a {
        Align::Right => " class=\"r\"",
        _ => "",
    };
    let mut out = String::new();
    if !t.title.is_empty() {
        out.push_str(&format!("<h{level}>{}</h{level}>\n", escape(&t.title)));
    }
    if !t.note.is_empty() {
        out.push_str(&format!("<p class=\"n\">{}</p>\n", escape(&t.note)));
    }
    out.push_str("<table>");
    if t.columns.iter().any(|c| !c.name.is_empty()) {
        let heads = t
            .columns
            .iter()
            .map(|c| format!("<th{}>{}</th>", class(c.align), escape(c.name)));
        out.push_str(&format!("<tr>{}</tr>", heads.collect::<String>()));
    }
    out.push('\n');
    for row in &t.rows {
        let cells = row
            .iter()
            .zip(&t.columns)
            .map(|(cell, c)| format!("<td{}>{}</td>", class(c.align), cell_html(cell)));
        out.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
    }
    out.push_str("</table>\n");
    if !t.left_out.is_empty() {
        out.push_str(&format!("<p class=\"n\">{}</p>\n", escape(&t.left_out)));
    }
    out
}

fn cell_html(cell: &Cell) -> String {
    match cell {
        Cell::Code(t) | Cell::Shape(t) if !t.is_empty() => format!("<code>{}</code>", escape(t)),
        Cell::Scope(depth, name) => format!(
            "<code style=\"margin-left:{depth}rem\">{}</code>",
            escape(name)
        ),
        Cell::Bar(part, whole, _) => {
            format!("<meter max=\"{whole}\" value=\"{part}\"></meter>")
        }
        Cell::Text(t) => words(&Words::from(t.as_str())),
        other => escape(&other.text()),
    }
}

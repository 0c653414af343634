//! A document as GitHub-flavoured Markdown.

use super::document::{Block, Document, Item, Mark};
use super::escape::{clean, markdown as escape, markdown_code as code};
use super::table::{Align, Cell, Table};
use super::words::{Span, Tone, Words};

/// The document, blocks apart by a blank line.
pub fn render_markdown(document: &Document) -> String {
    blocks(&document.blocks, 2).join("\n")
}

/// Each block that says something, ending in a newline. `level` is that of tables' titles.
fn blocks(all: &[Block], level: usize) -> Vec<String> {
    let made = all.iter().map(|b| block(b, level));
    made.filter(|text| !text.is_empty()).collect()
}

fn block(block: &Block, level: usize) -> String {
    match block {
        Block::Heading(n, text) => {
            let depth = level - 2 + usize::from(*n);
            format!("{} {}\n", "#".repeat(depth), words(text))
        }
        Block::Paragraph(text) => format!("{}\n", words(text)),
        Block::Facts(facts) => facts
            .iter()
            .map(|f| format!("- {}: {}\n", f.name, words(&f.value)))
            .collect(),
        Block::Table(t) if t.title.is_empty() => table(t),
        Block::Table(t) => format!("{} {}\n\n{}", "#".repeat(level), escape(&t.title), table(t)),
        Block::List(items) => items.iter().map(item).collect(),
        Block::Code { language, text } => fenced(language, text),
        Block::Details { summary, blocks: b } => format!(
            "<details><summary>{}</summary>\n\n{}\n</details>\n",
            super::html::words(summary),
            blocks(b, level + 1).join("\n")
        ),
        Block::Timeline { .. } | Block::Drawing { .. } => String::new(),
        Block::Picture { file, caption } => format!("![{}]({file})\n", escape(caption)),
        Block::Footer(text) => format!("<sub>{}</sub>\n", words(text)),
    }
}

/// A fence that the text cannot close.
fn fenced(language: &str, text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    let ticks = lines
        .iter()
        .map(|l| l.bytes().take_while(|b| *b == b'`').count());
    let fence = "`".repeat(ticks.max().unwrap_or(0).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", lines.join("\n"))
}

/// An entry: its first paragraph behind the mark, the rest below, indented.
fn item(item: &Item) -> String {
    let mark = match item.mark {
        Mark::Bullet => "- ".to_owned(),
        Mark::Number(n) => format!("{n}. "),
        Mark::Yes => "- ✓ ".to_owned(),
        Mark::No => "- ✗ ".to_owned(),
    };
    let indent = " ".repeat(match item.mark {
        Mark::Number(_) => mark.len(),
        _ => 2,
    });
    let mut out = mark;
    let mut before: Option<&Block> = None;
    for b in &item.blocks {
        let text = block(b, 3);
        match (before, b) {
            (None, _) => {}
            // Paragraphs of an entry are lines: two blanks at the end break one.
            (Some(Block::Paragraph(_)), Block::Paragraph(_)) => {
                out.truncate(out.trim_end().len());
                out.push_str("  \n");
            }
            _ => out.push('\n'),
        }
        for (n, line) in text.lines().enumerate() {
            if (n > 0 || before.is_some()) && !line.is_empty() {
                out.push_str(&indent);
            }
            out.push_str(line);
            out.push('\n');
        }
        before = Some(b);
    }
    if has_more(item) {
        out.push('\n');
    }
    out
}

/// Whether an entry is more than lines of text, so that the next one must stand apart.
fn has_more(item: &Item) -> bool {
    let line = |b: &Block| matches!(b, Block::Paragraph(_));
    !item.blocks.iter().all(line)
}

/// Running text with its marks; a newline breaks the line.
fn words(words: &Words) -> String {
    let lines = |s: &Span, show: &dyn Fn(&str) -> String| -> String {
        let parts: Vec<String> = s.text.split('\n').map(show).collect();
        parts.join("  \n")
    };
    let show = |s: &Span| match s.tone {
        Tone::Code | Tone::Quoted | Tone::Path => lines(s, &|t| code(t, false)),
        Tone::Strong => lines(s, &|t| around(t, "**")),
        Tone::Link => format!("<{}>", clean(&s.text).replace(['<', '>', ' '], "")),
        _ => lines(s, &escape),
    };
    words.0.iter().map(show).collect()
}

/// Text between marks, blanks at its ends outside of them.
fn around(text: &str, mark: &str) -> String {
    let inner = text.trim();
    if inner.is_empty() {
        return text.to_owned();
    }
    let lead = &text[..text.len() - text.trim_start().len()];
    let tail = &text[text.trim_end().len()..];
    format!("{lead}{mark}{}{mark}{tail}", escape(inner))
}

/// A table with pipes.
fn table(t: &Table) -> String {
    let says = |i: usize| {
        let mut cells = t.rows.iter().filter_map(|r| r.get(i));
        cells.any(|c| !c.text().is_empty())
    };
    let keep: Vec<usize> = (0..t.columns.len()).filter(|&i| says(i)).collect();
    let mut out = String::new();
    if !t.note.is_empty() {
        out.push_str(&format!("{}\n\n", escape(&t.note)));
    }
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&row(keep
        .iter()
        .map(|&c| t.columns[c].name.to_owned())
        .collect()));
    let rule = |&c: &usize| match t.columns[c].align {
        Align::Right => "---:|",
        _ => "---|",
    };
    out.push_str(&format!("|{}\n", keep.iter().map(rule).collect::<String>()));
    for r in &t.rows {
        let cells = keep
            .iter()
            .map(|&c| r.get(c).map_or_else(String::new, cell));
        out.push_str(&row(cells.collect()));
    }
    if !t.left_out.is_empty() {
        out.push_str(&format!("\n{}\n", escape(&t.left_out)));
    }
    out
}

fn cell(c: &Cell) -> String {
    match c {
        Cell::Code(t) | Cell::Shape(t) => code(t, true),
        Cell::Scope(depth, t) => format!("{}{}", "&emsp;".repeat(*depth), code(t, true)),
        Cell::Text(t) => {
            let show = |s: &Span| match s.tone {
                Tone::Quoted => code(&s.text, true),
                _ => escape(&s.text),
            };
            Words::from(t.trim()).0.iter().map(show).collect()
        }
        other => escape(&other.text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_what_is_in_it() {
        assert_eq!(fenced("", "a\n````b"), "`````\na\n````b\n`````\n");
        assert_eq!(fenced("python", "x"), "```python\nx\n```\n");
    }

    #[test]
    fn marks_do_not_take_blanks() {
        assert_eq!(
            words(&Words::from("a").strong(" b ").code("c`")),
            "a **b** `c'`"
        );
    }

    #[test]
    fn entries_hold_lines_and_code() {
        let mut step = Item::of(Mark::Number(1), Words::new().strong("Donate"));
        step.blocks.push(Block::Paragraph("saves 1 B".into()));
        let brief = item(&step);
        assert_eq!(brief, "1. **Donate**  \n   saves 1 B\n");
        step.blocks.push(Block::Code {
            language: "python",
            text: "f(x)".into(),
        });
        let long = item(&step);
        assert_eq!(long, format!("{brief}\n   ```python\n   f(x)\n   ```\n\n"));
    }
}

//! The report as one page that loads nothing: charts inline, tables below.

use super::table::{Align, Cell, Table};
use super::tables::tables;
use crate::findings::SavingKind;
use crate::render::terminal::shapes_table;
use crate::report::Report;
use crate::units;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;color:#1f2328;max-width:1240px;\
margin:2rem auto;padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .6rem;text-align:left;\
vertical-align:top;border-bottom:1px solid #e4e7eb}td.r,th.r{text-align:right;white-space:nowrap}\
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}.n,footer{color:#59636e}\
svg{max-width:100%;height:auto}li{margin:.5rem 0}@media(prefers-color-scheme:dark){body{\
background:#0d1117;color:#e6edf3}td,th{border-color:#30363d}svg{background:#fff}}";

/// Renders the first module's space of colour `color`. `charts` are SVG documents with captions.
pub fn render_html(report: &Report, color: i64, top: usize, charts: &[(String, String)]) -> String {
    let title = report.modules.first().map_or("xpeak", |m| m.name.as_str());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{0} – device memory</title>\
         <style>{STYLE}</style>\n<h1>Device memory of <code>{0}</code></h1>\n",
        escape(title)
    );
    let Some(module) = report.modules.first() else {
        return out;
    };
    match Report::space(module, color) {
        Some(space) => {
            let capacity = report.device.hbm_capacity_bytes.filter(|_| color == 0);
            let of = capacity.map_or_else(String::new, |c| {
                format!(
                    " of {} ({})",
                    units::bytes(c),
                    units::percent(space.peak_bytes, c)
                )
            });
            out.push_str(&format!(
                "<p><b>{} peak {}</b>{of}; {} must fit, of it {} fragmentation; {} is tile \
                 padding.</p>\n",
                escape(&space.name),
                units::bytes(space.peak_bytes),
                units::bytes(space.allocated_bytes),
                units::bytes(space.fragmentation_bytes),
                units::bytes(space.padding_bytes),
            ));
            for (caption, svg) in charts {
                out.push_str(&format!(
                    "<figure role=\"img\" aria-label=\"{}\">{svg}</figure>\n",
                    escape(caption)
                ));
            }
            if !space.findings.is_empty() {
                out.push_str("<h2>Findings</h2>\n<ol>\n");
            }
            for f in &space.findings {
                let how = match f.saving {
                    SavingKind::Exact => "saves",
                    SavingKind::Simulated => "saves about",
                    SavingKind::UpperBound => "saves up to",
                };
                let saving = match f.saving_bytes {
                    0 => String::new(),
                    n => format!(" – {how} {}", units::bytes(n)),
                };
                let evidence: String = f
                    .evidence
                    .iter()
                    .map(|e| format!("<li>{}</li>", escape(e)))
                    .collect();
                out.push_str(&format!(
                    "<li><b>{}</b>{saving}<br>{}<details><summary class=\"n\">{}</summary>\
                     <ul>{evidence}</ul></details></li>\n",
                    escape(&f.title),
                    escape(&f.action),
                    f.kind.name(),
                ));
            }
            if !space.findings.is_empty() {
                out.push_str("</ol>\n");
            }
            for t in tables(space, top) {
                out.push_str(&table(&t));
            }
        }
        None => {
            if let Some(shapes) = &module.shapes_only {
                out.push_str("<p>No buffer assignment in this file: the peak is unknown.</p>\n");
                out.push_str(&table(&shapes_table(shapes, top)));
            }
        }
    }
    out.push_str(&format!(
        "<footer>Made with xpeak {}</footer>\n</html>\n",
        report.tool.version
    ));
    out
}

fn table(t: &Table) -> String {
    let class = |a: Align| {
        if a == Align::Right {
            " class=\"r\""
        } else {
            ""
        }
    };
    let mut out = format!("<h2>{}</h2>\n", escape(&t.title));
    if !t.note.is_empty() {
        out.push_str(&format!("<p class=\"n\">{}</p>\n", escape(&t.note)));
    }
    out.push_str("<table><tr>");
    for c in &t.columns {
        out.push_str(&format!("<th{}>{}</th>", class(c.align), escape(c.name)));
    }
    out.push_str("</tr>\n");
    for row in &t.rows {
        out.push_str("<tr>");
        for (cell, c) in row.iter().zip(&t.columns) {
            let text = match cell {
                Cell::Code(t) | Cell::Shape(t) if !t.is_empty() => {
                    format!("<code>{}</code>", escape(&cell.text()))
                }
                Cell::Scope(depth, name) => format!(
                    "<code style=\"margin-left:{}rem\">{}</code>",
                    depth,
                    escape(&super::table::clean(name))
                ),
                _ => escape(&cell.text()),
            };
            out.push_str(&format!("<td{}>{text}</td>", class(c.align)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    if !t.left_out.is_empty() {
        out.push_str(&format!("<p class=\"n\">{}</p>\n", escape(&t.left_out)));
    }
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(super::escape("<script>&\""), "&lt;script&gt;&amp;&quot;");
    }
}

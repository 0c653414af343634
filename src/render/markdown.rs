//! The report in GitHub-flavoured Markdown, short enough for an issue: what matters first, the
//! rankings folded away, how it was made at the end.

use super::table::{clean, Align, Cell, Table};
use super::tables::tables;
use crate::findings::{Finding, SavingKind};
use crate::render::terminal::shapes_table;
use crate::report::{ModuleReport, Report, SpaceReport};
use crate::units;

/// How the Markdown report is set.
#[derive(Debug, Clone)]
pub struct MarkdownOptions {
    /// Rows of each ranking.
    pub top: usize,
    /// Colour of the space shown.
    pub color: i64,
    /// The command that made the report, for its last line.
    pub command: String,
    /// Pictures to show, by file name, with their captions.
    pub pictures: Vec<(String, String)>,
}

/// Findings shown before the details.
const FINDINGS: usize = 5;
/// Groups shown before the details.
const GROUPS: usize = 8;

/// Renders the first module in full and lists the others.
pub fn render_markdown(report: &Report, options: &MarkdownOptions) -> String {
    let mut out = String::new();
    let Some(module) = report.modules.first() else {
        return out;
    };
    out.push_str(&format!("# Device memory of `{}`\n\n", code(&module.name)));
    match Report::space(module, options.color) {
        Some(space) => {
            out.push_str(&facts(report, module, space));
            for (file, caption) in &options.pictures {
                out.push_str(&format!("\n![{caption}]({file})\n"));
            }
            out.push_str(&finding_list(&space.findings));
            let all = tables(space, options.top);
            if let Some(first) = tables(space, GROUPS).first() {
                out.push_str(&format!("\n## {}\n\n{}", first.title, table(first)));
            }
            out.push_str("\n<details><summary>Details</summary>\n");
            out.push_str(&finding_details(&space.findings));
            for t in all.iter().skip(1) {
                out.push_str(&format!("\n### {}\n\n{}", t.title, table(t)));
            }
            out.push_str("\n</details>\n");
        }
        None => out.push_str(&without_space(module, options)),
    }
    out.push_str(&other_modules(report, options));
    for d in &report.diagnostics {
        out.push_str(&format!("\n> {}: {}\n", d.severity, escape(&d.message)));
    }
    out.push_str(&format!(
        "\n<sub>Made with xpeak {} by `{}`</sub>\n",
        report.tool.version,
        code(&options.command)
    ));
    out
}

fn facts(report: &Report, module: &ModuleReport, space: &SpaceReport) -> String {
    let capacity = report
        .device
        .hbm_capacity_bytes
        .filter(|_| space.color == 0);
    let of = |bytes: u64| match capacity {
        Some(c) => format!(" ({} of {})", units::percent(bytes, c), units::bytes(c)),
        None => String::new(),
    };
    let mut rows = vec![
        (
            format!("{} peak", space.name),
            format!(
                "**{}**{}",
                units::bytes(space.peak_bytes),
                of(space.peak_bytes)
            ),
        ),
        (
            "must fit".to_owned(),
            format!(
                "{}{}, of it fragmentation {}",
                units::bytes(space.allocated_bytes),
                of(space.allocated_bytes),
                units::bytes(space.fragmentation_bytes)
            ),
        ),
    ];
    let b = &space.breakdown;
    let parts: Vec<String> = [
        ("temporaries", b.temporary_bytes),
        ("arguments", b.parameter_bytes),
        ("donated arguments", b.donated_bytes),
        ("outputs", b.output_bytes),
        ("constants", b.constant_bytes),
    ]
    .iter()
    .filter(|p| p.1 > 0)
    .map(|(name, bytes)| format!("{name} {}", units::bytes(*bytes)))
    .collect();
    rows.push(("made of".to_owned(), parts.join(", ")));
    rows.push((
        "tile padding".to_owned(),
        format!(
            "{} ({})",
            units::bytes(space.padding_bytes),
            units::percent(space.padding_bytes, space.peak_bytes)
        ),
    ));
    if !space.peak_instruction.is_empty() {
        let source = space.peak_source.as_ref();
        let source =
            source.map_or_else(String::new, |s| format!(", `{}:{}`", code(&s.file), s.line));
        rows.push((
            "peak at".to_owned(),
            format!(
                "`{}`{source}, point {} of {}",
                code(&space.peak_instruction),
                space.peak_point,
                space.point_count
            ),
        ));
    }
    let partitions = match module.num_partitions {
        0 | 1 => "one device".to_owned(),
        n => format!("{n} partitions"),
    };
    let mut program = format!(
        "{partitions}, {} instructions",
        units::count(module.instruction_count as u64)
    );
    if let Some(kind) = &report.device.kind {
        program = format!("{}, {program}", escape(kind));
    }
    if module.hosts.len() > 1 {
        program.push_str(&format!(", the same on {} hosts", module.hosts.len()));
    }
    rows.push(("program".to_owned(), program));
    let mut out = "| | |\n|---|---|\n".to_owned();
    for (name, value) in rows {
        out.push_str(&format!("| {name} | {value} |\n"));
    }
    out
}

fn saving(f: &Finding) -> String {
    if f.saving_bytes == 0 {
        return String::new();
    }
    let how = match f.saving {
        SavingKind::Exact => "saves",
        SavingKind::Simulated => "saves about",
        SavingKind::UpperBound => "saves up to",
    };
    format!(" ({how} {})", units::bytes(f.saving_bytes))
}

fn finding_list(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut out = "\n## Findings\n\n".to_owned();
    for f in findings.iter().take(FINDINGS) {
        out.push_str(&format!("1. **{}**{}", escape(&f.title), saving(f)));
        if !f.action.is_empty() {
            out.push_str(&format!("<br>{}", escape(&f.action)));
        }
        out.push('\n');
    }
    if findings.len() > FINDINGS {
        out.push_str(&format!(
            "\n… and {} more in the details\n",
            findings.len() - FINDINGS
        ));
    }
    out
}

fn finding_details(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut out = "\n### Evidence\n".to_owned();
    for f in findings {
        out.push_str(&format!(
            "\n**{}** (`{}`){}\n\n",
            escape(&f.title),
            f.kind.name(),
            saving(f)
        ));
        for e in &f.evidence {
            out.push_str(&format!("- {}\n", escape(e)));
        }
        if !f.action.is_empty() {
            out.push_str(&format!("- to do: {}\n", escape(&f.action)));
        }
        for link in &f.links {
            out.push_str(&format!("- <{}>\n", clean(link)));
        }
    }
    out
}

fn without_space(module: &ModuleReport, options: &MarkdownOptions) -> String {
    let Some(shapes) = &module.shapes_only else {
        return format!("This module uses no memory in space {}.\n", options.color);
    };
    let t = shapes_table(shapes, options.top);
    format!(
        "No buffer assignment in this file: the peak is unknown. Parameters take {}, outputs {}; \
         {} of both is tile padding.\n\n## {}\n\n{}",
        units::bytes(shapes.parameter_bytes),
        units::bytes(shapes.output_bytes),
        units::bytes(shapes.padding_bytes),
        t.title,
        table(&t)
    )
}

fn other_modules(report: &Report, options: &MarkdownOptions) -> String {
    let others = report.modules.get(1..).unwrap_or_default();
    if others.is_empty() {
        return String::new();
    }
    let name = |m: &ModuleReport| {
        let peak = Report::space(m, options.color)
            .map_or_else(|| "unknown".to_owned(), |s| units::bytes(s.peak_bytes));
        format!("`{}` {peak}", code(&m.name))
    };
    let shown: Vec<String> = others.iter().take(options.top).map(name).collect();
    let more = match others.len() - shown.len() {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("\nOther modules: {}{more}.\n", shown.join(", "))
}

/// A table with pipes.
pub fn table(t: &Table) -> String {
    let keep: Vec<usize> = (0..t.columns.len())
        .filter(|&i| {
            t.rows
                .iter()
                .any(|r| r.get(i).is_some_and(|c| !c.text().is_empty()))
        })
        .collect();
    let mut out = String::new();
    if !t.note.is_empty() {
        out.push_str(&format!("{}\n\n", escape(&t.note)));
    }
    for (i, &c) in keep.iter().enumerate() {
        out.push_str(if i == 0 { "| " } else { " | " });
        out.push_str(t.columns[c].name);
    }
    out.push_str(" |\n|");
    for &c in &keep {
        out.push_str(if t.columns[c].align == Align::Right {
            "---:|"
        } else {
            "---|"
        });
    }
    out.push('\n');
    for row in &t.rows {
        for (i, &c) in keep.iter().enumerate() {
            out.push_str(if i == 0 { "| " } else { " | " });
            out.push_str(&cell(&row[c]));
        }
        out.push_str(" |\n");
    }
    if !t.left_out.is_empty() {
        out.push_str(&format!("\n{}\n", escape(&t.left_out)));
    }
    out
}

fn cell(c: &Cell) -> String {
    match c {
        Cell::Code(t) | Cell::Shape(t) if !t.is_empty() => format!("`{}`", code(t)),
        Cell::Scope(depth, t) => format!("{}`{}`", "&emsp;".repeat(*depth), code(t)),
        other => escape(&other.text()),
    }
}

/// Text for within backticks in a table.
fn code(text: &str) -> String {
    clean(text).replace('`', "'").replace('|', "\\|")
}

/// Text that must not turn into markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        if matches!(
            c,
            '|' | '*' | '_' | '`' | '<' | '>' | '#' | '[' | ']' | '\\'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_become_markup() {
        assert_eq!(escape("a|b*c"), "a\\|b\\*c");
        assert_eq!(code("a`b|c"), "a'b\\|c");
    }
}

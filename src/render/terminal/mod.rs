//! The report for a terminal: fits 80 columns, uses more when there is more.

mod graph;
mod layout;
mod style;

pub use graph::render_graph;
pub use layout::{render_table, wrap};
pub use style::Style;

use crate::findings::{Finding, FindingSeverity, SavingKind};
use crate::render::tables;
use crate::render::{clean, cut, elide, Align, Cell, Column, Table};
use crate::report::{DeviceEntry, ModuleReport, Report, ShapesOnly, SpaceReport};
use crate::units;

/// How the terminal report is set.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions {
    /// Columns to fill.
    pub width: usize,
    /// Rows of each ranking.
    pub top: usize,
    /// Colour of the space shown.
    pub color: i64,
    /// Escape sequences or none.
    pub style: Style,
}

/// Renders the report: the first module in full, the others by name and peak. `timeline` is the
/// first module's memory at each program point.
pub fn render_terminal(report: &Report, timeline: &[u64], options: &TerminalOptions) -> String {
    let mut out = String::new();
    let style = options.style;
    let Some(module) = report.modules.first() else {
        return out;
    };
    out.push_str(&header(report, module, options));
    match Report::space(module, options.color) {
        Some(space) => {
            out.push_str(&headline(space, &report.device, options));
            out.push('\n');
            out.push_str(&breakdown(space, options));
            let graph = render_graph(timeline, space.peak_point as usize, options.width, style);
            if !graph.is_empty() {
                out.push('\n');
                out.push_str(&style.bold("Memory over program order\n"));
                out.push_str(&graph);
            }
            out.push('\n');
            out.push_str(&findings(&space.findings, options));
            for table in tables(space, options.top) {
                out.push('\n');
                out.push_str(&render_table(&table, options.width, style));
            }
            out.push_str(&other_spaces(module, options));
        }
        None => out.push_str(&without_space(module, options)),
    }
    out.push_str(&other_modules(report, options));
    out
}

fn header(report: &Report, module: &ModuleReport, options: &TerminalOptions) -> String {
    let mut facts = Vec::new();
    if let Some(kind) = &report.device.kind {
        facts.push(clean(kind));
    }
    if module.num_partitions > 1 {
        facts.push(format!("{} partitions", module.num_partitions));
    }
    if module.replica_count > 1 {
        facts.push(format!("{} replicas", module.replica_count));
    }
    facts.push(format!(
        "{} instructions",
        units::count(module.instruction_count as u64)
    ));
    match module.hosts.as_slice() {
        [] => {}
        [one] => facts.push(format!("host {}", clean(one))),
        many => facts.push(format!("the same on {} hosts", many.len())),
    }
    let name = match module.program_id {
        Some(id) => format!("{}({id})", clean(&module.name)),
        None => clean(&module.name),
    };
    let mut out = options.style.bold(&elide(&name, options.width));
    out.push('\n');
    for line in wrap(&facts.join(" · "), options.width) {
        out.push_str(&format!("{line}\n"));
    }
    if let Some(source) = report.sources.get(module.source_index) {
        out.push_str(
            &options
                .style
                .dim(&elide(&clean(&source.path), options.width)),
        );
        out.push('\n');
    }
    out.push('\n');
    out
}

fn headline(space: &SpaceReport, device: &DeviceEntry, options: &TerminalOptions) -> String {
    let style = options.style;
    let capacity = device.hbm_capacity_bytes.filter(|_| space.color == 0);
    let mut out = String::new();
    let peak = style.bold(&format!("{:>10}", units::bytes(space.peak_bytes)));
    match capacity {
        Some(capacity) => {
            let share = units::percent(space.peak_bytes, capacity);
            let bar = bar(
                space.peak_bytes,
                capacity,
                options.width.saturating_sub(52).clamp(8, 40),
            );
            let bar = match space.allocated_bytes {
                a if a > capacity => style.red(&bar),
                a if a > capacity / 10 * 9 => style.yellow(&bar),
                _ => style.green(&bar),
            };
            out.push_str(&format!(
                "{:<10} {peak}  {bar} {share} of {}\n",
                format!("{} peak", space.name),
                units::bytes(capacity)
            ));
        }
        None => out.push_str(&format!("{:<10} {peak}\n", format!("{} peak", space.name))),
    }
    let mut fit = format!(
        "{:<10} {:>10}",
        "must fit",
        units::bytes(space.allocated_bytes)
    );
    if space.fragmentation_bytes > 0 {
        fit.push_str(&format!(
            "  {} more than the peak: fragmentation",
            units::bytes(space.fragmentation_bytes)
        ));
    }
    out.push_str(&format!("{fit}\n"));
    if let Some(capacity) = capacity {
        out.push_str(&if space.allocated_bytes > capacity {
            let over = units::bytes(space.allocated_bytes - capacity);
            style.red(&format!(
                "{:<10} {over:>10}  over capacity: it does not fit\n",
                "over"
            ))
        } else {
            let free = units::bytes(capacity - space.allocated_bytes);
            format!(
                "{:<10} {free:>10}  for program code, the runtime and other programs\n",
                "left"
            )
        });
    }
    if !space.peak_instruction.is_empty() {
        let mut facts = vec![clean(&space.peak_instruction)];
        if let Some(s) = &space.peak_source {
            facts.push(format!("{}:{}", clean(&s.file), s.line));
        }
        facts.push(format!(
            "point {} of {}",
            space.peak_point, space.point_count
        ));
        let label = format!("{:<10} ", "peak at");
        let room = options.width.saturating_sub(label.len());
        out.push_str(&format!("{label}{}\n", elide(&facts.join(" · "), room)));
        if !space.peak_op_name.is_empty() {
            let name = elide(&clean(&space.peak_op_name), room);
            out.push_str(&format!("{:<10} {}\n", "", options.style.dim(&name)));
        }
    }
    out
}

/// A bar of `width` characters, filled to `part` of `whole`.
fn bar(part: u64, whole: u64, width: usize) -> String {
    let filled = (u128::from(part) * width as u128)
        .checked_div(u128::from(whole))
        .map_or(0, |f| usize::try_from(f).unwrap_or(width).min(width));
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

fn breakdown(space: &SpaceReport, options: &TerminalOptions) -> String {
    let b = &space.breakdown;
    let parts = [
        ("temporaries", b.temporary_bytes),
        ("arguments, not donated", b.parameter_bytes),
        ("arguments, donated", b.donated_bytes),
        ("outputs", b.output_bytes),
        ("constants", b.constant_bytes),
    ];
    let mut out = options.style.bold("What it is made of\n");
    for (name, bytes) in parts.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let bar_width = options.width.saturating_sub(50).clamp(8, 40);
        out.push_str(&format!(
            "  {:>10}  {:>6}  {}  {name}\n",
            units::bytes(bytes),
            units::percent(bytes, space.peak_bytes),
            options.style.blue(&bar(bytes, space.peak_bytes, bar_width)),
        ));
    }
    if space.padding_bytes > 0 {
        out.push_str(&options.style.dim(&format!(
            "  {} of it is tile padding ({})\n",
            units::bytes(space.padding_bytes),
            units::percent(space.padding_bytes, space.peak_bytes)
        )));
    }
    out
}

fn findings(findings: &[Finding], options: &TerminalOptions) -> String {
    let style = options.style;
    if findings.is_empty() {
        return style.dim("Findings: none\n");
    }
    let mut out = style.bold("Findings\n");
    let most = (options.top.div_ceil(2) + 1).min(findings.len());
    let (shown, left_out) = findings.split_at(most);
    for (i, f) in shown.iter().enumerate() {
        let number = format!("{:>3}. ", i + 1);
        let title = wrap(&clean(&f.title), options.width.saturating_sub(5));
        for (n, line) in title.iter().enumerate() {
            let line = match f.severity {
                FindingSeverity::High => style.bold(line),
                _ => line.clone(),
            };
            let lead = if n == 0 { number.as_str() } else { "     " };
            out.push_str(&format!("{lead}{line}\n"));
        }
        let mut detail = Vec::new();
        if f.saving_bytes > 0 {
            let how = match f.saving {
                SavingKind::Exact => "saves",
                SavingKind::Simulated => "saves about",
                SavingKind::UpperBound => "saves up to",
            };
            detail.push(style.green(&format!("{how} {}", units::bytes(f.saving_bytes))));
        }
        detail.push(style.dim(f.kind.name()));
        out.push_str(&format!("     {}\n", detail.join(" · ")));
        if !f.action.is_empty() {
            for line in wrap(
                &format!("→ {}", clean(&f.action)),
                options.width.saturating_sub(5),
            ) {
                out.push_str(&format!("     {line}\n"));
            }
        }
    }
    if !left_out.is_empty() {
        out.push_str(&style.dim(&format!(
            "  … and {} more findings (--top N shows more)\n",
            left_out.len()
        )));
    }
    out
}

fn other_spaces(module: &ModuleReport, options: &TerminalOptions) -> String {
    let others: Vec<_> = module
        .memory_spaces
        .iter()
        .filter(|s| s.color != options.color && s.peak_bytes > 0)
        .collect();
    if others.is_empty() {
        return String::new();
    }
    let table = Table {
        title: "Other memory spaces".to_owned(),
        note: "rank one with --space NAME".to_owned(),
        columns: vec![
            Column {
                name: "peak",
                align: Align::Right,
            },
            Column {
                name: "allocated",
                align: Align::Right,
            },
            Column {
                name: "color",
                align: Align::Right,
            },
            Column {
                name: "space",
                align: Align::Flexible,
            },
        ],
        rows: others
            .iter()
            .map(|s| {
                vec![
                    Cell::Bytes(s.peak_bytes),
                    Cell::Bytes(s.allocated_bytes),
                    Cell::Text(s.color.to_string()),
                    Cell::Text(s.name.clone()),
                ]
            })
            .collect(),
        left_out: String::new(),
    };
    format!("\n{}", render_table(&table, options.width, options.style))
}

/// A module whose peak cannot be told: why, and what can be known.
fn without_space(module: &ModuleReport, options: &TerminalOptions) -> String {
    let Some(shapes) = &module.shapes_only else {
        return format!("This module uses no memory in space {}.\n", options.color);
    };
    let mut out = String::new();
    let text = "No buffer assignment in this file, so the peak, temporaries and live ranges are \
                unknown. Use the *after_optimizations.hlo.pb of the same dump, or a profile. What \
                its shapes tell:";
    for line in wrap(text, options.width) {
        out.push_str(&format!("{line}\n"));
    }
    out.push('\n');
    out.push_str(&format!(
        "  {:>10}  parameters\n  {:>10}  outputs\n  {:>10}  of both is tile padding\n\n",
        units::bytes(shapes.parameter_bytes),
        units::bytes(shapes.output_bytes),
        units::bytes(shapes.padding_bytes)
    ));
    out.push_str(&render_table(
        &shapes_table(shapes, options.top),
        options.width,
        options.style,
    ));
    out
}

/// The arrays of a module without buffer assignment.
pub(crate) fn shapes_table(shapes: &ShapesOnly, top: usize) -> Table {
    let (shown, left_out) = cut(&shapes.arrays, top, |a| a.size_bytes, "arrays");
    Table {
        title: "Parameters and outputs".to_owned(),
        note: if shapes.shapes_are_global {
            "shapes before partitioning: of the whole program, not of one device".to_owned()
        } else {
            String::new()
        },
        columns: vec![
            Column {
                name: "size",
                align: Align::Right,
            },
            Column {
                name: "padding",
                align: Align::Right,
            },
            Column {
                name: "kind",
                align: Align::Left,
            },
            Column {
                name: "shape",
                align: Align::Flexible,
            },
            Column {
                name: "what",
                align: Align::Flexible,
            },
        ],
        rows: shown
            .iter()
            .map(|a| {
                vec![
                    Cell::Bytes(a.size_bytes),
                    Cell::Bytes(a.size_bytes - a.unpadded_bytes.min(a.size_bytes)),
                    Cell::Text(a.kind.to_owned()),
                    Cell::Shape(a.shape.clone()),
                    Cell::Code(a.name.clone()),
                ]
            })
            .collect(),
        left_out,
    }
}

fn other_modules(report: &Report, options: &TerminalOptions) -> String {
    let others = report.modules.get(1..).unwrap_or_default();
    if others.is_empty() {
        return String::new();
    }
    let peak = |m: &ModuleReport| Report::space(m, options.color).map_or(0, |s| s.peak_bytes);
    let (shown, _) = others.split_at(others.len().min(options.top));
    let table = Table {
        title: "Other modules".to_owned(),
        note: "show one with --module NAME".to_owned(),
        columns: vec![
            Column {
                name: "peak",
                align: Align::Right,
            },
            Column {
                name: "instructions",
                align: Align::Right,
            },
            Column {
                name: "module",
                align: Align::Flexible,
            },
            Column {
                name: "",
                align: Align::Flexible,
            },
        ],
        rows: shown
            .iter()
            .map(|m| {
                vec![
                    match Report::space(m, options.color) {
                        Some(s) => Cell::Bytes(s.peak_bytes),
                        None => Cell::Text("unknown".to_owned()),
                    },
                    Cell::Count(m.instruction_count as u64),
                    Cell::Code(match m.program_id {
                        Some(id) => format!("{}({id})", m.name),
                        None => m.name.clone(),
                    }),
                    match (&m.shapes_only, report.sources.get(m.source_index)) {
                        (Some(_), _) => Cell::Text("no buffer assignment".to_owned()),
                        // Programs of one name are told apart by their files.
                        (None, Some(s)) if m.program_id.is_none() => Cell::Code(s.path.clone()),
                        _ => Cell::Text(String::new()),
                    },
                ]
            })
            .collect(),
        left_out: match others.len() - shown.len() {
            0 => String::new(),
            n => {
                let largest = others.get(shown.len()).map_or(0, peak);
                format!(
                    "… and {n} more modules, each {} or less",
                    units::bytes(largest)
                )
            }
        },
    };
    format!("\n{}", render_table(&table, options.width, options.style))
}

//! The report of a program: the peak, what it is made of, findings, rankings, what else there is.

use super::findings;
use super::rankings::cells::arrays;
use super::rankings::{rankings, RANKINGS};
use crate::findings::Finding;
use crate::render::document::{Block, Document, Fact};
use crate::render::words::{Tone, Words};
use crate::render::{cut, Cell, Column, Table};
use crate::report::{DeviceEntry, ModuleReport, Report, ShapesOnly, SpaceReport};
use crate::units;

/// Who reads the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The one who asked, on a terminal: where it came from, everything in sight.
    Screen,
    /// Others, in a ticket or on a page: no paths, rankings folded away, findings with evidence.
    Ticket,
}

/// What the report shows beside its data.
#[derive(Debug, Clone)]
pub struct ReportDocument {
    /// Who reads it.
    pub audience: Audience,
    /// Rows of each ranking.
    pub top: usize,
    /// Colour of the space shown.
    pub color: i64,
    /// Memory of the first module at each program point; empty = not shown.
    pub timeline: Vec<u64>,
    /// Pictures and drawings, after the figures.
    pub pictures: Vec<Block>,
    /// The command that made it; empty = not said.
    pub command: String,
}

/// The first module in full, the others by name and peak.
pub fn report(report: &Report, options: &ReportDocument) -> Document {
    let Some(module) = report.modules.first() else {
        return Document::default();
    };
    let mut out = Document::new(format!("{} – device memory", module.name));
    header(&mut out, report, module, options);
    match Report::space(module, options.color) {
        Some(space) => {
            figures(&mut out, space, &report.device);
            if !options.timeline.is_empty() {
                out.heading(2, "Memory over program order");
                out.blocks.push(Block::Timeline {
                    bytes: options.timeline.clone(),
                    peak_point: space.peak_point as usize,
                });
            }
            out.blocks.extend(options.pictures.iter().cloned());
            findings_list(&mut out, &space.findings, options);
            lists(&mut out, space, module, options);
        }
        None => without_space(&mut out, module, options),
    }
    out.table(other_modules(report, options));
    if options.audience == Audience::Ticket {
        for d in &report.diagnostics {
            let severity = Words::new().with(Tone::Warning, d.severity.to_string());
            out.paragraph(severity.plain(format!(": {}", d.message)));
        }
        let made = format!("Made with xpeak {}", report.tool.version);
        let made = Words::from(made);
        out.blocks
            .push(Block::Footer(match options.command.as_str() {
                "" => made,
                command => made.plain(" by ").code(command),
            }));
    }
    out
}

/// `jit_step(42)`.
fn name_of(module: &ModuleReport) -> String {
    match module.program_id {
        Some(id) => format!("{}({id})", module.name),
        None => module.name.clone(),
    }
}

fn header(out: &mut Document, report: &Report, module: &ModuleReport, options: &ReportDocument) {
    let mut facts: Vec<String> = report.device.kind.iter().cloned().collect();
    if module.num_partitions > 1 {
        facts.push(format!("{} partitions", module.num_partitions));
    }
    if module.replica_count > 1 {
        facts.push(format!("{} replicas", module.replica_count));
    }
    let instructions = units::count(module.instruction_count as u64);
    facts.push(format!("{instructions} instructions"));
    let ticket = options.audience == Audience::Ticket;
    match module.hosts.as_slice() {
        [] => {}
        [one] if !ticket => facts.push(format!("host {one}")),
        [_] => {}
        many => facts.push(format!("the same on {} hosts", many.len())),
    }
    let mut words = Words::from(facts.join(" · "));
    let source = report.sources.get(module.source_index);
    if let Some(source) = source.filter(|_| !ticket) {
        words = words.plain("\n").with(Tone::Path, &source.path);
    }
    let title = match ticket {
        true => Words::from("Device memory of ").code(name_of(module)),
        false => Words::new().code(name_of(module)),
    };
    out.heading(1, title);
    out.paragraph(words);
}

/// The peak against the device, where it is, and what it is made of.
fn figures(out: &mut Document, space: &SpaceReport, device: &DeviceEntry) {
    let capacity = device.hbm_capacity_bytes.filter(|_| space.color == 0);
    let row = |name: String, bytes: u64, bar: Option<Tone>, text: String| {
        let bar = match (bar, capacity) {
            (Some(tone), Some(capacity)) => Cell::Bar(bytes, capacity, tone),
            _ => Cell::of(""),
        };
        vec![Cell::Text(name), Cell::Bytes(bytes), bar, Cell::Text(text)]
    };
    let tone = match capacity {
        Some(c) if space.allocated_bytes > c => Tone::Bad,
        Some(c) if space.allocated_bytes > c / 10 * 9 => Tone::Warning,
        _ => Tone::Good,
    };
    let of = capacity.map_or_else(String::new, |c| {
        format!(
            "{} of {}",
            units::percent(space.peak_bytes, c),
            units::bytes(c)
        )
    });
    let fragmentation = match space.fragmentation_bytes {
        0 => String::new(),
        n => format!("{} more than the peak: fragmentation", units::bytes(n)),
    };
    let mut rows = vec![
        row(
            format!("{} peak", space.name),
            space.peak_bytes,
            Some(tone),
            of,
        ),
        row(
            "must fit".to_owned(),
            space.allocated_bytes,
            None,
            fragmentation,
        ),
    ];
    if let Some(c) = capacity {
        rows.push(match space.allocated_bytes.checked_sub(c) {
            Some(over) if over > 0 => row(
                "over".to_owned(),
                over,
                None,
                "over capacity: it does not fit".to_owned(),
            ),
            _ => row(
                "left".to_owned(),
                c.saturating_sub(space.allocated_bytes),
                None,
                "for code, the runtime and other programs".to_owned(),
            ),
        });
    }
    out.table(Table {
        columns: vec![
            Column::left(""),
            Column::right(""),
            Column::bar(),
            Column::flexible(""),
        ],
        rows,
        ..Table::default()
    });
    out.facts(peak_at(space).into_iter().collect());
    out.table(made_of(space));
}

fn peak_at(space: &SpaceReport) -> Option<Fact> {
    if space.peak_instruction.is_empty() {
        return None;
    }
    let mut value = Words::new().code(&space.peak_instruction);
    if let Some(s) = &space.peak_source {
        value = value.plain(" · ").code(format!("{}:{}", s.file, s.line));
    }
    let point = format!(" · point {} of {}", space.peak_point, space.point_count);
    value = value.plain(point);
    if !space.peak_op_name.is_empty() {
        value = value.plain("\n").quiet(&space.peak_op_name);
    }
    Some(Fact {
        name: "peak at",
        value,
    })
}

fn made_of(space: &SpaceReport) -> Table {
    let b = &space.breakdown;
    let parts = [
        ("temporaries", b.temporary_bytes),
        ("arguments, not donated", b.parameter_bytes),
        ("arguments, donated", b.donated_bytes),
        ("outputs", b.output_bytes),
        ("constants", b.constant_bytes),
    ];
    let row = |(name, bytes): (&str, u64)| {
        vec![
            Cell::Bytes(bytes),
            Cell::Share(bytes, space.peak_bytes),
            Cell::Bar(bytes, space.peak_bytes, Tone::Drawn),
            Cell::of(name),
        ]
    };
    Table {
        title: "What it is made of".to_owned(),
        columns: vec![
            Column::right(""),
            Column::right(""),
            Column::bar(),
            Column::flexible(""),
        ],
        rows: parts.into_iter().filter(|p| p.1 > 0).map(row).collect(),
        left_out: match space.padding_bytes {
            0 => String::new(),
            n => format!(
                "{} of it is tile padding ({})",
                units::bytes(n),
                units::percent(n, space.peak_bytes)
            ),
        },
        ..Table::default()
    }
}

fn findings_list(out: &mut Document, findings: &[Finding], options: &ReportDocument) {
    if findings.is_empty() {
        out.paragraph("Findings: none");
        return;
    }
    out.heading(2, "Findings");
    let (shown, rest) = findings.split_at(listed(findings, options));
    out.list(findings::items(shown));
    if !rest.is_empty() {
        out.paragraph(Words::new().quiet(format!(
            "… and {} more findings ({})",
            rest.len(),
            match options.audience {
                Audience::Screen => "--top N shows more",
                Audience::Ticket => "in the details",
            }
        )));
    }
}

/// How many findings stand in the list.
fn listed(findings: &[Finding], options: &ReportDocument) -> usize {
    let most = match options.audience {
        Audience::Screen => options.top.div_ceil(2) + 1,
        Audience::Ticket => options.top.min(5),
    };
    most.min(findings.len())
}

/// Rankings and other spaces: in sight, or folded away behind the first.
fn lists(out: &mut Document, space: &SpaceReport, module: &ModuleReport, options: &ReportDocument) {
    let ticket = options.audience == Audience::Ticket;
    let first = if ticket {
        options.top.min(5)
    } else {
        options.top
    };
    let first = RANKINGS.first().and_then(|r| (r.table)(space, first));
    first.into_iter().for_each(|t| out.table(t));
    let tables = rankings(space, options.top).into_iter().skip(1);
    let rest = tables.chain([other_spaces(module, options)]);
    let rest = rest.filter(|t| !t.rows.is_empty()).map(Block::Table);
    if !ticket {
        out.blocks.extend(rest);
        return;
    }
    let mut folded = Vec::new();
    let evidence = findings::evidence(&space.findings, listed(&space.findings, options));
    if !evidence.is_empty() {
        folded.push(Block::Heading(2, "Evidence".into()));
        folded.extend(evidence);
    }
    folded.extend(rest);
    if !folded.is_empty() {
        out.blocks.push(Block::Details {
            summary: "Details".into(),
            blocks: folded,
        });
    }
}

fn other_spaces(module: &ModuleReport, options: &ReportDocument) -> Table {
    let others = module.memory_spaces.iter();
    let others = others.filter(|s| s.color != options.color && s.peak_bytes > 0);
    Table {
        title: "Other memory spaces".to_owned(),
        note: "rank one with --space NAME".to_owned(),
        columns: vec![
            Column::right("peak"),
            Column::right("allocated"),
            Column::right("color"),
            Column::flexible("space"),
        ],
        rows: others
            .map(|s| {
                vec![
                    Cell::Bytes(s.peak_bytes),
                    Cell::Bytes(s.allocated_bytes),
                    Cell::of(s.color.to_string()),
                    Cell::of(&s.name),
                ]
            })
            .collect(),
        ..Table::default()
    }
}

/// A module whose peak cannot be told: why, and what can be known.
fn without_space(out: &mut Document, module: &ModuleReport, options: &ReportDocument) {
    let Some(shapes) = &module.shapes_only else {
        out.paragraph(format!(
            "This module uses no memory in space {}.",
            options.color
        ));
        return;
    };
    out.paragraph(
        "No buffer assignment in this file, so the peak, temporaries and live ranges are unknown. \
         Use the *after_optimizations.hlo.pb of the same dump, or a profile. What its shapes tell:",
    );
    let row = |bytes: u64, name: &str| vec![Cell::Bytes(bytes), Cell::of(name)];
    out.table(Table {
        columns: vec![Column::right(""), Column::flexible("")],
        rows: vec![
            row(shapes.parameter_bytes, "parameters"),
            row(shapes.output_bytes, "outputs"),
            row(shapes.padding_bytes, "of both is tile padding"),
        ],
        ..Table::default()
    });
    out.table(shapes_table(shapes, options.top));
}

/// The arrays of a module without buffer assignment.
fn shapes_table(shapes: &ShapesOnly, top: usize) -> Table {
    let (shown, left_out) = cut(&shapes.arrays, top, |a| a.size_bytes, "arrays");
    Table {
        title: "Parameters and outputs".to_owned(),
        note: match shapes.shapes_are_global {
            true => "shapes before partitioning: of the whole program, not of one device",
            false => "",
        }
        .to_owned(),
        left_out,
        ..arrays(shown)
    }
}

fn other_modules(report: &Report, options: &ReportDocument) -> Table {
    let others = report.modules.get(1..).unwrap_or_default();
    let peak = |m: &ModuleReport| Report::space(m, options.color).map(|s| s.peak_bytes);
    let (shown, rest) = others.split_at(others.len().min(options.top));
    let ticket = options.audience == Audience::Ticket;
    let row = |m: &ModuleReport| {
        let note = match (&m.shapes_only, report.sources.get(m.source_index)) {
            (Some(_), _) => Cell::of("no buffer assignment"),
            // Programs of one name are told apart by their files.
            (None, Some(s)) if m.program_id.is_none() && !ticket => Cell::Code(s.path.clone()),
            _ => Cell::of(""),
        };
        vec![
            peak(m).map_or_else(|| Cell::of("unknown"), Cell::Bytes),
            Cell::Count(m.instruction_count as u64),
            Cell::Code(name_of(m)),
            note,
        ]
    };
    Table {
        title: "Other modules".to_owned(),
        note: "show one with --module NAME".to_owned(),
        columns: vec![
            Column::right("peak"),
            Column::right("instructions"),
            Column::flexible("module"),
            Column::flexible(""),
        ],
        rows: shown.iter().map(row).collect(),
        left_out: rest.first().map_or_else(String::new, |largest| {
            format!(
                "… and {} more modules, each {} or less",
                rest.len(),
                units::bytes(peak(largest).unwrap_or(0))
            )
        }),
    }
}

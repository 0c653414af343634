//! What an out-of-memory text says, and what to do about it.

use super::joined;
use super::rankings::cells::repeats;
use super::steps::{next_steps, scenario};
use crate::oom::{AllocationGroup, Kind, OomReport};
use crate::render::document::{Block, Document, Fact};
use crate::render::words::Words;
use crate::render::{cut, Cell, Column, Table};
use crate::triage::{FromDump, Triage, TriageReport};
use crate::units;

/// Groups shown of a failure.
const GROUPS: usize = 5;
/// Failures shown besides the first.
const OTHERS: usize = 12;

/// The first failure in full, with what its dump adds; others folded away behind a line each.
pub fn triage(report: &TriageReport, dump: Option<&FromDump>) -> Document {
    let mut out = Document::new("Out-of-memory triage");
    let Some((first, others)) = report.reports.split_first() else {
        out.paragraph("No out-of-memory text found.");
        return out;
    };
    out.heading(1, headline(&first.report));
    failure(&mut out, first);
    if !others.is_empty() {
        out.heading(2, "Also in this text");
    }
    let (shown, rest) = others.split_at(others.len().min(OTHERS));
    for t in shown {
        let mut inside = Document::default();
        failure(&mut inside, t);
        let line = format!("line {}: {}", t.report.line, headline(&t.report));
        out.blocks.push(Block::Details {
            summary: line.into(),
            blocks: inside.blocks,
        });
    }
    if !rest.is_empty() {
        out.paragraph(format!("… and {} more", rest.len()));
    }
    if let Some(dump) = dump {
        joined::from_dump(&mut out, dump);
    }
    out
}

/// One line: what ran out, and how much.
pub fn headline(r: &OomReport) -> String {
    let mut out = what(r).to_string();
    if let Some(m) = &r.module {
        out.push_str(&format!(" in {m}"));
    } else if let Some(p) = &r.program {
        out.push_str(&format!(" ({p})"));
    }
    if let Some(code) = &r.code {
        out.push_str(&format!(" ({code})"));
    }
    let figures = figures(r);
    if !figures.is_empty() {
        out.push_str(&format!(": {}", figures.join(", ")));
    }
    if r.count > 1 {
        out.push_str(&format!(" [said {} times]", r.count));
    }
    out
}

fn what(r: &OomReport) -> &'static str {
    use Kind::*;
    match r.kind {
        TpuCompileHbm => "TPU compiler: HBM does not suffice",
        TpuCompileVmem => "TPU compiler: VMEM does not suffice",
        TpuCompileSmem => "TPU compiler: SMEM does not suffice",
        TpuCompileSpace => "TPU compiler: a memory space does not suffice",
        TpuScopedVmem => "TPU compiler: scoped VMEM of one instruction does not suffice",
        TpuSingleAllocation => "TPU compiler: one allocation is larger than the memory",
        TpuFastExit => "TPU compiler: stopped early for lack of HBM",
        TpuTcSc => "TPU compiler: TensorCore and SparseCore together exceed HBM",
        TpuSparsecoreAlloca => "TPU compiler: SparseCore stack does not suffice",
        TpuRuntimeAllocation => "TPU runtime: no room for a buffer",
        TpuProgramLoad => "TPU runtime: no room to load a program",
        TpuInputMismatch => "TPU runtime: an argument of another size (no out-of-memory)",
        GpuAllocation | GpuBufferAssignment | GpuBfc => "GPU: out of memory",
        CpuAllocation => "CPU backend: out of host memory",
        HostOom => "Host memory ran out, not the device's",
        TpuUsage => "TPU compiler's usage lines (no failure)",
        Warnings => "Warnings about memory (no failure)",
        FrameworkAccounting => "A framework's figures (no failure)",
        TensorflowOp => "TensorFlow op: out of memory (no XLA program)",
        LookAlike => "A tool's own estimate (not XLA's error)",
    }
}

fn figures(r: &OomReport) -> Vec<String> {
    let mut out = Vec::new();
    match (r.used_bytes, r.limit_bytes) {
        (Some(u), Some(l)) => {
            let over = r.over_bytes.or_else(|| u.checked_sub(l).filter(|&o| o > 0));
            let over = over.map_or_else(String::new, |o| format!(", {} over", units::bytes(o)));
            out.push(format!("{} of {}{over}", units::bytes(u), units::bytes(l)));
        }
        (Some(u), None) => out.push(format!("{} used", units::bytes(u))),
        (None, Some(l)) => out.push(format!("limit {}", units::bytes(l))),
        _ => {}
    }
    let more = [
        ("asked", r.requested_bytes),
        ("free", r.free_bytes),
        ("largest free piece", r.largest_free_block_bytes),
        ("reservable", r.reservable_bytes),
        ("in use", r.in_use_bytes),
        ("TensorCore", r.tensorcore_bytes),
        ("SparseCore", r.sparsecore_bytes),
    ];
    out.extend(named(&more));
    out
}

/// `parameters 1.50 GiB` for each that is known.
fn named(rows: &[(&str, Option<u64>)]) -> Vec<String> {
    let known = rows
        .iter()
        .filter_map(|(name, bytes)| Some((name, (*bytes)?)));
    known
        .map(|(name, bytes)| format!("{name} {}", units::bytes(bytes)))
        .collect()
}

fn failure(out: &mut Document, t: &Triage) {
    let r = &t.report;
    out.facts(facts(r));
    out.table(largest(r));
    out.bullets(lines(r));
    next_steps(out, &t.advice);
}

fn facts(r: &OomReport) -> Vec<Fact> {
    let mut out = Vec::new();
    let mut say = |name, value| out.push(Fact { name, value });
    if let Some(i) = &r.instruction {
        let of = r.op_name.as_deref();
        let of = of.map_or_else(String::new, |n| format!(" ({n})"));
        say("Instruction", Words::new().code(format!("%{i}")).plain(of));
    }
    if let Some(g) = &r.device_guess {
        say(
            "Device",
            format!("{} (guess, from {})", g.device, g.from).into(),
        );
    }
    if let Some(s) = r.scenario {
        say("Scenario", scenario(s));
    }
    let parts = named(&[
        ("reserved", r.reserved_bytes),
        ("program", r.program_bytes),
        ("parameters", r.parameter_bytes.filter(|&b| b > 0)),
        ("outputs", r.output_bytes.filter(|&b| b > 0)),
        ("constants", r.constant_bytes),
        ("temporaries", r.temp_bytes),
        ("fragmentation", r.fragmentation_bytes),
    ]);
    if !parts.is_empty() {
        say("Parts", parts.join(", ").into());
    }
    for w in &r.warnings {
        say("Warning", format!("{}: {}", w.kind, w.message).into());
    }
    for n in &r.notes {
        say("Note", n.as_str().into());
    }
    if r.truncated {
        say("Note", "part of the text was not read".into());
    }
    out
}

/// Figures that the text has a line for each.
fn lines(r: &OomReport) -> Vec<Words> {
    let size = |b: Option<u64>| b.map_or_else(|| "?".to_string(), units::bytes);
    let usages = r.usages.iter();
    let usages = usages.map(|u| {
        format!(
            "{}: {} of {}",
            u.space,
            size(u.used_bytes),
            size(u.limit_bytes)
        )
    });
    let accounting = r
        .accounting
        .iter()
        .map(|f| format!("{}: {}", f.name, f.text));
    usages.chain(accounting).map(Words::from).collect()
}

fn largest(r: &OomReport) -> Table {
    let (shown, left_out) = cut(&r.groups, GROUPS, |g| g.bytes, "groups");
    let unlisted = r
        .unlisted_bytes
        .map(|u| format!("{} not listed in the text", units::bytes(u)));
    let left_out = [Some(left_out), unlisted].into_iter().flatten();
    let left_out: Vec<String> = left_out.filter(|t| !t.is_empty()).collect();
    Table {
        title: "Largest".to_owned(),
        columns: COLUMNS.to_vec(),
        rows: shown.iter().map(group).collect(),
        left_out: left_out.join("; "),
        ..Table::default()
    }
}

/// The groups of all failures: for spreadsheets.
pub fn groups(report: &TriageReport) -> Table {
    let all = report.reports.iter().flat_map(|t| {
        t.report.groups.iter().map(|g| {
            let mut row = group(g);
            row.insert(0, Cell::Count(t.report.line));
            row
        })
    });
    let mut columns = COLUMNS.to_vec();
    columns.insert(0, Column::right("line"));
    Table {
        columns,
        rows: all.collect(),
        ..Table::default()
    }
}

const COLUMNS: [Column; 5] = [
    Column::right("size"),
    Column::right("count"),
    Column::right("padding"),
    Column::flexible("shape"),
    Column::flexible("what"),
];

fn group(g: &AllocationGroup) -> Vec<Cell> {
    let place = g
        .source
        .as_ref()
        .map_or_else(String::new, |s| match s.line {
            Some(line) => format!("{}:{line}", s.file),
            None => s.file.clone(),
        });
    let padding = g.padding_bytes.filter(|&p| p > g.bytes / 20);
    let label = match (g.label.as_str(), g.shape.as_deref().unwrap_or_default()) {
        ("", "") => "unnamed",
        (label, _) => label,
    };
    vec![
        Cell::Bytes(g.bytes),
        Cell::of(repeats(g.count as usize, g.bytes)),
        padding.map_or_else(|| Cell::of(""), Cell::Bytes),
        Cell::Shape(g.shape.clone().unwrap_or_default()),
        Cell::Code(format!("{label}  {place}").trim().to_owned()),
    ]
}

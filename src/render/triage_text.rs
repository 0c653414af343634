//! In: a triage report. Out: a screenful for a terminal, 80 columns, no colours.

use crate::oom::size::human;
use crate::oom::{OomReport, Scenario};
use crate::triage::{Step, Triage, TriageReport};

/// Columns.
const WIDTH: usize = 80;
/// Groups shown, and reports shown in full.
const MAX_GROUPS: usize = 5;
const MAX_FULL: usize = 1;
const MAX_BRIEF: usize = 12;

/// The whole report. The first failure is told in full, others in a line each.
pub fn render(report: &TriageReport) -> String {
    let mut out = String::new();
    if report.reports.is_empty() {
        return "No out-of-memory text found.\n".to_string();
    }
    for r in report.reports.iter().take(MAX_FULL) {
        full(&mut out, r);
    }
    let rest = report.reports.len().saturating_sub(MAX_FULL);
    if rest > 0 {
        out.push_str("\nAlso in this text\n");
        for r in report.reports.iter().skip(MAX_FULL).take(MAX_BRIEF) {
            wrap(
                &mut out,
                &format!("line {}: {}", r.report.line, headline(&r.report)),
                "  ",
                "    ",
            );
        }
        if rest > MAX_BRIEF {
            out.push_str(&format!("  and {} more\n", rest - MAX_BRIEF));
        }
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
    use crate::oom::Kind::*;
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
            let over = over.map_or_else(String::new, |o| format!(", {} over", human(o)));
            out.push(format!("{} of {}{over}", human(u), human(l)));
        }
        (Some(u), None) => out.push(format!("{} used", human(u))),
        (None, Some(l)) => out.push(format!("limit {}", human(l))),
        _ => {}
    }
    let mut one = |name: &str, value: Option<u64>| {
        if let Some(v) = value {
            out.push(format!("{name} {}", human(v)));
        }
    };
    one("asked", r.requested_bytes);
    one("free", r.free_bytes);
    one("largest free piece", r.largest_free_block_bytes);
    one("reservable", r.reservable_bytes);
    one("in use", r.in_use_bytes);
    one("TensorCore", r.tensorcore_bytes);
    one("SparseCore", r.sparsecore_bytes);
    out
}

fn full(out: &mut String, t: &Triage) {
    let r = &t.report;
    wrap(out, &headline(r), "", "  ");
    if let Some(i) = &r.instruction {
        let of = r
            .op_name
            .as_deref()
            .map_or_else(String::new, |n| format!(" ({n})"));
        wrap(out, &format!("Instruction  %{i}{of}"), "", "  ");
    }
    if let Some(g) = &r.device_guess {
        wrap(
            out,
            &format!("Device       {} (guess, from {})", g.device, g.from),
            "",
            "  ",
        );
    }
    if let Some(s) = r.scenario {
        wrap(
            out,
            &format!("Scenario     {}: {}", s.as_str(), meaning(s)),
            "",
            "             ",
        );
    }
    let parts = parts(r);
    if !parts.is_empty() {
        wrap(
            out,
            &format!("Parts        {}", parts.join(", ")),
            "",
            "             ",
        );
    }
    groups(out, r);
    for w in &r.warnings {
        wrap(
            out,
            &format!("Warning      {}: {}", w.kind, w.message),
            "",
            "             ",
        );
    }
    for u in &r.usages {
        let size = |b: Option<u64>| b.map_or_else(|| "?".to_string(), human);
        out.push_str(&format!(
            "  {:<8} {} of {}\n",
            u.space,
            size(u.used_bytes),
            size(u.limit_bytes)
        ));
    }
    for f in &r.accounting {
        wrap(out, &format!("{}: {}", f.name, f.text), "  ", "    ");
    }
    for n in &r.notes {
        wrap(out, &format!("Note         {n}"), "", "             ");
    }
    if r.truncated {
        out.push_str("Note         part of the text was not read\n");
    }
    if !t.advice.is_empty() {
        out.push_str("\nNext steps\n");
        for (n, step) in t.advice.iter().enumerate() {
            advice(out, n + 1, step);
        }
    }
}

/// What a scenario means, in a line.
pub fn meaning(s: Scenario) -> &'static str {
    match s {
        Scenario::TcScImbalance => "TensorCore and SparseCore share HBM; one side takes too much",
        Scenario::LargeAllocation => "one allocation takes over half of the limit",
        Scenario::Aggregate => "many allocations, none over half of the limit",
        Scenario::Undetermined => "the text lists no allocations; a dump does",
        Scenario::ScopedVmem => "one kernel or fusion needs more VMEM than its limit",
        Scenario::Vmem => "on-chip vector memory is full",
        Scenario::Smem => "on-chip scalar memory is full",
        Scenario::SparsecoreMemory => "a SparseCore memory is full",
        Scenario::RuntimeFull => "the device is full of live arrays",
        Scenario::RuntimeFragmentation => "enough is free, but not in one piece",
        Scenario::ProgramLoad => "the program's reserve does not fit beside what is resident",
        Scenario::GpuAllocation => "GPU memory is full",
        Scenario::GpuFragmentation => "what is free on the GPU is in pieces",
        Scenario::HostMemory => "host RAM, not device memory",
    }
}

fn parts(r: &OomReport) -> Vec<String> {
    let rows = [
        ("reserved", r.reserved_bytes),
        ("program", r.program_bytes),
        ("parameters", r.parameter_bytes.filter(|&b| b > 0)),
        ("outputs", r.output_bytes.filter(|&b| b > 0)),
        ("constants", r.constant_bytes),
        ("temporaries", r.temp_bytes),
        ("fragmentation", r.fragmentation_bytes),
    ];
    rows.into_iter()
        .filter_map(|(name, b)| Some(format!("{name} {}", human(b?))))
        .collect()
}

fn groups(out: &mut String, r: &OomReport) {
    if r.groups.is_empty() {
        return;
    }
    out.push_str("Largest\n");
    for g in r.groups.iter().take(MAX_GROUPS) {
        let padding = match g.padding_bytes.filter(|&p| p > g.bytes / 20) {
            Some(p) => format!(", {} of it padding", human(p)),
            None => String::new(),
        };
        let label = crate::triage::steps::shorten(&g.label, 120);
        // Without a shape the name stands in its place.
        let (head, name) = match g.shape.as_deref().filter(|s| !s.is_empty()) {
            Some(shape) => (shape, label.as_str()),
            None if label.is_empty() => ("unnamed", ""),
            None => (label.as_str(), ""),
        };
        let count = match g.count {
            1 => String::new(),
            n => format!("{n} x "),
        };
        let lead = format!("  {:>10}  ", human(g.bytes));
        let next = "              ";
        wrap(out, &format!("{count}{head}{padding}"), &lead, next);
        let source = match &g.source {
            Some(s) => format!(
                " ({}{})",
                s.file,
                s.line.map_or_else(String::new, |l| format!(":{l}"))
            ),
            None => String::new(),
        };
        let under = format!("{name}{source}");
        if !under.trim().is_empty() {
            wrap(out, under.trim_start(), next, next);
        }
    }
    let more = r.groups.len().saturating_sub(MAX_GROUPS);
    let rest: u64 = r
        .groups
        .iter()
        .skip(MAX_GROUPS)
        .fold(0, |s, g| s.saturating_add(g.bytes));
    if more > 0 {
        out.push_str(&format!("  {:>10}  {more} more groups\n", human(rest)));
    }
    if let Some(u) = r.unlisted_bytes {
        out.push_str(&format!("  {:>10}  not listed in the text\n", human(u)));
    }
}

fn advice(out: &mut String, n: usize, s: &Step) {
    wrap(out, &format!("{n}. {}", s.title), "", "   ");
    if !s.detail.is_empty() {
        wrap(out, &s.detail, "   ", "   ");
    }
    if let Some(cost) = s.cost() {
        wrap(out, &cost, "   ", "   ");
    }
}

/// Writes text in lines of at most 80 columns; a longer word is cut, after a mark where it has one.
fn wrap(out: &mut String, text: &str, first: &str, next: &str) {
    let mut line = first.to_string();
    let mut empty = true;
    for (i, word) in text.split_inclusive(' ').enumerate() {
        // Runs of blanks inside the first label keep their width.
        let mut word = if i == 0 {
            word
        } else {
            word.trim_start_matches('\n')
        };
        while width(&line) + width(word.trim_end()) > WIDTH {
            if empty {
                let room = WIDTH.saturating_sub(width(&line)).max(8);
                let cut = after_mark(word, fitting(word, room));
                line.push_str(word.get(..cut).unwrap_or_default());
                word = word.get(cut..).unwrap_or_default();
            }
            out.push_str(line.trim_end());
            out.push('\n');
            line = next.to_string();
            empty = true;
        }
        line.push_str(word);
        empty = empty && word.trim().is_empty();
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Where to cut `word` at or before `most`: after the last mark between names, if one is there.
fn after_mark(word: &str, most: usize) -> usize {
    let head = word.get(..most).unwrap_or(word);
    if head.len() == word.len() {
        return most;
    }
    head.rfind(['/', ',', '(', '[', '{', '=', '.', ':', '-', '>', '_'])
        .map_or(most, |at| at + 1)
}

/// Bytes of `text` that take at most `room` columns, at least one character.
fn fitting(text: &str, room: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used > room && at > 0 {
            return at;
        }
    }
    text.len()
}

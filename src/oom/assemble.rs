//! In: what the parsers found, in order. Out: one report a failure, repeats folded, derived
//! values filled in.

use super::found::Found;
use super::gpu_line::DRIVER_NOTE;
use super::report::{Kind, OomReport, TriageReport, Warning};
use super::size::prints_as;
use super::{device, groups, scenario};
use crate::triage::next_steps;

/// Version of the JSON.
const SCHEMA_VERSION: u32 = 1;
/// Different failures kept; more are counted, not kept.
const MAX_REPORTS: usize = 200;
/// Different warnings kept.
const MAX_WARNINGS: usize = 64;
/// How far apart usage lines of one program are, in lines.
const USAGE_DISTANCE: u64 = 60;

/// Collects what is found.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    reports: Vec<OomReport>,
    warnings: Vec<(u64, Warning)>,
    /// A usage report that may still grow.
    usage: Option<OomReport>,
    dropped: u64,
}

impl Assembly {
    /// Takes what a section held. Only within a section do messages belong together.
    pub fn add(&mut self, found: Vec<Found>) {
        let mut here: Vec<OomReport> = Vec::new();
        for f in found {
            match f {
                Found::Report(r) => join_gpu(&mut here, *r),
                Found::BufferAssignment(r) => join_buffer_assignment(&mut here, *r),
                Found::Warning(line, w) => self.warn(line, w),
                Found::Usage(r) => self.add_usage(*r),
            }
        }
        here.into_iter().for_each(|r| self.fold(r));
        self.flush_usage();
    }

    fn warn(&mut self, line: u64, w: Warning) {
        let same = |o: &&mut (u64, Warning)| o.1.kind == w.kind && o.1.message == w.message;
        if let Some(old) = self.warnings.iter_mut().find(same) {
            old.1.count = old.1.count.saturating_add(w.count);
        } else if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push((line, w));
        }
    }

    fn add_usage(&mut self, r: OomReport) {
        let fits = self.usage.as_ref().is_some_and(|u| {
            r.line.saturating_sub(u.line) < USAGE_DISTANCE
                && !r
                    .usages
                    .iter()
                    .any(|n| u.usages.iter().any(|o| o.space == n.space))
                && (r.total_bytes.is_none() || u.total_bytes.is_none() || r.space != u.space)
        });
        if !fits {
            self.flush_usage();
            self.usage = Some(r);
            return;
        }
        let Some(u) = &mut self.usage else { return };
        u.usages.extend(r.usages);
        let hbm = r.space.as_deref() == Some("hbm");
        if r.total_bytes.is_some() && (u.total_bytes.is_none() || hbm) {
            u.space = r.space;
            u.total_bytes = r.total_bytes;
            u.reserved_bytes = r.reserved_bytes;
            u.program_bytes = r.program_bytes;
            u.parameter_bytes = r.parameter_bytes;
            u.output_bytes = r.output_bytes;
            u.temp_bytes = r.temp_bytes;
            u.padded_bytes = r.padded_bytes;
            u.unpadded_bytes = r.unpadded_bytes;
            u.fragmentation_bytes = r.fragmentation_bytes;
            u.allocations = r.allocations;
        }
    }

    fn flush_usage(&mut self) {
        let Some(mut u) = self.usage.take() else {
            return;
        };
        let hbm = u.usages.iter().find(|s| s.space == "hbm");
        if let Some(main) = hbm.or(u.usages.first()).cloned() {
            u.used_bytes = main.used_bytes;
            u.limit_bytes = main.limit_bytes;
            u.space = Some(main.space);
        } else {
            u.used_bytes = u.total_bytes;
            u.notes
                .push("tables without a headline: the text does not say that it failed".into());
        }
        self.fold(u);
    }

    /// The same failure said again counts; the fuller text of it stays.
    fn fold(&mut self, r: OomReport) {
        if let Some(old) = self.reports.iter_mut().find(|o| same(o, &r)) {
            let count = old.count.saturating_add(r.count);
            let line = old.line.min(r.line);
            if richness(&r) > richness(old) {
                *old = r;
            }
            (old.count, old.line) = (count, line);
        } else if self.reports.len() < MAX_REPORTS {
            self.reports.push(r);
        } else {
            self.dropped += 1;
        }
    }

    /// The finished report.
    pub fn finish(mut self) -> TriageReport {
        self.reports.sort_by_key(|r| (!r.oom, r.line));
        self.warnings
            .sort_by(|a, b| (a.0, a.1.kind, &a.1.message).cmp(&(b.0, b.1.kind, &b.1.message)));
        self.attach_warnings();
        if self.dropped > 0 {
            if let Some(last) = self.reports.last_mut() {
                last.truncated = true;
                last.notes.push(format!(
                    "{} more reports in the text are not kept",
                    self.dropped
                ));
            }
        }
        for r in &mut self.reports {
            derive(r);
        }
        TriageReport {
            schema_version: SCHEMA_VERSION,
            reports: self.reports,
        }
    }

    /// Each warning goes to the failure after it, else to the last before it.
    fn attach_warnings(&mut self) {
        let failures: Vec<(usize, u64)> = self
            .reports
            .iter()
            .enumerate()
            .filter(|r| r.1.oom)
            .map(|(n, r)| (n, r.line))
            .collect();
        let mut alone = OomReport::new(Kind::Warnings, false);
        for (line, w) in std::mem::take(&mut self.warnings) {
            let next = failures.iter().find(|f| f.1 >= line).or(failures.last());
            let target = match next.and_then(|f| self.reports.get_mut(f.0)) {
                Some(r) => r,
                None => {
                    alone.line = if alone.warnings.is_empty() {
                        line
                    } else {
                        alone.line
                    };
                    &mut alone
                }
            };
            if w.kind == "donation" {
                target.donated_unusable_bytes = match (target.donated_unusable_bytes, w.bytes) {
                    (Some(sum), Some(bytes)) => sum.checked_add(bytes),
                    (sum, bytes) => sum.or(bytes),
                };
            }
            target.warnings.push(w);
        }
        if !alone.warnings.is_empty() {
            self.reports.push(alone);
        }
    }
}

/// GPU messages about one request: the allocator's log, the driver's line, the exception.
fn join_gpu(here: &mut Vec<OomReport>, r: OomReport) {
    let is_gpu = |k: Kind| matches!(k, Kind::GpuAllocation | Kind::GpuBfc);
    let Some(last) = here.last_mut().filter(|l| is_gpu(l.kind) && is_gpu(r.kind)) else {
        here.push(r);
        return;
    };
    let driver = |r: &OomReport| r.notes.iter().any(|n| n == DRIVER_NOTE);
    let agree = match (last.requested_bytes, r.requested_bytes) {
        (Some(a), Some(b)) => prints_as(a, b) || prints_as(b, a) || a.abs_diff(b) < 256,
        _ => false,
    };
    match (driver(last), driver(&r)) {
        // A series of ever smaller requests: the first is the real one.
        (true, true) => last.count = last.count.saturating_add(r.count),
        (true, false) => *last = r,
        (false, true) if last.kind == Kind::GpuBfc => {}
        _ if agree && last.kind != r.kind => {
            let (mut log, line) = if r.kind == Kind::GpuBfc {
                (r, last.clone())
            } else {
                (last.clone(), r)
            };
            log.module = log.module.or(line.module);
            log.code = log.code.or(line.code);
            log.line = log.line.min(line.line);
            *last = log;
        }
        _ => here.push(r),
    }
}

/// The buffer assignment report tells more about the failure before it.
fn join_buffer_assignment(here: &mut Vec<OomReport>, mut r: OomReport) {
    let open = here
        .last()
        .is_some_and(|l| matches!(l.kind, Kind::GpuAllocation | Kind::GpuBfc));
    if let Some(last) = open.then(|| here.pop()).flatten() {
        r.line = last.line;
        r.count = last.count;
        r.code = last.code.or(r.code);
        r.module = last.module;
        r.requested_bytes = last.requested_bytes;
        r.limit_bytes = last.limit_bytes;
        r.in_use_bytes = last.in_use_bytes;
        r.largest_free_block_bytes = last.largest_free_block_bytes;
        r.chunks = last.chunks;
    }
    here.push(r);
}

fn same(a: &OomReport, b: &OomReport) -> bool {
    let key = |r: &OomReport| {
        (
            (
                r.kind,
                r.space.clone(),
                r.used_bytes,
                r.limit_bytes,
                r.requested_bytes,
            ),
            (
                r.free_bytes,
                r.instruction.clone(),
                r.tensorcore_bytes,
                r.sparsecore_bytes,
            ),
        )
    };
    // A name that only one of them has does not make them two.
    let agree = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
    let host = a.kind == Kind::HostOom
        && b.kind == Kind::HostOom
        && a.requested_bytes == b.requested_bytes;
    let figures = a.accounting == b.accounting && a.usages == b.usages;
    let noted = a.oom || a.notes == b.notes;
    host || (key(a) == key(b)
        && agree(&a.module, &b.module)
        && agree(&a.program, &b.program)
        && figures
        && noted)
}

fn richness(r: &OomReport) -> usize {
    r.allocations.len() * 4
        + usize::from(r.total_bytes.is_some()) * 2
        + usize::from(r.module.is_some() || r.program.is_some())
        + usize::from(r.code.is_some())
}

/// What follows from the values read.
fn derive(r: &mut OomReport) {
    let listed = r.kind != Kind::TpuInputMismatch && !r.allocations.is_empty();
    if listed {
        let sum = r
            .allocations
            .iter()
            .try_fold(0u64, |s, a| s.checked_add(a.size_bytes));
        r.listed_bytes = sum;
        let total = if r.kind == Kind::GpuBufferAssignment {
            r.total_bytes
        } else {
            r.used_bytes
        };
        r.unlisted_bytes = total.zip(sum).and_then(|(t, s)| t.checked_sub(s));
        r.groups = groups::fold(&r.allocations);
    }
    if r.parameter_bytes == Some(0) && r.oom && r.kind == Kind::TpuCompileHbm {
        let note = "\"arguments 0B\" only means that this text does not count them";
        r.notes.push(note.to_string());
    }
    r.device_guess = device::guess(r);
    r.scenario = scenario::decide(r);
    r.advice = next_steps(r);
}

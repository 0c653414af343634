//! In: what the parsers found, in order. Out: one report a failure, repeats folded, derived
//! values filled in.

use super::found::Found;
use super::report::{Kind, OomReport, OomText, Warning, WarningKind};
use super::size::prints_as;
use super::{device, groups, scenario};

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
        let mut here: Vec<Here> = Vec::new();
        for f in found {
            match f {
                Found::Report(r) => join_gpu(&mut here, *r, false),
                Found::Driver(r) => join_gpu(&mut here, *r, true),
                Found::BufferAssignment(r) => join_buffer_assignment(&mut here, *r),
                Found::Warning(line, w) => self.warn(line, w),
                Found::Usage(r) => self.add_usage(*r),
            }
        }
        here.into_iter().for_each(|h| self.fold(h.report));
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
            let mut others = u.usages.iter();
            r.line.saturating_sub(u.line) < USAGE_DISTANCE
                && !others.any(|o| r.usages.iter().any(|n| n.space == o.space))
                && (r.total_bytes.is_none() || u.total_bytes.is_none() || r.space != u.space)
        });
        if !fits {
            self.flush_usage();
            self.usage = Some(r);
            return;
        }
        let Some(u) = &mut self.usage else { return };
        if r.total_bytes.is_some() && (u.total_bytes.is_none() || r.in_hbm()) {
            // Its tables take the place of those that were there.
            let first = std::mem::replace(u, r);
            let more = std::mem::replace(&mut u.usages, first.usages);
            u.usages.extend(more);
            (u.line, u.count, u.code) = (first.line, first.count, first.code);
            u.truncated = first.truncated;
        } else {
            u.usages.extend(r.usages);
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

    /// The finished reports.
    pub fn finish(mut self) -> OomText {
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
        OomText {
            reports: self.reports,
        }
    }

    /// Each warning goes to the failure after it, else to the last before it.
    fn attach_warnings(&mut self) {
        let all = self.reports.iter().enumerate();
        let failures: Vec<(usize, u64)> =
            all.filter(|r| r.1.oom).map(|(n, r)| (n, r.line)).collect();
        let mut alone = OomReport::new(Kind::Warnings, false);
        for (line, w) in std::mem::take(&mut self.warnings) {
            let next = failures.iter().find(|f| f.1 >= line).or(failures.last());
            let target = next.and_then(|f| self.reports.get_mut(f.0));
            let target = target.unwrap_or_else(|| {
                if alone.warnings.is_empty() {
                    alone.line = line;
                }
                &mut alone
            });
            if w.kind == WarningKind::Donation {
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

/// A failure of the section at hand.
struct Here {
    report: OomReport,
    /// It is known from the driver's line alone.
    driver: bool,
}

/// GPU messages about one request: the allocator's log, the driver's line, the exception.
fn join_gpu(here: &mut Vec<Here>, r: OomReport, driver: bool) {
    let gpu = here.last_mut().filter(|l| l.report.kind.is_gpu_request());
    let Some(last) = gpu.filter(|_| r.kind.is_gpu_request()) else {
        here.push(Here { report: r, driver });
        return;
    };
    let old = &mut last.report;
    let agree = match (old.requested_bytes, r.requested_bytes) {
        (Some(a), Some(b)) => prints_as(a, b) || prints_as(b, a) || a.abs_diff(b) < 256,
        _ => false,
    };
    match (last.driver, driver) {
        // A series of ever smaller requests: the first is the real one.
        (true, true) => old.count = old.count.saturating_add(r.count),
        (true, false) => *last = Here { report: r, driver },
        (false, true) if old.kind == Kind::GpuBfc => {}
        _ if agree && old.kind != r.kind => {
            let mut line = r;
            if line.kind == Kind::GpuBfc {
                std::mem::swap(old, &mut line);
            }
            old.module = old.module.take().or(line.module);
            old.code = old.code.take().or(line.code);
            old.line = old.line.min(line.line);
            last.driver = false;
        }
        _ => here.push(Here { report: r, driver }),
    }
}

/// The buffer assignment report tells more about the failure before it.
fn join_buffer_assignment(here: &mut Vec<Here>, mut r: OomReport) {
    if let Some(last) = here.pop_if(|l| l.report.kind.is_gpu_request()) {
        let last = last.report;
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
    here.push(Here {
        report: r,
        driver: false,
    });
}

fn same(a: &OomReport, b: &OomReport) -> bool {
    fn key(r: &OomReport) -> impl PartialEq + '_ {
        let figures = [
            r.used_bytes,
            r.limit_bytes,
            r.requested_bytes,
            r.free_bytes,
            r.tensorcore_bytes,
            r.sparsecore_bytes,
        ];
        let lists = (&r.accounting, &r.usages);
        (
            r.kind,
            r.space.as_ref(),
            r.instruction.as_ref(),
            figures,
            lists,
        )
    }
    // A name that only one of them has does not make them two.
    let agree = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
    let host = |r: &OomReport| r.kind == Kind::HostOom;
    if host(a) && host(b) && a.requested_bytes == b.requested_bytes {
        return true;
    }
    key(a) == key(b)
        && agree(&a.module, &b.module)
        && agree(&a.program, &b.program)
        && (a.oom || a.notes == b.notes)
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
        let mut sizes = r.allocations.iter().map(|a| a.size_bytes);
        r.listed_bytes = sizes.try_fold(0u64, u64::checked_add);
        let total = match r.kind {
            Kind::GpuBufferAssignment => r.total_bytes,
            _ => r.used_bytes,
        };
        r.unlisted_bytes = total
            .zip(r.listed_bytes)
            .and_then(|(t, s)| t.checked_sub(s));
        r.groups = groups::fold(&r.allocations);
    }
    if r.parameter_bytes == Some(0) && r.oom && r.kind == Kind::TpuCompileHbm {
        let note = "\"arguments 0B\" only means that this text does not count them";
        r.notes.push(note.to_string());
    }
    r.device_guess = device::guess(r);
    r.scenario = scenario::decide(r);
}

//! A text's triage beside what a dump says of one of its failures: the dump decides where both
//! speak.

use super::join::{join, Joined};
use super::join_shapes::{join_shapes, JoinedShapes};
use super::report::TriageReport;
use super::step_id::StepId;
use super::steps::MAX_STEPS;
use crate::oom::{Kind, OomReport};
use crate::report::{Loaded, Options};

/// What a dump adds to a failure.
#[derive(Debug, Clone)]
pub enum FromDump {
    /// Its program, with buffer assignment.
    Joined(Box<Joined>),
    /// Arguments and results of its program; nothing else is known.
    Shapes(Box<JoinedShapes>),
}

/// The first failure that a dump can say more about: one of a program's compilation or loading.
pub fn compile_failure(report: &TriageReport) -> Option<usize> {
    let of_a_program = |r: &OomReport| {
        matches!(
            r.kind,
            Kind::TpuCompileHbm
                | Kind::TpuFastExit
                | Kind::TpuSingleAllocation
                | Kind::TpuTcSc
                | Kind::GpuBufferAssignment
                | Kind::GpuAllocation
                | Kind::GpuBfc
                | Kind::TpuProgramLoad
        )
    };
    report.reports.iter().position(|t| of_a_program(&t.report))
}

impl FromDump {
    /// What `loaded` says about a failure; `None` where no program of it says anything.
    pub fn of(failure: &OomReport, loaded: &Loaded<'_>, options: &Options) -> Option<FromDump> {
        if let Some(found) = join(failure, loaded, options) {
            return Some(FromDump::Joined(Box::new(found)));
        }
        let shapes = join_shapes(failure, loaded, options)?;
        Some(FromDump::Shapes(Box::new(shapes)))
    }

    /// The text's triage without what the dump says better of failure `at`, or with what the dump
    /// adds in front.
    pub fn beside(&self, report: &TriageReport, at: usize) -> TriageReport {
        let mut out = report.clone();
        let Some(t) = out.reports.get_mut(at) else {
            return out;
        };
        match self {
            FromDump::Joined(joined) => {
                t.advice.clear();
                if joined.scenario.is_some() {
                    t.report.scenario = None;
                }
                if joined.total.agrees && joined.same_module != Some(false) {
                    t.report.groups.clear();
                }
            }
            FromDump::Shapes(shapes) => {
                // Without arguments there is nothing to donate.
                let donate = shapes.parameter_bytes > 0;
                t.advice.retain(|s| donate || s.id != StepId::Donation);
                t.advice.splice(0..0, shapes.advice.iter().cloned());
                t.advice.truncate(MAX_STEPS);
            }
        }
        out
    }
}

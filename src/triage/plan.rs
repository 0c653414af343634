//! In: a failure. Out: what to do next, in order, at most seven steps.
//!
//! Which steps a scenario has, and in which order, is a list of [`Rule`]s: `program_steps` and
//! `runtime_steps` hold them. The order is the E1000 guide's within safety: first what leaves
//! results alone, flags last. A step is there only when something in the failure speaks for it.

use super::actions::RECOMPILE;
use super::failure::Failure;
use super::rule::{applied, Rule};
use super::steps::Step;
use super::{program_steps as program, runtime_steps as runtime};
use crate::oom::{Kind, OomReport, Scenario};

/// The steps of a scenario, in order.
fn rules(f: &Failure<'_>) -> &'static [Rule] {
    let Some(scenario) = f.scenario else {
        return NO_FAILURE;
    };
    match scenario {
        Scenario::TcScImbalance => program::IMBALANCE,
        Scenario::LargeAllocation if f.buffers.is_empty() => program::UNDETERMINED,
        Scenario::LargeAllocation => program::LARGE,
        Scenario::Aggregate => program::AGGREGATE,
        Scenario::Undetermined if f.text.kind == Kind::TpuCompileSpace => program::OTHER_SPACE,
        Scenario::Undetermined => program::UNDETERMINED,
        Scenario::ScopedVmem => program::SCOPED_VMEM,
        Scenario::Vmem => program::VMEM,
        Scenario::Smem => program::SMEM,
        Scenario::SparsecoreMemory => program::SPARSECORE,
        Scenario::RuntimeFull => runtime::FULL,
        Scenario::RuntimeFragmentation => runtime::FRAGMENTATION,
        Scenario::ProgramLoad => runtime::PROGRAM_LOAD,
        Scenario::GpuAllocation => runtime::GPU,
        Scenario::GpuFragmentation => runtime::GPU_FRAGMENTATION,
        Scenario::HostMemory => runtime::HOST,
    }
}

/// What warnings and other texts ask for.
const NO_FAILURE: &[Rule] = &[
    Rule::Warnings,
    Rule::Step(|f| (f.text.kind == Kind::TpuInputMismatch).then(|| RECOMPILE.because(""))),
];

/// What to do next about a failure of which there is nothing but its text.
pub fn next_steps(report: &OomReport) -> Vec<Step> {
    steps_for(&Failure::of_text(report))
}

/// What to do next.
pub(crate) fn steps_for(f: &Failure<'_>) -> Vec<Step> {
    applied(rules(f), f)
}

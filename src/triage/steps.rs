//! In: one failure. Out: what to do next, in order, at most seven steps.
//!
//! The order is the E1000 guide's within safety: first what leaves results alone, flags last.
//! A step is there only when something in the report speaks for it.

use serde::Serialize;

use super::catalogue::{Flag, Intervention, FLAGS, INTERVENTIONS};
use super::{program_steps, runtime_steps};
use crate::findings::Safety;
use crate::oom::size::human;
use crate::oom::{Kind, OomReport, Scenario};

/// Most steps given.
pub const MAX_STEPS: usize = 7;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Id of an intervention or flag, or of a step of its own kind.
    pub id: String,
    /// What to do, in a line.
    pub title: String,
    /// Why here: names, bytes, source lines; and how.
    pub detail: String,
    /// What it costs.
    pub trade_off: String,
    /// What it does to results.
    pub safety: Safety,
    /// How to see that it worked.
    pub verify: String,
}

impl Step {
    /// A step that only looks.
    pub(crate) fn look(id: &str, title: impl Into<String>, detail: impl Into<String>) -> Step {
        Step {
            id: id.to_string(),
            title: title.into(),
            detail: detail.into(),
            trade_off: String::new(),
            safety: Safety::Safe,
            verify: String::new(),
        }
    }

    /// An intervention of the catalogue, with why it fits here.
    pub(crate) fn intervention(id: &str, why: impl Into<String>) -> Option<Step> {
        let i: &Intervention = INTERVENTIONS.iter().find(|i| i.id == id)?;
        Some(Step {
            id: i.id.to_string(),
            title: i.name.to_string(),
            detail: format!("{} {}", why.into(), i.how).trim().to_string(),
            trade_off: i.trade_off.to_string(),
            safety: i.safety,
            verify: i.verify.to_string(),
        })
    }

    /// A flag of the catalogue, with the value to write and why.
    pub(crate) fn flag(name: &str, value: &str, why: impl Into<String>) -> Option<Step> {
        let f: &Flag = FLAGS.iter().find(|f| f.name == name)?;
        let measured = match f.measured {
            "" => "not measured".to_string(),
            m => format!("on a 4-layer transformer here, {m}"),
        };
        Some(Step {
            id: f.name.to_string(),
            title: format!("Last resort: {name}={value}"),
            detail: format!(
                "{} {} ({measured}). Pass it as compile(compiler_options={{\"{name}\": \"{value}\"}}) or in LIBTPU_INIT_ARGS.",
                why.into(),
                f.what
            ),
            trade_off: f.trade_off.to_string(),
            safety: f.safety,
            verify: "Compile again.".to_string(),
        })
    }

    /// `Cost: ...`, what it does to results included; `None` where it costs nothing.
    pub fn cost(&self) -> Option<String> {
        let results = match self.safety > Safety::ChangesSpeed {
            true => self.safety.words(),
            false => "",
        };
        match (self.trade_off.as_str(), results) {
            ("", "") => None,
            ("", words) => Some(format!("Cost: {words}")),
            (cost, "") => Some(format!("Cost: {cost}")),
            (cost, words) => Some(format!("Cost: {cost} ({words})")),
        }
    }

    /// The same with a check of its own.
    pub(crate) fn verified_by(mut self, verify: &str) -> Step {
        self.verify = verify.to_string();
        self
    }

    /// The same with its cost.
    pub(crate) fn costing(mut self, safety: Safety, trade_off: &str) -> Step {
        self.safety = safety;
        self.trade_off = trade_off.to_string();
        self
    }
}

/// What to do next.
pub fn next_steps(r: &OomReport) -> Vec<Step> {
    let mut steps = match r.scenario {
        Some(Scenario::TcScImbalance) => program_steps::imbalance(r),
        Some(Scenario::LargeAllocation) => program_steps::large(r),
        Some(Scenario::Aggregate) => program_steps::aggregate(r),
        Some(Scenario::Undetermined) => program_steps::undetermined(r),
        Some(Scenario::ScopedVmem) => program_steps::scoped_vmem(r),
        Some(Scenario::Vmem) => program_steps::vmem(r),
        Some(Scenario::Smem) => program_steps::smem(r),
        Some(Scenario::SparsecoreMemory) => program_steps::sparsecore(r),
        Some(Scenario::RuntimeFull) => runtime_steps::full(r),
        Some(Scenario::RuntimeFragmentation) => runtime_steps::fragmentation(r),
        Some(Scenario::ProgramLoad) => runtime_steps::program_load(r),
        Some(Scenario::GpuAllocation) => runtime_steps::gpu(r),
        Some(Scenario::GpuFragmentation) => runtime_steps::gpu_fragmentation(r),
        Some(Scenario::HostMemory) => runtime_steps::host(r),
        None => without_failure(r),
    };
    steps.truncate(MAX_STEPS);
    steps
}

/// What warnings and other texts ask for.
fn without_failure(r: &OomReport) -> Vec<Step> {
    let mut out = warning_steps(r);
    if r.kind == Kind::TpuInputMismatch {
        out.push(Step::look(
            "recompile",
            "Give the program the arrays it was compiled for",
            "The array has the size of another layout or shape. Lower and compile with the arrays' own \
             shapes and formats, or put the argument in the layout the program expects (jax.device_put).",
        ));
    }
    out
}

/// Steps that warnings beside a failure speak for.
pub(crate) fn warning_steps(r: &OomReport) -> Vec<Step> {
    let (mut out, mut seen) = (Vec::new(), Vec::new());
    for w in &r.warnings {
        if seen.contains(&w.kind) {
            continue;
        }
        seen.push(w.kind);
        let step = match w.kind {
            "donation" => Step::look(
                "donation_refused",
                "Make the donation work",
                format!(
                    "{}: no output has their shape, type and layout. Compare the donated arguments with \
                     the outputs, dtype first.",
                    w.message
                ),
            )
            .verified_by("Compile again: the warning must be gone."),
            "spmd_rematerialization" => Step::look(
                "spmd_rematerialization",
                "Give the tensor one sharding",
                format!(
                    "{} Between producer and consumer the whole tensor is on every device: add \
                     jax.lax.with_sharding_constraint with the consumer's sharding.",
                    w.message
                ),
            )
            .costing(Safety::ChangesSpeed, "Changes what is communicated.")
            .verified_by("Compile again: the warning must be gone."),
            "arguments_exceed_limit" => Step::look(
                "arguments_exceed_limit",
                "Shard or shrink parameters first",
                format!("{}: no change to temporaries can help.", w.message),
            ),
            _ => continue,
        };
        out.push(step);
    }
    out
}

/// `34.21 GiB of 31.25 GiB`, as far as it is known.
pub(crate) fn over(r: &OomReport) -> Option<u64> {
    r.over_bytes
        .or_else(|| r.used_bytes?.checked_sub(r.limit_bytes?))
}

/// ` At least 2.96 GiB must go.`
pub(crate) fn must_go(r: &OomReport) -> String {
    over(r).map_or_else(String::new, |o| format!(" About {} must go.", human(o)))
}

/// The end of a long name says more than its start.
pub(crate) fn shorten(name: &str, max: usize) -> String {
    let count = name.chars().count();
    if count <= max {
        return name.to_string();
    }
    let tail: String = name
        .chars()
        .skip(count.saturating_sub(max).saturating_add(3))
        .collect();
    // From a scope's start on, if that does not lose much.
    let scope = tail.find('/').filter(|&at| at <= tail.len() / 2);
    let tail = scope.and_then(|at| tail.get(at..)).unwrap_or(&tail);
    format!("...{tail}")
}

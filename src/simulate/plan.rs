//! `xpeak plan`: the least risky set of edits that fits.
//!
//! Candidates are tried from safe to risky, each on top of those taken before, until the program
//! fits; then whatever is not needed is taken out again, the riskiest first. Savings interact, so
//! each step's saving is what it saves in that order.
//!
//! In: a program and a capacity. Out: [`Plan`], as in the JSON contract.

use serde::Serialize;

use super::advice::{how_to_verify, jax_code};
use super::apply::apply;
use super::base::Base;
use super::candidates::{candidates, safety_of};
use super::edit::Edit;
use super::predict::{measure, outcome_as_compiled, Confidence, Outcome};
use super::whatif::{SpaceName, SCHEMA_VERSION};
use crate::analysis::{Finding, Safety};
use crate::error::Result;
use crate::model::{capacity_of, MemorySpace, Mesh, Program};

/// What to plan for.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions<'f> {
    /// Memory space.
    pub space: MemorySpace,
    /// Device memory in bytes.
    pub capacity_bytes: u64,
    /// Bytes to leave free; `None`: a twentieth of the capacity, since simulated figures are not
    /// exact.
    pub reserve_bytes: Option<u64>,
    /// Findings, in the order reported.
    pub findings: &'f [Finding],
    /// Meshes of another dump of the program, for the names of axes.
    pub meshes: &'f [Mesh],
    /// What the program was compiled for, `TPU v5 lite`, where known.
    pub device_kind: Option<&'f str>,
}

/// A plan. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Version of this form.
    pub schema_version: u32,
    /// Module name.
    pub module: String,
    /// Memory space.
    pub space: SpaceName,
    /// Device memory.
    pub capacity_bytes: u64,
    /// Of it, to be left free.
    pub reserve_bytes: u64,
    /// The program as compiled.
    pub before: Outcome,
    /// What to do, in order.
    pub steps: Vec<PlanStep>,
    /// Whether the program fits after all steps, reserve included.
    pub fits: bool,
    /// Arguments, results and constants alone, after all steps: no schedule takes less.
    pub floor_bytes: u64,
    /// How sure the last step's figure is.
    pub confidence: Confidence,
    /// What the compiler may do differently.
    pub caveats: Vec<String>,
    /// Where it does not fit: what it would take.
    pub otherwise: Vec<String>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanStep {
    /// The edit, as `xpeak whatif` takes it.
    pub edit: String,
    /// What it may change besides memory.
    pub safety: Safety,
    /// What it saves of the total, after the steps before it.
    pub saving_bytes: u64,
    /// The program after this step.
    pub after: Outcome,
    /// JAX code to adapt.
    pub jax: String,
    /// How to see that it worked.
    pub verify: String,
}

/// Makes a plan.
///
/// # Errors
/// The program carries no buffer assignment.
pub fn plan(program: &Program<'_>, options: &PlanOptions<'_>) -> Result<Plan> {
    plan_with(
        &Base::with_meshes(program, options.space, options.meshes)?,
        options,
    )
}

/// As [`plan`], on a base made before.
///
/// # Errors
/// As [`plan`].
pub fn plan_with(base: &Base<'_, '_>, options: &PlanOptions<'_>) -> Result<Plan> {
    let reserve_bytes = options.reserve_bytes.unwrap_or(options.capacity_bytes / 20);
    let search = Search {
        base,
        findings: options.findings,
        limit: options.capacity_bytes.saturating_sub(reserve_bytes),
    };
    let before = outcome_as_compiled(base);
    let edits = if before.allocated_bytes <= search.limit {
        Vec::new()
    } else {
        search.prune(search.collect(&before))
    };
    let mut steps: Vec<PlanStep> = Vec::new();
    let mut last = before.clone();
    for n in 1..=edits.len() {
        let (Some(edit), Some(taken)) = (edits.get(n - 1), edits.get(..n)) else {
            continue;
        };
        let Some(after) = search.outcome(taken) else {
            continue;
        };
        steps.push(PlanStep {
            edit: edit.to_string(),
            safety: safety_of(edit),
            saving_bytes: last.allocated_bytes.saturating_sub(after.allocated_bytes),
            after: after.clone(),
            jax: jax_code(base, edit),
            verify: how_to_verify(edit),
        });
        last = after;
    }
    let applied = apply(base, options.findings, &edits)?;
    let fits = last.allocated_bytes <= search.limit;
    let space = base.usage.space;
    Ok(Plan {
        schema_version: SCHEMA_VERSION,
        module: base.program.module.name.to_owned(),
        space: SpaceName {
            color: space.0,
            name: space.name(),
        },
        capacity_bytes: options.capacity_bytes,
        reserve_bytes,
        before,
        steps,
        fits,
        floor_bytes: last.indefinite_bytes,
        confidence: applied.scenario.confidence,
        caveats: applied.scenario.caveats,
        otherwise: if fits {
            Vec::new()
        } else {
            otherwise(base, &last, search.limit)
        },
    })
}

struct Search<'s, 'p, 'a> {
    base: &'s Base<'p, 'a>,
    findings: &'s [Finding],
    limit: u64,
}

impl Search<'_, '_, '_> {
    /// The program after `edits`; `None` if one of them does not apply.
    fn outcome(&self, edits: &[Edit]) -> Option<Outcome> {
        let applied = apply(self.base, self.findings, edits).ok()?;
        Some(measure(self.base, &applied.scenario))
    }

    fn total(&self, edits: &[Edit]) -> Option<u64> {
        self.outcome(edits).map(|o| o.allocated_bytes)
    }

    fn collect(&self, before: &Outcome) -> Vec<Edit> {
        let mut taken: Vec<Edit> = Vec::new();
        let mut total = before.allocated_bytes;
        // Less than this is not worth a step.
        let least = before.allocated_bytes / 200;
        for candidate in candidates(self.base, self.findings) {
            if total <= self.limit {
                break;
            }
            let mut best: Option<(u64, Edit)> = None;
            for edit in candidate.alternatives {
                taken.push(edit.clone());
                let new = self.total(&taken);
                taken.pop();
                let Some(new) = new else { continue };
                let better = |b: u64| new < b || (new == b && self.pins(&edit));
                if best.as_ref().is_none_or(|(b, _)| better(*b)) {
                    best = Some((new, edit));
                }
                if new <= self.limit {
                    break;
                }
            }
            if let Some((new, edit)) = best {
                // What the compiler rematerialises on its own now, it may not once the rest
                // changes: a plan says it explicitly, even if that saves nothing by itself.
                let pins = self.pins(&edit) && new <= total;
                if pins || new.saturating_add(least) <= total {
                    taken.push(edit);
                    total = new;
                }
            }
        }
        taken
    }

    /// Whether an edit makes explicit what the compiler does on its own.
    fn pins(&self, edit: &Edit) -> bool {
        self.base.rematerialized > 0 && matches!(edit, Edit::Checkpoint { .. })
    }

    /// Takes out what is not needed, the riskiest first. If nothing suffices, everything stays.
    fn prune(&self, mut edits: Vec<Edit>) -> Vec<Edit> {
        if self.total(&edits).is_none_or(|t| t > self.limit) {
            return edits;
        }
        for at in (0..edits.len()).rev() {
            if edits.get(at).is_some_and(|e| self.pins(e)) {
                continue;
            }
            let mut fewer = edits.clone();
            fewer.remove(at);
            if self.total(&fewer).is_some_and(|t| t <= self.limit) {
                edits = fewer;
            }
        }
        edits
    }
}

/// Chips by their names, smallest memory first.
const CHIPS: [&str; 5] = ["TPU v5e", "TPU v4", "TPU v6e", "TPU7x", "TPU v5p"];

fn otherwise(base: &Base<'_, '_>, last: &Outcome, limit: u64) -> Vec<String> {
    let mut out = Vec::new();
    let devices = base.program.module.device_count();
    let floor = last.indefinite_bytes;
    if floor > limit {
        out.push(format!(
            "arguments and results alone take {} a device, more than the {} there are",
            crate::units::bytes(floor),
            crate::units::bytes(limit)
        ));
    }
    if limit > 0 {
        let whole = u128::from(last.allocated_bytes) * u128::from(devices);
        let chips = whole.div_ceil(u128::from(limit));
        out.push(format!(
            "spread evenly, {devices} x {} would need at least {chips} devices of this size",
            crate::units::bytes(last.allocated_bytes)
        ));
    }
    let fits = |c: &&&str| capacity_of(c).is_some_and(|b| b - b / 20 >= last.allocated_bytes);
    match CHIPS.iter().find(fits) {
        Some(chip) => out.push(format!(
            "on as many devices, a {chip} has room ({})",
            crate::units::bytes(capacity_of(chip).unwrap_or(0))
        )),
        None => out.push("no single TPU chip has room for a device's part".to_owned()),
    }
    out
}

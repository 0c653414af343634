//! `xpeak plan`: the least risky set of edits that fits.
//!
//! Candidates are tried from safe to risky, each on top of those taken before, until the program
//! fits; then whatever is not needed is taken out again, the riskiest first. Savings interact, so
//! each step's saving is what it saves in that order.
//!
//! In: a program and a capacity. Out: [`Plan`], as in the JSON contract.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::apply::apply;
use super::base::Base;
use super::candidates::candidates;
use super::confidence::Confidence;
use super::edit::Edit;
use super::predict::{measure_if, outcome_as_compiled, Outcome};
use super::run::{SpaceName, SCHEMA_VERSION};
use crate::chips::capacity_of;

use crate::error::{Error, Result};
use crate::findings::{Finding, Safety};
use crate::hlo::{MemorySpace, Mesh, Program};

/// What to plan for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PlanOptions<'f> {
    /// Memory space.
    pub space: MemorySpace,
    /// Device memory in bytes.
    pub capacity_bytes: u64,
    /// Bytes to leave free; `None`: a part of the capacity that follows how sure the figures are
    /// (see [`Confidence::reserve`]).
    pub reserve_bytes: Option<u64>,
    /// Findings, in the order reported.
    pub findings: &'f [Finding],
    /// Meshes of another dump of the program, for the names of axes.
    pub meshes: &'f [Mesh],
    /// What the program was compiled for, `TPU v5 lite`, where known.
    pub device_kind: Option<&'f str>,
}

impl PlanOptions<'_> {
    /// A device with so much memory, and HBM.
    pub fn new(capacity_bytes: u64) -> Self {
        PlanOptions {
            capacity_bytes,
            ..PlanOptions::default()
        }
    }
}

/// A plan. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct PlanStep {
    /// The edit, as `xpeak whatif` takes it.
    pub edit: String,
    /// What it may change besides memory.
    pub safety: Safety,
    /// What it saves of the total, after the steps before it.
    pub saving_bytes: u64,
    /// Why it is there although it saves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
/// The program carries no buffer assignment; the reserve is all there is.
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
    let reserve_bytes = options.reserve_bytes.unwrap_or(0);
    if reserve_bytes >= options.capacity_bytes {
        return Err(Error::usage(
            format!(
                "plan: a reserve of {} leaves nothing of {}",
                crate::units::bytes(reserve_bytes),
                crate::units::bytes(options.capacity_bytes)
            ),
            "give a reserve below the device's memory",
        ));
    }
    let search = Search {
        known: RefCell::default(),
        base,
        findings: options.findings,
        capacity_bytes: options.capacity_bytes,
        reserve_bytes: options.reserve_bytes,
    };
    let before = outcome_as_compiled(base);
    let edits = if search.fits(before.allocated_bytes, Confidence::Exact) {
        Vec::new()
    } else {
        search.prune(search.collect(&before))
    };
    let (edits, steps) = search.steps(&before, edits);
    let last = steps.last().map_or(&before, |s| &s.after).clone();
    let applied = apply(base, options.findings, &edits)?;
    let confidence = applied.scenario.confidence;
    let fits = search.fits(last.allocated_bytes, confidence);
    let space = base.usage.space;
    Ok(Plan {
        schema_version: SCHEMA_VERSION,
        module: base.program.module.name.to_owned(),
        space: SpaceName {
            color: space.0,
            name: space.name(),
        },
        capacity_bytes: options.capacity_bytes,
        reserve_bytes: search.reserve(confidence),
        before,
        steps,
        fits,
        floor_bytes: last.indefinite_bytes,
        confidence,
        caveats: applied.scenario.caveats,
        otherwise: if fits {
            Vec::new()
        } else {
            otherwise(base, options.device_kind, &last, search.limit(confidence))
        },
    })
}

struct Search<'s, 'p, 'a> {
    /// What was measured already, by the edits in order.
    known: RefCell<FxHashMap<String, Tried>>,
    base: &'s Base<'p, 'a>,
    findings: &'s [Finding],
    capacity_bytes: u64,
    reserve_bytes: Option<u64>,
}

/// A program after some edits.
#[derive(Clone)]
struct Tried {
    outcome: Outcome,
    confidence: Confidence,
}

impl Search<'_, '_, '_> {
    /// The program after `edits`; `None` if one of them does not apply.
    fn outcome(&self, edits: &[Edit]) -> Option<Tried> {
        self.outcome_if(edits, |_| true)
    }

    /// As [`Search::outcome`], but only if a total that is no less than the peak can be `worth` it.
    fn outcome_if(&self, edits: &[Edit], worth: impl Fn(u64) -> bool) -> Option<Tried> {
        let words: Vec<String> = edits.iter().map(Edit::to_string).collect();
        let key = words.join(" ");
        if let Some(known) = self.known.borrow().get(&key) {
            return Some(known.clone());
        }
        let applied = apply(self.base, self.findings, edits).ok()?;
        let tried = Tried {
            outcome: measure_if(self.base, &applied.scenario, worth)?,
            confidence: applied.scenario.confidence,
        };
        self.known.borrow_mut().insert(key, tried.clone());
        Some(tried)
    }

    /// Bytes to be left free, by how sure a figure is.
    fn reserve(&self, confidence: Confidence) -> u64 {
        let own = confidence.reserve(self.capacity_bytes);
        self.reserve_bytes.unwrap_or(own)
    }

    fn limit(&self, confidence: Confidence) -> u64 {
        self.capacity_bytes.saturating_sub(self.reserve(confidence))
    }

    fn fits(&self, total: u64, confidence: Confidence) -> bool {
        total <= self.limit(confidence)
    }

    fn tried_fits(&self, tried: &Tried) -> bool {
        self.fits(tried.outcome.allocated_bytes, tried.confidence)
    }

    fn fit(&self, edits: &[Edit]) -> bool {
        self.outcome(edits).is_some_and(|t| self.tried_fits(&t))
    }

    fn collect(&self, before: &Outcome) -> Vec<Edit> {
        let mut taken: Vec<Edit> = Vec::new();
        let mut total = before.allocated_bytes;
        let mut fits = false;
        // Less than this is not worth a step.
        let least = before.allocated_bytes / 200;
        for candidate in candidates(self.base, self.findings) {
            if fits {
                break;
            }
            // What costs nothing is worth a step for little.
            let least = match candidate.safety {
                Safety::Safe => (least / 50).max(1),
                _ => least,
            };
            let mut best: Option<(u64, Edit, bool)> = None;
            for edit in candidate.alternatives {
                taken.push(edit.clone());
                // Only what can be better than the best, and worth a step, is packed.
                let most = best.as_ref().map_or(total.saturating_sub(least), |b| b.0);
                let worth = |peak: u64| peak <= most || self.pins(&edit);
                let tried = self.outcome_if(&taken, worth);
                taken.pop();
                let Some(tried) = tried else { continue };
                let new = tried.outcome.allocated_bytes;
                let better = |b: u64| new < b || (new == b && self.pins(&edit));
                let enough = self.tried_fits(&tried);
                if best.as_ref().is_none_or(|(b, _, _)| better(*b)) {
                    best = Some((new, edit, enough));
                }
                if enough {
                    break;
                }
            }
            if let Some((new, edit, enough)) = best {
                // What the compiler rematerialises on its own now, it may not once the rest
                // changes: a plan says it explicitly, even if that saves nothing by itself.
                let pins = self.pins(&edit) && new <= total;
                if pins || new.saturating_add(least) <= total {
                    taken.push(edit);
                    total = new;
                    fits = enough;
                }
            }
        }
        taken
    }

    /// Whether an edit makes explicit what the compiler does on its own.
    fn pins(&self, edit: &Edit) -> bool {
        self.base.rematerialized > 0 && edit.kind().pins
    }

    /// Takes out what is not needed, the riskiest first; what is safe stays as long as anything
    /// riskier does. If nothing suffices, everything stays.
    fn prune(&self, mut edits: Vec<Edit>) -> Vec<Edit> {
        if !self.fit(&edits) {
            return edits;
        }
        for at in (0..edits.len()).rev() {
            let Some(edit) = edits.get(at) else { continue };
            let is_safe = edit.kind().safety == Safety::Safe;
            let riskier = edits.iter().any(|e| e.kind().safety > Safety::Safe);
            if self.pins(edit) || (is_safe && riskier) {
                continue;
            }
            let mut fewer = edits.clone();
            fewer.remove(at);
            if self.fit(&fewer) {
                edits = fewer;
            }
        }
        edits
    }

    /// The steps of a plan. Edits that save nothing in their place are left out, except those
    /// that keep what the compiler does on its own.
    fn steps(&self, before: &Outcome, edits: Vec<Edit>) -> (Vec<Edit>, Vec<PlanStep>) {
        let mut taken: Vec<Edit> = Vec::new();
        let mut steps: Vec<PlanStep> = Vec::new();
        let mut last = before.clone();
        for edit in edits {
            taken.push(edit.clone());
            let after = self.outcome(&taken).map(|t| t.outcome);
            let saves = |o: &Outcome| last.allocated_bytes.saturating_sub(o.allocated_bytes);
            let Some(after) = after.filter(|o| saves(o) > 0 || self.pins(&edit)) else {
                taken.pop();
                continue;
            };
            let saving_bytes = saves(&after);
            let reason = (saving_bytes == 0).then(|| {
                format!(
                    "the compiler computes {} instructions twice on its own to fit this program; without an explicit checkpoint it may stop doing so once the rest changes",
                    self.base.rematerialized
                )
            });
            steps.push(PlanStep {
                edit: edit.to_string(),
                safety: edit.kind().safety,
                saving_bytes,
                reason,
                after: after.clone(),
                jax: edit.jax(self.base, self.findings),
                verify: edit.kind().verify.to_owned(),
            });
            last = after;
        }
        (taken, steps)
    }
}

/// Chips by their names, smallest memory first, by platform.
const TPUS: [&str; 5] = ["TPU v5e", "TPU v4", "TPU v6e", "TPU7x", "TPU v5p"];
const GPUS: [&str; 1] = ["NVIDIA H100 80GB HBM3"];

/// Chips of the platform that a program is for; empty where it is not known.
fn chips(base: &Base<'_, '_>, kind: Option<&str>) -> &'static [&'static str] {
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    let has = |chips: &[&str]| {
        let first = chips.first().and_then(|c| c.get(..3)).unwrap_or("-");
        kind.starts_with(&first.to_ascii_lowercase())
    };
    // Of these platforms, only TPUs lay arrays out in tiles.
    let is_tiled = || {
        let module = &base.program.module;
        let mut parameters = module.entry_parameters().iter();
        parameters.any(|&i| {
            let layout = module.shape(i).layout;
            layout.is_some_and(|l| !l.tiles.is_empty())
        })
    };
    match kind.is_empty() {
        _ if has(&TPUS) => &TPUS,
        _ if has(&GPUS) => &GPUS,
        true if is_tiled() => &TPUS,
        _ => &[],
    }
}

fn otherwise(base: &Base<'_, '_>, kind: Option<&str>, last: &Outcome, limit: u64) -> Vec<String> {
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
    let chips = chips(base, kind);
    let fits = |c: &&&str| capacity_of(c).is_some_and(|b| b - b / 20 >= last.allocated_bytes);
    match chips.iter().find(fits) {
        Some(chip) => out.push(format!(
            "on as many devices, a {chip} has room ({})",
            crate::units::bytes(capacity_of(chip).unwrap_or(0))
        )),
        None if !chips.is_empty() => {
            out.push(
                "no single chip of this platform that is known here has room for a device's part"
                    .to_owned(),
            );
        }
        None => {}
    }
    out
}

//! Steps of a joined triage. In: the failure, filled in from the dump, and what the dump shows.
//! Out: what to do next: findings first, each with its saving, then those of the guide's steps
//! that the dump does not rule out and no finding has said better.

use std::cmp::Reverse;

use super::actions::COMPILES;
use super::catalogue::COMPILE_AND_METRICS;
use super::failure::Failure;
use super::join_flags::FlagInForce;
use super::plan::steps_for;
use super::step_id::StepId;
use super::steps::{Action, Step, MAX_STEPS};
use crate::findings::{Finding, FindingKind, Safety, SavingKind};
use crate::oom::Scenario;
use crate::report::SpaceReport;
use crate::units;

/// Findings that come first.
const FINDING_STEPS: usize = 4;

/// The steps, at most [`MAX_STEPS`].
pub(crate) fn advice(f: &Failure<'_>, space: &SpaceReport, flags: &[FlagInForce]) -> Vec<Step> {
    let mut useful: Vec<&Finding> = space
        .findings
        .iter()
        .filter(|f| f.saving_bytes > 0 && !f.action.is_empty() && f.kind != FindingKind::CAPACITY)
        .collect();
    useful.sort_by_key(|f| (f.safety, Reverse(f.saving_bytes), f.title.clone()));
    let mut chosen: Vec<&Finding> = useful.iter().copied().take(FINDING_STEPS).collect();
    let mut rest = Vec::new();
    for step in steps_for(f) {
        let same = |f: &&&Finding| StepId::of_finding(f.kind) == Some(step.id);
        if matches!(step.id, StepId::Dump | StepId::ReadDump) {
            // The dump is here already.
        } else if !FindingKind::all()
            .into_iter()
            .any(|k| StepId::of_finding(k) == Some(step.id))
        {
            rest.extend(Some(step).filter(|s| stands(s.id, f, flags, &chosen)));
        } else if chosen.iter().any(|f| same(&f)) {
            // A finding says it with names.
        } else if let Some(f) = useful.iter().find(same) {
            chosen.push(f);
        } else if step.id == StepId::Sharding && sharding_may_help(space) {
            rest.push(step);
        }
        // Else the dump was searched for it in vain.
    }
    let mut out: Vec<Step> = chosen.into_iter().map(of_finding).collect();
    out.extend(rest);
    out.extend(more_chips(f, space));
    out.truncate(MAX_STEPS);
    out
}

fn of_finding(f: &Finding) -> Step {
    let how = match f.saving {
        SavingKind::Exact => "saves",
        SavingKind::Simulated => "saves about",
        SavingKind::UpperBound => "saves up to",
    };
    let known = StepId::of_finding(f.kind).and_then(Action::intervention);
    let verify = match f.safety > Safety::ChangesSpeed {
        true => COMPILE_AND_METRICS,
        false => COMPILES,
    };
    Step {
        id: StepId::Finding(f.kind),
        title: f.title.clone(),
        detail: format!("{} ({how} {})", f.action, units::bytes(f.saving_bytes)),
        trade_off: known.map_or_else(String::new, |i| i.trade_off.to_owned()),
        safety: f.safety,
        verify: verify.to_owned(),
    }
}

/// Devices that share the program, and whether each of them holds another part of its largest
/// buffer; `None` where that is unknown.
fn largest_is_distinct(space: &SpaceReport) -> (u64, Option<bool>) {
    let largest = space.buffers.first();
    let devices = largest.map_or(1, |b| b.devices);
    let distinct = largest.and_then(|b| b.distinct_copies);
    (devices, distinct.map(|c| c >= devices))
}

fn sharding_may_help(space: &SpaceReport) -> bool {
    let (devices, distinct) = largest_is_distinct(space);
    devices > 1 && distinct != Some(true)
}

/// Whether the program shows why its largest buffer is there, so that it is no slip in the
/// configuration: it is saved for the backward pass, or each device holds another part of it.
pub(crate) fn explained(space: &SpaceReport) -> bool {
    let (devices, distinct) = largest_is_distinct(space);
    let id = space.buffers.first().and_then(|b| b.logical_buffer_id);
    let saved = space.findings.iter().any(|f| {
        f.kind == FindingKind::SAVED_ACTIVATIONS && id.is_some_and(|id| f.buffer_ids.contains(&id))
    });
    saved || (devices > 1 && distinct == Some(true))
}

/// Whether the dump leaves a step standing that no kind of finding is about.
fn stands(id: StepId, f: &Failure<'_>, flags: &[FlagInForce], chosen: &[&Finding]) -> bool {
    match id {
        StepId::Flag(name) => flags.iter().all(|f| f.name != name || f.worth_trying),
        // The buffers are listed above, and the findings say what to do about them.
        StepId::Look => {
            let large = f.scenario == Some(Scenario::LargeAllocation);
            chosen.is_empty() || (large && !f.explained)
        }
        _ => true,
    }
}

/// A tensor larger than the one device that the program is for.
fn more_chips(f: &Failure<'_>, space: &SpaceReport) -> Option<Step> {
    let largest = space.buffers.first()?;
    let limit = f.text.limit_bytes?;
    if largest.devices > 1 || largest.size_bytes <= limit {
        return None;
    }
    let why = format!(
        "The program is compiled for one device, and this tensor alone is larger than its {}.",
        units::bytes(limit)
    );
    let title = "Split it over several devices, or make it smaller";
    Some(Action::intervention(StepId::MoreChips)?.titled(title, why))
}

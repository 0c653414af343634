//! Steps of a joined triage. In: the failure, filled in from the dump, and what the dump shows.
//! Out: what to do next: findings first, each with its saving, then those of the guide's steps
//! that the dump does not rule out and no finding has said better.

use std::cmp::Reverse;

use super::catalogue::INTERVENTIONS;
use super::join_flags::FlagInForce;
use super::program_steps::CONFIGURATION;
use super::steps::{next_steps, Step, MAX_STEPS};
use crate::findings::Safety;
use crate::findings::{Finding, FindingKind, SavingKind};
use crate::oom::OomReport;
use crate::report::SpaceReport;
use crate::units;

/// Findings that come first.
const FINDING_STEPS: usize = 4;

/// The steps, at most [`MAX_STEPS`].
pub(crate) fn advice(report: &OomReport, space: &SpaceReport, flags: &[FlagInForce]) -> Vec<Step> {
    let mut useful: Vec<&Finding> = space
        .findings
        .iter()
        .filter(|f| f.saving_bytes > 0 && !f.action.is_empty() && f.kind != FindingKind::Capacity)
        .collect();
    useful.sort_by_key(|f| (f.safety, Reverse(f.saving_bytes), f.title.clone()));
    let mut chosen: Vec<&Finding> = useful.iter().copied().take(FINDING_STEPS).collect();
    let mut rest = Vec::new();
    for step in next_steps(report) {
        // The dump is here already.
        if step.id == "dump" || step.id == "read_dump" {
            continue;
        }
        let kinds = kinds_of(&step.id);
        if kinds.is_empty() {
            rest.extend(judged(step, report, space, flags, &chosen));
        } else if chosen.iter().any(|f| kinds.contains(&f.kind)) {
            // A finding says it with names.
        } else if let Some(f) = useful.iter().find(|f| kinds.contains(&f.kind)) {
            chosen.push(f);
        } else if step.id == "sharding" && sharding_may_help(space) {
            rest.push(step);
        }
        // Else the dump was searched for it in vain.
    }
    let mut out: Vec<Step> = chosen.into_iter().map(of_finding).collect();
    out.extend(rest);
    out.extend(more_chips(report, space));
    out.truncate(MAX_STEPS);
    out
}

/// Kinds of findings on the same matter as a step of the guide.
fn kinds_of(step: &str) -> &'static [FindingKind] {
    match step {
        "donation" => &[FindingKind::Donation],
        "sharding" => &[FindingKind::Unsharded, FindingKind::RedundantCopies],
        "checkpoint" => &[FindingKind::SavedActivations],
        "bfloat16" => &[FindingKind::Float32],
        "remove_debug_print" => &[FindingKind::DebugCallback],
        "dimensions" => &[FindingKind::Padding],
        _ => &[],
    }
}

/// The intervention whose cost a finding's action has.
fn intervention_of(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Donation => "donation",
        FindingKind::Unsharded | FindingKind::RedundantCopies => "sharding",
        FindingKind::SavedActivations => "checkpoint",
        FindingKind::Float32 => "bfloat16",
        FindingKind::DebugCallback => "remove_debug_print",
        FindingKind::Padding => "dimensions",
        _ => "",
    }
}

fn of_finding(f: &Finding) -> Step {
    let how = match f.saving {
        SavingKind::Exact => "saves",
        SavingKind::Simulated => "saves about",
        SavingKind::UpperBound => "saves up to",
    };
    let known = INTERVENTIONS
        .iter()
        .find(|i| i.id == intervention_of(f.kind));
    let verify = match f.safety > Safety::ChangesSpeed {
        true => "Compile again, then check the training metrics too.",
        false => "Compile again: a clean compile is enough.",
    };
    Step {
        id: f.kind.name().to_owned(),
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

/// A step without a finding of its kind, as far as the dump leaves it standing.
fn judged(
    mut step: Step,
    report: &OomReport,
    space: &SpaceReport,
    flags: &[FlagInForce],
    chosen: &[&Finding],
) -> Option<Step> {
    if flags.iter().any(|f| f.name == step.id && !f.worth_trying) {
        return None;
    }
    if step.id != "look" {
        return Some(step);
    }
    // The buffers are listed above, and the findings say what to do about them.
    let large = report.scenario == Some(crate::oom::Scenario::LargeAllocation);
    if !large && !chosen.is_empty() {
        return None;
    }
    let (devices, distinct) = largest_is_distinct(space);
    let id = space.buffers.first().and_then(|b| b.logical_buffer_id);
    let saved = space.findings.iter().any(|f| {
        f.kind == FindingKind::SavedActivations && id.is_some_and(|id| f.buffer_ids.contains(&id))
    });
    if saved || (devices > 1 && distinct == Some(true)) {
        if !chosen.is_empty() {
            return None;
        }
        step.detail = step.detail.replace(CONFIGURATION, "");
    }
    Some(step)
}

/// A tensor larger than the one device that the program is for.
fn more_chips(report: &OomReport, space: &SpaceReport) -> Option<Step> {
    let largest = space.buffers.first()?;
    let limit = report.limit_bytes?;
    if largest.devices > 1 || largest.size_bytes <= limit {
        return None;
    }
    let i = INTERVENTIONS.iter().find(|i| i.id == "more_chips")?;
    Some(Step {
        id: i.id.to_owned(),
        title: "Split it over several devices, or make it smaller".to_owned(),
        detail: format!(
            "The program is compiled for one device, and this tensor alone is larger than its {}. {}",
            units::bytes(limit),
            i.how
        ),
        trade_off: i.trade_off.to_owned(),
        safety: i.safety,
        verify: i.verify.to_owned(),
    })
}

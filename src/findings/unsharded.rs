//! Findings about copies: arguments and results that an annotation leaves whole on every device
//! (`unsharded`), and everything else at the peak that several devices hold identically
//! (`redundant_copies`). Below one hundredth of the peak nothing is said; of arguments that were
//! gathered for use, below one twentieth.

use std::collections::BTreeMap;

use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::devices::replication::{DeviceClassesId, Replication};
use crate::devices::spec::SpecHints;
use crate::devices::{RedundantRow, ReplicationSummary};
use crate::facts::Facts;
use crate::hlo::{AllocationKind, MeshAxis, Opcode};
use crate::peak::Context;
use crate::units;

pub(crate) static COPIES: Detector = Detector {
    name: "redundant_copies",
    intervention: Some("sharding"),
    brief: "some devices hold the same data",
    text: "Some devices hold the same data: with c different copies on N devices the buffer is stored N/c times. Full sharding would save size x (1 - c/N) a device.",
    detects: "Everything else at the peak that several devices hold identically.",
    how: "The replication analysis.",
    silent: "One device; under a hundredth of the peak; of arguments that were gathered for use, under a twentieth.",
    saving: "`upper_bound`: what full sharding would leave of it.",
    every_space: true,
    find: |facts, _| of_kind(facts, FindingKind::REDUNDANT_COPIES),
    yields_to: &[FindingKind::DEBUG_CALLBACK],
};

impl FindingKind {
    /// Data at the peak that several devices hold identically.
    pub const REDUNDANT_COPIES: FindingKind = FindingKind::new(&COPIES);
}

pub(crate) static DETECTOR: Detector = Detector {
    name: "unsharded",
    intervention: Some("sharding"),
    brief: "every device holds a whole copy of the buffer",
    text: "Every device holds a whole copy of the buffer. Sharding it over an axis of size n saves (1 - 1/n) of it on each device.",
    detects: "Arguments and results that an annotation leaves whole on every device.",
    how: "The replication analysis: which devices hold the same data.",
    silent: "One device; under a hundredth of the peak.",
    saving: "`upper_bound`: what full sharding would leave of it.",
    every_space: true,
    find: |facts, _| of_kind(facts, FindingKind::UNSHARDED),
    yields_to: &[],
};

impl FindingKind {
    /// A parameter or output that is not sharded over any device.
    pub const UNSHARDED: FindingKind = FindingKind::new(&DETECTOR);
}

const LINKS: [&str; 2] = [
    "https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html",
    "https://docs.jax.dev/en/latest/_autosummary/jax.lax.with_sharding_constraint.html",
];
/// Names listed where small tensors are summed up.
const MAX_LISTED: usize = 8;

fn of_kind(facts: &Facts<'_, '_>, kind: FindingKind) -> Vec<Finding> {
    let Some(summary) = facts.copies() else {
        return Vec::new();
    };
    let mut out = unsharded_findings(facts, facts.replication(), summary);
    out.retain(|f| f.kind == kind);
    out
}

/// Findings about copies at the peak, the largest saving first.
pub fn unsharded_findings(
    ctx: &Context<'_, '_>,
    r: &Replication,
    summary: &ReplicationSummary,
) -> Vec<Finding> {
    let threshold = summary.peak_bytes / 100;
    let hints = SpecHints::new(ctx.program, r);
    let mut out: Vec<Finding> = summary
        .rows
        .iter()
        .filter(|row| {
            let at_least = if row.gathered { 5 } else { 1 };
            row.redundant_bytes > threshold.saturating_mul(at_least)
        })
        .map(|row| finding(ctx, r, &hints, summary, row))
        .collect();
    out.extend(small_arguments(summary, threshold));
    out.extend(small_copies(summary, threshold));
    out.sort_by(|a, b| {
        (std::cmp::Reverse(a.saving_bytes), a.kind, &a.title).cmp(&(
            std::cmp::Reverse(b.saving_bytes),
            b.kind,
            &b.title,
        ))
    });
    out
}

fn finding(
    ctx: &Context<'_, '_>,
    r: &Replication,
    hints: &SpecHints,
    summary: &ReplicationSummary,
    row: &RedundantRow,
) -> Finding {
    let times = if row.count > 1 {
        format!("{} x ", row.count)
    } else {
        String::new()
    };
    let held = match row.distinct_copies {
        1 => format!("the same on all {} devices", row.devices),
        n => format!(
            "{n} different contents over {} devices, the same along {}",
            row.devices,
            row.axes.as_deref().unwrap_or("some of them")
        ),
    };
    let what = match row.kind {
        _ if row.gathered => format!("`{}`, gathered:", row.label),
        AllocationKind::Output => format!("result of `{}`", row.label),
        _ => format!("`{}`", row.label),
    };
    let size = units::bytes(row.bytes);
    let title = if row.annotated_whole {
        format!("{what} {times}{} is not sharded: {size}, {held}", row.shape)
    } else {
        format!("{what} {times}{}: {size}, {held}", row.shape)
    };
    Finding {
        kind: if row.annotated_whole {
            FindingKind::UNSHARDED
        } else {
            FindingKind::REDUNDANT_COPIES
        },
        severity: FindingSeverity::of_share(row.redundant_bytes, summary.peak_bytes),
        title,
        bytes: row.bytes,
        saving_bytes: row.redundant_bytes,
        saving: SavingKind::UpperBound,
        safety: Safety::ChangesSpeed,
        evidence: evidence(ctx, row),
        action: action(r, hints, row),
        buffer_ids: row.buffer_ids.clone(),
        links: LINKS.iter().map(|&l| l.to_owned()).collect(),
    }
}

fn evidence(ctx: &Context<'_, '_>, row: &RedundantRow) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(s) = &row.sharding {
        out.push(format!("annotation: {s}"));
    }
    if let Some(axes) = &row.axes {
        out.push(format!(
            "replicated over {axes}: {}",
            match row.distinct_copies {
                1 => format!("the same on all {} devices", row.devices),
                n => format!("{n} different contents over {} devices", row.devices),
            }
        ));
    }
    out.push(format!(
        "{} of {} would go if each content were stored once",
        units::bytes(row.redundant_bytes),
        units::bytes(row.bytes)
    ));
    if let Some(i) = row.instruction {
        let inst = ctx.program.module.instruction(i);
        if inst.opcode != Opcode::Parameter {
            out.push(format!("made by {} ({})", inst.name, inst.opcode));
        }
    }
    if !row.where_.is_empty() {
        out.push(format!("source: {}", row.where_));
    }
    out
}

fn action(r: &Replication, hints: &SpecHints, row: &RedundantRow) -> String {
    let axes = r.free_axes(row.classes);
    let copies = row.devices / row.distinct_copies.max(1);
    if row.gathered {
        return format!(
            "These are sharded arguments that XLA gathered for use. They go when fewer are gathered ahead of time, or when the computation is sharded along {} as well, so that none needs the whole.",
            row.axes.as_deref().unwrap_or("the same axis")
        );
    }
    // Only a tensor that is whole on every device shows its global dimensions here.
    let whole = row.distinct_copies == 1;
    let dimensions = match row.kind {
        AllocationKind::Temporary => &row.made_dimensions,
        _ => &row.dimensions,
    };
    let is_weight = matches!(
        row.kind,
        AllocationKind::Parameter | AllocationKind::Donated
    );
    let known = hints.spec(dimensions, &axes, is_weight).filter(|_| whole);
    let is_spec = known.is_some();
    let Some(spec) = known.or_else(|| one_more_axis(dimensions, &axes, copies)) else {
        return format!(
            "No dimension of {} divides evenly by {copies}: pad one to a multiple of it, then shard that dimension.",
            row.shape
        );
    };
    let at = if row.where_.is_empty() {
        String::new()
    } else {
        format!(", at {}", row.where_)
    };
    let too = if whole { "" } else { " too" };
    match (row.kind, is_spec) {
        (AllocationKind::Parameter | AllocationKind::Donated, true) => format!(
            "Shard the argument: jax.device_put(x, NamedSharding(mesh, {spec})), or that sharding in jit's in_shardings; the same in out_shardings if it is state that comes back."
        ),
        (AllocationKind::Parameter | AllocationKind::Donated, false) => {
            format!("Shard the argument {spec}{too}, in its PartitionSpec.")
        }
        (AllocationKind::Output, true) => {
            format!("Shard the result: NamedSharding(mesh, {spec}) in jit's out_shardings.")
        }
        (AllocationKind::Output, false) => {
            format!("Shard the result {spec}{too}, in jit's out_shardings.")
        }
        (AllocationKind::Constant, _) => {
            "The compiler does not shard constants: pass it to the function as an argument with a sharding.".to_owned()
        }
        (_, true) => format!(
            "Shard it where it is made: x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, {spec})){at}."
        ),
        (_, false) => format!(
            "Shard it {spec}{too}: add that to the PartitionSpec of a jax.lax.with_sharding_constraint where it is made{at}. XLA gathers it where it is needed whole."
        ),
    }
}

/// Which dimension to cut further, in words.
fn one_more_axis(dimensions: &[u64], axes: &[MeshAxis], copies: u64) -> Option<String> {
    let (name, size) = match axes {
        [] => (format!("the axis of size {copies}"), copies),
        [a, ..] => (format!("`{}`", a.name), a.size),
    };
    let d = largest_divisible(dimensions, size)?;
    let n = dimensions.get(d)?;
    let words: Vec<String> = dimensions.iter().map(u64::to_string).collect();
    Some(format!(
        "over {name} along dimension {d} of [{}] ({n} on a device)",
        words.join(",")
    ))
}

fn largest_divisible(dimensions: &[u64], by: u64) -> Option<usize> {
    (0..dimensions.len())
        .filter(|&d| {
            let n = dimensions.get(d).copied().unwrap_or(0);
            by > 1 && n >= by && n.is_multiple_of(by)
        })
        .max_by_key(|&d| (dimensions.get(d).copied(), std::cmp::Reverse(d)))
}

/// Whole arguments that are small one by one and not together.
fn small_arguments(summary: &ReplicationSummary, threshold: u64) -> Option<Finding> {
    let small: Vec<&RedundantRow> = summary
        .rows
        .iter()
        .filter(|r| r.annotated_whole && r.redundant_bytes <= threshold)
        .collect();
    let mut f = together(summary, threshold, &small)?;
    f.kind = FindingKind::UNSHARDED;
    f.title = format!(
        "{} smaller arguments and results are not sharded: {} together, the same on all {} devices",
        count(&small),
        units::bytes(f.bytes),
        summary.devices
    );
    f.action = "Give them a PartitionSpec over the mesh in in_shardings and out_shardings (for parameters: fully sharded data parallelism).".to_owned();
    Some(f)
}

/// Other copies that are small one by one and not together, by what they are replicated over.
fn small_copies(summary: &ReplicationSummary, threshold: u64) -> Vec<Finding> {
    let mut by_axes: BTreeMap<DeviceClassesId, Vec<&RedundantRow>> = BTreeMap::new();
    for row in &summary.rows {
        let small = row.redundant_bytes <= threshold;
        if small && !row.annotated_whole && !row.gathered {
            by_axes.entry(row.classes).or_default().push(row);
        }
    }
    by_axes
        .values()
        .filter_map(|small| {
            let mut f = together(summary, threshold, small)?;
            let axes = small.first().and_then(|r| r.axes.clone())?;
            f.title = format!(
                "{} smaller tensors: {} together, the same along {axes}",
                count(small),
                units::bytes(f.bytes)
            );
            f.action = format!("Shard them over {axes} as well: a jax.lax.with_sharding_constraint on the values they are computed from usually carries over to them.");
            Some(f)
        })
        .collect()
}

fn count(rows: &[&RedundantRow]) -> String {
    units::count(rows.iter().map(|r| r.count as u64).sum())
}

/// A finding on several rows, if they are worth one together.
fn together(
    summary: &ReplicationSummary,
    threshold: u64,
    rows: &[&RedundantRow],
) -> Option<Finding> {
    let sum = |f: fn(&RedundantRow) -> u64| rows.iter().fold(0u64, |s, r| s.saturating_add(f(r)));
    let saving_bytes = sum(|r| r.redundant_bytes);
    if rows.len() < 2 || saving_bytes <= threshold {
        return None;
    }
    let mut evidence: Vec<String> = rows
        .iter()
        .take(MAX_LISTED)
        .map(|r| format!("{} {}: {}", r.label, r.shape, units::bytes(r.bytes)))
        .collect();
    if rows.len() > MAX_LISTED {
        evidence.push(format!("and {} more", rows.len() - MAX_LISTED));
    }
    Some(Finding {
        kind: FindingKind::REDUNDANT_COPIES,
        severity: FindingSeverity::of_share(saving_bytes, summary.peak_bytes),
        title: String::new(),
        bytes: sum(|r| r.bytes),
        saving_bytes,
        saving: SavingKind::UpperBound,
        safety: Safety::ChangesSpeed,
        evidence,
        action: String::new(),
        buffer_ids: rows
            .iter()
            .flat_map(|r| r.buffer_ids.iter().copied())
            .collect(),
        links: LINKS.iter().map(|&l| l.to_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(list: &[(&str, u64)]) -> Vec<MeshAxis> {
        list.iter()
            .map(|&(name, size)| MeshAxis {
                name: name.to_owned(),
                size,
            })
            .collect()
    }

    #[test]
    fn the_largest_dimension_that_divides_is_cut_further() {
        assert_eq!(
            one_more_axis(&[8, 2048], &axes(&[("tp", 2)]), 2).as_deref(),
            Some("over `tp` along dimension 1 of [8,2048] (2048 on a device)")
        );
    }
}

//! Memory lost between buffers: what the arena takes beyond what is alive at its fullest.

use super::evidence::{buffer_ids, matters, place};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::memory::ArenaUsage;
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "fragmentation",
    intervention: None,
    brief: "bytes no live buffer uses, yet allocated",
    text: "Bytes that no live buffer uses and that must be there all the same: allocated total minus peak. The packer could not place all buffers side by side in less. On a running device: free memory in pieces smaller than the request.",
    detects: "Arena bytes that are never in use at once: the total must fit, not the peak.",
    how: "Allocated total less the peak; the gaps at the peak; the buffers that reach above a gapless arena, with their live ranges.",
    silent: "Under a hundredth of the peak.",
    saving: "`upper_bound`: all of it.",
    every_space: false,
    find: |facts, _| fragmentation_findings(facts),
    yields_to: &[],
};

impl FindingKind {
    /// Memory lost between buffers.
    pub const FRAGMENTATION: FindingKind = FindingKind::new(&DETECTOR);
}

/// One finding if the space loses more than a hundredth of its peak.
pub fn fragmentation_findings(ctx: &Context<'_, '_>) -> Vec<Finding> {
    let lost = ctx.usage.fragmentation_bytes();
    let Some(arena) = ctx.usage.main_arena().filter(|_| matters(ctx, lost)) else {
        return Vec::new();
    };
    let peak = ctx.usage.peak_bytes();
    let total = ctx.usage.allocated_bytes;
    let mut evidence = vec![format!(
        "{} allocated, {} in use at the peak: {} ({} of what is allocated) is never in use at once",
        units::bytes(total),
        units::bytes(peak),
        units::bytes(lost),
        units::percent(lost, total)
    )];
    let alive: Vec<&PeakBuffer> = ctx
        .peak
        .buffers
        .iter()
        .filter(|b| b.live.is_some() && b.allocation == arena.allocation)
        .collect();
    evidence.extend(holes(ctx, arena, &alive));
    let pins = pins(ctx, arena);
    evidence.extend(pins.iter().map(|p| p.1.clone()));
    let ids = pins.iter().filter_map(|p| p.2).collect::<Vec<i64>>();
    let mut buffer_ids = buffer_ids(ctx, alive.iter().copied().filter(|b| is_above(arena, b)));
    for id in ids {
        if !buffer_ids.contains(&id) {
            buffer_ids.push(id);
        }
    }
    vec![Finding {
        kind: FindingKind::FRAGMENTATION,
        severity: FindingSeverity::of_share(lost, peak),
        title: format!(
            "{} is lost between buffers: {} must fit, not the {} of the peak",
            units::bytes(lost),
            units::bytes(total),
            units::bytes(peak)
        ),
        bytes: lost,
        saving_bytes: lost,
        saving: SavingKind::UpperBound,
        safety: Safety::ChangesSpeed,
        evidence,
        action: "Plan with the total, not with the peak. Gaps open where a large buffer does not \
                 fit into what smaller ones left free: make the buffers named here smaller (shard, \
                 split into slices, jax.checkpoint), or change what is alive beside them. As a last \
                 resort let the compiler order the program anew: compiler_options={\
                 \"xla_tpu_enable_latency_hiding_scheduler\": False} (TPU; slower), and compare \
                 the total."
            .to_owned(),
        buffer_ids,
        links: vec!["https://openxla.org/xla/errors/error_1000".to_owned()],
    }]
}

/// Whether a block ends above what a gapless arena would take.
fn is_above(arena: &ArenaUsage, b: &PeakBuffer) -> bool {
    b.offset_bytes.saturating_add(b.size_bytes) > arena.peak_bytes
}

/// The free gaps between what is alive at the peak.
fn holes(ctx: &Context<'_, '_>, arena: &ArenaUsage, alive: &[&PeakBuffer]) -> Vec<String> {
    let Some(size) = ctx.program.assignment.as_ref().zip(arena.allocation) else {
        return Vec::new();
    };
    let size = size.0.allocation(size.1).size_bytes;
    let mut spans: Vec<(u64, u64)> = alive
        .iter()
        .map(|b| (b.offset_bytes, b.offset_bytes.saturating_add(b.size_bytes)))
        .collect();
    spans.sort_unstable();
    let (mut end, mut count, mut largest) = (0u64, 0usize, (0u64, 0u64));
    for (from, to) in spans.into_iter().chain([(size, size)]) {
        let gap = from.saturating_sub(end);
        if gap > 0 {
            count += 1;
            largest = largest.max((gap, end));
        }
        end = end.max(to);
    }
    if count == 0 {
        return Vec::new();
    }
    vec![format!(
        "at the peak the arena of {} has {} free gaps, the largest {} at offset {}",
        units::bytes(size),
        units::count(count as u64),
        units::bytes(largest.0),
        units::bytes(largest.1)
    )]
}

/// Buffers that reach above what a gapless arena would take, the highest first: they make the
/// arena as large as it is. Size, line, and the compiler's number of the buffer.
fn pins(ctx: &Context<'_, '_>, arena: &ArenaUsage) -> Vec<(u64, String, Option<i64>)> {
    let Some(assignment) = &ctx.program.assignment else {
        return Vec::new();
    };
    let mut found: Vec<_> = arena
        .ranges
        .iter()
        .map(|r| (r, assignment.buffer(r.buffer)))
        .filter(|(_, b)| b.offset_bytes.saturating_add(b.size_bytes) > arena.peak_bytes)
        .collect();
    found.sort_by_key(|(r, b)| {
        let end = b.offset_bytes.saturating_add(b.size_bytes);
        (std::cmp::Reverse(end), r.start, b.id)
    });
    let all = found.len();
    let lines: Vec<(u64, String, Option<i64>)> = found
        .iter()
        .take(5)
        .map(|(r, b)| {
            let (name, source) = match b.instruction {
                Some(i) => (ctx.program.module.instruction(i).name, place(ctx, i)),
                None => ("(no instruction)", String::new()),
            };
            let alive = (r.start..r.end).contains(&ctx.peak.point);
            let line = format!(
                "{name}: {} up to offset {}, alive at points {} to {}{}{source}",
                units::bytes(b.size_bytes),
                units::bytes(b.offset_bytes.saturating_add(b.size_bytes)),
                r.start,
                r.end.saturating_sub(1),
                if alive { ", also at the peak" } else { "" },
            );
            (b.size_bytes, line, Some(b.id))
        })
        .collect();
    let mut out = lines;
    if all > out.len() {
        let text = format!("and {} more above a gapless arena", all - out.len());
        out.push((0, text, None));
    }
    out
}

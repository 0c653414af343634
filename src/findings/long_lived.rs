//! Large buffers that lie idle across the peak: written early, read late.
//!
//! In: the program's graph and what is alive at the peak. Out: the longest stretch of program
//! points without a use, where that stretch covers the peak and at least half of the program; of
//! arguments only those of a training step that nothing reads before the peak.

use std::collections::{BTreeSet, HashSet};

use super::bound::peak_without;
use super::evidence::{buffer_ids, counted, matters, name, place, shortened};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::dataflow::{producer_of_value, reads_of, Graph, ProgramPoints, Through};
use crate::facts::Facts;
use crate::hlo::op_name::{phase, Phase};
use crate::hlo::{AllocationKind, MemorySpace};
use crate::peak::host::{fetched_from_host, runs_on_cpu};
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "long_lived",
    intervention: None,
    brief: "a buffer lives far longer than it is used",
    text: "A buffer lives far longer than it is used, and so through the peak. Compute it later, or again.",
    detects: "Blocks idle for at least half of the program points, the peak among them: temporaries written early and read late, copies of arguments in host memory that are fetched too early, and arguments of a training step that nothing reads before the peak (optimizer state).",
    how: "The longest stretch between uses, in program points.",
    silent: "Another finding names the block as a saved activation; the program has fewer than 30 points; inference; arguments on a CPU.",
    saving: "`upper_bound`: all of them, moved to the host or recomputed; `simulated`: what the peak falls by, where that is less.",
    every_space: false,
    find: long_lived_beside,
    yields_to: &[],
};

impl FindingKind {
    /// Large buffers idle for most of their life.
    pub const LONG_LIVED: FindingKind = FindingKind::new(&DETECTOR);
}

/// Blocks smaller than the peak divided by this are not looked at.
const SMALLEST_PART: u64 = 500;

/// Programs with fewer program points are too short to speak of early and late.
const MIN_POINTS: u32 = 30;

/// A block's longest idle stretch: points `from..to`.
struct Idle<'c> {
    buffer: &'c PeakBuffer,
    from: u32,
    to: u32,
    /// Whether nothing used it before.
    is_first: bool,
}

/// A forward result that waits for the backward pass is said to do so already.
fn long_lived_beside(facts: &Facts<'_, '_>, earlier: &[Finding]) -> Vec<Finding> {
    let waiting = earlier
        .iter()
        .filter(|f| f.kind == FindingKind::SAVED_ACTIVATIONS);
    let reported: HashSet<i64> = waiting.flat_map(|f| f.buffer_ids.iter().copied()).collect();
    let is_reported = |b: &PeakBuffer| facts.buffer_id(b).is_some_and(|id| reported.contains(&id));
    let buffers = facts.peak.buffers.iter().enumerate();
    let skip = buffers.filter(|(_, b)| is_reported(b)).map(|(at, _)| at);
    long_lived_findings(facts, facts.graph(), &skip.collect())
}

/// At most three findings: temporaries, copies of arguments in the host's memory that are fetched
/// too early, and arguments. A CPU has no other memory to move anything to. `skip` are positions in the peak's list that
/// another finding is about.
pub fn long_lived_findings(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    skip: &BTreeSet<usize>,
) -> Vec<Finding> {
    let points = ProgramPoints::new(ctx.program, graph, ctx.usage.main_arena());
    if points.point_count() < MIN_POINTS || ctx.usage.space != MemorySpace::HBM {
        return Vec::new();
    }
    let smallest = ctx.usage.peak_bytes() / SMALLEST_PART;
    let mut budget = 100_000 + 10 * ctx.program.module.instructions.len();
    let trains = ctx
        .program
        .module
        .instructions
        .iter()
        .any(|i| phase(i.op_name) == Phase::Backward);
    let on_cpu = runs_on_cpu(ctx);
    let (mut temporaries, mut arguments, mut fetched) = (Vec::new(), Vec::new(), Vec::new());
    for (at, b) in ctx.peak.buffers.iter().enumerate() {
        if b.counted_bytes <= smallest || skip.contains(&at) {
            continue;
        }
        let Some(idle) = idle_stretch(ctx, graph, &points, b, &mut budget) else {
            continue;
        };
        let long = u64::from(idle.to - idle.from) * 2 >= u64::from(points.point_count());
        if !long || !(idle.from..idle.to).contains(&ctx.peak.point) {
            continue;
        }
        match b.kind {
            AllocationKind::Temporary => {
                let from_host = |i| fetched_from_host(ctx, i);
                if b.instruction.is_some_and(from_host) {
                    fetched.push(idle);
                } else {
                    temporaries.push(idle);
                }
            }
            // Inference reads its weights in the course of one pass: no use in moving them.
            AllocationKind::Parameter | AllocationKind::Donated
                if idle.is_first && trains && !on_cpu =>
            {
                arguments.push(idle);
            }
            _ => {}
        }
    }
    let move_temporary = "Compute them again where they are read (jax.checkpoint), or move the \
        first use next to the second.";
    let fetch_later =
        "They are arguments in host memory already, copied to the device long before \
        they are used: call jax.device_put(x, jax.memory.Space.Device) right where each is used, \
        in the loop or layer that needs it, and make it depend on the step before \
        (jax.lax.optimization_barrier) so that it is not moved ahead.";
    let offload_temporary = "Offload them across the gap with a jax.checkpoint policy \
        (jax.checkpoint_policies.save_and_offload_only_these_names(..., offload_src=\"device\", \
        offload_dst=\"pinned_host\")), compute them again where they are read, or move the first \
        use next to the second.";
    let offload_argument = "Keep them in host memory until they are needed: \
        NamedSharding(mesh, spec, memory_kind=\"pinned_host\") for the argument, and \
        jax.device_put(x, jax.memory.Space.Device) right before the update; or run the update in a \
        program of its own.";
    [
        (
            "temporaries",
            temporaries,
            if on_cpu {
                move_temporary
            } else {
                offload_temporary
            },
        ),
        ("copies of host arguments", fetched, fetch_later),
        ("arguments", arguments, offload_argument),
    ]
    .into_iter()
    .filter_map(|(what, idle, action)| finding(ctx, &points, what, &idle, action))
    .collect()
}

/// The longest stretch without a use of a block, in program points.
fn idle_stretch<'c>(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    points: &ProgramPoints,
    b: &'c PeakBuffer,
    budget: &mut usize,
) -> Option<Idle<'c>> {
    let mut value = ctx.program.assignment.as_ref()?.value(b.buffer?)?;
    let whole_program = b.kind != AllocationKind::Temporary;
    if !whole_program {
        value = producer_of_value(ctx.program, &value).value;
    }
    let reads = reads_of(ctx.program, graph, &value, Through::Names, budget);
    if !reads.complete || (whole_program && reads.reads.is_empty()) {
        return None;
    }
    let point = |order: u32| {
        let at = graph.program_order().get(order as usize)?;
        points.point_of(graph, *at)
    };
    let made = points.point_of(graph, value.0)?;
    let mut uses: Vec<(u32, u32)> = Vec::with_capacity(reads.reads.len() + 1);
    if !whole_program {
        let (start, _) = b.live?;
        uses.push((start.min(made), made));
    }
    for r in &reads.reads {
        let from = points.point_of(graph, r.reader)?;
        let to = point(r.until).unwrap_or(from);
        uses.push((from.min(to), from.max(to)));
    }
    uses.sort_unstable();
    let mut best = (0, 0, false);
    let mut reached = uses
        .first()
        .map_or(0, |u| if whole_program { 0 } else { u.1 });
    for (n, (from, to)) in uses.into_iter().enumerate() {
        if from.saturating_sub(reached) > best.1 - best.0 {
            best = (reached, from, n == 0);
        }
        reached = reached.max(to);
    }
    (best.1 > best.0).then_some(Idle {
        buffer: b,
        from: best.0,
        to: best.1,
        is_first: best.2,
    })
}

fn finding(
    ctx: &Context<'_, '_>,
    points: &ProgramPoints,
    what: &str,
    idle: &[Idle<'_>],
    action: &str,
) -> Option<Finding> {
    let bytes = idle
        .iter()
        .fold(0u64, |s, i| s.saturating_add(i.buffer.counted_bytes));
    if !matters(ctx, bytes) {
        return None;
    }
    // With these gone, the peak is where the rest is largest.
    let gone: Vec<(u32, u32, u64)> = idle
        .iter()
        .filter_map(|i| {
            let (from, to) = i.buffer.live?;
            Some((from, to, i.buffer.counted_bytes))
        })
        .collect();
    let always = idle
        .iter()
        .filter(|i| i.buffer.live.is_none())
        .fold(0u64, |s, i| s.saturating_add(i.buffer.counted_bytes));
    let left = peak_without(ctx.usage, &gone, always);
    let bound = ctx.usage.peak_bytes().saturating_sub(left);
    let line = |i: &Idle<'_>| {
        let source = i
            .buffer
            .instruction
            .map_or(String::new(), |x| place(ctx, x));
        let text = format!(
            "{}: {}, idle from point {} to {} of {}{source}",
            name(ctx, i.buffer),
            units::bytes(i.buffer.counted_bytes),
            i.from,
            i.to,
            points.point_count()
        );
        (i.buffer.counted_bytes, text)
    };
    Some(Finding {
        kind: FindingKind::LONG_LIVED,
        severity: FindingSeverity::of_share(bytes, ctx.usage.peak_bytes()),
        title: format!(
            "{} of {what} ({}) lie idle for more than half of the program, the peak included",
            units::bytes(bytes),
            counted(idle.len(), "buffer", "buffers")
        ),
        bytes,
        saving_bytes: bytes.min(bound),
        saving: if bound < bytes {
            SavingKind::Simulated
        } else {
            SavingKind::UpperBound
        },
        safety: Safety::ChangesSpeed,
        evidence: shortened(idle.iter().map(line).collect()),
        action: action.to_owned(),
        buffer_ids: buffer_ids(ctx, idle.iter().map(|i| i.buffer)),
        links: vec!["https://docs.jax.dev/en/latest/notebooks/host-offloading.html".to_owned()],
    })
}

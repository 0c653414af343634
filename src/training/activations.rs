//! Forward results that are held for the backward pass.
//!
//! In: what is alive at a space's peak. Out: the blocks that the forward pass computed (`jvp` in
//! the framework's name, no `transpose`) and that the backward pass reads after the peak; for the
//! stacked results of a loop over layers with the number of iterations. What a block under `jax.checkpoint` still
//! keeps is told apart: its inputs have to stay, what its policy saves does not.

use rustc_hash::{FxHashMap, FxHashSet};

use super::kept::{compiler_recomputes, product_bytes, waists};
use crate::dataflow::flow::{reads_of, Path};
use crate::dataflow::maker_of_block;
use crate::dataflow::trip_count;
use crate::dataflow::{Graph, ProgramPoints};
use crate::findings::evidence::{buffer_ids, counted, matters, place, shortened};
use crate::findings::{Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::hlo::op_name::{
    is_checkpointed, is_in_loop, is_product, is_recomputed, operation, phase, scope, Phase,
};
use crate::hlo::{AllocationKind, ComputationId, InstructionId, Opcode};
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::text::stars;
use crate::units;

/// A forward result that is held for the backward pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedActivation {
    /// Position in the peak's list of buffers.
    pub peak_index: usize,
    /// The instruction that computed it; may be inside a fusion.
    pub maker: InstructionId,
    /// The loop whose iterations it is stacked over.
    pub stacked_by: Option<InstructionId>,
    /// Iterations of that loop, where known.
    pub trip_count: Option<u64>,
    /// Bytes that count at the peak.
    pub bytes: u64,
    /// Bytes of one iteration's part; all of it where it is not stacked.
    pub bytes_per_iteration: u64,
    /// Whether a matrix product or convolution made it.
    pub is_product: bool,
    /// Whether the block that it is from is under `jax.checkpoint` already.
    pub checkpointed: bool,
    /// The user's scope it was computed in; may be empty.
    pub scope: String,
}

/// Blocks smaller than the peak divided by this are not looked at.
const SMALLEST_PART: u64 = 2000;
/// Readers looked at for one block at most.
const MAX_READERS: usize = 400;

/// Forward results held at the peak for the backward pass, largest first.
pub fn saved_activations(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<SavedActivation> {
    let module = &ctx.program.module;
    let smallest = ctx.usage.peak_bytes() / SMALLEST_PART;
    let recomputing = recomputing_computations(ctx);
    let points = ProgramPoints::new(ctx.program, graph, ctx.usage.main_arena());
    let peak_order = points.order_at(ctx.peak.point);
    let mut budget = 100_000 + 10 * module.instructions.len();
    let mut trips: FxHashMap<InstructionId, Option<u64>> = FxHashMap::default();
    let mut out = Vec::new();
    for (peak_index, b) in ctx.peak.buffers.iter().enumerate() {
        if b.kind != AllocationKind::Temporary || b.counted_bytes <= smallest {
            continue;
        }
        let Some(maker) = maker_of_block(ctx.program, b) else {
            continue;
        };
        let op_name = module.instruction(maker.instruction).op_name;
        if phase(op_name) != Phase::Forward {
            continue;
        }
        let Some(reader) = backward_reader(ctx, graph, maker.value, peak_order, &mut budget) else {
            continue;
        };
        let trips = maker
            .stacked_by
            .and_then(|w| *trips.entry(w).or_insert_with(|| trip_count(ctx.program, w)));
        let r = module.instruction(reader);
        out.push(SavedActivation {
            peak_index,
            maker: maker.instruction,
            stacked_by: maker.stacked_by,
            trip_count: trips,
            bytes: b.counted_bytes,
            bytes_per_iteration: b.counted_bytes / trips.unwrap_or(1).max(1),
            is_product: is_product(op_name),
            checkpointed: recomputing.contains(&r.computation) || is_checkpointed(r.op_name),
            scope: scope(op_name),
        });
    }
    guess_trips(ctx, &mut out);
    out
}

/// Where the file does not say how often a loop runs: all that it stacks has as many slices, so
/// the dimension that all of its stacks begin with is the number.
fn guess_trips(ctx: &Context<'_, '_>, saved: &mut [SavedActivation]) {
    let mut leading: FxHashMap<InstructionId, (Option<u64>, usize)> = FxHashMap::default();
    let first_dimension = |s: &SavedActivation| {
        let shape = ctx.peak.buffers.get(s.peak_index)?.shape.as_ref()?;
        shape.dimensions.first().copied()
    };
    for s in saved.iter().filter(|s| s.trip_count.is_none()) {
        let Some(w) = s.stacked_by else {
            continue;
        };
        let first = first_dimension(s);
        let entry = leading.entry(w).or_insert((first, 0));
        entry.1 += 1;
        if entry.0 != first {
            entry.0 = None;
        }
    }
    for s in saved.iter_mut().filter(|s| s.trip_count.is_none()) {
        let found = s.stacked_by.and_then(|w| leading.get(&w));
        // One stack alone proves nothing.
        if let Some(&(Some(n), 2..)) = found {
            if n > 1 {
                s.trip_count = Some(n);
                s.bytes_per_iteration = s.bytes / n;
            }
        }
    }
}

/// Loop bodies of a backward pass that recomputes under `jax.checkpoint`.
fn recomputing_computations(ctx: &Context<'_, '_>) -> FxHashSet<ComputationId> {
    let module = &ctx.program.module;
    let recomputes =
        |i: &&crate::hlo::HloInstruction<'_>| is_recomputed(i.op_name) && is_in_loop(i.op_name);
    let found = module.instructions.iter().filter(recomputes);
    found.map(|i| i.computation).collect()
}

/// A reader of the backward pass at the peak or after it, directly or through copies.
fn backward_reader(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    value: (InstructionId, Path),
    peak_order: u32,
    budget: &mut usize,
) -> Option<InstructionId> {
    let module = &ctx.program.module;
    let mut todo = vec![value];
    let mut seen: FxHashSet<InstructionId> = FxHashSet::default();
    let mut looked_at = 0;
    while let Some((value, path)) = todo.pop() {
        let reads = reads_of(ctx.program, graph, value, &path, budget).reads;
        looked_at += reads.len();
        let backward = reads
            .iter()
            .filter(|r| r.until >= peak_order)
            .map(|r| r.reader)
            // A loop only carries; what reads is in its body.
            .filter(|&r| module.instruction(r).opcode != Opcode::While)
            .find(|&r| phase(module.instruction(r).op_name) == Phase::Backward);
        if backward.is_some() || looked_at > MAX_READERS {
            return backward;
        }
        for r in reads {
            let opcode = module.instruction(r.reader).opcode;
            let copies = opcode.moves() || opcode.is_start() || opcode.is_done();
            if copies && seen.insert(r.reader) {
                todo.push((r.reader, Path::new()));
                if opcode.is_start() {
                    // Its result is a tuple; what follows takes all of it.
                    todo.push((r.reader, vec![0]));
                }
            }
        }
    }
    None
}

/// One finding per loop whose results are stacked, and one for all others.
pub fn activation_findings(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<Finding> {
    let saved = saved_activations(ctx, graph);
    // What a checkpointed block keeps besides products are its inputs: those it needs.
    let freeable = |s: &&SavedActivation| !s.checkpointed || s.is_product;
    let mut loops: Vec<InstructionId> = saved.iter().filter_map(|s| s.stacked_by).collect();
    loops.sort_unstable();
    loops.dedup();
    let mut out = Vec::new();
    for w in loops {
        let of_loop = saved.iter().filter(|s| s.stacked_by == Some(w));
        let group: Vec<&SavedActivation> = of_loop.filter(freeable).collect();
        out.extend(loop_finding(ctx, &group));
    }
    let rest = saved.iter().filter(|s| s.stacked_by.is_none());
    let rest: Vec<&SavedActivation> = rest.filter(freeable).collect();
    let (inputs, rest): (Vec<_>, Vec<_>) = split_inputs(ctx, graph, rest);
    out.extend(straight_finding(ctx, &rest, total(&inputs)));
    out
}

/// Layers written out one after another: results that everything later is computed from, and that
/// repeat, are where blocks begin. A block keeps its input, so those stay; the others may go.
fn split_inputs<'s>(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    group: Vec<&'s SavedActivation>,
) -> (Vec<&'s SavedActivation>, Vec<&'s SavedActivation>) {
    if !matters(ctx, total(&group)) {
        return (Vec::new(), group);
    }
    // Small values beside the large ones, such as weights in another type, divide nothing.
    let smallest = group.iter().map(|s| s.bytes).min().unwrap_or(0);
    let largest = group.iter().map(|s| s.bytes).max().unwrap_or(0);
    let smallest = smallest.max(largest / 16);
    let found = waists(ctx, graph, smallest.max(1));
    let dimensions = |s: &SavedActivation| {
        let b = ctx.peak.buffers.get(s.peak_index);
        b.and_then(|b| b.shape.as_ref())
            .map(|s| s.dimensions.clone())
    };
    let mut alike: FxHashMap<Option<Vec<u64>>, usize> = FxHashMap::default();
    for s in group.iter().filter(|s| found.contains(&s.maker)) {
        *alike.entry(dimensions(s)).or_default() += 1;
    }
    group.into_iter().partition(|s| {
        found.contains(&s.maker) && alike.get(&dimensions(s)).is_some_and(|&n| n > 1)
    })
}

fn total<'s>(group: impl IntoIterator<Item = &'s &'s SavedActivation>) -> u64 {
    group.into_iter().fold(0, |s, a| s.saturating_add(a.bytes))
}

fn line(ctx: &Context<'_, '_>, s: &SavedActivation) -> (u64, String) {
    let i = ctx.program.module.instruction(s.maker);
    let mut text = format!("{}: {}", operation(i.op_name), units::bytes(s.bytes));
    if let Some(n) = s.trip_count.filter(|&n| n > 1) {
        text += &format!(" = {n} x {}", units::bytes(s.bytes_per_iteration));
    }
    if let Some(shape) = ctx
        .peak
        .buffers
        .get(s.peak_index)
        .and_then(|b| b.shape.as_ref())
    {
        text += &format!(", {shape}");
    }
    text += &format!(", {}{}", i.op_name, place(ctx, s.maker));
    (s.bytes, text)
}

fn ids(ctx: &Context<'_, '_>, group: &[&SavedActivation]) -> Vec<i64> {
    let buffers = group
        .iter()
        .filter_map(|s| ctx.peak.buffers.get(s.peak_index));
    buffer_ids(ctx, buffers.collect::<Vec<&PeakBuffer>>())
}

const LINKS: [&str; 2] = [
    "https://docs.jax.dev/en/latest/gradient-checkpointing.html",
    "https://openxla.org/xla/errors/error_1000",
];

fn finding(
    ctx: &Context<'_, '_>,
    group: &[&SavedActivation],
    title: String,
    evidence: Vec<String>,
    action: String,
) -> Finding {
    let bytes = total(group);
    Finding {
        kind: FindingKind::SavedActivations,
        severity: FindingSeverity::of_share(bytes, ctx.usage.peak_bytes()),
        title,
        bytes,
        // All of it at most: what is recomputed one block at a time need not fall on the peak.
        saving_bytes: bytes,
        saving: SavingKind::UpperBound,
        safety: Safety::ChangesSpeed,
        evidence,
        action,
        buffer_ids: ids(ctx, group),
        links: LINKS.map(str::to_owned).to_vec(),
    }
}

fn loop_finding(ctx: &Context<'_, '_>, group: &[&SavedActivation]) -> Option<Finding> {
    let bytes = total(group);
    let first = group.first().filter(|_| matters(ctx, bytes))?;
    let trips = first.trip_count;
    let checkpointed = group.iter().any(|s| s.checkpointed);
    let over = match trips {
        Some(n) => format!("a loop of {n} iterations"),
        None => "a loop".to_owned(),
    };
    let title = if checkpointed {
        format!(
            "{} that a checkpoint policy saves in {over} are held for the backward pass",
            units::bytes(bytes)
        )
    } else {
        format!(
            "{} of forward results of {over} are held for the backward pass",
            units::bytes(bytes)
        )
    };
    let mut evidence = shortened(group.iter().map(|s| line(ctx, s)).collect());
    if let Some(w) = first.stacked_by {
        let w_name = ctx.program.module.instruction(w);
        evidence.push(format!("stacked by {} ({})", w_name.name, w_name.op_name));
    }
    evidence.extend(recomputes_already(ctx));
    let action = if checkpointed {
        "Drop the policy of jax.checkpoint around the loop's body, or take one that saves less \
         (jax.checkpoint_policies.nothing_saveable): what it saves is recomputed instead."
            .to_owned()
    } else {
        let mut text = "Put jax.checkpoint around the loop's body: jax.lax.scan(jax.checkpoint(\
                        body), carry, layers); each iteration then keeps its input alone."
            .to_owned();
        // What the policy saves need not be what is stacked today.
        let kept = first
            .stacked_by
            .zip(trips)
            .and_then(|(w, n)| product_bytes(ctx, w, n));
        match kept {
            Some(kept) if kept > 0 && matters(ctx, bytes.saturating_sub(kept)) => {
                text += &format!(
                    " Less to recompute: jax.checkpoint(body, \
                     policy=jax.checkpoint_policies.dots_saveable) keeps the body's matrix \
                     products as well (up to {}, those that are not held today included) and \
                     frees about {}.",
                    units::bytes(kept),
                    units::bytes(bytes.saturating_sub(kept))
                );
            }
            Some(kept) if kept > 0 => {
                text += &format!(
                    " A policy that keeps the body's matrix products \
                     (jax.checkpoint_policies.dots_saveable) would not help: they may take {}.",
                    units::bytes(kept)
                );
            }
            _ => {}
        }
        text
    };
    Some(finding(ctx, group, title, evidence, action))
}

/// Whether the compiler has to compute things again already, as a line of evidence.
fn recomputes_already(ctx: &Context<'_, '_>) -> Option<String> {
    compiler_recomputes(ctx).then(|| {
        "the compiler computes forward results again already to make the program smaller (.remat \
         in names): the saving is at most what is still held"
            .to_owned()
    })
}

fn straight_finding(
    ctx: &Context<'_, '_>,
    group: &[&SavedActivation],
    input_bytes: u64,
) -> Option<Finding> {
    let bytes = total(group);
    if !matters(ctx, bytes) {
        return None;
    }
    // By scope, layers' numbers aside.
    let mut scopes: FxHashMap<String, (u64, FxHashSet<&str>)> = FxHashMap::default();
    for s in group {
        let entry = scopes.entry(stars(&s.scope)).or_default();
        entry.0 = entry.0.saturating_add(s.bytes);
        entry.1.insert(&s.scope);
    }
    let mut by_scope: Vec<(u64, String, usize)> = scopes
        .into_iter()
        .map(|(pattern, (sum, each))| (sum, pattern, each.len()))
        .collect();
    by_scope.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let repeated = by_scope.iter().find(|s| s.2 > 1 && !s.1.is_empty());
    let mut evidence = shortened(group.iter().map(|s| line(ctx, s)).collect());
    for (sum, pattern, n) in by_scope.iter().filter(|s| !s.1.is_empty()).take(4) {
        evidence.push(format!(
            "scope {pattern} ({}): {}",
            counted(*n, "place", "places"),
            units::bytes(*sum)
        ));
    }
    if input_bytes > 0 {
        evidence.push(format!(
            "{} more are what the following layers are computed from: a checkpointed block keeps \
             its input",
            units::bytes(input_bytes)
        ));
    }
    evidence.extend(recomputes_already(ctx));
    let title = format!(
        "{} of forward results ({}) are held for the backward pass",
        units::bytes(bytes),
        counted(group.len(), "buffer", "buffers")
    );
    let target = match repeated {
        Some(r) => format!("each block of scope {}", r.1),
        None => "the function of each layer, or of the loss,".to_owned(),
    };
    let products = total(group.iter().filter(|s| s.is_product));
    let mut action = if group.iter().all(|s| s.checkpointed) {
        "Take a policy of jax.checkpoint that saves less \
         (jax.checkpoint_policies.nothing_saveable)."
            .to_owned()
    } else {
        format!("Wrap {target} in jax.checkpoint, so that it keeps its inputs alone.")
    };
    if products > 0 && products < bytes {
        action += &format!(
            " With policy=jax.checkpoint_policies.dots_saveable at least the matrix products among \
             them ({}) stay.",
            units::bytes(products)
        );
    }
    Some(finding(ctx, group, title, evidence, action))
}

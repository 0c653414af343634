//! Forward results that are held for the backward pass.
//!
//! In: what is alive at a space's peak. Out: the blocks that the forward pass computed (`jvp` in
//! the framework's name, no `transpose`) and that the backward pass reads after the peak; for the
//! stacked results of a loop over layers with the number of iterations. What a block under `jax.checkpoint` still
//! keeps is told apart: its inputs have to stay, what its policy saves does not.

use rustc_hash::{FxHashMap, FxHashSet};

use super::forward::is_argument;
use crate::dataflow::{reads_of, trip_count, Graph, ProgramPoints, Through, Value};
use crate::hlo::op_name::{
    is_checkpointed, is_in_loop, is_product, is_recomputed, phase, scope, Phase,
};
use crate::hlo::{AllocationKind, ComputationId, InstructionId, Opcode};
use crate::peak::producer_of_block;
use crate::peak::Context;

/// A forward result that is held for the backward pass.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedActivation {
    /// Position in the peak's list of buffers.
    pub peak_index: usize,
    /// The instruction that computed it; may be inside a fusion.
    pub producer: InstructionId,
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
        let Some(producer) = producer_of_block(ctx.program, b) else {
            continue;
        };
        let op_name = module.instruction(producer.instruction).op_name;
        if phase(op_name) != Phase::Forward || is_argument(ctx.program, &producer.value) {
            continue;
        }
        let Some(reader) = backward_reader(ctx, graph, &producer.value, peak_order, &mut budget)
        else {
            continue;
        };
        let trips = producer
            .stacked_by
            .and_then(|w| *trips.entry(w).or_insert_with(|| trip_count(ctx.program, w)));
        let r = module.instruction(reader);
        out.push(SavedActivation {
            peak_index,
            producer: producer.instruction,
            stacked_by: producer.stacked_by,
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
    value: &Value,
    peak_order: u32,
    budget: &mut usize,
) -> Option<InstructionId> {
    let module = &ctx.program.module;
    let reads = reads_of(ctx.program, graph, value, Through::Copies, budget).reads;
    let late = reads.iter().filter(|r| r.until >= peak_order);
    // A loop only carries; what reads is in its body.
    late.map(|r| r.reader)
        .filter(|&r| module.instruction(r).opcode != Opcode::While)
        .find(|&r| phase(module.instruction(r).op_name) == Phase::Backward)
}

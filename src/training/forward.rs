//! The forward pass of layers that are written out one after another: where it ends, and which of its
//! results blocks of layers begin with, so that a checkpointed block has to keep them.
//!
//! In: a program, its graph, what is alive at the peak. Out: [`ForwardPass`].

use rustc_hash::FxHashMap;

use crate::dataflow::{
    producer_of_value, reads_of, source_of, Graph, Path, ProgramPoints, Read, Through, Value,
};
use crate::hlo::op_name::{is_product, is_rematerialized, operation, phase, Phase};
use crate::hlo::{ComputationId, HloInstruction, InstructionId, Opcode, Program};
use crate::peak::Context;

/// The forward pass of a program, up to where its backward pass begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForwardPass {
    /// The computation that both passes are in: the entry, or the body of a loop over parts of the
    /// batch. `None` in a program without instructions.
    pub(crate) home: Option<ComputationId>,
    /// Place in the program order at which the backward pass begins.
    pub(crate) end: u32,
}

/// A forward result that waits for the backward pass.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    /// The instruction that computed it.
    pub(crate) producer: InstructionId,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) bytes: u64,
}

/// Blocks of layers.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    /// Of each value that waits, whether it is the input of a block.
    pub(crate) is_input: Vec<bool>,
    /// Places in the program order at which blocks begin, ascending.
    pub(crate) begins: Vec<u32>,
}

impl ForwardPass {
    /// Looks for the first matrix product of the backward pass; constants and masks of it may come
    /// much earlier. Where names do not tell, the peak does: results pile up until then.
    pub(crate) fn new(ctx: &Context<'_, '_>, graph: &Graph) -> ForwardPass {
        let module = &ctx.program.module;
        let makes = |i: InstructionId, in_phase: Phase| {
            let is_such =
                |i: &HloInstruction<'_>| is_computed_product(i) && phase(i.op_name) == in_phase;
            let inside = match module.instruction(i).opcode {
                Opcode::Fusion => module.called(i).first(),
                _ => None,
            };
            let inside = inside
                .into_iter()
                .flat_map(|&c| module.computation(c).instructions());
            std::iter::once(i)
                .chain(inside)
                .any(|i| is_such(module.instruction(i)))
        };
        let home_of = |i: InstructionId| module.instruction(i).computation;
        let backward = || {
            let order = graph.program_order().iter().copied();
            order.filter(|&i| makes(i, Phase::Backward))
        };
        let in_entry = backward().find(|&i| Some(home_of(i)) == module.entry);
        let in_loop = || {
            let follows = |i: &InstructionId| {
                let mut before = module.computation(home_of(*i)).instructions();
                before.any(|b| graph.order_of(b) < graph.order_of(*i) && makes(b, Phase::Forward))
            };
            backward().find(follows)
        };
        let first = in_entry.or_else(in_loop);
        let points = ProgramPoints::new(ctx.program, graph, ctx.usage.main_arena());
        let end = first.and_then(|i| graph.order_of(i));
        ForwardPass {
            home: first.map(home_of).or(module.entry),
            end: end.unwrap_or_else(|| points.order_at(ctx.peak.point)),
        }
    }

    /// Where blocks of layers begin, and which of the values that wait are inputs of blocks: results
    /// that everything later is computed from, and that repeat.
    pub(crate) fn blocks(
        &self,
        ctx: &Context<'_, '_>,
        graph: &Graph,
        waiting: &[Waiting],
    ) -> Blocks {
        // Small values beside the large ones, such as weights in another type, divide nothing.
        let smallest = waiting.iter().map(|w| w.bytes).min().unwrap_or(0);
        let largest = waiting.iter().map(|w| w.bytes).max().unwrap_or(0);
        let smallest = smallest.max(largest / 16).max(1);
        let boundaries = self.block_boundaries(ctx, graph, smallest);
        let mut alike: FxHashMap<&[u64], usize> = FxHashMap::default();
        for w in waiting
            .iter()
            .filter(|w| boundaries.contains_key(&w.producer))
        {
            *alike.entry(&w.dimensions).or_default() += 1;
        }
        let repeats = |w: &Waiting| alike.get(&w.dimensions[..]).is_some_and(|&n| n > 1);
        let is_input = |w: &Waiting| boundaries.contains_key(&w.producer) && repeats(w);
        let mut begins: Vec<u32> = boundaries.values().copied().collect();
        begins.sort_unstable();
        Blocks {
            is_input: waiting.iter().map(is_input).collect(),
            begins,
        }
    }

    /// Producers of forward results after which nothing else that the forward pass computed is still
    /// to be used by it, each with its place in the program order.
    fn block_boundaries(
        &self,
        ctx: &Context<'_, '_>,
        graph: &Graph,
        smallest: u64,
    ) -> FxHashMap<InstructionId, u32> {
        let spans = self.spans(ctx, graph, smallest);
        let mut out = FxHashMap::default();
        let mut latest_end = 0;
        for (n, &(start, end, producer)) in spans.iter().enumerate() {
            let together = spans
                .get(n + 1)
                .is_some_and(|next| next.0 == start && next.1 > start);
            if latest_end <= start && !together {
                out.insert(producer, start);
            }
            latest_end = latest_end.max(end);
        }
        out
    }

    /// From where to where the forward pass uses each of its results of at least `smallest` bytes:
    /// places in the program order, and what computes it.
    fn spans(
        &self,
        ctx: &Context<'_, '_>,
        graph: &Graph,
        smallest: u64,
    ) -> Vec<(u32, u32, InstructionId)> {
        let module = &ctx.program.module;
        let mut budget = 100_000 + 10 * module.instructions.len();
        let mut spans: FxHashMap<InstructionId, (u32, u32)> = FxHashMap::default();
        for (at, &i) in (0..self.end).zip(graph.program_order()) {
            let named = module.instruction(i);
            let computes = !named.opcode.hands_on() && named.opcode != Opcode::Constant;
            let is_here = Some(named.computation) == self.home;
            if !is_here || !computes || is_rematerialized(named.name) {
                continue;
            }
            let mut leaves: Vec<Path> = Vec::new();
            module.shape(i).for_each_leaf(&mut |index, s| {
                if s.padded_bytes() >= smallest {
                    leaves.push(index.to_vec());
                }
            });
            for value in leaves.into_iter().map(|path| (i, path)) {
                let producer = producer_of_value(ctx.program, &value).instruction;
                if !is_result(ctx.program, producer, &value) {
                    continue;
                }
                // Moving a value to another memory uses it no longer than its readers do.
                let moves =
                    named.opcode.synchronous() == Opcode::Copy || named.opcode == Opcode::CopyDone;
                let from = (!moves).then_some(at);
                let reads = reads_of(ctx.program, graph, &value, Through::Copies, &mut budget);
                let last = self.last_use(ctx.program, graph, &reads.reads);
                let last = last.unwrap_or(0).max(from.unwrap_or(0));
                let span = spans.entry(producer).or_insert((u32::MAX, 0));
                *span = (span.0.min(from.unwrap_or(u32::MAX)), span.1.max(last));
            }
        }
        let mut out: Vec<(u32, u32, InstructionId)> =
            spans.into_iter().map(|(p, s)| (s.0, s.1, p)).collect();
        out.sort_unstable();
        out
    }

    /// Place of the last read by the forward pass. What the compiler computes a second time it does
    /// for the backward pass.
    fn last_use(&self, program: &Program<'_>, graph: &Graph, reads: &[Read]) -> Option<u32> {
        let forward = |r: &&Read| {
            let i = program.module.instruction(r.reader);
            phase(i.op_name) == Phase::Forward && !is_rematerialized(i.name)
        };
        let places = reads.iter().filter(forward);
        let places = places.filter_map(|r| graph.order_of(r.reader));
        places.filter(|&o| o < self.end).max()
    }
}

/// Whether an instruction multiplies: constants and copies bear the names of what they are for.
pub(crate) fn is_computed_product(i: &HloInstruction<'_>) -> bool {
    let called = i.opcode == Opcode::CustomCall;
    is_product(i.op_name) && (called || i.opcode.is_product())
}

/// Whether a value is a result of the forward pass: no argument or part of one.
fn is_result(program: &Program<'_>, producer: InstructionId, value: &Value) -> bool {
    let op_name = program.module.instruction(producer).op_name;
    let op = operation(op_name);
    let cast = op == "convert_element_type" && is_argument(program, value);
    phase(op_name) == Phase::Forward && !cast && !takes_apart(op)
}

/// Whether a value is an argument of the program in another type, or a part of one: no result of a
/// layer.
pub(crate) fn is_argument(program: &Program<'_>, value: &Value) -> bool {
    let module = &program.module;
    let (source, _) = source_of(program, value, Through::Parts);
    let i = module.instruction(source);
    i.opcode == Opcode::Parameter && Some(i.computation) == module.entry
}

/// Whether an operation only takes a part of an array, such as one layer's weights.
fn takes_apart(operation: &str) -> bool {
    matches!(
        operation,
        "slice" | "squeeze" | "dynamic_slice" | "reshape" | "transpose" | "broadcast_in_dim"
    )
}

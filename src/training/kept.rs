//! What a checkpoint keeps: the matrix products that a policy saves, and the inputs of blocks.
//!
//! In: a forward loop, or the forward results that are held in a program without loops. Out: the
//! bytes of the loop body's products over all iterations; or which results everything after them
//! is computed from, so that a block that begins there has to keep them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dataflow::{maker_of, reads_of, source_of, Graph, Path, ProgramPoints, Through, Value};
use crate::hlo::op_name::{is_product, is_rematerialized, operation, phase, Phase};
use crate::hlo::{ComputationId, InstructionId, Opcode, Program};
use crate::peak::Context;

/// Computations looked at inside of a loop's body at most.
const MAX_COMPUTATIONS: usize = 20_000;

/// Bytes of all matrix products and convolutions of a forward loop's body, over `trips` iterations:
/// what `dots_saveable` may keep. `None` where another loop in the body makes products as well.
pub fn product_bytes(ctx: &Context<'_, '_>, of: InstructionId, trips: u64) -> Option<u64> {
    let module = &ctx.program.module;
    let &body = module.called(of).first()?;
    let mut seen: FxHashSet<ComputationId> = FxHashSet::default();
    let mut todo = vec![(body, Inside::default())];
    let (mut plain, mut again): (Vec<Product<'_>>, Vec<Product<'_>>) = (Vec::new(), Vec::new());
    while let Some((c, inside)) = todo.pop() {
        if !seen.insert(c) {
            continue;
        }
        if seen.len() > MAX_COMPUTATIONS {
            return None;
        }
        for i in module.computation(c).instructions() {
            let at = module.instruction(i);
            let inner = Inside {
                a_loop: inside.a_loop || at.opcode == Opcode::While,
                a_copy: inside.a_copy || is_rematerialized(at.name),
            };
            todo.extend(module.called(i).iter().map(|&c| (c, inner)));
            let product = matches!(at.opcode, Opcode::Dot | Opcode::Convolution)
                || at.opcode == Opcode::CustomCall && is_product(at.op_name);
            if !product || phase(at.op_name) == Phase::Backward {
                continue;
            }
            if inside.a_loop {
                return None;
            }
            let shape = module.shape(i);
            let bytes = shape.padded_bytes();
            let list = if inner.a_copy { &mut again } else { &mut plain };
            list.push((at.op_name, shape.dimensions, bytes));
        }
    }
    // What a copy of a fusion computes once more is one product.
    let is_new = |p: &&Product<'_>| !plain.iter().any(|q| q.0 == p.0 && q.1 == p.1);
    let new: Vec<&Product<'_>> = again.iter().take(1000).filter(is_new).collect();
    let once = plain
        .iter()
        .chain(new)
        .fold(0u64, |s, p| s.saturating_add(p.2));
    Some(once.saturating_mul(trips))
}

/// Name of the operation, dimensions, bytes.
type Product<'a> = (&'a str, Vec<u64>, u64);

/// What a computation is called from.
#[derive(Clone, Copy, Default)]
struct Inside {
    a_loop: bool,
    a_copy: bool,
}

/// Makers of forward results after which nothing else that the forward pass computed is still to
/// be used by it: blocks of layers begin there.
pub fn waists(ctx: &Context<'_, '_>, graph: &Graph, smallest: u64) -> FxHashSet<InstructionId> {
    let module = &ctx.program.module;
    let mut budget = 100_000 + 10 * module.instructions.len();
    let order = graph.program_order();
    let is_entry = |i: InstructionId| Some(module.instruction(i).computation) == module.entry;
    // The first product of the backward pass; constants and masks of it may come much earlier.
    let backward_product = |i: InstructionId| {
        let i = module.instruction(i);
        phase(i.op_name) == Phase::Backward && is_product(i.op_name)
    };
    let turn = order
        .iter()
        .filter(|&&i| is_entry(i))
        .find(|&&i| {
            let inside = match module.instruction(i).opcode {
                Opcode::Fusion => module.called(i).first(),
                _ => None,
            };
            let mut inside = inside
                .into_iter()
                .flat_map(|&c| module.computation(c).instructions());
            backward_product(i) || inside.any(backward_product)
        })
        .and_then(|&i| graph.order_of(i))
        .unwrap_or(u32::MAX);
    // Results pile up until the backward pass begins; where names do not tell, the peak does.
    let points = ProgramPoints::new(ctx.program, graph, ctx.usage.main_arena());
    let turn = turn.min(points.order_at(ctx.peak.point));
    let mut spans: FxHashMap<InstructionId, (u32, u32)> = FxHashMap::default();
    for (at, &i) in order.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        if at >= turn {
            break;
        }
        let named = module.instruction(i);
        if !is_entry(i)
            || named.opcode.hands_on()
            || named.opcode == Opcode::Constant
            || is_rematerialized(named.name)
        {
            continue;
        }
        let mut leaves: Vec<Path> = Vec::new();
        module.shape(i).for_each_leaf(&mut |index, s| {
            if s.padded_bytes() >= smallest {
                leaves.push(index.to_vec());
            }
        });
        for path in leaves {
            let value = (i, path);
            let maker = maker_of(ctx.program, &value).instruction;
            let made = module.instruction(maker);
            if phase(made.op_name) != Phase::Forward {
                continue;
            }
            let op = operation(made.op_name);
            let cast = op == "convert_element_type" && is_argument(ctx.program, &value);
            if cast || takes_apart(op) {
                continue;
            }
            let reads = reads_of(ctx.program, graph, &value, Through::Copies, &mut budget).reads;
            // Moving a value to another memory uses it no longer than its readers do.
            let from = (named.opcode.synchronous() != Opcode::Copy
                && named.opcode != Opcode::CopyDone)
                .then_some(at);
            // What the compiler computes a second time it does for the backward pass.
            let forward = |i: InstructionId| {
                let i = module.instruction(i);
                phase(i.op_name) == Phase::Forward && !is_rematerialized(i.name)
            };
            let last = reads
                .iter()
                .filter(|r| forward(r.reader))
                .filter_map(|r| graph.order_of(r.reader))
                .filter(|&o| o < turn)
                .fold(from.unwrap_or(0), u32::max);
            let span = spans.entry(maker).or_insert((u32::MAX, 0));
            *span = (span.0.min(from.unwrap_or(u32::MAX)), span.1.max(last));
        }
    }
    let mut by_start: Vec<(u32, u32, InstructionId)> =
        spans.into_iter().map(|(m, s)| (s.0, s.1, m)).collect();
    by_start.sort_unstable();
    let mut out = FxHashSet::default();
    let mut latest_end = 0;
    for (n, &(start, end, maker)) in by_start.iter().enumerate() {
        let together = by_start
            .get(n + 1)
            .is_some_and(|next| next.0 == start && next.1 > start);
        if latest_end <= start && !together {
            out.insert(maker);
        }
        latest_end = latest_end.max(end);
    }
    out
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

/// Whether the compiler itself computes things again to make the program fit.
pub fn compiler_recomputes(ctx: &Context<'_, '_>) -> bool {
    ctx.program
        .module
        .instructions
        .iter()
        .any(|i| i.opcode == Opcode::Fusion && is_rematerialized(i.name))
}

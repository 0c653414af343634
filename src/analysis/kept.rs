//! What a checkpoint keeps: the matrix products that a policy saves, and the inputs of blocks.
//!
//! In: a forward loop, or the forward results that are held in a program without loops. Out: the
//! bytes of the loop body's products over all iterations; or which results everything after them
//! is computed from, so that a block that begins there has to keep them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::finding::Context;
use super::flow::reads_of;
use super::graph::Graph;
use super::group::base_name;
use super::maker::maker_of;
use super::phase::{is_product, operation, phase, Phase};
use crate::model::{ComputationId, InstructionId};

/// Computations looked at inside of a loop's body at most.
const MAX_COMPUTATIONS: usize = 20_000;

/// Bytes of all matrix products and convolutions of a forward loop's body, over `trips` iterations:
/// what `dots_saveable` may keep. `None` where another loop in the body makes products as well.
pub fn product_bytes(ctx: &Context<'_, '_>, of: InstructionId, trips: u64) -> Option<u64> {
    let module = &ctx.program.module;
    let &body = module.called(of).first()?;
    let mut seen: FxHashSet<ComputationId> = FxHashSet::default();
    let mut todo = vec![(body, false)];
    let mut names: FxHashSet<(&str, Vec<u64>)> = FxHashSet::default();
    let mut once = 0u64;
    while let Some((c, nested)) = todo.pop() {
        if !seen.insert(c) {
            continue;
        }
        if seen.len() > MAX_COMPUTATIONS {
            return None;
        }
        for i in module.computation(c).instructions() {
            let at = module.instruction(i);
            let nested = nested || at.opcode == "while";
            todo.extend(module.called(i).iter().map(|&c| (c, nested)));
            let product = matches!(at.opcode, "dot" | "convolution")
                || at.opcode == "custom-call" && is_product(at.op_name);
            if !product || phase(at.op_name) == Phase::Backward {
                continue;
            }
            if nested {
                return None;
            }
            let shape = module.shape(i);
            // A fusion's copy computes the same again.
            let name = base_name_of_copies(at.name);
            if names.insert((name, shape.dimensions.clone())) {
                once = once.saturating_add(shape.padded_bytes());
            }
        }
    }
    Some(once.saturating_mul(trips))
}

/// `convolution.12.clone.3` → `convolution.12`; without such a suffix the name itself.
fn base_name_of_copies(name: &str) -> &str {
    let at = [".clone", ".remat"].iter().filter_map(|s| name.find(s));
    at.min().and_then(|n| name.get(..n)).unwrap_or(name)
}

/// Makers of forward results after which nothing else that the forward pass computed is still to
/// be used by it: blocks of layers begin there.
pub fn waists(ctx: &Context<'_, '_>, graph: &Graph, smallest: u64) -> FxHashSet<InstructionId> {
    let module = &ctx.program.module;
    let arguments: FxHashSet<Vec<u64>> = module
        .entry_parameters()
        .into_iter()
        .map(|p| module.shape(p).dimensions)
        .collect();
    let mut budget = 100_000 + 10 * module.instructions.len();
    let order = graph.program_order();
    let is_entry = |i: InstructionId| Some(module.instruction(i).computation) == module.entry;
    let turn = order
        .iter()
        .filter(|&&i| is_entry(i) && phase(module.instruction(i).op_name) == Phase::Backward)
        .find_map(|&i| graph.order_of(i))
        .unwrap_or(u32::MAX);
    let mut spans: FxHashMap<InstructionId, (u32, u32)> = FxHashMap::default();
    for (at, &i) in order.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        if at >= turn {
            break;
        }
        if !is_entry(i) || passes_on(module.instruction(i).opcode) {
            continue;
        }
        let mut leaves: Vec<Vec<u32>> = Vec::new();
        module.shape(i).for_each_leaf(&mut |index, s| {
            if s.padded_bytes() >= smallest {
                let path = index.iter().map(|&x| u32::try_from(x).unwrap_or(u32::MAX));
                leaves.push(path.collect());
            }
        });
        for path in leaves {
            let maker = maker_of(ctx.program, graph, i, &path).instruction;
            let made = module.instruction(maker);
            if phase(made.op_name) != Phase::Forward {
                continue;
            }
            // A weight in another type is no result of a layer.
            let cast = operation(made.op_name) == "convert_element_type";
            if cast && arguments.contains(&module.shape(maker).dimensions) {
                continue;
            }
            let reads = reads_of(ctx.program, graph, i, &path, &mut budget).reads;
            let last = reads
                .iter()
                .filter(|r| phase(module.instruction(r.reader).op_name) == Phase::Forward)
                .filter_map(|r| graph.order_of(r.reader))
                .filter(|&o| o < turn)
                .fold(at, u32::max);
            let span = spans.entry(maker).or_insert((at, last));
            *span = (span.0.min(at), span.1.max(last));
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

fn passes_on(opcode: &str) -> bool {
    matches!(
        opcode,
        "parameter" | "tuple" | "get-tuple-element" | "bitcast" | "constant" | "while"
    )
}

/// Whether the compiler itself computes things again to make the program fit.
pub fn compiler_recomputes(ctx: &Context<'_, '_>) -> bool {
    ctx.program
        .module
        .instructions
        .iter()
        .any(|i| i.name.contains(".remat") && !base_name(i.name).is_empty() && i.opcode == "fusion")
}

#[cfg(test)]
mod tests {
    use super::base_name_of_copies;

    #[test]
    fn copies_of_a_fusion_are_one_product() {
        assert_eq!(base_name_of_copies("convolution.12"), "convolution.12");
        assert_eq!(
            base_name_of_copies("convolution.12.clone.3"),
            "convolution.12"
        );
        assert_eq!(base_name_of_copies("dot.1.remat2"), "dot.1");
    }
}

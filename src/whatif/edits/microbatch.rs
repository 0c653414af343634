//! What micro-batching costs: while slices are worked off, the sum of the gradients so far is kept
//! beside the gradients of the slice.
//!
//! In: effects with the batch's marks. Out: an accumulator per trained parameter.

use rustc_hash::FxHashSet;

use crate::hlo::{AllocationKind, InstructionId, Opcode};
use crate::whatif::effects::Effects;
use crate::whatif::Base;
use crate::whatif::Scenario;

/// Adds accumulators; returns how many and their bytes.
pub(crate) fn accumulators(
    base: &Base<'_, '_>,
    effects: &Effects,
    scenario: &mut Scenario,
    count: u64,
) -> (usize, u64) {
    if count < 2 {
        return (0, 0);
    }
    let mut out = (0, 0u64);
    let end = base.points.point_count();
    for (b, block) in base.blocks.iter().enumerate() {
        if !matches!(
            block.kind,
            AllocationKind::Parameter | AllocationKind::Donated
        ) {
            continue;
        }
        let size = scenario.blocks.get(b).copied().unwrap_or(0);
        if size > 0 && is_trained(base, effects, block) {
            let label = format!("gradient sum of argument {}", block.parameter.unwrap_or(0));
            scenario.add(label, size, 0, end);
            out.0 += 1;
            out.1 = out.1.saturating_add(size);
        }
    }
    out
}

/// Whether an argument is a parameter of the model that training changes: an output has its shape,
/// and it meets data that carries the batch.
fn is_trained(base: &Base<'_, '_>, effects: &Effects, block: &crate::whatif::Block) -> bool {
    let module = &base.program.module;
    let Some(number) = block.parameter else {
        return false;
    };
    let Some(&argument) = base.boundary.parameters.get(&number) else {
        return false;
    };
    let returned =
        block.kind == AllocationKind::Donated || base.boundary.returns(&module.shape(argument));
    returned && meets_batch(base, effects, argument)
}

/// Follows an argument forward until something that carries the batch is computed from it.
fn meets_batch(base: &Base<'_, '_>, effects: &Effects, argument: InstructionId) -> bool {
    let marked = |n: u32| effects.batches.iter().any(|b| !b.marks.of(n).is_empty());
    let Some(start) = base.values.nodes(argument).next() else {
        return false;
    };
    let mut queue = vec![start];
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let module = &base.program.module;
    while let Some(node) = queue.pop() {
        if !seen.insert(node) || seen.len() > 20_000 {
            continue;
        }
        // The same data in other computations, later tuples, loop bodies.
        for l in base
            .values
            .links_at(node)
            .iter()
            .filter_map(|&l| base.values.links.get(l as usize))
        {
            if l.a == node && l.elementwise && passes(base, l.b) {
                queue.push(l.b);
            }
        }
        let i = base.values.instruction_of(node);
        for u in base.graph.uses(i) {
            let opcode = module.instruction(u.user).opcode;
            if base.values.element_count(u.user) > 0 || base.values.element_count(i) > 0 {
                continue;
            }
            for out in base.values.nodes(u.user) {
                if marked(out)
                    && !matches!(
                        opcode,
                        Opcode::Fusion | Opcode::Call | Opcode::While | Opcode::Conditional
                    )
                {
                    return true;
                }
            }
            if matches!(
                opcode,
                Opcode::Broadcast
                    | Opcode::AllGather
                    | Opcode::Slice
                    | Opcode::DynamicSlice
                    | Opcode::Reduce
            ) {
                queue.extend(base.values.nodes(u.user));
            }
        }
    }
    false
}

/// Whether data flows on unchanged in substance: results of arithmetic on two arrays are something
/// else.
fn passes(base: &Base<'_, '_>, node: u32) -> bool {
    let i = base.values.instruction_of(node);
    matches!(
        base.program.module.instruction(i).opcode,
        Opcode::Parameter
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::While
            | Opcode::Fusion
            | Opcode::Call
            | Opcode::Convert
            | Opcode::Copy
            | Opcode::CopyStart
            | Opcode::CopyDone
            | Opcode::Bitcast
            | Opcode::Reshape
            | Opcode::Transpose
            | Opcode::DynamicSlice
            | Opcode::Slice
            | Opcode::AllGather
            | Opcode::AllGatherStart
            | Opcode::AllGatherDone
            | Opcode::AsyncStart
            | Opcode::AsyncDone
            | Opcode::AsyncUpdate
            | Opcode::OptBarrier
            | Opcode::Broadcast
    )
}

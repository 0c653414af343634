//! Arguments give their memory to outputs: whole-program blocks merge. Where an argument is still
//! read after its output has begun to be written, a copy lives in the arena meanwhile, and the
//! saving is what packing leaves of it.
//!
//! In: arguments. Out: blocks emptied, copies added, and what was found.

use super::base::Base;
use super::outputs::{outputs_in_order, Writes};
use super::predict::Confidence;
use super::scenario::Scenario;
use crate::model::{AllocationKind, InstructionId};

/// What came of a donation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Donated {
    /// Arguments whose memory an output takes over.
    pub(super) pairs: usize,
    /// Of these, arguments that must be copied first.
    pub(super) copied: usize,
    /// Bytes of outputs that need no memory of their own any more.
    pub(super) bytes: u64,
    /// Arguments that no output can use.
    pub(super) unusable: usize,
}

/// Donates the arguments in `chosen`, in order of their numbers.
pub(super) fn donate(
    base: &Base<'_, '_>,
    scenario: &mut Scenario,
    chosen: &dyn Fn(u32) -> bool,
) -> Donated {
    let mut out = Donated::default();
    let mut taken = vec![false; base.blocks.len()];
    let mut arguments: Vec<usize> = (0..base.blocks.len())
        .filter(|&b| base.blocks[b].kind == AllocationKind::Parameter)
        .filter(|&b| base.blocks[b].parameter.is_some_and(chosen))
        .collect();
    arguments.sort_by_key(|&b| (base.blocks[b].parameter, b));
    let outputs = outputs_in_order(base);
    for argument in arguments {
        let size = scenario.blocks.get(argument).copied().unwrap_or(0);
        if size == 0 {
            continue;
        }
        let fits = outputs.iter().copied().find(|&b| {
            !taken[b] && scenario.blocks.get(b) == Some(&size) && same_shape(base, argument, b)
        });
        let Some(output) = fits else {
            out.unusable += 1;
            continue;
        };
        taken[output] = true;
        out.pairs += 1;
        out.bytes = out.bytes.saturating_add(size);
        if let Some(b) = scenario.blocks.get_mut(output) {
            *b = 0;
        }
        let Some(writes) = Writes::of(base, output) else {
            continue;
        };
        let read = last_read(base, argument).unwrap_or(0);
        let number = base.blocks[argument].parameter.unwrap_or(0);
        let end = base.points.point_count();
        if read > writes.result {
            out.copied += 1;
            let start = writes.result_point(base);
            scenario.add(format!("copy of argument {number}"), size, start, end);
        } else if read > writes.first {
            // Temporaries had used the output's memory: they need their own while the argument is
            // read.
            let label = format!("temporaries in the memory of argument {number}'s output");
            let size = size.min(writes.housed_bytes);
            scenario.add(
                label,
                size,
                writes.first_point(base),
                writes.result_point(base),
            );
        }
    }
    if out.copied > 0 {
        scenario.caveat(
            Confidence::Simulated,
            "an argument that is read after its output begins to be written is copied first",
        );
    }
    out
}

fn same_shape(base: &Base<'_, '_>, argument: usize, output: usize) -> bool {
    let shapes = |b: usize| {
        base.blocks[b]
            .names
            .iter()
            .filter_map(|&n| base.content(n).map(|(_, s)| s))
    };
    let (mut a, b) = (shapes(argument), shapes(output).collect::<Vec<_>>());
    // What changes with an edit changes on both sides: element counts may differ by a split, types
    // and layouts by a conversion; sizes were compared.
    a.any(|x| {
        b.iter()
            .any(|y| x.dimensions.len() == y.dimensions.len() && x.element_type == y.element_type)
    })
}

/// Place in the program order of the last instruction that reads an argument.
fn last_read(base: &Base<'_, '_>, block: usize) -> Option<u32> {
    let module = &base.program.module;
    let mut last = None;
    let mut queue: Vec<InstructionId> = base.blocks[block]
        .names
        .iter()
        .filter_map(|&b| base.assignment.buffer(b).instruction)
        .filter(|&i| module.instruction(i).opcode == "parameter")
        .filter(|&i| Some(module.instruction(i).computation) == module.entry)
        .collect();
    let mut seen = 0;
    while let Some(i) = queue.pop() {
        seen += 1;
        if seen > 10_000 {
            break;
        }
        for u in base.graph.uses(i) {
            last = last.max(base.graph.order_of(u.user));
            if matches!(
                module.instruction(u.user).opcode,
                "bitcast" | "get-tuple-element"
            ) {
                queue.push(u.user);
            }
        }
    }
    last
}

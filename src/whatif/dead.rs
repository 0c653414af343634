//! What disappears: chosen instructions, and every buffer that only they need.
//!
//! In: instructions that go. Out: their buffers emptied in the scenario.

use crate::hlo::{InstructionId, Opcode};
use crate::whatif::Base;
use crate::whatif::Scenario;

/// Removes `instructions` and whatever nothing else needs; returns how many buffers went.
pub(crate) fn without(
    base: &Base<'_, '_>,
    scenario: &mut Scenario,
    instructions: &[InstructionId],
) -> usize {
    let alive = alive_without(base, instructions);
    // What was unused from the start stays: the compiler keeps it for reasons of its own.
    let before = alive_without(base, &[]);
    let dead = |i: Option<InstructionId>| {
        i.is_some_and(|i| {
            let at = |v: &[bool]| v.get(i.index()).copied().unwrap_or(true);
            at(&before) && !at(&alive)
        })
    };
    let of = |b| base.assignment.buffer(b).instruction;
    let mut gone = 0;
    for (arena, edited) in base.arenas.iter().zip(&mut scenario.arenas) {
        for (slot, item) in arena.slots.iter().zip(&mut edited.items) {
            if item.size_bytes > 0 && slot.names.iter().all(|&b| dead(of(b))) {
                item.size_bytes = 0;
                gone += 1;
            }
        }
    }
    for (block, size) in base.blocks.iter().zip(&mut scenario.blocks) {
        // An argument stays an argument, used or not, unless it was chosen itself.
        let chosen = |b| of(b).is_some_and(|i| instructions.binary_search(&i).is_ok());
        let goes = block.names.iter().any(|&b| chosen(b))
            || (block.parameter.is_none() && block.names.iter().all(|&b| dead(of(b))));
        if *size > 0 && goes && !block.names.is_empty() {
            *size = 0;
            gone += 1;
        }
    }
    gone
}

/// Which instructions are needed by the result or by side effects, when `removed` (ascending) are
/// not there.
fn alive_without(base: &Base<'_, '_>, removed: &[InstructionId]) -> Vec<bool> {
    let module = &base.program.module;
    let mut alive = vec![false; module.instructions.len()];
    let mut queue: Vec<InstructionId> = Vec::new();
    let gone = |i: &InstructionId| removed.binary_search(i).is_ok();
    queue.extend(module.entry_root());
    for &i in base.graph.program_order() {
        let opcode = module.instruction(i).opcode;
        if matches!(
            opcode,
            Opcode::Send
                | Opcode::SendDone
                | Opcode::Recv
                | Opcode::RecvDone
                | Opcode::Outfeed
                | Opcode::Infeed
        ) || (opcode == Opcode::CustomCall && base.graph.uses(i).is_empty())
        {
            queue.push(i);
        }
    }
    while let Some(i) = queue.pop() {
        if gone(&i) {
            continue;
        }
        match alive.get_mut(i.index()) {
            Some(a) if !*a => *a = true,
            _ => continue,
        }
        queue.extend(module.operands(i));
        queue.extend(
            module
                .called(i)
                .iter()
                .filter_map(|&c| module.computation(c).root),
        );
    }
    alive
}

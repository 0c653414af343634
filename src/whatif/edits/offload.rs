//! Moves tensors to host memory: they take device memory only around their uses.
//!
//! In: instructions. Out: live ranges cut short, arguments replaced by copies at their uses.

use crate::hlo::InstructionId;
use crate::whatif::Base;
use crate::whatif::Scenario;

/// Moves the buffers that `instructions` (ascending) define; returns how many.
pub(crate) fn offload(
    base: &Base<'_, '_>,
    scenario: &mut Scenario,
    instructions: &[InstructionId],
) -> usize {
    let of = |b| base.assignment.buffer(b).instruction;
    let chosen = |b| of(b).is_some_and(|i| instructions.binary_search(&i).is_ok());
    let mut moved = 0;
    let mut at_uses: Vec<(String, u64, u32, u32)> = Vec::new();
    for (block, size) in base.blocks.iter().zip(&mut scenario.blocks) {
        if *size == 0 || !block.names.iter().any(|&b| chosen(b)) {
            continue;
        }
        let mut points: Vec<u32> = Vec::new();
        for i in block.names.iter().filter_map(|&b| of(b)) {
            points.extend(base.point(i));
            points.extend(base.graph.uses(i).iter().filter_map(|u| base.point(u.user)));
        }
        let at = |i: &InstructionId| base.program.module.instruction(*i).name;
        let name = block.names.iter().filter_map(|&b| of(b)).next();
        points.sort_unstable();
        points.dedup();
        for p in points.into_iter().skip(1) {
            let label = format!(
                "{} fetched from the host",
                name.as_ref().map_or("argument", at)
            );
            at_uses.push((label, *size, p.saturating_sub(1), p.saturating_add(1)));
        }
        *size = 0;
        moved += 1;
    }
    for (arena, edited) in base.arenas.iter().zip(&mut scenario.arenas) {
        for (slot, item) in arena.slots.iter().zip(&mut edited.items) {
            if item.size_bytes == 0 || !slot.names.iter().any(|&b| chosen(b)) {
                continue;
            }
            let mut ranges = Vec::new();
            for &(start, end) in &item.ranges {
                // Long enough to be idle in between?
                if end.saturating_sub(start) > 4 {
                    ranges.extend([(start, start + 2), (end - 2, end)]);
                } else {
                    ranges.push((start, end));
                }
            }
            if ranges != item.ranges {
                item.ranges = ranges;
                moved += 1;
            }
        }
    }
    let count = base.points.point_count();
    for (label, size, start, end) in at_uses {
        scenario.add(label, size, start, end.min(count));
    }
    moved
}

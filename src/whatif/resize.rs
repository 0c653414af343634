//! Gives every block and slot the size it has once shapes have changed.
//!
//! In: effects. Out: sizes in the scenario.

use super::base::Base;
use super::effects::Effects;
use super::outputs::Writes;
use super::scenario::Scenario;
use crate::hlo::AllocationKind;

/// Gives every slot and block its new size; returns whether any changed.
pub(crate) fn resize(base: &Base<'_, '_>, effects: &Effects, scenario: &mut Scenario) -> bool {
    if effects.is_empty() {
        return false;
    }
    let mut changed = false;
    for (arena, edited) in base.arenas.iter().zip(&mut scenario.arenas) {
        for (slot, item) in arena.slots.iter().zip(&mut edited.items) {
            let old = item.size_bytes;
            item.size_bytes = match old {
                0 => 0,
                _ => effects.size_of_all(base, &slot.names, old, true),
            };
            changed |= item.size_bytes != old;
        }
    }
    for at in 0..base.blocks.len() {
        changed |= resize_block(base, effects, scenario, at);
    }
    changed
}

/// Gives a block its new size; returns whether it changed.
fn resize_block(
    base: &Base<'_, '_>,
    effects: &Effects,
    scenario: &mut Scenario,
    at: usize,
) -> bool {
    let (Some(block), Some(&old)) = (base.blocks.get(at), scenario.blocks.get(at)) else {
        return false;
    };
    if old == 0 {
        return false;
    }
    let writes = match block.kind {
        AllocationKind::Output => Writes::of(base, at),
        _ => None,
    };
    let names = writes.as_ref().map_or(&block.names, |w| &w.results);
    let new = effects.size_of_all(base, names, old, false);
    if let Some(size) = scenario.blocks.get_mut(at) {
        *size = new;
    }
    // Temporaries that no longer fit into an output's memory move into the arena.
    if let Some(w) = writes.filter(|w| !w.housed.is_empty() && new < old) {
        let need = effects.size_of_all(base, &w.housed, w.housed_bytes, true);
        if need > new {
            let label = "temporaries that had used an output's memory".to_owned();
            scenario.add(label, need, w.first_point(base), w.result_point(base));
        }
    }
    new != old
}

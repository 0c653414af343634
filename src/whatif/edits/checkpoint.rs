//! `--checkpoint`: `jax.checkpoint`: forward results that wait for the backward pass are dropped after their
//! forward use and computed again for the moment of their backward use.
//!
//! Two forms: layers written out one after another, whose results are single buffers (here), and
//! layers in a loop, whose results are stacked in one buffer a layer a slice ([`super::stacks`]).
//! The input of each block is kept, since all else is computed from it.
//!
//! In: base, sizes after other edits, a scope. Out: live ranges cut.

use crate::dataflow::dimensions::propagate::Marks;
use crate::dataflow::{source_of, Through};
use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::op_name::{phase, Phase};
use crate::hlo::{BufferId, InstructionId, Opcode};
use crate::memory::pack::PackItem;
use crate::peak::is_identifier;
use crate::training::kept::is_argument;
use crate::units;
use crate::whatif::applying::Applying;
use crate::whatif::batch;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::effects::Effects;
use crate::whatif::stacks;
use crate::whatif::stacks::Checkpointed;
use crate::whatif::Scenario;
use crate::whatif::{Base, Slot};

pub(crate) static KIND: EditKind = EditKind {
    name: "checkpoint",
    value: Some("SCOPE[:dots]"),
    help: "Recompute saved activations in the backward pass (dots: keep matrix products)",
    usage: "--checkpoint SCOPE or SCOPE:dots; SCOPE `all` for everything saved",
    safety: Safety::ChangesSpeed,
    verify: "compile again: `xpeak summary NEW_DUMP` shows the new total",
    pins: true,
    parse: |value| {
        let (scope, dots) = match value.strip_suffix(":dots") {
            Some(scope) => (scope, true),
            None => (value, false),
        };
        (!scope.is_empty()).then(|| of(scope, dots))
    },
    candidates: |_, _| vec![vec![of("all", true), of("all", false)]],
};

#[derive(Debug)]
struct Checkpoint {
    /// Part of the operation path; `all` for everything saved.
    scope: String,
    /// Whether results of matrix products are kept.
    dots: bool,
}

fn of(scope: &str, dots: bool) -> Edit {
    Edit::new(Checkpoint {
        scope: scope.to_owned(),
        dots,
    })
}

impl Change for Checkpoint {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        let dots = if self.dots { ":dots" } else { "" };
        format!("{}{dots}", self.scope)
    }

    fn ranges(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let (base, scope) = (run.base, self.scope.as_str());
        let c = checkpoint(base, &run.effects, &mut run.scenario, scope, self.dots);
        if c.dropped == 0 && base.rematerialized > 0 && scope == "all" {
            let n = base.rematerialized;
            let text = format!(
                "saves nothing more: the compiler already computes {n} instructions twice to save memory; jax.checkpoint keeps it so when the rest changes"
            );
            run.note(n, text);
            run.scenario.caveat(
                Confidence::Simulated,
                "what the compiler rematerialises on its own is its choice: a checkpoint may lead to another",
            );
            return Ok(());
        }
        if c.dropped == 0 {
            return Err(run.refuse(
                "no saved activation of that scope",
                "the program may be checkpointed already, or have no backward pass",
            ));
        }
        let text = format!(
            "{} saved activations ({}) dropped, {} kept",
            c.dropped,
            units::bytes(c.dropped_bytes),
            c.kept,
        );
        run.note(c.dropped, text);
        run.scenario.caveat(
            Confidence::Simulated,
            "the compiler may fuse and schedule recomputation in other ways",
        );
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        let policy = if self.dots {
            ", policy=jax.checkpoint_policies.checkpoint_dots"
        } else {
            ""
        };
        let last = self.scope.rsplit('/').next().unwrap_or(&self.scope);
        let named = self.scope != "all" && is_identifier(last);
        let what = if named { last } else { "layer" };
        format!("# the function of one layer, before lax.scan or the loop\n{what} = jax.checkpoint({what}{policy})")
    }
}

/// A forward result that waits for the backward pass.
struct Saved {
    slot: usize,
    /// Place in the program order at which it is made.
    order: u32,
    /// Last point of forward use.
    forward: u32,
    /// First point of backward use.
    backward: u32,
    /// Whether a matrix product makes it.
    product: bool,
}

/// Fewer points than this between forward and backward use are not waiting.
const WAIT: u32 = 3;

/// Checkpoints everything in `scope` (`all`: everything saved).
fn checkpoint(
    base: &Base<'_, '_>,
    effects: &Effects,
    scenario: &mut Scenario,
    scope: &str,
    dots: bool,
) -> Checkpointed {
    let marks = match effects.batches.first() {
        Some(b) => b.marks.clone(),
        None => Marks::flood(&base.values, &batch::find(base, None, None).seeds),
    };
    let mut out = stacks::checkpoint(base, scenario, &marks, scope, dots);
    let Some(arena) = base.arenas.first() else {
        return out;
    };
    if out.dropped > 0 {
        // Layers run in a loop: its body is what is checkpointed.
        return out;
    }
    let Some(turn) = turn(base, &marks) else {
        return out;
    };
    let saved: Vec<Saved> = arena
        .slots
        .iter()
        .enumerate()
        .filter_map(|(i, slot)| saved(base, i, slot, scope, turn))
        .collect();
    if saved.is_empty() {
        return out;
    }
    let inputs = block_inputs(base, &marks, turn);
    let (kept, dropped): (Vec<Saved>, Vec<Saved>) = saved
        .into_iter()
        .partition(|s| inputs.binary_search(&s.order).is_ok() || (dots && s.product));
    // Everything of one block is computed again at once, for its first backward use.
    let block = |s: &Saved| inputs.partition_point(|&o| o < s.order);
    let mut first_use: std::collections::BTreeMap<usize, u32> = std::collections::BTreeMap::new();
    for s in &dropped {
        let at = first_use.entry(block(s)).or_insert(s.backward);
        *at = s.backward.min(*at);
    }
    let Some(edited) = scenario.arenas.first_mut() else {
        return out;
    };
    for s in &dropped {
        let again = first_use.get(&block(s)).copied().unwrap_or(s.backward);
        if let Some(item) = edited.items.get_mut(s.slot) {
            out.dropped += 1;
            out.dropped_bytes = out.dropped_bytes.saturating_add(item.size_bytes);
            cut(item, s.forward.saturating_add(1), again.saturating_sub(1));
        }
    }
    out.kept += kept.len();
    out
}

/// Takes `[from, to)` out of an item's life.
pub(crate) fn cut(item: &mut PackItem, from: u32, to: u32) {
    if to <= from {
        return;
    }
    let mut ranges = Vec::new();
    for &(start, end) in &item.ranges {
        ranges.extend([(start, end.min(from)), (start.max(to), end)]);
    }
    ranges.retain(|r| r.1 > r.0);
    ranges.dedup();
    item.ranges = ranges;
}

/// Place in the program order at which the backward pass begins: its first instruction that is
/// computed from the batch.
fn turn(base: &Base<'_, '_>, marks: &Marks) -> Option<u32> {
    let module = &base.program.module;
    let marked = |i: InstructionId| base.values.nodes(i).any(|n| !marks.of(n).is_empty());
    let begins = |&i: &InstructionId| {
        Some(module.instruction(i).computation) == module.entry
            && base.is_backward(i)
            && marked(i)
            && module.operands(i).iter().any(|&o| marked(o))
    };
    let first = base.graph.program_order().iter().copied().find(begins)?;
    base.graph.order_of(first)
}

fn saved(base: &Base<'_, '_>, at: usize, slot: &Slot, scope: &str, turn: u32) -> Option<Saved> {
    let module = &base.program.module;
    // The last forward value there: the backward pass may overwrite it in place.
    let forward_value = |&b: &BufferId| {
        let (_, shape) = base.content(b)?;
        let value = base.assignment.value(b)?;
        let i = value.0;
        let (made_by, _) = source_of(base.program, &value, Through::Copies);
        let path = module.instruction(made_by).op_name;
        let forward = phase(path) == Phase::Forward && !is_argument(base.program, &value);
        (forward && base.graph.order_of(i)? < turn).then_some((value, shape, i, made_by))
    };
    let (value, shape, i, made_by) = slot.names.iter().rev().find_map(forward_value)?;
    let path = module.instruction(made_by).op_name;
    if shape.element_count() <= 1 || (scope != "all" && !path.contains(scope)) {
        return None;
    }
    if Some(module.instruction(i).computation) != module.entry {
        return None;
    }
    let start = slot.item.ranges.first()?.0;
    let (mut forward, mut backward) = (start, u32::MAX);
    for r in base.readers(&value) {
        let Some(point) = base.point(r.reader) else {
            continue;
        };
        let order = base
            .scheduled(r.reader)
            .and_then(|i| base.graph.order_of(i));
        if order.is_some_and(|o| o >= turn) {
            backward = backward.min(point);
        } else if point < backward {
            forward = forward.max(point);
        }
    }
    let waits = backward != u32::MAX && backward.saturating_sub(forward) > WAIT;
    let alive = slot
        .item
        .ranges
        .iter()
        .any(|r| r.0 <= forward && r.1 >= backward);
    (waits && alive).then(|| Saved {
        slot: at,
        order: base.graph.order_of(made_by).unwrap_or(0),
        forward,
        backward,
        product: path.contains("dot_general") || path.contains("conv_general"),
    })
}

/// Places in the program order of values through which everything later in the forward pass goes:
/// when such a value has been made, nothing else that carries the batch is still to be used in the
/// forward pass. Ascending.
fn block_inputs(base: &Base<'_, '_>, marks: &Marks, turn: u32) -> Vec<u32> {
    let module = &base.program.module;
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &i in base.graph.program_order() {
        let at = module.instruction(i);
        let passes_on = at.opcode.renames()
            || at.opcode.moves()
            || matches!(at.opcode, Opcode::Parameter | Opcode::Constant);
        if Some(at.computation) != module.entry || passes_on {
            continue;
        }
        let Some(order) = base.graph.order_of(i).filter(|&o| o < turn) else {
            continue;
        };
        let mut last = order;
        let mut carries = false;
        for value in base.leaves(i, |node| !marks.of(node).is_empty()) {
            carries = true;
            for r in base.readers(&value) {
                let user = base.scheduled(r.reader);
                let user = user.and_then(|u| base.graph.order_of(u));
                last = last.max(user.filter(|&o| o < turn).unwrap_or(0));
            }
        }
        if carries && last > order && made_forward(base, i) {
            spans.push((order, last));
        }
    }
    let mut ends: Vec<u32> = Vec::new();
    let mut out = Vec::new();
    // Spans come by start: a value is the only one open if all others have ended by then.
    let mut latest_end = 0;
    for &(start, end) in &spans {
        if latest_end <= start {
            out.push(start);
        }
        latest_end = latest_end.max(end);
        ends.push(end);
    }
    out
}

fn made_forward(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let path = base.program.module.instruction(i).op_name;
    path.is_empty() || phase(path) != Phase::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_leaves_both_ends() {
        let item = |ranges: &[(u32, u32)]| PackItem {
            size_bytes: 1,
            ranges: ranges.to_vec(),
        };
        let cut_of = |ranges: &[(u32, u32)], from, to| {
            let mut i = item(ranges);
            cut(&mut i, from, to);
            i.ranges
        };
        assert_eq!(cut_of(&[(0, 100)], 10, 90), [(0, 10), (90, 100)]);
        assert_eq!(cut_of(&[(0, 5), (50, 95)], 10, 90), [(0, 5), (90, 95)]);
        assert_eq!(cut_of(&[(0, 100)], 90, 10), [(0, 100)]);
        assert_eq!(cut_of(&[(20, 30)], 10, 90), []);
    }
}

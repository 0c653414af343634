//! `--checkpoint`: `jax.checkpoint`: forward results that wait for the backward pass are dropped after their
//! forward use and computed again for the moment of their backward use.
//!
//! Two forms: layers written out one after another, whose results are single buffers (here), and
//! layers in a loop, whose results are stacked in one buffer a layer a slice ([`super::stacked_residuals`]).
//! The input of each block is kept, since all else is computed from it.
//!
//! In: base, sizes after other edits, a scope. Out: live ranges cut.

use crate::dataflow::dimensions::batch_dimensions::BatchDimensions;
use crate::dataflow::producer_of_value;
use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::op_name::{is_product, phase, Phase};
use crate::hlo::BufferId;
use crate::memory::pack::PackItem;
use crate::peak::is_identifier;
use crate::training::forward::{is_argument, ForwardPass, Waiting};
use crate::units;
use crate::whatif::applying::Applying;
use crate::whatif::batch;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::effects::Effects;
use crate::whatif::stacked_residuals;
use crate::whatif::stacked_residuals::Checkpointed;
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
    waiting: Waiting,
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
    let batch_dimensions = match effects.batches.first() {
        Some(b) => b.batch_dimensions.clone(),
        None => BatchDimensions::follow(&base.values, &batch::find(base, None, None).seeds),
    };
    let mut out = stacked_residuals::checkpoint(base, scenario, &batch_dimensions, scope, dots);
    let Some(arena) = base.arenas.first() else {
        return out;
    };
    if out.dropped > 0 {
        // Layers run in a loop: its body is what is checkpointed.
        return out;
    }
    let ctx = base.context();
    let pass = ForwardPass::new(&ctx, &base.graph);
    let slots = arena.slots.iter().enumerate();
    let saved: Vec<Saved> = slots
        .filter_map(|(i, slot)| saved(base, i, slot, scope, &pass))
        .collect();
    let waiting: Vec<Waiting> = saved.iter().map(|s| s.waiting.clone()).collect();
    let blocks = pass.blocks(&ctx, &base.graph, &waiting);
    let mut is_input = blocks.is_input.into_iter();
    let (kept, dropped): (Vec<Saved>, Vec<Saved>) = saved
        .into_iter()
        .partition(|s| is_input.next() == Some(true) || (dots && s.product));
    // Everything of one block is computed again at once, for its first backward use.
    let block = |s: &Saved| blocks.begins.partition_point(|&o| o < s.order);
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

fn saved(
    base: &Base<'_, '_>,
    at: usize,
    slot: &Slot,
    scope: &str,
    pass: &ForwardPass,
) -> Option<Saved> {
    let module = &base.program.module;
    // The last forward value there: the backward pass may overwrite it in place.
    let forward_value = |&b: &BufferId| {
        let (_, shape) = base.content(b)?;
        let value = base.assignment.value(b)?;
        let i = value.0;
        let made_by = producer_of_value(base.program, &value).instruction;
        let path = module.instruction(made_by).op_name;
        let forward = phase(path) == Phase::Forward && !is_argument(base.program, &value);
        (forward && base.graph.order_of(i)? < pass.end).then_some((value, shape, i, made_by))
    };
    let (value, shape, i, made_by) = slot.names.iter().rev().find_map(forward_value)?;
    let path = module.instruction(made_by).op_name;
    if shape.element_count() <= 1 || (scope != "all" && !path.contains(scope)) {
        return None;
    }
    // What a loop computes comes again with the whole loop: that is a checkpoint of its body.
    let made_at = base.scheduled(made_by)?;
    let is_here = |i| Some(module.instruction(i).computation) == pass.home;
    if !is_here(i) || !is_here(made_at) {
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
        if order.is_some_and(|o| o >= pass.end) || base.is_backward(r.reader) {
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
    if !(waits && alive) {
        return None;
    }
    Some(Saved {
        slot: at,
        waiting: Waiting {
            producer: made_by,
            dimensions: shape.dimensions.clone(),
            bytes: slot.item.size_bytes,
        },
        order: base.graph.order_of(made_at)?,
        forward,
        backward,
        product: is_product(path),
    })
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

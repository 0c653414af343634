//! Checkpointing layers that run in a loop. The forward loop stacks each result that it saves for the
//! backward pass, a layer a slice; the backward loop reads it slice by slice. Checkpointed, only the
//! loop's carried value (the input of a layer) is stacked; the rest comes back for one layer at a
//! time.
//!
//! Of results that are computed from each other element by element, only as many need memory again
//! as matrix products make: the rest is computed where it is used.
//!
//! In: base, scope. Out: residuals emptied, slices added in the backward loop's body.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dataflow::dimensions::batch_dimensions::BatchDimensions;
use crate::dataflow::dimensions::NodeId;
use crate::hlo::{ComputationId, InstructionId, Opcode};
use crate::whatif::Base;
use crate::whatif::Scenario;

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Checkpointed {
    /// Saved activations that are not kept.
    pub(crate) dropped: usize,
    /// Kept: inputs of blocks, and products where they are to be kept.
    pub(crate) kept: usize,
    /// Bytes of what was dropped.
    pub(crate) dropped_bytes: u64,
}

/// Stacked results of a forward loop that a backward loop reads.
struct Residual {
    slot: usize,
    forward: InstructionId,
    /// The loop's leaf.
    leaf: u32,
    rounds: u64,
    /// Points of the backward loop's body at which slices are last read.
    last_read: u32,
    backward: InstructionId,
    readers: Vec<InstructionId>,
}

/// Checkpoints the residuals in `scope`.
pub(crate) fn checkpoint(
    base: &Base<'_, '_>,
    scenario: &mut Scenario,
    batch_dimensions: &BatchDimensions,
    scope: &str,
    dots: bool,
) -> Checkpointed {
    let mut out = Checkpointed::default();
    let mut by_loops: BTreeMap<(InstructionId, InstructionId), Vec<Residual>> = BTreeMap::new();
    for s in find(base, scope) {
        by_loops.entry((s.forward, s.backward)).or_default().push(s);
    }
    for ((forward, backward), residuals) in by_loops {
        let mut carried = carried_values(base, forward, &residuals);
        // Weights fetched ahead of time are carried too, but are no input of a layer.
        if carried.iter().any(|c| !batch_dimensions.of(c.1).is_empty()) {
            carried.retain(|c| !batch_dimensions.of(c.1).is_empty());
        }
        let run = Loops {
            forward,
            backward,
            carried,
        };
        run.checkpoint(base, scenario, &residuals, dots, &mut out);
    }
    out
}

fn find(base: &Base<'_, '_>, scope: &str) -> Vec<Residual> {
    let module = &base.program.module;
    let mut out = Vec::new();
    let Some(arena) = base.arenas.first() else {
        return out;
    };
    for (slot, s) in arena.slots.iter().enumerate() {
        let in_scope = scope == "all"
            || s.names.iter().any(|&b| {
                let i = base.assignment.buffer(b).instruction;
                i.is_some_and(|i| module.instruction(i).op_name.contains(scope))
            });
        if !in_scope {
            continue;
        }
        for &b in &s.names {
            let Some((node, shape)) = base.content(b) else {
                continue;
            };
            let forward = base.values.instruction_of(node);
            if module.instruction(forward).opcode != Opcode::While || shape.dimensions.len() < 2 {
                continue;
            }
            let mut found: Option<Residual> = None;
            let value = base.assignment.value(b);
            for r in value.map_or_else(Vec::new, |v| base.readers(&v)) {
                let Some(backward) = r.inside.filter(|&b| b != forward) else {
                    continue;
                };
                if !in_backward(base, backward) || in_backward(base, forward) {
                    continue;
                }
                let Some(point) = base.point(r.reader) else {
                    continue;
                };
                let residual = found.get_or_insert_with(|| Residual {
                    slot,
                    forward,
                    leaf: node - base.values.nodes(forward).start,
                    rounds: shape.dimensions.first().copied().unwrap_or(1).max(1),
                    last_read: 0,
                    backward,
                    readers: Vec::new(),
                });
                residual.last_read = residual.last_read.max(point);
                residual.readers.push(r.reader);
            }
            if let Some(mut residual) = found.filter(|s| s.rounds > 1) {
                residual.readers.sort_unstable();
                out.push(residual);
                break;
            }
        }
    }
    out
}

/// Whether a loop belongs to the backward pass: by its own path, else by what it computes.
fn in_backward(base: &Base<'_, '_>, of: InstructionId) -> bool {
    let module = &base.program.module;
    if !module.instruction(of).op_name.is_empty() {
        return base.is_backward(of);
    }
    let body = module.called(of).first();
    body.is_some_and(|&c| {
        module
            .computation(c)
            .instructions()
            .any(|i| base.is_backward(i))
    })
}

/// A forward loop, and the backward loop that reads what it saves.
struct Loops {
    forward: InstructionId,
    backward: InstructionId,
    /// What the forward loop hands from round to round: leaf, and node at the body's parameter.
    carried: Vec<(u32, NodeId)>,
}

impl Loops {
    fn checkpoint(
        &self,
        base: &Base<'_, '_>,
        scenario: &mut Scenario,
        residuals: &[Residual],
        dots: bool,
        out: &mut Checkpointed,
    ) {
        let Some(&body) = base.program.module.called(self.forward).first() else {
            return;
        };
        let (carried, backward) = (&self.carried, self.backward);
        let classes = Classes::of(base, body);
        let inputs = classes.stacked_unchanged(base, body, carried);
        let (kept, other): (Vec<&Residual>, Vec<&Residual>) =
            residuals.iter().partition(|s| inputs.contains(&s.leaf));
        out.kept += kept.len();
        let size = |s: &Residual, scenario: &Scenario| {
            let arena = scenario.arenas.first();
            arena
                .and_then(|a| a.items.get(s.slot))
                .map_or(0, |i| i.size_bytes)
        };
        if kept.is_empty() {
            keep_carried(base, scenario, residuals, carried);
        }
        let mut by_class: BTreeMap<u32, Vec<&Residual>> = BTreeMap::new();
        for s in other {
            by_class
                .entry(classes.of_leaf(base, body, s.leaf))
                .or_default()
                .push(s);
        }
        let start = body_start(base, backward);
        for (class, mut members) in by_class {
            let products = classes
                .products
                .get(&class)
                .copied()
                .unwrap_or(0)
                .min(members.len());
            // The smallest first: products are saved in the type they are computed in.
            members.sort_by_key(|s| (size(s, scenario), s.slot));
            let keep = if dots { products } else { 0 };
            out.kept += keep;
            let dropped: Vec<&Residual> = members.split_off(keep);
            let mut again: Vec<(&Residual, u64)> = Vec::new();
            for s in dropped {
                let bytes = size(s, scenario);
                out.dropped += 1;
                out.dropped_bytes = out.dropped_bytes.saturating_add(bytes);
                again.push((s, bytes / s.rounds));
                if let Some(item) = scenario
                    .arenas
                    .first_mut()
                    .and_then(|a| a.items.get_mut(s.slot))
                {
                    item.ranges.clear();
                }
            }
            again.sort_by_key(|(s, bytes)| (Reverse(*bytes), s.slot));
            if products == 0 {
                // No product makes them: the smallest is enough to compute the others from.
                again.reverse();
            }
            again.truncate(if dots { 1 } else { products.max(1) });
            for (s, bytes) in again {
                come_back(base, scenario, s, bytes, start);
            }
        }
    }
}

/// A slice is there from the start of the backward loop's body to its last use. Where the base
/// holds the slice in a buffer of its own, that buffer begins earlier instead.
fn come_back(base: &Base<'_, '_>, scenario: &mut Scenario, s: &Residual, bytes: u64, start: u32) {
    let holds = |b: crate::hlo::BufferId| {
        let i = base.assignment.buffer(b).instruction;
        i.is_some_and(|i| s.readers.binary_search(&i).is_ok())
    };
    if let (Some(arena), Some(edited)) = (base.arenas.first(), scenario.arenas.first_mut()) {
        for (slot, item) in arena.slots.iter().zip(&mut edited.items) {
            let is_slice = slot.names.first().is_some_and(|&b| holds(b));
            if is_slice && item.size_bytes.abs_diff(bytes) <= bytes / 16 {
                if let Some(first) = item.ranges.first_mut().filter(|r| r.0 > start) {
                    first.0 = start;
                    return;
                }
            }
        }
    }
    let label = "computed again for the backward pass".to_owned();
    let end = s.last_read.saturating_add(1).min(base.points.point_count());
    scenario.add(label, bytes, start, end);
}

/// Where nothing stacks the carried value as it is, checkpointing does.
fn keep_carried(
    base: &Base<'_, '_>,
    scenario: &mut Scenario,
    residuals: &[Residual],
    carried: &[(u32, NodeId)],
) {
    let Some(arena) = base.arenas.first() else {
        return;
    };
    let ranges = residuals.iter().filter_map(|s| arena.slots.get(s.slot));
    let ranges: Vec<(u32, u32)> = ranges.flat_map(|s| s.item.ranges.clone()).collect();
    let (Some(start), Some(end)) = (
        ranges.iter().map(|r| r.0).min(),
        ranges.iter().map(|r| r.1).max(),
    ) else {
        return;
    };
    let rounds = residuals.iter().map(|s| s.rounds).max().unwrap_or(1);
    for &(_, node) in carried {
        let i = base.values.instruction_of(node);
        let mut at = base.values.nodes(i).start;
        let mut bytes = 0;
        base.program.module.shape(i).for_each_leaf(&mut |_, leaf| {
            if at == node {
                bytes = leaf.padded_bytes();
            }
            at += 1;
        });
        let label = "inputs of the checkpointed layers".to_owned();
        scenario.add(label, bytes.saturating_mul(rounds), start, end);
    }
}

fn body_start(base: &Base<'_, '_>, of: InstructionId) -> u32 {
    let module = &base.program.module;
    let body = module.called(of).first();
    let points = body
        .into_iter()
        .flat_map(|&c| module.computation(c).instructions());
    points
        .filter_map(|i| base.points.point_of(&base.graph, i))
        .min()
        .unwrap_or(0)
}

/// Leaves that a loop changes as a whole from round to round (neither invariant nor stacked):
/// leaf, and its node at the body's parameter.
fn carried_values(
    base: &Base<'_, '_>,
    of: InstructionId,
    residuals: &[Residual],
) -> Vec<(u32, NodeId)> {
    let module = &base.program.module;
    let Some(&body) = module.called(of).first() else {
        return Vec::new();
    };
    let (Some(parameter), Some(root)) = (module.parameter(body, 0), module.computation(body).root)
    else {
        return Vec::new();
    };
    let stacked: FxHashSet<u32> = residuals.iter().map(|s| s.leaf).collect();
    let mut out = Vec::new();
    for (k, &o) in module.operands(root).iter().enumerate() {
        let at = base.values.element(root, k);
        let leaf = at.start.saturating_sub(base.values.nodes(root).start);
        let node = base.values.nodes(parameter).start + leaf;
        let dimensions = base.values.dimensions(node);
        let count = dimensions.iter().fold(1u64, |a, &d| a.saturating_mul(d));
        let invariant = module.instruction(o).opcode == Opcode::GetTupleElement
            && module.operands(o).first() == Some(&parameter)
            && module.instruction(o).tuple_index as usize == k;
        let whole = base.values.nodes(of).start + leaf;
        let writes_part = base.values.links_at(whole).is_empty();
        if count > 1 && !invariant && !stacked.contains(&leaf) && !writes_part && at.len() == 1 {
            out.push((leaf, node));
        }
    }
    // The activations are the largest; flags and counters are no input worth the name.
    let bytes = |n: NodeId| {
        base.values
            .dimensions(n)
            .iter()
            .fold(1u64, |a, &d| a.saturating_mul(d))
    };
    let largest = out.iter().map(|&(_, n)| bytes(n)).max().unwrap_or(0);
    out.retain(|&(_, n)| bytes(n) * 16 >= largest);
    out
}

/// Nodes of a loop's body that are computed from each other element by element.
struct Classes {
    class: FxHashMap<NodeId, u32>,
    /// Matrix products and reductions per class.
    products: FxHashMap<u32, usize>,
}

impl Classes {
    fn of(base: &Base<'_, '_>, body: ComputationId) -> Classes {
        let module = &base.program.module;
        let inside = with_fusions(base, body);
        let mut out = Classes {
            class: FxHashMap::default(),
            products: FxHashMap::default(),
        };
        let mut next = 0;
        for &c in &inside {
            for i in module.computation(c).instructions() {
                for node in base.values.nodes(i) {
                    if !out.class.contains_key(&node) {
                        out.spread(base, &inside, node, next);
                        next += 1;
                    }
                }
                if module.instruction(i).opcode.is_product() {
                    if let Some(&c) = base.values.nodes(i).next().and_then(|n| out.class.get(&n)) {
                        *out.products.entry(c).or_default() += 1;
                    }
                }
            }
        }
        out
    }

    fn spread(
        &mut self,
        base: &Base<'_, '_>,
        inside: &FxHashSet<ComputationId>,
        from: NodeId,
        class: u32,
    ) {
        let module = &base.program.module;
        let mut queue = vec![from];
        while let Some(node) = queue.pop() {
            if self.class.contains_key(&node) {
                continue;
            }
            self.class.insert(node, class);
            for (_, other) in base.values.neighbours(node).filter(|n| n.0.elementwise) {
                let c = module
                    .instruction(base.values.instruction_of(other))
                    .computation;
                if inside.contains(&c) {
                    queue.push(other);
                }
            }
        }
    }

    fn of_leaf(&self, base: &Base<'_, '_>, body: ComputationId, leaf: u32) -> u32 {
        let root = base.program.module.computation(body).root;
        let node = root.map(|r| base.values.nodes(r).start + leaf);
        node.and_then(|n| self.class.get(&n).copied())
            .unwrap_or(u32::MAX)
    }

    /// Leaves into which the body writes a carried value as it was when the round began.
    fn stacked_unchanged(
        &self,
        base: &Base<'_, '_>,
        body: ComputationId,
        carried: &[(u32, NodeId)],
    ) -> FxHashSet<u32> {
        let module = &base.program.module;
        let mut out = FxHashSet::default();
        let Some(root) = module.computation(body).root else {
            return out;
        };
        let results = base.values.nodes(root);
        for &(own, start) in carried {
            let mut queue = vec![start];
            let mut seen: FxHashSet<NodeId> = FxHashSet::default();
            while let Some(node) = queue.pop() {
                if !seen.insert(node) || seen.len() > 20_000 {
                    continue;
                }
                if results.contains(&node) {
                    let leaf = node - results.start;
                    if leaf != own {
                        out.insert(leaf);
                    }
                    continue;
                }
                // Forward only: to results, which come second, or from a stacked array to what was written
                // into it.
                for (l, other) in base.values.neighbours(node).filter(|n| n.0.elementwise) {
                    let i = module.instruction(base.values.instruction_of(other));
                    let writes = i.opcode == Opcode::DynamicUpdateSlice;
                    let forward = l.a == node || writes;
                    if forward && (writes || passes(i.opcode)) && self.class.contains_key(&other) {
                        queue.push(other);
                    }
                }
            }
        }
        out
    }
}

fn passes(opcode: Opcode) -> bool {
    opcode.renames() || opcode.moves() || matches!(opcode, Opcode::Parameter | Opcode::Fusion)
}

/// A computation and the fusions in it.
fn with_fusions(base: &Base<'_, '_>, body: ComputationId) -> FxHashSet<ComputationId> {
    let module = &base.program.module;
    let mut out = FxHashSet::default();
    let mut queue = vec![body];
    while let Some(c) = queue.pop() {
        if !out.insert(c) {
            continue;
        }
        for i in module.computation(c).instructions() {
            if matches!(
                module.instruction(i).opcode,
                Opcode::Fusion | Opcode::Call | Opcode::AsyncStart
            ) {
                queue.extend(module.called(i));
            }
        }
    }
    out
}

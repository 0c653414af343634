//! What splitting costs: where a split tensor goes into a matrix product it is gathered for the
//! moment, and a product that makes one comes out whole before it is split.
//!
//! In: effects with split classes. Out: short-lived items added to the scenario.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use super::base::Base;
use super::effects::{gcd, Effects};
use super::scenario::Scenario;
use crate::dataflow::dimensions::NodeId;
use crate::devices::replication::{DeviceClassesId, Replication};
use crate::hlo::{ComputationId, InstructionId, MeshAxis, Opcode};

/// How many ways a tensor is split, and the seed it was reached from.
pub(crate) type Split = FxHashMap<NodeId, (u64, NodeId)>;

/// Follows a tensor that is split `ways` ways to everything that is element by element the same.
/// No tensor is split further than into what every device holds something else of (see
/// [`Spread::of`]): there the search ends. Where a device works on its own share already, that
/// much less is left to split.
///
/// What follows from an argument is gathered again where it is needed whole, and partial sums of
/// it (operands of an `all-reduce`) are scattered as they are added up. Of an intermediate result
/// (`whole_too`), what was gathered only to make it whole is not gathered any more.
pub(crate) fn follow(
    base: &Base<'_, '_>,
    spread: &Spread,
    seeds: &[NodeId],
    ways: u64,
    whole_too: bool,
) -> Split {
    let values = &base.values;
    let mut out = Split::default();
    let mut queue: VecDeque<_> = seeds.iter().map(|&n| (n, ways, n, false)).collect();
    while let Some((node, ways_here, seed, partial)) = queue.pop_front() {
        let ways_here = if partial {
            ways_here
        } else {
            ways_here.min(spread.of(node))
        };
        if ways_here < 2 || out.contains_key(&node) {
            continue;
        }
        out.insert(node, (ways_here, seed));
        for (l, other) in values.neighbours(node) {
            let to_part = l.a == node;
            if !l.elementwise || values.dimensions(other).iter().all(|&d| d <= 1) {
                continue;
            }
            let partial = partial || (!whole_too && is_summand(base, node, other));
            if l.share <= 1 {
                queue.push_back((other, ways_here, seed, partial));
            } else if to_part {
                queue.push_back((other, ways_here / l.share, seed, partial));
            } else if whole_too {
                let more = ways_here.saturating_mul(l.share).min(ways);
                queue.push_back((other, more, seed, partial));
            }
        }
    }
    out
}

/// Whether `node` is the sum over devices that `other` goes into.
fn is_summand(base: &Base<'_, '_>, node: NodeId, other: NodeId) -> bool {
    let module = &base.program.module;
    let sum = base.values.instruction_of(node);
    module.instruction(sum).opcode.synchronous() == Opcode::AllReduce
        && module
            .operands(sum)
            .contains(&base.values.instruction_of(other))
}

/// How many more ways tensors can be split.
pub(crate) struct Spread {
    of: Vec<u32>,
}

impl Spread {
    /// By what the devices hold: their number over that of different contents; with `axis`, only
    /// tensors that are the same along it.
    pub(crate) fn new(base: &Base<'_, '_>, axis: Option<&MeshAxis>) -> Spread {
        let r = &base.replication;
        let mut known: FxHashMap<DeviceClassesId, u32> = FxHashMap::default();
        let mut of = vec![1; base.values.len()];
        for i in base.program.module.ids() {
            let nodes = base.values.nodes(i);
            let classes = r.leaf_classes(i);
            if nodes.len() != classes.len() {
                continue;
            }
            for (node, &c) in nodes.zip(classes) {
                let n = *known.entry(c).or_insert_with(|| free(r, c, axis));
                if let Some(slot) = of.get_mut(node as usize) {
                    *slot = n;
                }
            }
        }
        Spread { of }
    }

    /// Of one node; 1: every device holds something else, or nothing is known.
    pub(crate) fn of(&self, node: NodeId) -> u64 {
        self.of.get(node as usize).copied().unwrap_or(1).into()
    }
}

fn free(r: &Replication, classes: DeviceClassesId, axis: Option<&MeshAxis>) -> u32 {
    let distinct = u64::from(r.classes().count(classes)).max(1);
    let copies = u32::try_from(r.devices() / distinct).unwrap_or(u32::MAX);
    let Some(axis) = axis else { return copies };
    let axes = r.free_axes(classes);
    if axes.is_empty() || axes.iter().any(|a| a.name == axis.name) {
        return copies;
    }
    1
}

/// A mesh axis by its name.
pub(crate) fn axis_named(base: &Base<'_, '_>, name: &str) -> Option<MeshAxis> {
    let axes = base.replication.meshes().iter().flat_map(|m| &m.axes);
    axes.into_iter().find(|a| a.name == name).cloned()
}

/// Whether dimensions can be split evenly, over one or several of them.
pub(crate) fn divides(dimensions: &[u64], ways: u64) -> bool {
    let mut left = ways;
    for &d in dimensions {
        left /= gcd(d, left).max(1);
    }
    left <= 1
}

/// Adds the gathered tensors. A gathered argument stays for later products of the same
/// computation: the compiler gathers once.
pub(crate) fn transients(base: &Base<'_, '_>, effects: &Effects, scenario: &mut Scenario) {
    let module = &base.program.module;
    let mut gathered: BTreeMap<(NodeId, ComputationId), (u32, u32, u64)> = BTreeMap::new();
    let mut whole_results: Vec<(u32, u64)> = Vec::new();
    for i in module.ids() {
        if !module.instruction(i).opcode.is_product() {
            continue;
        }
        let Some(around) = base.scheduled(i) else {
            continue;
        };
        let Some(point) = base.points.point_of(&base.graph, around) else {
            continue;
        };
        let whole = |part: InstructionId| {
            let node = base.values.nodes(part).next()?;
            let seed = *effects.gathered.get(&node)?;
            let shape = effects.shape(base, node, &module.shape(part), true, false);
            Some((seed, shape.padded_bytes()))
        };
        if let Some((_, size)) = whole(i) {
            whole_results.push((point, size));
        }
        for (seed, size) in module.operands(i).iter().filter_map(|&o| whole(o)) {
            let key = (seed, module.instruction(around).computation);
            let kept = gathered.entry(key).or_insert((point, point, size));
            kept.0 = kept.0.min(point);
            kept.1 = kept.1.max(point);
            kept.2 = kept.2.max(size);
        }
    }
    let count = base.points.point_count();
    let end = |p: u32| p.saturating_add(1).min(count);
    for (from, to, size) in gathered.into_values() {
        scenario.add("gathered for products".to_owned(), size, from, end(to));
    }
    for (point, size) in whole_results {
        scenario.add(
            "product before it is split".to_owned(),
            size,
            point,
            end(point),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_splits_may_take_several_dimensions() {
        assert!(divides(&[2, 6, 1], 4));
        assert!(divides(&[7, 32000], 4));
        assert!(!divides(&[3, 5], 4));
        assert!(!divides(&[], 2));
    }
}

//! What splitting costs: where a split tensor goes into a matrix product it is gathered for the
//! moment, and a product that makes one comes out whole before it is split.
//!
//! In: effects with split classes. Out: short-lived items added to the scenario.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use super::base::Base;
use super::batch::sharding_of;
use super::effects::Effects;
use super::scenario::Scenario;
use super::values::{NodeId, Values};
use crate::model::{ComputationId, InstructionId};

/// Follows a tensor that is split `ways` ways to everything that is element by element the same:
/// nodes, how many ways each is split, and the seed it was reached from. Where a device works on its own share already, that
/// much less is left to split.
///
/// What follows from an argument is gathered again where it is needed whole. Of an intermediate
/// result, what was gathered only to make it whole is not gathered any more (`whole_too`).
pub(super) fn follow(
    values: &Values,
    seeds: &[NodeId],
    ways: u64,
    whole_too: bool,
) -> FxHashMap<NodeId, (u64, NodeId)> {
    let mut out: FxHashMap<NodeId, (u64, NodeId)> = FxHashMap::default();
    let mut queue: VecDeque<_> = seeds.iter().map(|&n| (n, ways, n)).collect();
    while let Some((node, ways_here, seed)) = queue.pop_front() {
        if ways_here < 2 || out.contains_key(&node) {
            continue;
        }
        out.insert(node, (ways_here, seed));
        for l in values
            .links_at(node)
            .iter()
            .filter_map(|&l| values.links.get(l as usize))
        {
            let to_part = l.a == node;
            let other = if to_part { l.b } else { l.a };
            if !l.elementwise || values.dimensions(other).iter().all(|&d| d <= 1) {
                continue;
            }
            if l.share <= 1 {
                queue.push_back((other, ways_here, seed));
            } else if to_part {
                queue.push_back((other, ways_here / l.share, seed));
            } else if whole_too {
                let more = ways_here.saturating_mul(l.share).min(ways);
                queue.push_back((other, more, seed));
            }
        }
    }
    out
}

/// Adds the gathered tensors. A gathered argument stays for later products of the same
/// computation: the compiler gathers once.
pub(super) fn transients(base: &Base<'_, '_>, effects: &Effects, scenario: &mut Scenario) {
    let module = &base.program.module;
    let mut gathered: BTreeMap<(NodeId, ComputationId), (u32, u32, u64)> = BTreeMap::new();
    let mut whole_results: Vec<(u32, u64)> = Vec::new();
    for i in (0..module.instructions.len() as u32).map(InstructionId) {
        if !matches!(module.instruction(i).opcode, "dot" | "convolution") {
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

/// Size of a mesh axis by its name, from the module's attributes (`xla.sdy.meshes`).
/// Arguments' shardings that name their mesh are asked first.
pub(super) fn axis_size(base: &Base<'_, '_>, axis: &str) -> Option<u64> {
    let module = &base.program.module;
    for i in module.entry_parameters() {
        let Some(sharding) = sharding_of(base, i) else {
            continue;
        };
        let axes = sharding.mesh().map_or(&[][..], |m| &m.axes);
        if let Some(a) = axes.iter().find(|a| a.name == axis) {
            return Some(a.size);
        }
    }
    module
        .frontend_attributes
        .iter()
        .find_map(|(_, text)| axis_in(text, axis))
}

/// `"tp"=4` in the text of a mesh, with or without escaped quotes.
fn axis_in(text: &str, axis: &str) -> Option<u64> {
    let plain: String = text
        .chars()
        .filter(|c| !matches!(c, '"' | '\\' | ' '))
        .collect();
    let wanted = format!("{axis}=");
    plain.match_indices(&wanted).find_map(|(at, _)| {
        let before = plain.get(..at)?.chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let digits: String = plain
            .get(at + wanted.len()..)?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok().filter(|&n| n > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mesh_axes_are_read_from_text() {
        let text = r#"{mesh = #sdy.mesh<[\"fsdp\"=2, \"tp\"=4]>}"#;
        assert_eq!(axis_in(text, "tp"), Some(4));
        assert_eq!(axis_in(text, "fsdp"), Some(2));
        assert_eq!(axis_in(text, "p"), None);
        assert_eq!(axis_in(text, "data"), None);
        assert_eq!(axis_in("tp=", "tp"), None);
    }
}

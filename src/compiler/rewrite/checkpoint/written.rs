//! Layers written out one after another: what the backward pass uses of a layer is computed again in
//! front of it, from the layer's input.
//!
//! In: a computation without calls. Out: copies of each layer's instructions behind a barrier that
//! the layer's input, its weights and the gradient that comes to it go through together, and a
//! backward pass that uses the copies.

use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks::{find, Blocks, Passes};
use super::build;
use super::graph::Graph;
use super::wanted::Wanted;
use crate::compiler::rewrite::module::Computation;
use crate::hlo::decode::schema::hlo_instruction;
use crate::hlo::Opcode;

/// What became of a branch's layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// Layers that are computed again.
    pub(crate) blocks: usize,
    /// What goes in to each: `bf16[16,1024,1024]`.
    pub(crate) input: String,
    /// Values that the backward pass used.
    pub(crate) values: usize,
}

/// Rewrites the layers of a computation.
pub(crate) fn checkpoint(
    computation: &mut Computation,
    data: &[usize],
    wanted: &Wanted<'_>,
) -> Vec<Written> {
    let Some(graph) = Graph::of(computation) else {
        return Vec::new();
    };
    let passes = Passes::of(&graph, data);
    let mut out = Vec::new();
    for blocks in find(&graph, &passes) {
        let work = Work::new(&graph, &passes, &blocks);
        let mut done = Written {
            blocks: 0,
            input: String::new(),
            values: 0,
        };
        for block in 0..blocks.0.len().saturating_sub(1) {
            if let Some(values) = work.again(computation, block, wanted) {
                let input = &graph.nodes[blocks.0[block]];
                let d: Vec<String> = input.dimensions.iter().map(u64::to_string).collect();
                done.input = format!("{}[{}]", input.element, d.join(","));
                done.blocks += 1;
                done.values += values;
            }
        }
        if done.blocks > 0 {
            out.push(done);
        }
    }
    computation.sort();
    out
}

/// What is known while the layers of a branch are rewritten.
struct Work<'w> {
    graph: &'w Graph,
    passes: &'w Passes,
    blocks: &'w [usize],
    /// The layer that a forward value is inside of, or a weight is for alone.
    inside: Vec<Option<usize>>,
    /// The first of the layers whose values a backward instruction needs; as many as there are
    /// where it needs none.
    turn: Vec<usize>,
}

impl<'w> Work<'w> {
    fn new(graph: &'w Graph, passes: &'w Passes, blocks: &'w Blocks) -> Work<'w> {
        let blocks = &blocks.0[..];
        let inside = inside(graph, passes, blocks);
        let mut turn = vec![blocks.len(); graph.len()];
        for (at, node) in graph.nodes.iter().enumerate() {
            if passes.backward[at] {
                let of = |&o: &usize| match passes.backward[o] {
                    true => turn[o],
                    false => {
                        let is_input = blocks[..blocks.len() - 1].iter().position(|&b| b == o);
                        is_input.or(inside[o]).unwrap_or(blocks.len())
                    }
                };
                turn[at] = node.operands.iter().map(of).min().unwrap_or(blocks.len());
            }
        }
        Work {
            graph,
            passes,
            blocks,
            inside,
            turn,
        }
    }

    /// Lets the backward pass compute a layer again. How many values it used of it; `None` where
    /// there is nothing to do.
    fn again(
        &self,
        computation: &mut Computation,
        block: usize,
        wanted: &Wanted<'_>,
    ) -> Option<usize> {
        let nodes = &self.graph.nodes;
        let backward = |at: &usize| self.passes.backward[*at];
        let all: Vec<usize> = (0..nodes.len()).filter(backward).collect();
        let used: FxHashSet<usize> = all
            .iter()
            .flat_map(|&at| nodes[at].operands.iter().copied())
            .filter(|&o| self.inside[o] == Some(block))
            .collect();
        if used.is_empty() || !used.iter().any(|&at| wanted.covers(&nodes[at].op_name)) {
            return None;
        }
        let region: FxHashSet<usize> = all
            .iter()
            .copied()
            .filter(|&at| self.turn[at] == block && nodes[at].op_name.contains("transpose("))
            .collect();
        let mut again: Vec<usize> = Vec::new();
        let (mut kept, mut weights) = (Vec::new(), Vec::new());
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let mut open: Vec<usize> = used.iter().copied().collect();
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            if wanted.keeps(nodes[at].opcode) && self.passes.of_data[at] {
                kept.push(at);
                continue;
            }
            again.push(at);
            for &o in &nodes[at].operands {
                match self.inside[o] {
                    Some(of) if of == block => open.push(o),
                    _ if nodes[o].opcode == Opcode::Parameter => weights.push(o),
                    _ => {}
                }
            }
        }
        let gradient = |&o: &usize| {
            let n = &nodes[o];
            let of_loss = self.passes.backward[o] && self.passes.of_data[o];
            of_loss && self.turn[o] > block && n.element.is_float() && n.element_count() > 1
        };
        let gradients = region
            .iter()
            .flat_map(|&at| nodes[at].operands.iter().copied());
        let mut gradients: Vec<usize> = gradients.filter(gradient).collect();
        for list in [&mut again, &mut kept, &mut weights, &mut gradients] {
            list.sort_unstable();
            list.dedup();
        }
        let mut through = vec![self.blocks[block]];
        through.extend(kept.into_iter().chain(weights).chain(gradients));
        self.write(computation, &through, &again, &region)?;
        Some(used.len())
    }

    fn write(
        &self,
        computation: &mut Computation,
        through: &[usize],
        again: &[usize],
        region: &FxHashSet<usize>,
    ) -> Option<()> {
        let nodes = &self.graph.nodes;
        // The first instructions are still those of the graph, in its order.
        let shapes: Vec<Vec<u8>> = through
            .iter()
            .map(|&at| build::shape_of(&computation.instructions[at]))
            .collect();
        // Those that an earlier layer's copies stand for by now.
        let ids: Vec<u64> = through.iter().map(|&at| nodes[at].id).collect();
        let fresh = build::barrier(computation, &ids, &shapes);
        let behind: FxHashMap<usize, u64> = through.iter().copied().zip(fresh).collect();
        let mut copies: FxHashMap<usize, u64> = FxHashMap::default();
        for &at in again {
            let mut copy = computation.instructions.get(at)?.clone();
            let now = |o: &usize| {
                let copied = copies.get(o).or_else(|| behind.get(o)).copied();
                copied.unwrap_or(nodes[*o].id)
            };
            copy.set_numbers(
                hlo_instruction::OPERAND_IDS,
                nodes[at].operands.iter().map(now),
            );
            copy.remove(hlo_instruction::CONTROL_PREDECESSOR_IDS);
            copies.insert(at, computation.push(copy));
        }
        let by_id = |map: &FxHashMap<usize, u64>| -> FxHashMap<u64, u64> {
            map.iter().map(|(&at, &id)| (nodes[at].id, id)).collect()
        };
        let (copies, behind) = (by_id(&copies), by_id(&behind));
        for at in (0..nodes.len()).filter(|&at| self.passes.backward[at]) {
            let i = computation.instructions.get_mut(at)?;
            let old = i.numbers(hlo_instruction::OPERAND_IDS);
            let new = old.iter().map(|o| {
                let barrier = behind.get(o).filter(|_| region.contains(&at));
                copies.get(o).or(barrier).copied().unwrap_or(*o)
            });
            let new: Vec<u64> = new.collect();
            if new != old {
                i.set_numbers(hlo_instruction::OPERAND_IDS, new);
            }
        }
        Some(())
    }
}

/// The layer each forward value is inside of: computed from its input and not from its output. A
/// weight's conversions belong to the layer that alone uses them.
fn inside(graph: &Graph, passes: &Passes, blocks: &[usize]) -> Vec<Option<usize>> {
    let n = graph.len();
    // How many of the values between layers a forward value is computed from.
    let mut depth = vec![0usize; n];
    let mut out = vec![None; n];
    for at in 0..n {
        if passes.backward[at] || at == graph.root {
            continue;
        }
        let from = graph.nodes[at].operands.iter().map(|&o| depth[o]).max();
        depth[at] = from.unwrap_or(0);
        if let Ok(own) = blocks.binary_search(&at) {
            depth[at] = own + 1;
        } else if (1..blocks.len()).contains(&depth[at]) {
            out[at] = Some(depth[at] - 1);
        }
    }
    for at in (0..n).rev() {
        let node = &graph.nodes[at];
        let fixed = !passes.backward[at] && !passes.of_data[at] && out[at].is_none();
        if !fixed || at == graph.root || node.opcode == Opcode::Parameter {
            continue;
        }
        let users = node.users.iter().copied();
        let users = users.filter(|&u| !passes.backward[u] && u != graph.root);
        let of = |u: usize| match blocks.binary_search(&u) {
            Ok(own) => own.checked_sub(1),
            Err(_) => out[u],
        };
        let mut layers: Vec<Option<usize>> = users.map(of).collect();
        layers.dedup();
        if let [Some(one)] = layers[..] {
            out[at] = Some(one);
        }
    }
    out
}

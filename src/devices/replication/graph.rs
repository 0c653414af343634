//! The module as a graph of values: one node an array leaf of an instruction's result, an edge
//! from each value to those made from it. Tuples, calls, loops and asynchronous pairs become
//! edges between leaves, so what follows needs to know nothing of HLO.
//!
//! Each computation is there once, whoever calls it: a parameter's value stands for all call
//! sites, so the graph is as large as the file. Callers that call themselves are harmless: the
//! solution is a fixed point.

use rustc_hash::FxHashSet;

use super::classes::{DeviceClasses, DeviceClassesId};
use super::collectives::{TransformId, Transforms};
use super::leaves::element_offsets;
use crate::hlo::{ComputationId, HloModule, InstructionId, Opcode};

/// Nodes and edges.
#[derive(Debug, Default)]
pub(crate) struct ValueGraph {
    /// First node of each instruction. An array has one node. A tuple of n leaves has n + 2: its
    /// leaves, then one that stands for all operands, then one that stands for all leaves.
    first: Vec<u32>,
    leaves: Vec<u32>,
    /// Where each tuple-shaped instruction's element offsets are; others have an empty range.
    offsets_at: Vec<u32>,
    offsets: Vec<u32>,
    /// Node of "which devices get here" of the first computation; the others follow.
    first_control: u32,
    /// What is known of each node from the start.
    pub(crate) seed: Vec<DeviceClassesId>,
    /// Function applied to what comes in.
    pub(crate) transform: Vec<TransformId>,
    pub(crate) edges: Vec<(u32, u32)>,
    /// Pairs already connected, where an operand may be passed to one callee many times.
    bound: FxHashSet<(InstructionId, InstructionId)>,
}

/// Nodes of one instruction's leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nodes {
    pub(crate) from: u32,
    pub(crate) count: u32,
}

impl Nodes {
    /// Part of the range; `None` if it reaches past the end.
    pub(crate) fn part(self, from: u32, to: u32) -> Option<Nodes> {
        (from <= to && to <= self.count).then(|| Nodes {
            from: self.from + from,
            count: to - from,
        })
    }

    fn iter(self) -> std::ops::Range<u32> {
        self.from..self.from + self.count
    }
}

impl ValueGraph {
    /// Nodes without edges; `None` if there are more than can be numbered.
    pub(crate) fn new(module: &HloModule<'_>) -> Option<ValueGraph> {
        let mut g = ValueGraph::default();
        let mut next = 0u32;
        for i in &module.instructions {
            g.first.push(next);
            g.offsets_at.push(u32::try_from(g.offsets.len()).ok()?);
            let (count, nodes) = match element_offsets(i.shape) {
                None => (1, 1),
                Some(o) => {
                    let count = o.last().copied().unwrap_or(0);
                    g.offsets.extend(o);
                    (count, count.checked_add(2)?)
                }
            };
            g.leaves.push(count);
            next = next.checked_add(nodes).filter(|&n| n < u32::MAX / 2)?;
        }
        g.offsets_at.push(u32::try_from(g.offsets.len()).ok()?);
        g.first_control = next;
        let total = next as usize + module.computations.len();
        g.seed = vec![DeviceClassesId::ONE; total];
        g.transform = vec![0; total];
        g.edges.reserve(module.instructions.len() * 2);
        Some(g)
    }

    /// Leaves of an instruction's result.
    pub(crate) fn nodes(&self, i: InstructionId) -> Nodes {
        Nodes {
            from: self.first.get(i.index()).copied().unwrap_or(0),
            count: self.leaves.get(i.index()).copied().unwrap_or(0),
        }
    }

    fn is_tuple(&self, i: InstructionId) -> bool {
        !self.element_offsets(i).is_empty()
    }

    /// First leaf of each tuple element, then their number; empty for arrays.
    pub(crate) fn element_offsets(&self, i: InstructionId) -> &[u32] {
        let at = |k: usize| self.offsets_at.get(k).map_or(0, |&x| x as usize);
        self.offsets
            .get(at(i.index())..at(i.index() + 1))
            .unwrap_or_default()
    }

    /// Leaves of one tuple element.
    pub(crate) fn element(&self, i: InstructionId, k: u32) -> Option<Nodes> {
        let o = self.element_offsets(i);
        let from = *o.get(k as usize)?;
        let to = *o.get(k as usize + 1)?;
        self.nodes(i).part(from, to)
    }

    /// The node that everything an instruction makes is made from.
    pub(crate) fn inlet(&self, i: InstructionId) -> u32 {
        let n = self.nodes(i);
        n.from + if self.is_tuple(i) { n.count } else { 0 }
    }

    /// The node that stands for all of an instruction's result.
    pub(crate) fn outlet(&self, i: InstructionId) -> u32 {
        let n = self.nodes(i);
        n.from + if self.is_tuple(i) { n.count + 1 } else { 0 }
    }

    /// Node of the devices that run a computation.
    pub(crate) fn control(&self, c: ComputationId) -> u32 {
        self.first_control + c.0
    }

    pub(crate) fn edge(&mut self, from: u32, to: u32) {
        self.edges.push((from, to));
    }

    /// Leaf by leaf; where the numbers differ, nothing is known of `to`.
    pub(crate) fn copy(&mut self, from: Nodes, to: Nodes, own: DeviceClassesId) {
        if from.count != to.count {
            return self.seed_all(to, own);
        }
        for (a, b) in from.iter().zip(to.iter()) {
            self.edges.push((a, b));
        }
    }

    pub(crate) fn seed_all(&mut self, nodes: Nodes, with: DeviceClassesId) {
        for n in nodes.iter() {
            if let Some(s) = self.seed.get_mut(n as usize) {
                *s = with;
            }
        }
    }

    /// Refines what is known of a node from the start.
    pub(crate) fn seed_one(&mut self, node: u32, with: DeviceClassesId, c: &mut DeviceClasses) {
        if let Some(s) = self.seed.get_mut(node as usize) {
            *s = c.refine(*s, with);
        }
    }

    pub(crate) fn set_transform(&mut self, node: u32, t: TransformId) {
        if let Some(x) = self.transform.get_mut(node as usize) {
            *x = t;
        }
    }

    /// All leaves are made from all operands.
    pub(crate) fn generic(&mut self, module: &HloModule<'_>, i: InstructionId) {
        let inlet = self.inlet(i);
        for &o in module.operands(i) {
            let from = self.outlet(o);
            self.edge(from, inlet);
        }
        self.spread(i);
    }

    /// The inlet of a tuple flows into every leaf.
    pub(crate) fn spread(&mut self, i: InstructionId) {
        let inlet = self.inlet(i);
        if self.is_tuple(i) {
            for leaf in self.nodes(i).iter() {
                self.edge(inlet, leaf);
            }
        }
    }

    /// Leaves of tuples flow into the node that stands for all of them.
    pub(crate) fn collect_outlets(&mut self, module: &HloModule<'_>) {
        for i in module.ids() {
            if self.is_tuple(i) {
                let outlet = self.outlet(i);
                for leaf in self.nodes(i).iter() {
                    self.edges.push((leaf, outlet));
                }
            }
        }
    }

    /// Passes a value to a parameter. Many call sites may pass the same tuple: once is enough.
    pub(crate) fn bind(
        &mut self,
        value: InstructionId,
        parameter: InstructionId,
        own: DeviceClassesId,
    ) {
        if !self.is_tuple(value) || self.bound.insert((value, parameter)) {
            self.copy(self.nodes(value), self.nodes(parameter), own);
        }
    }
}

/// Which computations vary by device.
#[derive(Debug)]
pub(crate) struct Computations {
    /// Whether running it may give devices different results for the same arguments.
    varies: Vec<bool>,
}

impl Computations {
    pub(crate) fn new(module: &HloModule<'_>) -> Computations {
        let n = module.computations.len();
        let mut out = Computations {
            varies: vec![false; n],
        };
        for (k, c) in module.computations.iter().enumerate() {
            let mut varies = false;
            for i in c.instructions() {
                let inst = module.instruction(i);
                match inst.opcode {
                    Opcode::PartitionId
                    | Opcode::ReplicaId
                    | Opcode::Rng
                    | Opcode::RngGetAndUpdateState
                    | Opcode::Infeed
                    | Opcode::Recv
                    | Opcode::RecvDone
                    | Opcode::CustomCall => varies = true,
                    op if op.is_collective() => varies = true,
                    _ => {}
                }
                // Callees come first in a file; one that does not is not looked into.
                varies |= module
                    .called(i)
                    .iter()
                    .any(|c| out.varies.get(..k).and_then(|v| v.get(c.index())) != Some(&false));
            }
            if let Some(v) = out.varies.get_mut(k) {
                *v = varies;
            }
        }
        out
    }

    pub(crate) fn varies(&self, c: ComputationId) -> bool {
        self.varies.get(c.index()).copied().unwrap_or(true)
    }
}

/// What turns instructions into edges has at hand.
#[derive(Debug)]
pub(crate) struct Builder<'m, 'a> {
    pub(crate) module: &'m HloModule<'a>,
    pub(crate) graph: ValueGraph,
    pub(crate) computations: Computations,
    pub(crate) classes: DeviceClasses,
    pub(crate) transforms: Transforms<'a>,
    pub(crate) own: DeviceClassesId,
    /// Computation that each asynchronous operation runs.
    pub(crate) async_of: rustc_hash::FxHashMap<InstructionId, ComputationId>,
    /// Computations whose parameters are passed by someone, or that are the entry.
    pub(crate) reached: Vec<bool>,
}

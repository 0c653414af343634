//! Per opcode, which dimensions of operands and results correspond. What is not known relates
//! nothing: a change then stops there, and the estimate errs on the high side.
//!
//! In: a program whose nodes are numbered. Out: links, appended to [`Values::links`].

use super::device_index::device_dependent;
use super::dimension_numbers::{convolution, dot, gather, scatter, ConvolutionNumbers, Related};
use super::regroup::{ordered, regroup, tiled};
use super::values::{DimensionMap, Group, Link, NodeId, Values};
use crate::hlo::{ComputationId, InstructionId, Opcode, Program};

/// Appends the links of every instruction.
pub(crate) fn collect(program: &Program<'_>, values: &mut Values) {
    let mut collector = Collector {
        program,
        links: Vec::new(),
        indexed: Vec::new(),
    };
    for i in program.module.ids() {
        collector.instruction(i, values);
    }
    let by_device = device_dependent(program);
    for &(link, slice) in &collector.indexed {
        let indices = program.module.operands(slice).iter().skip(1);
        if indices.copied().any(|i| by_device.contains(&i)) {
            // A device cuts out its own share: what follows is split already.
            if let Some(l) = collector.links.get_mut(link) {
                let count_of = |n| count(values.dimensions(n));
                l.share = count_of(l.a).checked_div(count_of(l.b)).unwrap_or(1).max(1);
            }
        }
    }
    values.links = collector.links;
}

struct Collector<'p, 'a> {
    program: &'p Program<'a>,
    links: Vec<Link>,
    /// Slices whose place depends on indices: link, and the instruction.
    indexed: Vec<(usize, InstructionId)>,
}

impl Collector<'_, '_> {
    fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        map: DimensionMap,
        elementwise: bool,
        same_type: bool,
    ) {
        self.links.push(Link {
            a,
            b,
            map,
            elementwise,
            share: 1,
            same_type,
        });
    }

    /// `part` is one device's share of `whole`.
    fn share(&mut self, whole: NodeId, part: NodeId, map: DimensionMap, v: &Values) {
        let (w, p) = (count(v.dimensions(whole)), count(v.dimensions(part)));
        self.links.push(Link {
            a: whole,
            b: part,
            map,
            elementwise: p > 0 && w % p == 0,
            share: w.checked_div(p).unwrap_or(1).max(1),
            same_type: true,
        });
    }

    /// The same data under two names, leaf by leaf.
    fn same_data(&mut self, a: std::ops::Range<NodeId>, b: std::ops::Range<NodeId>) {
        for (x, y) in a.zip(b) {
            self.link(x, y, DimensionMap::Same, true, true);
        }
    }

    fn instruction(&mut self, id: InstructionId, v: &Values) {
        let module = &self.program.module;
        let opcode = module.instruction(id).opcode;
        let operands = module.operands(id).to_vec();
        match opcode {
            Opcode::Parameter
            | Opcode::Constant
            | Opcode::Iota
            | Opcode::PartitionId
            | Opcode::ReplicaId
            | Opcode::Infeed
            | Opcode::Outfeed
            | Opcode::Send
            | Opcode::Recv
            | Opcode::SendDone
            | Opcode::RecvDone
            | Opcode::Rng
            | Opcode::RngBitGenerator
            | Opcode::RngGetAndUpdateState
            | Opcode::AfterAll
            | Opcode::AddDependency => {}
            Opcode::GetTupleElement => {
                if let Some(&o) = operands.first() {
                    let index = module.instruction(id).tuple_index as usize;
                    self.same_data(v.element(o, index), v.nodes(id));
                }
            }
            Opcode::Tuple => {
                for (k, &o) in operands.iter().enumerate() {
                    self.same_data(v.nodes(o), v.element(id, k));
                }
            }
            Opcode::While => {
                for c in module.called(id).to_vec() {
                    if let (Some(&o), Some(p)) = (operands.first(), module.parameter(c, 0)) {
                        self.same_data(v.nodes(o), v.nodes(p));
                        self.same_data(v.nodes(o), v.nodes(id));
                        if let Some(root) = module.computation(c).root {
                            if v.nodes(root).len() == v.nodes(id).len() {
                                self.same_data(v.nodes(root), v.nodes(id));
                            }
                        }
                    }
                }
            }
            Opcode::Conditional => {
                for (k, c) in module.called(id).to_vec().into_iter().enumerate() {
                    if let (Some(&o), Some(p)) = (operands.get(k + 1), module.parameter(c, 0)) {
                        self.same_data(v.nodes(o), v.nodes(p));
                    }
                    self.root(c, v.nodes(id), v);
                }
            }
            Opcode::Fusion | Opcode::Call | Opcode::AsyncStart => self.call(id, &operands, v),
            Opcode::AsyncUpdate | Opcode::AsyncDone => self.async_step(id, &operands, v),
            Opcode::CopyStart | Opcode::AllGatherStart | Opcode::CollectivePermuteStart => {
                self.started(id, opcode, &operands, v);
            }
            Opcode::CopyDone | Opcode::AllGatherDone | Opcode::CollectivePermuteDone => {
                let result = opcode
                    .result_element()
                    .and_then(|e| usize::try_from(e).ok());
                if let (Some(&o), Some(result)) = (operands.first(), result) {
                    self.same_data(v.element(o, result), v.nodes(id));
                }
            }
            Opcode::OptBarrier | Opcode::Copy | Opcode::AllReduceDone | Opcode::Domain => {
                if let Some(&o) = operands.first() {
                    self.same_data(v.nodes(o), v.nodes(id));
                }
            }
            Opcode::Sort => self.leafwise(id, &operands, v, true, true, true),
            Opcode::AllReduce | Opcode::AllReduceStart | Opcode::CollectiveBroadcast => {
                self.leafwise(id, &operands, v, true, true, false);
            }
            Opcode::AllGather => {
                for (&o, whole) in operands.iter().zip(v.nodes(id)) {
                    if let Some(part) = v.nodes(o).next() {
                        self.share(whole, part, DimensionMap::Same, v);
                    }
                }
            }
            Opcode::ReduceScatter => self.leafwise(id, &operands, v, false, true, false),
            Opcode::AllToAll | Opcode::RaggedAllToAll => self.exchange(id, &operands, v),
            Opcode::CollectivePermute => self.leafwise(id, &operands, v, true, true, false),
            Opcode::Reduce => self.reduce(id, &operands, v),
            _ => self.arrays(id, opcode, &operands, v),
        }
    }

    fn root(&mut self, c: ComputationId, result: std::ops::Range<NodeId>, v: &Values) {
        if let Some(root) = self.program.module.computation(c).root {
            if v.nodes(root).len() == result.len() {
                self.same_data(v.nodes(root), result);
            }
        }
    }

    fn call(&mut self, id: InstructionId, operands: &[InstructionId], v: &Values) {
        let module = &self.program.module;
        for c in module.called(id).to_vec() {
            for (&o, &p) in operands.iter().zip(module.parameters(c)) {
                self.same_data(v.nodes(o), v.nodes(p));
            }
            if module.instruction(id).opcode == Opcode::AsyncStart {
                // ((operands), result, contexts)
                let result = v.element(id, 1);
                self.root(c, result, v);
            } else {
                self.root(c, v.nodes(id), v);
            }
        }
        if module.instruction(id).opcode == Opcode::AsyncStart {
            let mut at = v.element(id, 0);
            for &o in operands {
                let n = v.nodes(o);
                let len = n.len() as u32;
                self.same_data(n, at.start..at.end.min(at.start + len));
                at.start = at.end.min(at.start + len);
            }
        }
    }

    fn async_step(&mut self, id: InstructionId, operands: &[InstructionId], v: &Values) {
        let Some(&o) = operands.first() else { return };
        if self.program.module.instruction(id).opcode == Opcode::AsyncUpdate {
            self.same_data(v.nodes(o), v.nodes(id));
        } else {
            self.same_data(v.element(o, 1), v.nodes(id));
        }
    }

    fn started(
        &mut self,
        id: InstructionId,
        opcode: Opcode,
        operands: &[InstructionId],
        v: &Values,
    ) {
        let gathered = opcode == Opcode::AllGatherStart;
        for (k, &o) in operands
            .iter()
            .enumerate()
            .take(if gathered { usize::MAX } else { 1 })
        {
            for element in [0, 1] {
                let leaves = v.element(id, element);
                // One operand: the element is the array itself; several: a tuple of them.
                let at = if operands.len() == 1 { 0 } else { k as u32 };
                for (x, n) in v.nodes(o).zip(leaves.skip(at as usize)) {
                    if v.dimensions(x) == v.dimensions(n) {
                        self.link(x, n, DimensionMap::Same, true, true);
                    } else if v.dimensions(x).len() == v.dimensions(n).len() {
                        self.share(n, x, DimensionMap::Same, v);
                    }
                }
            }
        }
    }

    /// Operand `k` against leaf `k` of the result.
    fn leafwise(
        &mut self,
        id: InstructionId,
        operands: &[InstructionId],
        v: &Values,
        elementwise: bool,
        same_type: bool,
        among: bool,
    ) {
        let leaves = v.nodes(id);
        for (&o, leaf) in operands.iter().zip(leaves.clone()) {
            for n in v.nodes(o).take(1) {
                if v.dimensions(n).len() == v.dimensions(leaf).len() {
                    let same = v.dimensions(n) == v.dimensions(leaf);
                    self.link(n, leaf, DimensionMap::Same, elementwise && same, same_type);
                }
            }
        }
        if among {
            for leaf in leaves.clone().skip(1) {
                self.link(leaves.start, leaf, DimensionMap::Same, true, false);
            }
        }
    }

    /// All-to-all: along the dimension that is exchanged, something else stands afterwards.
    fn exchange(&mut self, id: InstructionId, operands: &[InstructionId], v: &Values) {
        let exchanged = self.dimension_list(id);
        for (&o, leaf) in operands.iter().zip(v.nodes(id)) {
            let Some(n) = v.nodes(o).next() else { continue };
            let kept = (0..v.dimensions(n).len()).filter(|d| !exchanged.contains(d));
            let pairs = kept.filter_map(|d| pair(d, d)).collect();
            self.link(n, leaf, DimensionMap::Pairs(pairs), false, true);
        }
    }

    fn reduce(&mut self, id: InstructionId, operands: &[InstructionId], v: &Values) {
        let gone = self.dimension_list(id);
        let leaves = v.nodes(id);
        for (&o, leaf) in operands.iter().zip(leaves) {
            let Some(n) = v.nodes(o).next() else { continue };
            let kept = (0..v.dimensions(n).len()).filter(|d| !gone.contains(d));
            let pairs = kept.enumerate().filter_map(|(to, from)| pair(from, to));
            self.link(n, leaf, DimensionMap::Pairs(pairs.collect()), false, false);
        }
    }

    fn dimension_list(&self, id: InstructionId) -> Vec<usize> {
        let listed = self.program.module.instruction(id).attributes().dimensions;
        listed.iter().map(|&d| d as usize).collect()
    }

    /// Operations on arrays, with one array as the result.
    fn arrays(
        &mut self,
        id: InstructionId,
        opcode: Opcode,
        operands: &[InstructionId],
        v: &Values,
    ) {
        let raw = self.program.module.instruction(id).raw;
        let Some(out) = v.nodes(id).next() else {
            return;
        };
        let mut inputs = Vec::with_capacity(operands.len());
        for &o in operands {
            match v.nodes(o).next() {
                Some(n) => inputs.push(n),
                None => return,
            }
        }
        match opcode {
            Opcode::Convert => {
                for n in inputs {
                    let same = v.element_type(n) == v.element_type(out);
                    self.link(n, out, DimensionMap::Same, true, same);
                }
            }
            Opcode::Reshape | Opcode::Bitcast => {
                if let (Some(&n), Some(&o)) = (inputs.first(), operands.first()) {
                    let groups = self.regrouped(o, id, opcode == Opcode::Bitcast);
                    let same = v.element_type(n) == v.element_type(out);
                    self.link(n, out, DimensionMap::Groups(groups), true, same);
                }
            }
            Opcode::Transpose => {
                let pairs = self.dimension_list(id).into_iter().enumerate();
                let pairs = pairs.filter_map(|(to, from)| pair(from, to)).collect();
                if let Some(&n) = inputs.first() {
                    self.link(n, out, DimensionMap::Pairs(pairs), true, true);
                }
            }
            Opcode::Broadcast => {
                let pairs = self.dimension_list(id).into_iter().enumerate();
                let pairs = pairs.filter_map(|(from, to)| pair(from, to)).collect();
                if let Some(&n) = inputs.first() {
                    let whole = count(v.dimensions(n)) == count(v.dimensions(out));
                    self.link(n, out, DimensionMap::Pairs(pairs), whole, whole);
                }
            }
            Opcode::Slice
            | Opcode::DynamicSlice
            | Opcode::Pad
            | Opcode::ReduceWindow
            | Opcode::SelectAndScatter => {
                let moves = matches!(opcode, Opcode::Slice | Opcode::DynamicSlice | Opcode::Pad);
                if let Some(&n) = inputs.first() {
                    if opcode == Opcode::DynamicSlice {
                        self.indexed.push((self.links.len(), id));
                    }
                    self.part(n, out, v, moves);
                }
            }
            Opcode::DynamicUpdateSlice => {
                if let (Some(&whole), Some(&update)) = (inputs.first(), inputs.get(1)) {
                    self.link(whole, out, DimensionMap::Same, true, true);
                    self.part(out, update, v, true);
                }
            }
            Opcode::Concatenate => {
                for n in inputs {
                    self.link(n, out, DimensionMap::Same, true, true);
                }
            }
            Opcode::Dot => self.product(&inputs, out, &dot(raw, v, &inputs)),
            Opcode::Convolution => {
                let numbers = convolution(raw);
                self.convolution(&inputs, out, &numbers, v);
            }
            Opcode::Gather => {
                let pairs = gather(raw, v, &inputs, out);
                self.product(&inputs, out, &pairs);
            }
            Opcode::Scatter => {
                if let (Some(&target), Some(&updates)) = (inputs.first(), inputs.last()) {
                    self.link(target, out, DimensionMap::Same, true, true);
                    for (a, b, pairs) in scatter(raw, v, &inputs) {
                        self.link(a, b, DimensionMap::Pairs(pairs), false, false);
                    }
                    let same = v.element_type(updates) == v.element_type(out);
                    self.link(updates, out, DimensionMap::Unrelated, false, same);
                }
            }
            Opcode::CustomCall if self.joins(id, &inputs, out, v) => {
                for n in inputs {
                    self.link(n, out, DimensionMap::Same, true, true);
                }
            }
            _ => {
                for n in inputs {
                    if v.dimensions(n) == v.dimensions(out) && !v.dimensions(n).is_empty() {
                        let same = v.element_type(n) == v.element_type(out);
                        self.link(n, out, DimensionMap::Same, true, same);
                    }
                }
            }
        }
    }

    /// A part of a whole: dimensions that are indexed away (one element of several) do not carry
    /// over.
    fn part(&mut self, whole: NodeId, part: NodeId, v: &Values, moves: bool) {
        let (w, p) = (v.dimensions(whole), v.dimensions(part));
        let pairs = w.iter().zip(p).enumerate();
        let pairs = pairs.filter(|(_, (w, p))| **p != 1 || **w == 1);
        let pairs = pairs.filter_map(|(d, _)| pair(d, d)).collect();
        self.link(whole, part, DimensionMap::Pairs(pairs), moves, moves);
    }

    /// Whether a custom call puts its operands together again (a parameter fetched in slices).
    fn joins(&self, id: InstructionId, inputs: &[NodeId], out: NodeId, v: &Values) -> bool {
        let joins = self.program.module.instruction(id).joins_slices();
        let rank = v.dimensions(out).len();
        let total = inputs
            .iter()
            .fold(0u64, |s, &n| s.saturating_add(count(v.dimensions(n))));
        joins
            && inputs.iter().all(|&n| v.dimensions(n).len() == rank)
            && total == count(v.dimensions(out))
    }

    fn product(&mut self, inputs: &[NodeId], out: NodeId, found: &[Related]) {
        // Nodes are numbered operand by operand, the result last.
        for (a, b, pairs) in found {
            let node = |k: usize| inputs.get(k).copied().unwrap_or(out);
            let map = DimensionMap::Pairs(pairs.clone().into());
            self.link(node(*a), node(*b), map, false, false);
        }
    }

    fn convolution(&mut self, inputs: &[NodeId], out: NodeId, n: &ConvolutionNumbers, v: &Values) {
        let (Some(&lhs), Some(&rhs)) = (inputs.first(), inputs.get(1)) else {
            return;
        };
        let size = |node: NodeId, d: usize| v.dimensions(node).get(d).copied().unwrap_or(0);
        let mut lhs_out = vec![(n.input_batch, n.output_batch)];
        let mut lhs_rhs = Vec::new();
        if size(lhs, n.input_feature) == size(rhs, n.kernel_input) {
            lhs_rhs.push((n.input_feature, n.kernel_input));
        }
        let mut rhs_out = vec![(n.kernel_output, n.output_feature)];
        for (k, &i) in n.input_spatial.iter().enumerate() {
            let kernel = n.kernel_spatial.get(k).copied().unwrap_or(usize::MAX);
            let output = n.output_spatial.get(k).copied().unwrap_or(usize::MAX);
            let (a, b, c) = (size(lhs, i), size(rhs, kernel), size(out, output));
            // Matrix products are written as convolutions whose spatial dimensions stand for
            // batch or contracted ones: equal sizes tell.
            if a > 1 && a == b {
                lhs_rhs.push((i, kernel));
            }
            if c > 1 && (a == c || b == 1) {
                lhs_out.push((i, output));
            }
            if b > 1 && b == c {
                rhs_out.push((kernel, output));
            }
        }
        for (a, b, pairs) in [
            (lhs, out, lhs_out),
            (lhs, rhs, lhs_rhs),
            (rhs, out, rhs_out),
        ] {
            let pairs = pairs.into_iter().filter_map(|(x, y)| pair(x, y)).collect();
            self.link(a, b, DimensionMap::Pairs(pairs), false, false);
        }
    }

    fn regrouped(&self, from: InstructionId, to: InstructionId, physical: bool) -> Box<[Group]> {
        let (a, b) = (
            self.program.module.shape(from),
            self.program.module.shape(to),
        );
        if physical {
            // A change of tiling that moves no byte shows in the tiles' own dimensions.
            if let (Some(a), Some(b)) = (tiled(&a), tiled(&b)) {
                return regroup(&a, &b);
            }
        }
        regroup(&ordered(&a, physical), &ordered(&b, physical))
    }
}

fn pair(a: usize, b: usize) -> Option<(u8, u8)> {
    Some((u8::try_from(a).ok()?, u8::try_from(b).ok()?))
}

fn count(dimensions: &[u64]) -> u64 {
    dimensions.iter().fold(1, |a, &d| a.saturating_mul(d))
}

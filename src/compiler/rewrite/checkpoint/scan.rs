//! Layers in a loop: what the forward loop stacks up for the backward loop is computed again in the
//! backward loop's body, from the layer's input.
//!
//! In: a computation with two such loops. Out: the backward body with a copy of the forward one's
//! instructions behind a barrier. The stacks that nobody reads any more are the compiler's to drop.

use rustc_hash::FxHashMap;

use super::build;
use super::graph::Graph;
use super::loops::{loop_at, Loop};
use super::wanted::Wanted;
use crate::compiler::rewrite::module::Editable;
use crate::compiler::rewrite::record::Record;
use crate::hlo::decode::schema::hlo_instruction;
use crate::hlo::Opcode;

/// What became of a pair of loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rolled {
    /// Rounds of the loop.
    pub(crate) rounds: u64,
    /// Stacks that the backward loop no longer reads.
    pub(crate) stacks: usize,
}

/// A forward loop and the backward loop that reads its stacks.
struct Pair {
    forward: Loop,
    backward: Loop,
    /// What the backward loop carries → what the forward loop stacks there.
    stacks: FxHashMap<usize, usize>,
    /// What the forward loop counts its rounds in.
    counter: usize,
}

/// Rewrites every pair of loops of a computation.
pub(crate) fn checkpoint(module: &mut Editable, within: usize, wanted: &Wanted<'_>) -> Vec<Rolled> {
    let instructions = module.computations[within].instructions.iter();
    let loops = instructions.filter_map(|i| loop_at(module, within, i));
    let loops: Vec<Loop> = loops.collect();
    let mut out = Vec::new();
    for &backward in &loops {
        let Some(pair) = pair_of(module, backward, &loops) else {
            continue;
        };
        // Each is done on a copy: one that cannot be done leaves nothing behind.
        let mut changed = module.clone();
        if let Some(rolled) = roll(&mut changed, &pair, wanted) {
            *module = changed;
            out.push(rolled);
        }
    }
    out
}

/// The forward loop of which `backward` reads stacks.
fn pair_of(module: &Editable, backward: Loop, loops: &[Loop]) -> Option<Pair> {
    let outer = Graph::of(&module.computations[backward.within])?;
    let mut bodies: FxHashMap<usize, Option<Graph>> = FxHashMap::default();
    let mut found: Option<Pair> = None;
    for (carried, start) in backward.start(module)?.into_iter().enumerate() {
        let Some(from) = outer.position(start).map(|at| &outer.nodes[at]) else {
            continue;
        };
        let of = from.operands.first().map(|&o| outer.nodes[o].id);
        let is_part = from.opcode == Opcode::GetTupleElement;
        let forward = loops.iter().find(|l| is_part && Some(l.id) == of);
        let Some(&forward) = forward.filter(|f| f.id != backward.id) else {
            continue;
        };
        if found.as_ref().is_some_and(|p| p.forward != forward) {
            continue;
        }
        let body = bodies
            .entry(forward.body)
            .or_insert_with(|| Graph::of(&module.computations[forward.body]));
        let body = body.as_ref();
        let Some((_, counter)) = body.and_then(|b| stacked(b, from.number)) else {
            continue;
        };
        let pair = found.get_or_insert_with(|| Pair {
            forward,
            backward,
            stacks: FxHashMap::default(),
            counter,
        });
        if pair.counter == counter {
            pair.stacks.insert(carried, from.number);
        }
    }
    found
}

/// What a loop's body writes into its part `index`, one slice a round, and the part that counts the
/// rounds.
fn stacked(body: &Graph, index: usize) -> Option<(usize, usize)> {
    let update = &body.nodes[body.returned(index)?];
    let [into, what, round, ..] = update.operands[..] else {
        return None;
    };
    let carried = |at: usize| body.carried().into_iter().find(|c| c.0 == at).map(|c| c.1);
    let in_place = update.opcode == Opcode::DynamicUpdateSlice && carried(into) == Some(index);
    in_place.then(|| Some((what, carried(round)?))).flatten()
}

/// What is known while a pair is rewritten.
struct Work<'w> {
    pair: &'w Pair,
    forward: Graph,
    /// What the forward body gets, by position, with its index.
    got: FxHashMap<usize, usize>,
    /// Value stacked (behind reshapes) → index of its stack.
    kept: FxHashMap<usize, usize>,
    rounds: u64,
}

fn roll(module: &mut Editable, pair: &Pair, wanted: &Wanted<'_>) -> Option<Rolled> {
    let forward = Graph::of(&module.computations[pair.forward.body])?;
    let backward = Graph::of(&module.computations[pair.backward.body])?;
    let got: FxHashMap<usize, usize> = forward.carried().into_iter().collect();
    let mut kept = FxHashMap::default();
    let mut rounds = 0;
    // In order, so that of two stacks of one value it is always the same that counts.
    let mut stacks: Vec<usize> = pair.stacks.values().copied().collect();
    stacks.sort_unstable();
    for &stack in &stacks {
        let mut value = stacked(&forward, stack)?.0;
        while let (Opcode::Reshape, Some(&of)) = (
            forward.nodes[value].opcode,
            forward.nodes[value].operands.first(),
        ) {
            value = of;
        }
        kept.entry(value).or_insert(stack);
        rounds = *forward.nodes[forward.returned(stack)?].dimensions.first()?;
    }
    // Slices that the backward body takes of the stacks: where, and of what the forward body stacks.
    let parts: FxHashMap<usize, usize> = backward.carried().into_iter().collect();
    let mut slices = Vec::new();
    let mut index = None;
    for (at, n) in backward.nodes.iter().enumerate() {
        if n.opcode != Opcode::DynamicSlice {
            continue;
        }
        let carried = parts.get(n.operands.first()?);
        if let Some(&stack) = carried.and_then(|c| pair.stacks.get(c)) {
            slices.push((at, stacked(&forward, stack)?.0, stack));
            index = index.or(n.operands.get(1).copied());
        }
    }
    let in_scope = |n: &super::graph::Node| wanted.covers(&n.op_name);
    if !forward.nodes.iter().any(in_scope) || slices.is_empty() {
        return None;
    }
    let index = backward.nodes[index?].id;
    let mut work = Work {
        pair,
        forward,
        got,
        kept,
        rounds,
    };
    let needed = work.needed(slices.iter().map(|s| s.1), wanted)?;
    let replaced = |s: &&(usize, usize, usize)| needed.saved_stack(s.2, &work).is_none();
    let stacks = slices.iter().filter(replaced).count();
    if stacks == 0 {
        return None;
    }
    let (made, barrier) = work.copy(module, &needed, index)?;
    behind_barrier(module, pair, &backward, &barrier, |id| {
        let at = backward.position(id)?;
        let slice = slices.iter().find(|s| s.0 == at)?;
        needed.saved_stack(slice.2, &work).is_none().then_some(())?;
        made.get(&slice.1).copied()
    })?;
    for c in [pair.forward.within, pair.forward.body, pair.backward.body] {
        module.computations[c].sort();
    }
    Some(Rolled { rounds, stacks })
}

/// What has to be computed again, and from what.
struct Needed {
    /// Positions in the forward body, ascending.
    again: Vec<usize>,
    /// Values of the forward body that are stacked: the layer's input, and products that are kept.
    saved: Vec<usize>,
}

impl Needed {
    /// The value whose stack it is, where it stays.
    fn saved_stack(&self, stack: usize, work: &Work<'_>) -> Option<usize> {
        let saved = self.saved.iter();
        saved.copied().find(|v| work.kept.get(v) == Some(&stack))
    }
}

impl Work<'_> {
    /// Whether the loop hands part `index` on as it is.
    fn is_fixed(&self, at: usize, index: usize) -> bool {
        self.forward.returned(index) == Some(at)
    }

    fn needed(&self, values: impl Iterator<Item = usize>, wanted: &Wanted<'_>) -> Option<Needed> {
        let mut seen = vec![false; self.forward.len()];
        let mut saved: std::collections::BTreeSet<usize> = std::collections::BTreeSet::new();
        let mut open: Vec<usize> = values.collect();
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let n = &self.forward.nodes[at];
            match self.got.get(&at) {
                Some(&index) if self.is_fixed(at, index) || index == self.pair.counter => {}
                Some(_) => drop(saved.insert(at)),
                None if wanted.keeps(n.opcode) => drop(saved.insert(at)),
                None if n.opcode == Opcode::Parameter => return None,
                None => open.extend(&n.operands),
            }
        }
        let again = (0..seen.len()).filter(|at| seen[*at] && !saved.contains(at));
        let (again, saved) = (again.collect(), saved.into_iter().collect());
        Some(Needed { again, saved })
    }

    /// The stack of a value, made where there is none.
    fn stack_of(&mut self, module: &mut Editable, value: usize) -> Option<usize> {
        if let Some(&stack) = self.kept.get(&value) {
            return Some(stack);
        }
        let n = self.forward.nodes[value].clone();
        let mut dimensions = vec![self.rounds];
        dimensions.extend(&n.dimensions);
        let shape = build::array(n.element, &dimensions);
        let outer = &mut module.computations[self.pair.forward.within];
        let zero = outer.push(build::zero(n.element)?);
        let empty = outer.push(build::instruction("broadcast", shape.clone(), [zero]));
        let (index, into) = self.pair.forward.carry(module, empty, shape.clone())?;
        let counter = self.pair.counter;
        let round = self.got.iter().find(|(_, &i)| i == counter)?;
        let round = &self.forward.nodes[*round.0];
        dimensions[0] = 1;
        let body = &mut module.computations[self.pair.forward.body];
        let slice = build::array(n.element, &dimensions);
        let slice = body.push(build::instruction("reshape", slice, [n.id]));
        let first = body.push(build::zero(round.element)?);
        let place = [into, slice, round.id].into_iter();
        let place = place.chain(vec![first; n.dimensions.len()]);
        let update = build::instruction("dynamic-update-slice", shape, place);
        let update = body.push(update);
        self.pair.forward.give(module, index, update)?;
        module.computations[self.pair.forward.body].sort();
        self.kept.insert(value, index);
        Some(index)
    }

    /// Copies what is needed into the backward body. Ids of the copies by position in the forward
    /// body, and those that go through the barrier.
    fn copy(
        &mut self,
        module: &mut Editable,
        needed: &Needed,
        index: u64,
    ) -> Option<(FxHashMap<usize, u64>, Vec<u64>)> {
        let mut made: FxHashMap<usize, u64> = FxHashMap::default();
        let mut barrier = Vec::new();
        for &value in &needed.saved {
            let stack = self.stack_of(module, value)?;
            let id = self.saved_in_backward(module, stack, value, index)?;
            made.insert(value, id);
            barrier.push(id);
        }
        let starts = self.pair.forward.start(module)?;
        for &at in &needed.again {
            let Some(&part) = self.got.get(&at) else {
                continue;
            };
            if made.contains_key(&at) {
                continue;
            }
            let id = match part == self.pair.counter {
                true => index,
                false => self.fixed_in_backward(module, *starts.get(part)?)?,
            };
            made.insert(at, id);
        }
        let body = &module.computations[self.pair.forward.body];
        let originals: FxHashMap<u64, Record> = body
            .instructions
            .iter()
            .map(|i| (i.number(hlo_instruction::ID), i.clone()))
            .collect();
        for &at in &needed.again {
            if made.contains_key(&at) {
                continue;
            }
            let n = &self.forward.nodes[at];
            let mut copy = originals.get(&n.id)?.clone();
            let operands = n.operands.iter().map(|o| made.get(o).copied());
            let operands: Vec<u64> = operands.collect::<Option<_>>()?;
            copy.set_numbers(hlo_instruction::OPERAND_IDS, operands);
            copy.remove(hlo_instruction::CONTROL_PREDECESSOR_IDS);
            let id = module.computations[self.pair.backward.body].push(copy);
            made.insert(at, id);
            let is_slice = |at: usize| self.is_slice_of_fixed(at);
            let users = n.users.iter();
            let mut users = users.filter(|u| needed.again.binary_search(u).is_ok());
            if is_slice(at) && users.any(|&u| !is_slice(u)) {
                barrier.push(id);
            }
        }
        Some((made, barrier))
    }

    /// A round's slice of a stack in the backward body.
    fn saved_in_backward(
        &self,
        module: &mut Editable,
        stack: usize,
        value: usize,
        index: u64,
    ) -> Option<u64> {
        let n = &self.forward.nodes[value];
        let mut dimensions = vec![self.rounds];
        dimensions.extend(&n.dimensions);
        let shape = build::array(n.element, &dimensions);
        let known = self.pair.stacks.iter().find(|(_, &s)| s == stack);
        let carried = match known {
            Some((&part, _)) => {
                let body = Graph::of(&module.computations[self.pair.backward.body])?;
                let part = body.carried().into_iter().find(|c| c.1 == part)?;
                body.nodes[part.0].id
            }
            None => {
                let outer = &mut module.computations[self.pair.forward.within];
                let given = build::part(self.pair.forward.id, stack, shape.clone());
                let given = outer.push(given);
                self.pair.backward.carry(module, given, shape)?.1
            }
        };
        let body = &mut module.computations[self.pair.backward.body];
        let at = body.position(index)?;
        let element = Graph::of(body)?.nodes.get(at)?.element;
        let first = body.push(build::zero(element)?);
        dimensions[0] = 1;
        let slice = build::array(n.element, &dimensions);
        let slice = body.push(build::slice(carried, index, first, &dimensions, slice));
        let shape = build::array(n.element, &n.dimensions);
        Some(body.push(build::instruction("reshape", shape, [slice])))
    }

    /// What both loops get and do not change.
    fn fixed_in_backward(&self, module: &mut Editable, start: u64) -> Option<u64> {
        let body = Graph::of(&module.computations[self.pair.backward.body])?;
        let starts = self.pair.backward.start(module)?;
        for (at, part) in body.carried() {
            if starts.get(part) == Some(&start) && body.returned(part) == Some(at) {
                return Some(body.nodes[at].id);
            }
        }
        let outer = &module.computations[self.pair.forward.within];
        let of = &outer.instructions[outer.position(start)?];
        let shape = of.bytes(hlo_instruction::SHAPE).to_vec();
        Some(self.pair.backward.carry(module, start, shape)?.1)
    }

    /// Whether it is a layer's part of what the loop does not change: a weight.
    fn is_slice_of_fixed(&self, at: usize) -> bool {
        let mut n = &self.forward.nodes[at];
        while let (Opcode::Reshape, Some(&of)) = (n.opcode, n.operands.first()) {
            n = &self.forward.nodes[of];
        }
        let of = n.operands.first().copied();
        let fixed = |of: usize| {
            let part = self.got.get(&of);
            part.is_some_and(|&index| self.is_fixed(of, index))
        };
        n.opcode == Opcode::DynamicSlice && of.is_some_and(fixed)
    }
}

/// Puts what is computed again behind a barrier that waits for the gradients too, as JAX does: not
/// before the backward pass comes to it. `instead` has what stands for a slice of a stack.
fn behind_barrier(
    module: &mut Editable,
    pair: &Pair,
    backward: &Graph,
    barrier: &[u64],
    instead: impl Fn(u64) -> Option<u64>,
) -> Option<()> {
    let mut through = barrier.to_vec();
    for (at, part) in backward.carried() {
        let n = &backward.nodes[at];
        let next = &backward.nodes[backward.returned(part)?];
        let sums = next.opcode == Opcode::Add && next.operands.contains(&at);
        let updates = next.opcode == Opcode::DynamicUpdateSlice;
        if next.id != n.id && n.element.is_float() && !sums && !updates {
            through.push(n.id);
        }
    }
    let body = &mut module.computations[pair.backward.body];
    let mut shapes = Vec::new();
    for &id in &through {
        let i = &body.instructions[body.position(id)?];
        shapes.push(i.bytes(hlo_instruction::SHAPE).to_vec());
    }
    let before: Vec<u64> = body
        .instructions
        .iter()
        .map(|i| i.number(hlo_instruction::ID))
        .collect();
    let fresh = build::barrier(body, &through, &shapes);
    let fresh: FxHashMap<u64, u64> = through.iter().copied().zip(fresh).collect();
    for (i, id) in body.instructions.iter_mut().zip(&before) {
        let own = fresh.contains_key(id);
        let mut operands = i.numbers(hlo_instruction::OPERAND_IDS);
        let old = operands.clone();
        for operand in &mut operands {
            if let Some(new) = instead(*operand) {
                *operand = new;
            }
            if let Some(&new) = fresh.get(operand).filter(|_| !own) {
                *operand = new;
            }
        }
        if operands != old {
            i.set_numbers(hlo_instruction::OPERAND_IDS, operands);
        }
    }
    Some(())
}

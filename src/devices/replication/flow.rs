//! Instructions → edges of the graph: what each opcode's result is made from. An opcode that is
//! not known to be a pure function of its operands makes something of its own on every device.

use super::graph::{Builder, Nodes};
use crate::hlo::{ComputationId, InstructionId, Opcode};

impl Builder<'_, '_> {
    /// Adds all edges of the module.
    pub(crate) fn connect(&mut self) {
        for i in self.module.ids() {
            self.instruction(i);
        }
        self.graph.collect_outlets(self.module);
    }

    fn instruction(&mut self, i: InstructionId) {
        let module = self.module;
        let inst = module.instruction(i);
        let operands = module.operands(i);
        let called = module.called(i);
        match inst.opcode {
            Opcode::Parameter | Opcode::Constant | Opcode::Iota => {}
            Opcode::PartitionId | Opcode::ReplicaId => {} // seeded by number, see `known`
            Opcode::Tuple => self.tuple(i),
            Opcode::GetTupleElement => {
                let to = self.graph.nodes(i);
                let from = operands
                    .first()
                    .and_then(|&o| self.graph.element(o, inst.tuple_index));
                self.copy_or_own(from, to);
            }
            Opcode::OptBarrier
            | Opcode::OptBarrier
            | Opcode::Copy
            | Opcode::AddDependency
            | Opcode::Domain
                if !operands.is_empty() =>
            {
                let from = operands.first().map(|&o| self.graph.nodes(o));
                self.copy_or_own(from, self.graph.nodes(i));
            }
            Opcode::Fusion | Opcode::Call => match called {
                [c] => self.run(i, *c),
                _ => self.unknown(i),
            },
            Opcode::While => self.while_loop(i),
            Opcode::Conditional => self.conditional(i),
            Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone => self.asynchronous(i),
            Opcode::CustomCall => self.custom_call(i),
            op if op.is_collective() => self.collective(i),
            Opcode::AllGatherDone => self.done_of_pair(i, true),
            Opcode::AllReduceDone => self.done_of_pair(i, false),
            Opcode::CollectivePermuteDone => self.done_of_pair(i, true),
            op if op.is_pure() && !called.iter().any(|&c| self.computations.varies(c)) => {
                self.graph.generic(module, i);
            }
            _ => self.unknown(i),
        }
    }

    /// Every device its own.
    pub(crate) fn unknown(&mut self, i: InstructionId) {
        self.graph.seed_all(self.graph.nodes(i), self.own);
    }

    /// The result is what a computation makes of the operands.
    pub(crate) fn run(&mut self, i: InstructionId, c: ComputationId) {
        self.pass(self.module.operands(i), c);
        self.enter(i, c);
        let root = self.module.computation(c).root;
        self.copy_or_own(root.map(|r| self.graph.nodes(r)), self.graph.nodes(i));
    }

    fn copy_or_own(&mut self, from: Option<Nodes>, to: Nodes) {
        match from {
            Some(from) => self.graph.copy(from, to, self.own),
            None => self.graph.seed_all(to, self.own),
        }
    }

    fn tuple(&mut self, i: InstructionId) {
        let operands = self.module.operands(i);
        if self.graph.element_offsets(i).len() != operands.len() + 1 {
            return self.unknown(i);
        }
        for (k, &o) in operands.iter().enumerate() {
            let Some(to) = self.graph.element(i, k as u32) else {
                continue;
            };
            self.graph.copy(self.graph.nodes(o), to, self.own);
        }
    }

    /// Arguments → parameters. Parameters that get none are unknown.
    fn pass(&mut self, arguments: &[InstructionId], c: ComputationId) {
        if let Some(r) = self.reached.get_mut(c.index()) {
            *r = true;
        }
        let module = self.module;
        for &parameter in module.parameters(c) {
            let number = module.instruction(parameter).parameter_number;
            match arguments.get(number as usize) {
                Some(&a) => self.graph.bind(a, parameter, self.own),
                None => self.graph.seed_all(self.graph.nodes(parameter), self.own),
            }
        }
    }

    /// Devices that run the caller run the callee.
    fn enter(&mut self, i: InstructionId, c: ComputationId) {
        let from = self.graph.control(self.module.instruction(i).computation);
        let to = self.graph.control(c);
        self.graph.edge(from, to);
    }

    /// Lists body and condition. Devices that leave the loop at different turns hold different
    /// data, so the condition's classes count as well.
    fn while_loop(&mut self, i: InstructionId) {
        let module = self.module;
        let (&[body, condition], &[init]) = (module.called(i), module.operands(i)) else {
            return self.unknown(i);
        };
        let (Some(body_root), Some(condition_root)) = (
            module.computation(body).root,
            module.computation(condition).root,
        ) else {
            return self.unknown(i);
        };
        for c in [body, condition] {
            self.pass(&[init], c);
            self.pass(&[body_root], c);
            self.enter(i, c);
            let (from, to) = (self.graph.outlet(condition_root), self.graph.control(c));
            self.graph.edge(from, to);
        }
        let to = self.graph.nodes(i);
        self.graph.copy(self.graph.nodes(init), to, self.own);
        self.graph.copy(self.graph.nodes(body_root), to, self.own);
        let (from, inlet) = (self.graph.outlet(condition_root), self.graph.inlet(i));
        self.graph.edge(from, inlet);
        self.graph.spread(i);
    }

    fn conditional(&mut self, i: InstructionId) {
        let module = self.module;
        let (called, operands) = (module.called(i), module.operands(i));
        let Some((&predicate, arguments)) = operands.split_first() else {
            return self.unknown(i);
        };
        if called.is_empty() || called.len() != arguments.len() {
            return self.unknown(i);
        }
        let to = self.graph.nodes(i);
        let chosen_by = self.graph.outlet(predicate);
        for (&c, &a) in called.iter().zip(arguments) {
            self.pass(&[a], c);
            self.enter(i, c);
            let control = self.graph.control(c);
            self.graph.edge(chosen_by, control);
            let root = module.computation(c).root.map(|r| self.graph.nodes(r));
            self.copy_or_own(root, to);
        }
        let inlet = self.graph.inlet(i);
        self.graph.edge(chosen_by, inlet);
        self.graph.spread(i);
    }

    /// `async-start`: `((operands), result, context...)`, the operation in a computation of its
    /// own; `async-done`: the result. Compilers also start with nothing and pass the operands in
    /// an update.
    fn asynchronous(&mut self, i: InstructionId) {
        let module = self.module;
        let operands = module.operands(i);
        let is_start = module.instruction(i).opcode == Opcode::AsyncStart;
        let named = module.called(i).first().copied();
        let c = match operands.first() {
            Some(o) if !is_start => named.or_else(|| self.async_of.get(o).copied()),
            _ => named,
        };
        let Some(c) = c else {
            return self.unknown(i);
        };
        self.async_of.insert(i, c);
        let arguments = if is_start {
            operands
        } else {
            operands.get(1..).unwrap_or_default()
        };
        let wanted = module.parameters(c).len();
        if (is_start && arguments.len() == wanted) || !arguments.is_empty() {
            self.pass(arguments, c);
        }
        self.enter(i, c);
        let root = module.computation(c).root.map(|r| self.graph.nodes(r));
        let to = self.graph.nodes(i);
        if module.instruction(i).opcode == Opcode::AsyncDone {
            return self.copy_or_own(root, to);
        }
        // Contexts, and whatever does not fit, are unknown; operands and result are not.
        let ends = self.graph.element_offsets(i).to_vec();
        for k in 0..ends.len().saturating_sub(1) {
            let Some(to) = self.graph.element(i, k as u32) else {
                continue;
            };
            let result = root.filter(|r| k == 1 && r.count == to.count);
            match result {
                Some(r) => self.graph.copy(r, to, self.own),
                None if k == 0 => self.operand_leaves(arguments, to),
                None => self.graph.seed_all(to, self.own),
            }
        }
        if ends.is_empty() {
            self.unknown(i);
        }
    }

    /// Leaves of all operands in order.
    fn operand_leaves(&mut self, operands: &[InstructionId], to: Nodes) {
        let total = operands
            .iter()
            .fold(0u32, |n, &o| n.saturating_add(self.graph.nodes(o).count));
        if total != to.count {
            return self.graph.seed_all(to, self.own);
        }
        let mut at = 0;
        for &o in operands {
            let from = self.graph.nodes(o);
            if let Some(part) = to.part(at, at + from.count) {
                self.graph.copy(from, part, self.own);
            }
            at += from.count;
        }
    }

    /// A collective, or the start of one. Starts also hand out their operands; what they hold
    /// beside operands and results is bookkeeping.
    fn collective(&mut self, i: InstructionId) {
        let inst = *self.module.instruction(i);
        let operands = self.module.operands(i);
        let op = inst.opcode.synchronous();
        let is_start = inst.opcode.is_start();
        let t = self.transforms.of(op, &inst);
        let all = self.graph.nodes(i);
        let n = operands.len() as u32;
        let hands_out_operands = is_start && op != Opcode::AllReduce;
        let to = if hands_out_operands {
            all.part(n, n.saturating_mul(2))
        } else {
            all.part(0, n).filter(|_| all.count == n)
        };
        let arrays = operands.iter().all(|&o| self.graph.nodes(o).count == 1);
        // Permutes with more operands write into a buffer that is given too.
        let plain = op != Opcode::CollectivePermute || n == 1;
        match to {
            Some(to) if arrays && plain && n > 0 && !(op == Opcode::AllToAll && n > 1) => {
                self.unknown(i);
                if hands_out_operands {
                    if let Some(part) = all.part(0, n) {
                        self.graph
                            .seed_all(part, super::classes::DeviceClassesId::ONE);
                        self.operand_leaves(operands, part);
                    }
                }
                self.graph
                    .seed_all(to, super::classes::DeviceClassesId::ONE);
                for (k, &o) in operands.iter().enumerate() {
                    let (from, to) = (self.graph.outlet(o), to.from + k as u32);
                    self.graph.edge(from, to);
                    self.graph.set_transform(to, t);
                }
            }
            // One result a group member, each made from a part of every operand.
            Some(_) if op == Opcode::AllToAll && !is_start && arrays && n > 1 => {
                let inlet = self.graph.inlet(i);
                for &o in operands {
                    let from = self.graph.outlet(o);
                    self.graph.edge(from, inlet);
                }
                self.graph.spread(i);
                for k in 0..all.count {
                    self.graph.set_transform(all.from + k, t);
                }
            }
            _ => self.unknown(i),
        }
    }

    /// The end of a pair whose start hands out operands and results, or results alone.
    fn done_of_pair(&mut self, i: InstructionId, operands_too: bool) {
        let to = self.graph.nodes(i);
        let from = self.module.operands(i).first().and_then(|&start| {
            let all = self.graph.nodes(start);
            let inputs = self.module.operands(start).len() as u32;
            match operands_too {
                true => all.part(inputs, inputs.checked_add(to.count)?),
                false => Some(all),
            }
        });
        self.copy_or_own(from, to);
    }
}

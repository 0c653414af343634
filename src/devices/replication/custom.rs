//! Custom calls: the compilers' own are pure functions of their operands, or known by name;
//! callbacks and calls with side effects may give each device something else.

use super::graph::Builder;
use crate::hlo::decode::decode_sharding;
use crate::hlo::decode::schema::hlo_instruction;
use crate::hlo::decode::wire::{bytes_of, fields, Value};
use crate::hlo::{ComputationId, InstructionId};

/// Words in targets whose results come from elsewhere than the operands.
const ELSEWHERE: [&str; 14] = [
    "callback",
    "host",
    "infeed",
    "recv",
    "rng",
    "random",
    "nccl",
    "nvshmem",
    "collective",
    "partitionid",
    "replicaid",
    "device_id",
    "axis_index",
    "alltoall",
];

impl Builder<'_, '_> {
    pub(crate) fn custom_call(&mut self, i: InstructionId) {
        let module = self.module;
        let inst = module.instruction(i);
        let target = inst.custom_call_target();
        match target {
            "AsyncCollectiveStart" => return self.async_collective(i, true),
            "AsyncCollectiveDone" => return self.async_collective(i, false),
            "SPMDShardToFullShape" => {
                let labels = inst
                    .sharding()
                    .and_then(|b| decode_sharding(b).ok())
                    .and_then(|s| s.data_labels(self.partitions()));
                return match labels {
                    Some(l) => {
                        let id = self.of_partition_labels(&l);
                        self.graph.seed_all(self.graph.nodes(i), id);
                    }
                    None => self.unknown(i),
                };
            }
            _ => {}
        }
        // The compiler's own way of running a computation elsewhere on the chip.
        let runs = match module.called(i) {
            [c] => Some(*c).filter(|&c| self.matches(i, c)),
            _ => None,
        };
        let lower = target.to_ascii_lowercase();
        let pure = target == "AllocateBuffer"
            || !(module.operands(i).is_empty()
                || target == "SPMDFullToShardShape"
                || ELSEWHERE.iter().any(|w| lower.contains(w))
                || (runs.is_none()
                    && module
                        .called(i)
                        .iter()
                        .any(|&c| self.computations.varies(c)))
                || (has_side_effect(inst.raw) && target != "annotate_device_placement")
                || communicates(inst.raw));
        if pure {
            self.graph.generic(module, i);
            if let Some(c) = runs {
                self.run(i, c);
            }
        } else {
            self.unknown(i);
        }
    }

    /// Whether a computation takes the operands and makes the result, by their shapes.
    fn matches(&self, i: InstructionId, c: ComputationId) -> bool {
        let module = self.module;
        let parameters = module.parameters(c);
        let operands = module.operands(i);
        let same = |a: InstructionId, b: InstructionId| {
            let (a, b) = (module.shape(a), module.shape(b));
            a.element_type == b.element_type && a.dimensions == b.dimensions && !a.is_tuple()
        };
        parameters.len() == operands.len()
            && operands
                .iter()
                .zip(parameters)
                .enumerate()
                .all(|(k, (&o, &p))| {
                    module.instruction(p).parameter_number == k as u32 && same(o, p)
                })
            && module.computation(c).root.is_some_and(|r| same(i, r))
    }

    /// A collective in flight inside a fusion: the collective is an operand, and the start's
    /// leaves are its operand, its result and flags; the end's result is the collective's.
    fn async_collective(&mut self, i: InstructionId, is_start: bool) {
        let module = self.module;
        let collectives: Vec<InstructionId> = module
            .operands(i)
            .iter()
            .copied()
            .filter(|&o| module.instruction(o).opcode.is_collective())
            .collect();
        let [collective] = collectives[..] else {
            return self.unknown(i);
        };
        let inputs = module.operands(collective);
        let same = |a: &crate::hlo::Shape, b: InstructionId| {
            let b = module.shape(b);
            a.element_type == b.element_type && a.dimensions == b.dimensions && !b.is_tuple()
        };
        let shape = module.shape(i);
        let mut leaves = Vec::new();
        shape.for_each_leaf(&mut |_, leaf| leaves.push(leaf.clone()));
        let to = self.graph.nodes(i);
        if leaves.len() as u64 != u64::from(to.count) {
            return self.unknown(i);
        }
        for (k, leaf) in leaves.iter().enumerate() {
            let to = to.from + k as u32;
            let mut known = false;
            if same(leaf, collective) {
                let from = self.graph.outlet(collective);
                self.graph.edge(from, to);
                known = true;
            }
            if let (true, [input]) = (is_start, inputs) {
                if same(leaf, *input) {
                    let from = self.graph.outlet(*input);
                    self.graph.edge(from, to);
                    known = true;
                }
            }
            if !known {
                self.graph.seed_one(to, self.own, &mut self.classes);
            }
        }
    }
}

fn has_side_effect(raw: &[u8]) -> bool {
    fields(raw).filter_map(Result::ok).any(
        |f| matches!(f, (hlo_instruction::CUSTOM_CALL_HAS_SIDE_EFFECT, Value::Varint(v)) if v != 0),
    )
}

/// Whether a kernel's configuration says that it talks to other devices.
fn communicates(raw: &[u8]) -> bool {
    let config = bytes_of(raw, hlo_instruction::BACKEND_CONFIG).unwrap_or_default();
    let has = |word: &[u8]| config.windows(word.len()).any(|w| w == word);
    has(b"\"has_communication\":true")
        || has(b"\"has_communication\": true")
        || has(b"\"collective_id\"")
}

//! Small programs made in memory, for tests: every array is `f32[1024]` of 4096 bytes.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::HashMap;

use prost::Message;
use xpeak_protos::hlo::*;

/// Bytes of every array.
pub const SIZE: i64 = 4096;

/// A program being built.
#[derive(Default)]
pub struct Build {
    proto: HloProto,
    ids: HashMap<String, i64>,
    computations: HashMap<String, i64>,
    next_allocation: i64,
}

/// One instruction: name, opcode, operands. `calls` names computations; `p0` and `gte.2` style
/// opcodes carry a number after a dot: `parameter.0`, `get-tuple-element.1`.
pub type Line<'a> = (&'a str, &'a str, &'a [&'a str]);

impl Build {
    /// Adds a computation; the last instruction is its root. Of a `while` or `fusion`, the last
    /// operands that start with `@` are called computations.
    pub fn computation(mut self, name: &str, lines: &[Line<'_>]) -> Self {
        let module = self.proto.hlo_module.get_or_insert_default();
        let cid = 1000 + module.computations.len() as i64;
        let mut c = HloComputationProto {
            name: name.into(),
            id: cid,
            is_fusion_computation: name.starts_with("fused"),
            ..Default::default()
        };
        for (n, opcode, operands) in lines {
            let id = 1 + self.ids.len() as i64;
            self.ids.insert((*n).to_owned(), id);
            let (opcode, number) = match opcode.split_once('.') {
                Some((o, k)) => (o, k.parse().unwrap()),
                None => (*opcode, 0),
            };
            let is_tuple = opcode == "tuple" || opcode == "while" || n.starts_with("tuple");
            let leaf = ShapeProto {
                element_type: 11,
                dimensions: vec![1024],
                layout: Some(LayoutProto {
                    minor_to_major: vec![0],
                    ..Default::default()
                }),
                ..Default::default()
            };
            let shape = if is_tuple {
                ShapeProto {
                    element_type: 13,
                    tuple_shapes: vec![leaf; 2],
                    ..Default::default()
                }
            } else {
                leaf
            };
            c.instructions.push(HloInstructionProto {
                name: (*n).into(),
                opcode: opcode.into(),
                shape: Some(shape),
                id,
                parameter_number: number,
                tuple_index: number,
                operand_ids: operands
                    .iter()
                    .filter(|o| !o.starts_with('@'))
                    .map(|o| self.ids[*o])
                    .collect(),
                called_computation_ids: operands
                    .iter()
                    .filter_map(|o| o.strip_prefix('@'))
                    .map(|o| self.computations[o])
                    .collect(),
                ..Default::default()
            });
            c.root_id = id;
        }
        self.computations.insert(name.to_owned(), cid);
        module.entry_computation_id = cid;
        module.computations.push(c);
        self
    }

    /// Makes an instruction a call of a computation added after it.
    pub fn circle(mut self, name: &str, computation: &str) -> Self {
        let (id, called) = (self.ids[name], self.computations[computation]);
        let module = self.proto.hlo_module.get_or_insert_default();
        let instructions = module
            .computations
            .iter_mut()
            .flat_map(|c| &mut c.instructions);
        for i in instructions.filter(|i| i.id == id) {
            i.opcode = "call".into();
            i.called_computation_ids = vec![called];
        }
        self
    }

    fn place(&mut self, names: &[(&str, &[i64])], mut allocation: BufferAllocationProto) {
        let assignment = self.proto.buffer_assignment.get_or_insert_default();
        allocation.index = self.next_allocation;
        allocation.size = SIZE;
        self.next_allocation += 1;
        for (name, index) in names {
            let id = assignment.logical_buffers.len() as i64;
            assignment.logical_buffers.push(LogicalBufferProto {
                id,
                size: SIZE,
                defined_at: Some(logical_buffer_proto::Location {
                    instruction_id: self.ids[*name],
                    shape_index: index.to_vec(),
                    ..Default::default()
                }),
                ..Default::default()
            });
            allocation.assigned.push(buffer_allocation_proto::Assigned {
                logical_buffer_id: id,
                offset: 0,
                size: SIZE,
            });
        }
        assignment.buffer_allocations.push(allocation);
    }

    /// Gives entry parameter `number`, instruction `name`, memory of its own.
    pub fn argument(mut self, name: &str, number: i64) -> Self {
        let allocation = BufferAllocationProto {
            is_entry_computation_parameter: true,
            parameter_number: number,
            ..Default::default()
        };
        self.place(&[(name, &[])], allocation);
        self
    }

    /// Gives an output memory of its own, in which these values are placed.
    pub fn output(mut self, names: &[(&str, &[i64])]) -> Self {
        let allocation = BufferAllocationProto {
            maybe_live_out: true,
            ..Default::default()
        };
        self.place(names, allocation);
        self
    }

    /// The serialized program.
    pub fn bytes(self) -> Vec<u8> {
        self.proto.encode_to_vec()
    }
}

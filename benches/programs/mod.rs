//! Programs of any size for benchmarks.
#![allow(dead_code, clippy::unwrap_used)]

use prost::Message;
use xpeak_protos::hlo::{
    buffer_allocation_proto, heap_simulator_trace, logical_buffer_proto, BufferAllocationProto,
    BufferAssignmentProto, HeapSimulatorTrace, HloComputationProto, HloInstructionProto,
    HloModuleProto, HloProto, LayoutProto, LogicalBufferProto, OpMetadata, ShapeProto,
};

const WIDTH: i64 = 256;
const BYTES: i64 = 4 * WIDTH * WIDTH;

/// A training step in the making: instructions in program order, buffers, memory.
#[derive(Default)]
struct Step {
    instructions: Vec<HloInstructionProto>,
    assignment: BufferAssignmentProto,
    arena: Vec<(i64, usize, usize)>,
    results: Vec<i64>,
}

impl Step {
    fn add(&mut self, opcode: &str, op_name: &str, operands: &[i64]) -> i64 {
        let id = self.instructions.len() as i64 + 1;
        self.instructions.push(HloInstructionProto {
            name: format!("{opcode}.{id}").into_bytes(),
            opcode: opcode.into(),
            shape: Some(ShapeProto {
                element_type: 11,
                dimensions: vec![WIDTH, WIDTH],
                layout: Some(LayoutProto {
                    minor_to_major: vec![1, 0],
                    ..Default::default()
                }),
                ..Default::default()
            }),
            metadata: Some(OpMetadata {
                op_name: op_name.into(),
                ..Default::default()
            }),
            id,
            operand_ids: operands.to_vec(),
            ..Default::default()
        });
        self.assignment.logical_buffers.push(LogicalBufferProto {
            id,
            size: BYTES,
            defined_at: Some(logical_buffer_proto::Location {
                instruction_id: id,
                ..Default::default()
            }),
            ..Default::default()
        });
        id
    }

    fn allocate(&mut self, id: i64, parameter: Option<i64>) {
        let index = self.assignment.buffer_allocations.len() as i64 + 1;
        self.assignment
            .buffer_allocations
            .push(BufferAllocationProto {
                index,
                size: BYTES,
                is_entry_computation_parameter: parameter.is_some(),
                parameter_number: parameter.unwrap_or(0),
                maybe_live_out: parameter.is_none(),
                assigned: vec![buffer_allocation_proto::Assigned {
                    logical_buffer_id: id,
                    offset: 0,
                    size: BYTES,
                }],
                ..Default::default()
            });
    }

    fn argument(&mut self, number: i64, name: &str) -> i64 {
        let id = self.add("parameter", name, &[]);
        self.instructions.last_mut().unwrap().parameter_number = number;
        self.allocate(id, Some(number));
        id
    }

    /// A temporary, alive until `last` more instructions have run.
    fn temporary(&mut self, opcode: &str, op_name: &str, operands: &[i64], last: usize) -> i64 {
        let id = self.add(opcode, op_name, operands);
        let at = self.instructions.len();
        self.arena.push((id, at, at + last));
        id
    }

    fn result(&mut self, opcode: &str, op_name: &str, operands: &[i64]) {
        let id = self.add(opcode, op_name, operands);
        self.allocate(id, None);
        self.results.push(id);
    }

    fn finish(mut self) -> Vec<u8> {
        let results = std::mem::take(&mut self.results);
        let leaf = self.instructions[0].shape.clone().unwrap();
        let root = self.instructions.len() as i64 + 1;
        self.instructions.push(HloInstructionProto {
            name: b"tuple".to_vec(),
            opcode: b"tuple".to_vec(),
            shape: Some(ShapeProto {
                element_type: 13,
                tuple_shapes: vec![leaf; results.len()],
                ..Default::default()
            }),
            id: root,
            operand_ids: results,
            ..Default::default()
        });
        let mut events: Vec<(usize, i32, i64)> = Vec::new();
        for &(id, from, to) in &self.arena {
            events.push((from, 0, id));
            events.push((to.min(root as usize), 1, id));
        }
        events.sort_by_key(|e| (e.0, -e.1, e.2));
        let name = |id: i64| self.instructions[id as usize - 1].name.clone();
        let trace = HeapSimulatorTrace {
            events: events
                .iter()
                .map(|&(_, kind, id)| heap_simulator_trace::Event {
                    kind,
                    buffer_id: id,
                    instruction_name: name(id),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let (mut live, mut peak) = (0i64, 0i64);
        for e in &events {
            live += if e.1 == 0 { BYTES } else { -BYTES };
            peak = peak.max(live);
        }
        self.assignment.heap_simulator_traces.push(trace);
        let assigned = self
            .arena
            .iter()
            .map(|&(id, ..)| buffer_allocation_proto::Assigned {
                logical_buffer_id: id,
                offset: 0,
                size: BYTES,
            })
            .collect();
        self.assignment
            .buffer_allocations
            .push(BufferAllocationProto {
                index: 0,
                size: peak,
                assigned,
                ..Default::default()
            });
        HloProto {
            hlo_module: Some(HloModuleProto {
                name: b"jit_train_step".to_vec(),
                entry_computation_name: b"main".to_vec(),
                entry_computation_id: 1,
                computations: vec![HloComputationProto {
                    name: b"main".to_vec(),
                    id: 1,
                    root_id: root,
                    instructions: self.instructions,
                    ..Default::default()
                }],
                ..Default::default()
            }),
            buffer_assignment: Some(self.assignment),
        }
        .encode_to_vec()
    }
}

/// A training step of layers written out, with Adam: about `arguments` of them, three a layer, and
/// about `instructions` in all; nothing is donated.
pub fn training_step(arguments: usize, instructions: usize) -> Vec<u8> {
    let layers = (arguments / 3).max(1);
    let depth = (instructions / layers).saturating_sub(9).max(2);
    let mut s = Step::default();
    let state: Vec<[i64; 3]> = (0..layers as i64)
        .map(|l| {
            let name = |tree: &str| format!("{tree}['layer_{l}']['w']");
            let n = 3 * l;
            [
                s.argument(n, &name("params")),
                s.argument(n + 1, &name("opt_state[0].mu")),
                s.argument(n + 2, &name("opt_state[0].nu")),
            ]
        })
        .collect();
    let mut x = s.argument(3 * layers as i64, "x");
    let mut saved = Vec::new();
    for (l, [w, ..]) in state.iter().enumerate() {
        let name = |op: &str| format!("jit(train_step)/jvp(Model)/layer_{l}/{op}");
        let back = depth * (layers - l) + 9;
        let h = s.temporary("dot", &name("dot_general"), &[x, *w], back);
        saved.push((x, h));
        x = h;
        for k in 0..depth / 2 {
            x = s.temporary("tanh", &name(&format!("tanh_{k}")), &[x], 2);
        }
    }
    let mut g = x;
    for (l, [w, mu, nu]) in state.iter().enumerate().rev() {
        let name = |op: &str| format!("jit(train_step)/transpose(jvp(Model))/layer_{l}/{op}");
        let (input, h) = saved[l];
        for k in 0..depth / 2 {
            g = s.temporary("multiply", &name(&format!("mul_{k}")), &[g, h], 2);
        }
        let dw = s.temporary("dot", &name("dot_general"), &[input, g], 6);
        g = s.temporary("dot", &name("dot_general"), &[g, *w], 8);
        let update = |op: &str| format!("jit(train_step)/{op}");
        s.result("add", &update("mu"), &[*mu, dw]);
        s.result("multiply", &update("nu"), &[*nu, dw]);
        s.result("subtract", &update("sub"), &[*w, dw]);
    }
    s.finish()
}

//! Modules in the making, for tests of who holds the same data.
#![allow(dead_code, clippy::unwrap_used)]

use prost::Message;
use xpeak::devices::{meshes_of, Replication};
use xpeak::hlo::Program;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak_protos::hlo::{
    DeviceAssignmentProto, HloComputationProto, HloInstructionProto, HloModuleProto, HloProto,
    OpSharding, ReplicaGroup, ShapeProto,
};

/// A module in the making. Values are instruction ids.
pub struct Builder {
    pub module: HloModuleProto,
    /// Computations being written, innermost last.
    open: Vec<HloComputationProto>,
    pub shapes: Vec<ShapeProto>,
}

pub fn array(dims: &[i64]) -> ShapeProto {
    ShapeProto {
        element_type: 11,
        dimensions: dims.to_vec(),
        ..Default::default()
    }
}

pub fn integer() -> ShapeProto {
    ShapeProto {
        element_type: 4,
        ..Default::default()
    }
}

pub fn tuple_of(elements: Vec<ShapeProto>) -> ShapeProto {
    ShapeProto {
        element_type: 13,
        tuple_shapes: elements,
        ..Default::default()
    }
}

impl Builder {
    /// With one entry parameter for each sharding.
    pub fn new(replicas: i32, partitions: i32, shardings: Vec<OpSharding>) -> Self {
        let mut b = Builder {
            module: HloModuleProto {
                name: b"m".to_vec(),
                spmd_parameters_shardings: shardings.clone(),
                device_assignment: Some(DeviceAssignmentProto {
                    replica_count: replicas,
                    computation_count: partitions,
                    ..Default::default()
                }),
                ..Default::default()
            },
            open: Vec::new(),
            shapes: vec![ShapeProto::default()],
        };
        b.begin();
        for n in 0..shardings.len() {
            b.parameter(n as i64, array(&[8]));
        }
        b
    }

    pub fn begin(&mut self) {
        self.open.push(HloComputationProto::default());
    }

    /// Ends the innermost computation; returns its id.
    pub fn end(&mut self, root: i64) -> i64 {
        let mut c = self.open.pop().unwrap();
        c.root_id = root;
        c.id = 100_000 + self.module.computations.len() as i64;
        let id = c.id;
        self.module.computations.push(c);
        id
    }

    pub fn add(&mut self, mut i: HloInstructionProto, shape: ShapeProto) -> i64 {
        let id = self.shapes.len() as i64;
        i.id = id;
        i.name = format!("i{id}").into_bytes();
        i.shape = Some(shape.clone());
        self.shapes.push(shape);
        self.open.last_mut().unwrap().instructions.push(i);
        id
    }

    pub fn parameter(&mut self, number: i64, shape: ShapeProto) -> i64 {
        let i = HloInstructionProto {
            opcode: b"parameter".to_vec(),
            parameter_number: number,
            ..Default::default()
        };
        self.add(i, shape)
    }

    pub fn op(&mut self, opcode: &str, operands: &[i64]) -> i64 {
        self.op_of(opcode, operands, array(&[8]))
    }

    pub fn op_of(&mut self, opcode: &str, operands: &[i64], shape: ShapeProto) -> i64 {
        self.with(opcode, operands, shape, |_| {})
    }

    pub fn with(
        &mut self,
        opcode: &str,
        operands: &[i64],
        shape: ShapeProto,
        f: impl FnOnce(&mut HloInstructionProto),
    ) -> i64 {
        let mut i = HloInstructionProto {
            opcode: opcode.into(),
            operand_ids: operands.to_vec(),
            ..Default::default()
        };
        f(&mut i);
        self.add(i, shape)
    }

    pub fn call(&mut self, opcode: &str, c: &[i64], operands: &[i64], shape: ShapeProto) -> i64 {
        self.with(opcode, operands, shape, |i| {
            i.called_computation_ids = c.to_vec();
        })
    }

    pub fn tuple(&mut self, elements: &[i64]) -> i64 {
        let shape = tuple_of(
            elements
                .iter()
                .map(|&e| self.shapes[e as usize].clone())
                .collect(),
        );
        self.op_of("tuple", elements, shape)
    }

    pub fn element(&mut self, tuple: i64, k: i64) -> i64 {
        let shape = self.shapes[tuple as usize]
            .tuple_shapes
            .get(k as usize)
            .cloned()
            .unwrap_or_default();
        self.with("get-tuple-element", &[tuple], shape, |i| i.tuple_index = k)
    }

    /// A collective over flattened device ids.
    pub fn collective(&mut self, opcode: &str, operand: i64, groups: &[&[i64]]) -> i64 {
        let lists = groups
            .iter()
            .map(|g| ReplicaGroup {
                replica_ids: g.to_vec(),
            })
            .collect();
        self.with(opcode, &[operand], array(&[8]), |i| {
            i.channel_id = 1;
            i.use_global_device_ids = true;
            i.replica_groups = lists;
        })
    }

    /// Ends the entry and everything; the last computation is the entry.
    pub fn finish(mut self, root: i64) -> Done {
        let entry = self.end(root);
        self.module.entry_computation_id = entry;
        let bytes = HloProto {
            hlo_module: Some(self.module),
            ..Default::default()
        }
        .encode_to_vec();
        Done { bytes }
    }
}

pub struct Done {
    pub bytes: Vec<u8>,
}

impl Done {
    pub fn analyse<T>(&self, f: impl FnOnce(&Program<'_>, &Replication) -> T) -> T {
        let program = decode_program(&self.bytes, HloContainer::Proto).unwrap();
        let r = Replication::new(&program, &meshes_of(&program.module));
        f(&program, &r)
    }

    pub fn labels_at(&self, value: i64, index: &[i64]) -> Vec<u32> {
        self.analyse(|p, r| {
            let i = p.module.find_wire_id(value).unwrap();
            let id = r.classes_of(&p.module, i, index);
            r.classes().labels(id).to_vec()
        })
    }

    pub fn labels(&self, value: i64) -> Vec<u32> {
        self.labels_at(value, &[])
    }
}

pub fn replicated() -> OpSharding {
    OpSharding::default()
}

/// Devices `[a, b]` in row-major order: cut along `a`, the same along `b`.
pub fn rows(a: i64, b: i64) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: vec![a, b],
        replicate_on_last_tile_dim: true,
        iota_reshape_dims: vec![a * b],
        ..Default::default()
    }
}

pub fn columns(a: i64, b: i64) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: vec![b, a],
        replicate_on_last_tile_dim: true,
        iota_reshape_dims: vec![a, b],
        iota_transpose_perm: vec![1, 0],
        ..Default::default()
    }
}

pub fn cut(n: i64) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: vec![n],
        iota_reshape_dims: vec![n],
        ..Default::default()
    }
}

pub fn manual() -> OpSharding {
    OpSharding {
        r#type: 4,
        ..Default::default()
    }
}

pub const ONE: [u32; 4] = [0, 0, 0, 0];
pub const OWN: [u32; 4] = [0, 1, 2, 3];
pub const ROWS: [u32; 4] = [0, 0, 1, 1];
pub const COLUMNS: [u32; 4] = [0, 1, 0, 1];

/// Entry parameters 1 to 5: replicated, by rows, by columns, cut, manual.
pub fn two_by_two() -> Builder {
    Builder::new(
        1,
        4,
        vec![replicated(), rows(2, 2), columns(2, 2), cut(4), manual()],
    )
}

/// A loop over `(counter, state...)` whose body and condition are given the state tuple.
pub fn looped(
    b: &mut Builder,
    init: &[i64],
    body: impl FnOnce(&mut Builder, i64) -> Vec<i64>,
    condition: impl FnOnce(&mut Builder, i64) -> i64,
) -> (i64, i64) {
    let t = b.tuple(init);
    let shape = b.shapes[t as usize].clone();
    b.begin();
    let p = b.parameter(0, shape.clone());
    let out = body(b, p);
    let root = b.tuple(&out);
    let body = b.end(root);
    b.begin();
    let q = b.parameter(0, shape.clone());
    let root = condition(b, q);
    let condition = b.end(root);
    (b.call("while", &[body, condition], &[t], shape), p)
}

//! Who holds the same data after each kind of operation, on modules built here.
#![allow(clippy::unwrap_used)]

use prost::Message;
use xpeak::analysis::{meshes_of, Replication};
use xpeak::decode::{decode_program, HloContainer};
use xpeak::model::Program;
use xpeak::proto::hlo::{
    CollectiveDeviceListProto, DeviceAssignmentProto, HloComputationProto, HloInstructionProto,
    HloModuleProto, HloProto, IotaReplicaGroupListProto, OpSharding, ReplicaGroup, ShapeProto,
    SourceTarget,
};

/// A module in the making. Values are instruction ids.
struct Builder {
    module: HloModuleProto,
    /// Computations being written, innermost last.
    open: Vec<HloComputationProto>,
    shapes: Vec<ShapeProto>,
}

fn array(dims: &[i64]) -> ShapeProto {
    ShapeProto {
        element_type: 11,
        dimensions: dims.to_vec(),
        ..Default::default()
    }
}

fn integer() -> ShapeProto {
    ShapeProto {
        element_type: 4,
        ..Default::default()
    }
}

fn tuple_of(elements: Vec<ShapeProto>) -> ShapeProto {
    ShapeProto {
        element_type: 13,
        tuple_shapes: elements,
        ..Default::default()
    }
}

impl Builder {
    /// With one entry parameter for each sharding.
    fn new(replicas: i32, partitions: i32, shardings: Vec<OpSharding>) -> Self {
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

    fn begin(&mut self) {
        self.open.push(HloComputationProto::default());
    }

    /// Ends the innermost computation; returns its id.
    fn end(&mut self, root: i64) -> i64 {
        let mut c = self.open.pop().unwrap();
        c.root_id = root;
        c.id = 100_000 + self.module.computations.len() as i64;
        let id = c.id;
        self.module.computations.push(c);
        id
    }

    fn add(&mut self, mut i: HloInstructionProto, shape: ShapeProto) -> i64 {
        let id = self.shapes.len() as i64;
        i.id = id;
        i.name = format!("i{id}").into_bytes();
        i.shape = Some(shape.clone());
        self.shapes.push(shape);
        self.open.last_mut().unwrap().instructions.push(i);
        id
    }

    fn parameter(&mut self, number: i64, shape: ShapeProto) -> i64 {
        let i = HloInstructionProto {
            opcode: b"parameter".to_vec(),
            parameter_number: number,
            ..Default::default()
        };
        self.add(i, shape)
    }

    fn op(&mut self, opcode: &str, operands: &[i64]) -> i64 {
        self.op_of(opcode, operands, array(&[8]))
    }

    fn op_of(&mut self, opcode: &str, operands: &[i64], shape: ShapeProto) -> i64 {
        self.with(opcode, operands, shape, |_| {})
    }

    fn with(
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

    fn call(&mut self, opcode: &str, c: &[i64], operands: &[i64], shape: ShapeProto) -> i64 {
        self.with(opcode, operands, shape, |i| {
            i.called_computation_ids = c.to_vec();
        })
    }

    fn tuple(&mut self, elements: &[i64]) -> i64 {
        let shape = tuple_of(
            elements
                .iter()
                .map(|&e| self.shapes[e as usize].clone())
                .collect(),
        );
        self.op_of("tuple", elements, shape)
    }

    fn element(&mut self, tuple: i64, k: i64) -> i64 {
        let shape = self.shapes[tuple as usize]
            .tuple_shapes
            .get(k as usize)
            .cloned()
            .unwrap_or_default();
        self.with("get-tuple-element", &[tuple], shape, |i| i.tuple_index = k)
    }

    /// A collective over flattened device ids.
    fn collective(&mut self, opcode: &str, operand: i64, groups: &[&[i64]]) -> i64 {
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
    fn finish(mut self, root: i64) -> Done {
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

struct Done {
    bytes: Vec<u8>,
}

impl Done {
    fn analyse<T>(&self, f: impl FnOnce(&Program<'_>, &Replication) -> T) -> T {
        let program = decode_program(&self.bytes, HloContainer::Proto).unwrap();
        let r = Replication::new(&program, &meshes_of(&program.module));
        f(&program, &r)
    }

    fn labels_at(&self, value: i64, index: &[i64]) -> Vec<u32> {
        self.analyse(|p, r| {
            let i = p.module.find_wire_id(value).unwrap();
            let id = r.classes_of(&p.module, i, index);
            r.classes().labels(id).to_vec()
        })
    }

    fn labels(&self, value: i64) -> Vec<u32> {
        self.labels_at(value, &[])
    }
}

fn replicated() -> OpSharding {
    OpSharding::default()
}

/// Devices `[a, b]` in row-major order: cut along `a`, the same along `b`.
fn rows(a: i64, b: i64) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: vec![a, b],
        replicate_on_last_tile_dim: true,
        iota_reshape_dims: vec![a * b],
        ..Default::default()
    }
}

fn columns(a: i64, b: i64) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: vec![b, a],
        replicate_on_last_tile_dim: true,
        iota_reshape_dims: vec![a, b],
        iota_transpose_perm: vec![1, 0],
        ..Default::default()
    }
}

fn cut(n: i64) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: vec![n],
        iota_reshape_dims: vec![n],
        ..Default::default()
    }
}

fn manual() -> OpSharding {
    OpSharding {
        r#type: 4,
        ..Default::default()
    }
}

const ONE: [u32; 4] = [0, 0, 0, 0];
const OWN: [u32; 4] = [0, 1, 2, 3];
const ROWS: [u32; 4] = [0, 0, 1, 1];
const COLUMNS: [u32; 4] = [0, 1, 0, 1];

/// Entry parameters 1 to 5: replicated, by rows, by columns, cut, manual.
fn two_by_two() -> Builder {
    Builder::new(
        1,
        4,
        vec![replicated(), rows(2, 2), columns(2, 2), cut(4), manual()],
    )
}

#[test]
fn parameters_follow_their_sharding() {
    let d = two_by_two().finish(1);
    for (p, want) in [(1, ONE), (2, ROWS), (3, COLUMNS), (4, OWN), (5, OWN)] {
        assert_eq!(d.labels(p), want, "parameter {p}");
    }
}

#[test]
fn a_parameter_without_annotation_is_unknown() {
    let mut b = two_by_two();
    let bare = b.parameter(9, array(&[8]));
    assert_eq!(b.finish(bare).labels(bare), OWN);
}

#[test]
fn operations_refine_their_operands() {
    let mut b = two_by_two();
    let c = b.op("constant", &[]);
    let iota = b.op("iota", &[]);
    let same = b.op("add", &[1, c]);
    let rows = b.op("multiply", &[2, iota]);
    let own = b.op("dot", &[2, 3]);
    let sorted = b.op_of("sort", &[1, 2], tuple_of(vec![array(&[8]), array(&[8])]));
    let d = b.finish(own);
    for (v, want) in [(c, ONE), (iota, ONE), (same, ONE), (rows, ROWS), (own, OWN)] {
        assert_eq!(d.labels(v), want);
    }
    assert_eq!(d.labels_at(sorted, &[1]), ROWS);
    assert_eq!(d.labels_at(sorted, &[]), ROWS);
    assert_eq!(d.labels_at(sorted, &[2]), OWN, "no such element");
}

#[test]
fn what_is_not_known_to_be_equal_is_not() {
    let mut b = two_by_two();
    let values: Vec<i64> = [
        "rng",
        "infeed",
        "recv",
        "frobnicate",
        "outfeed",
        "rng-get-and-update-state",
    ]
    .iter()
    .map(|op| b.op(op, &[1]))
    .collect();
    let d = b.finish(1);
    for v in values {
        assert_eq!(d.labels(v), OWN);
    }
}

#[test]
fn gathers_make_groups_agree() {
    let by_row: &[&[i64]] = &[&[0, 1], &[2, 3]];
    let mut b = two_by_two();
    let all = b.collective("all-gather", 4, &[]);
    let reduced = b.collective("all-reduce", 4, by_row);
    // Both rows have the same two halves.
    let equal_rows = b.collective("all-gather", 3, by_row);
    let within = b.collective("all-gather", 2, by_row);
    let uneven = b.collective("all-reduce", 1, &[&[0, 1, 2], &[3]]);
    let twice = b.collective("all-reduce", 4, &[&[0, 1], &[1, 2, 3]]);
    let wild = b.collective("all-reduce", 4, &[&[0, 1, 2, 77]]);
    let partial = b.collective("all-reduce", 1, &[&[0, 1]]);
    let d = b.finish(all);
    for (v, want) in [
        (all, ONE),
        (reduced, ROWS),
        (equal_rows, ONE),
        (within, ROWS),
        (uneven, [0, 0, 0, 1]),
        (twice, OWN),
        (wild, OWN),
        (partial, [0, 0, 1, 2]),
    ] {
        assert_eq!(d.labels(v), want);
    }
}

#[test]
fn groups_may_be_an_iota_in_either_field() {
    let iota = || IotaReplicaGroupListProto {
        num_replica_groups: 2,
        num_devices_per_group: 2,
        iota_reshape_dims: vec![2, 2],
        iota_transpose_perm: vec![1, 0],
    };
    let mut b = two_by_two();
    let flags = |i: &mut HloInstructionProto| {
        i.channel_id = 1;
        i.use_global_device_ids = true;
    };
    let new = b.with("all-gather", &[4], array(&[8]), |i| {
        flags(i);
        i.iota_collective_device_list = Some(iota());
    });
    let old = b.with("all-gather", &[4], array(&[8]), |i| {
        flags(i);
        i.collective_device_list = Some(CollectiveDeviceListProto {
            iota_replica_group_list: Some(iota()),
            ..Default::default()
        });
    });
    let damaged = b.with("all-gather", &[4], array(&[8]), |i| {
        flags(i);
        i.iota_collective_device_list = Some(IotaReplicaGroupListProto {
            num_replica_groups: i64::MAX,
            num_devices_per_group: 2,
            ..iota()
        });
    });
    let d = b.finish(new);
    assert_eq!(d.labels(new), COLUMNS);
    assert_eq!(d.labels(old), COLUMNS);
    assert_eq!(d.labels(damaged), OWN);
}

#[test]
fn scatters_and_permutes_move_what_is_known() {
    let by_row: &[&[i64]] = &[&[0, 1], &[2, 3]];
    let mut b = two_by_two();
    let own = b.collective("reduce-scatter", 4, by_row);
    // Two rows that sum the same terms give the same parts by position.
    let parts = b.collective("reduce-scatter", 3, by_row);
    let exchanged = b.collective("all-to-all", 1, &[]);
    let pairs = |p: &[(i64, i64)]| -> Vec<SourceTarget> {
        p.iter()
            .map(|&(source, target)| SourceTarget { source, target })
            .collect()
    };
    let permute = |b: &mut Builder, v: i64, p: &[(i64, i64)]| {
        let p = pairs(p);
        b.with("collective-permute", &[v], array(&[8]), |i| {
            i.channel_id = 1;
            i.source_target_pairs = p;
        })
    };
    let swapped = permute(&mut b, 2, &[(0, 2), (1, 3), (2, 0), (3, 1)]);
    let shifted = permute(&mut b, 1, &[(0, 1), (2, 3)]);
    let doubled = permute(&mut b, 1, &[(0, 1), (2, 1)]);
    let spread = b.collective("collective-broadcast", 4, by_row);
    let d = b.finish(own);
    for (v, want) in [
        (own, OWN),
        (parts, COLUMNS),
        (exchanged, OWN),
        (swapped, ROWS),
        (shifted, COLUMNS),
        (doubled, OWN),
        (spread, ROWS),
    ] {
        assert_eq!(d.labels(v), want);
    }
}

#[test]
fn replicas_hold_different_data_until_they_exchange_it() {
    // 2 replicas of 2 partitions: devices r0p0 r0p1 r1p0 r1p1.
    let mut b = Builder::new(2, 2, vec![replicated(), cut(2)]);
    let over = |b: &mut Builder, v: i64, channel: i64, global: bool, groups: &[&[i64]]| {
        let lists: Vec<ReplicaGroup> = groups
            .iter()
            .map(|g| ReplicaGroup {
                replica_ids: g.to_vec(),
            })
            .collect();
        b.with("all-reduce", &[v], array(&[8]), |i| {
            i.channel_id = channel;
            i.use_global_device_ids = global;
            i.replica_groups = lists;
        })
    };
    let replicas = over(&mut b, 2, 0, false, &[&[0, 1]]);
    let everything = over(&mut b, 2, 1, false, &[&[0, 1]]);
    let each_replica = over(&mut b, 2, 1, false, &[&[0], &[1]]);
    let flattened = over(&mut b, 2, 1, true, &[&[0, 3], &[1, 2]]);
    let d = b.finish(1);
    assert_eq!(d.labels(1), ROWS);
    assert_eq!(d.labels(2), OWN);
    assert_eq!(d.labels(replicas), COLUMNS);
    assert_eq!(d.labels(everything), ONE);
    assert_eq!(d.labels(each_replica), ROWS);
    assert_eq!(d.labels(flattened), [0, 1, 1, 0]);
}

#[test]
fn offsets_from_a_table_tell_equal_parts() {
    let mut b = two_by_two();
    let id = b.op_of("partition-id", &[], integer());
    let literal = |values: &[u8]| {
        // LiteralProto: s32s is field 4, packed.
        let mut out = vec![0x22, values.len() as u8];
        out.extend(values);
        out
    };
    let table_shape = ShapeProto {
        element_type: 4,
        dimensions: vec![4],
        ..Default::default()
    };
    let table = b.op_of("constant", &[], table_shape);
    let one = ShapeProto {
        element_type: 4,
        dimensions: vec![1],
        ..Default::default()
    };
    let picked = b.op_of("dynamic-slice", &[table, id], one);
    let offset = b.op_of("reshape", &[picked], integer());
    let part = b.op("dynamic-slice", &[1, offset]);
    let unknown = b.op("dynamic-slice", &[1, id]);
    let mut d = b.finish(part);
    assert_eq!(d.labels(part), OWN, "no literal, no value");
    // The schema of this crate leaves literals out, so the field is put in by hand.
    let mut proto = HloProto::decode(&d.bytes[..]).unwrap();
    let module = proto.hlo_module.take().unwrap();
    let entry = module.computations.last().unwrap().clone();
    let mut entry_bytes = Vec::new();
    for i in &entry.instructions {
        let mut bytes = i.encode_to_vec();
        if i.id == table {
            let l = literal(&[0, 0, 8, 8]);
            bytes.extend([0x42, l.len() as u8]);
            bytes.extend(l);
        }
        prost::encoding::encode_key(
            2,
            prost::encoding::WireType::LengthDelimited,
            &mut entry_bytes,
        );
        prost::encoding::encode_varint(bytes.len() as u64, &mut entry_bytes);
        entry_bytes.extend(bytes);
    }
    let rest = HloComputationProto {
        instructions: vec![],
        ..entry
    };
    entry_bytes.extend(rest.encode_to_vec());
    let mut module_bytes = Vec::new();
    prost::encoding::encode_key(
        3,
        prost::encoding::WireType::LengthDelimited,
        &mut module_bytes,
    );
    prost::encoding::encode_varint(entry_bytes.len() as u64, &mut module_bytes);
    module_bytes.extend(entry_bytes);
    module_bytes.extend(
        HloModuleProto {
            computations: vec![],
            ..module
        }
        .encode_to_vec(),
    );
    d.bytes.clear();
    prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut d.bytes);
    prost::encoding::encode_varint(module_bytes.len() as u64, &mut d.bytes);
    d.bytes.extend(module_bytes);
    assert_eq!(d.labels(part), ROWS);
    assert_eq!(d.labels(unknown), OWN);
}

#[test]
fn calls_are_followed_and_stand_for_all_callers() {
    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let inner = b.op("negate", &[p]);
    let c = b.end(inner);
    let once = b.call("fusion", &[c], &[2], array(&[8]));
    let d = b.finish(once);
    assert_eq!(d.labels(once), ROWS);
    assert_eq!(d.labels(inner), ROWS);

    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let inner = b.op("negate", &[p]);
    let c = b.end(inner);
    let first = b.call("call", &[c], &[1], array(&[8]));
    let second = b.call("call", &[c], &[2], array(&[8]));
    let d = b.finish(second);
    assert_eq!(
        (d.labels(first), d.labels(inner)),
        (ROWS.into(), ROWS.into())
    );
}

#[test]
fn tuples_keep_their_elements_apart() {
    let mut b = two_by_two();
    let inner = b.tuple(&[1, 2]);
    let t = b.tuple(&[3, inner]);
    let barrier_shape = b.shapes[t as usize].clone();
    let held = b.op_of("opt-barrier", &[t], barrier_shape);
    let pair = b.element(held, 1);
    let (one, rows) = (b.element(pair, 0), b.element(pair, 1));
    let columns = b.element(held, 0);
    let nowhere = b.element(held, 5);
    let d = b.finish(one);
    assert_eq!(d.labels(one), ONE);
    assert_eq!(d.labels(rows), ROWS);
    assert_eq!(d.labels(columns), COLUMNS);
    assert_eq!(d.labels(nowhere), OWN);
    assert_eq!(d.labels_at(t, &[1, 1]), ROWS);
    assert_eq!(d.labels_at(t, &[1]), OWN, "elements that differ");
}

/// A loop over `(counter, state...)` whose body and condition are given the state tuple.
fn looped(
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

#[test]
fn loops_reach_a_fixed_point() {
    let mut b = two_by_two();
    // (a, b, c) → (b, c, c): two turns until the last one's data is everywhere.
    let (w, p) = looped(
        &mut b,
        &[1, 1, 2],
        |b, p| {
            let (x, y) = (b.element(p, 1), b.element(p, 2));
            vec![x, y, y]
        },
        |b, _| b.op("constant", &[]),
    );
    let d = b.finish(w);
    for k in 0..3 {
        assert_eq!(d.labels_at(w, &[k]), ROWS);
        assert_eq!(d.labels_at(p, &[k]), ROWS);
    }
}

#[test]
fn a_loop_that_devices_leave_at_different_turns_tells_them_apart() {
    let mut b = two_by_two();
    let mut inside = 0;
    let (w, p) = looped(
        &mut b,
        &[1, 2],
        |b, p| {
            let (x, y) = (b.element(p, 0), b.element(p, 1));
            inside = b.op("constant", &[]);
            vec![x, y]
        },
        |b, q| b.element(q, 1),
    );
    let d = b.finish(w);
    assert_eq!(d.labels_at(w, &[0]), ROWS);
    assert_eq!(d.labels_at(p, &[0]), ROWS);
    assert_eq!(d.labels(inside), ROWS);
}

#[test]
fn conditionals_depend_on_who_takes_which_branch() {
    let mut b = two_by_two();
    let branch = |b: &mut Builder| {
        b.begin();
        let p = b.parameter(0, array(&[8]));
        b.end(p)
    };
    let (x, y) = (branch(&mut b), branch(&mut b));
    let same = b.call("conditional", &[x, y], &[1, 1, 1], array(&[8]));
    let (x, y) = (branch(&mut b), branch(&mut b));
    let by_row = b.call("conditional", &[x, y], &[2, 1, 1], array(&[8]));
    let (x, y) = (branch(&mut b), branch(&mut b));
    let by_branch = b.call("conditional", &[x, y], &[1, 1, 3], array(&[8]));
    let odd = b.call("conditional", &[x], &[1, 1, 3], array(&[8]));
    let d = b.finish(same);
    assert_eq!(d.labels(same), ONE);
    assert_eq!(d.labels(by_row), ROWS);
    assert_eq!(d.labels(by_branch), COLUMNS);
    assert_eq!(d.labels(odd), OWN);
}

#[test]
fn asynchronous_pairs_are_followed() {
    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let n = b.op("negate", &[p]);
    let c = b.end(n);
    let context = integer();
    let shape = tuple_of(vec![
        tuple_of(vec![array(&[8])]),
        array(&[8]),
        context.clone(),
    ]);
    let start = b.call("async-start", &[c], &[2], shape);
    let done = b.op("async-done", &[start]);

    // Started with nothing; operands come with an update.
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let n = b.op("negate", &[p]);
    let c = b.end(n);
    let empty = tuple_of(vec![tuple_of(vec![]), tuple_of(vec![]), context.clone()]);
    let start2 = b.call("async-start", &[c], &[], empty);
    let shape = tuple_of(vec![
        tuple_of(vec![array(&[8])]),
        array(&[8]),
        context.clone(),
    ]);
    let update = b.op_of("async-update", &[start2, 3], shape);
    let done2 = b.op("async-done", &[update]);

    // Started and never given anything.
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let c = b.end(p);
    let start3 = b.call("async-start", &[c], &[], tuple_of(vec![]));
    let done3 = b.op("async-done", &[start3]);

    let pair = tuple_of(vec![array(&[8]), array(&[8])]);
    let gather = b.with("all-gather-start", &[4], pair, |i| {
        i.channel_id = 1;
        i.use_global_device_ids = true;
    });
    let gathered = b.op("all-gather-done", &[gather]);
    let copy = b.op_of(
        "copy-start",
        &[2],
        tuple_of(vec![array(&[8]), array(&[8]), context]),
    );
    let copied = b.op("copy-done", &[copy]);
    let d = b.finish(done);
    assert_eq!(d.labels(done), ROWS);
    assert_eq!(d.labels_at(start, &[1]), ROWS);
    assert_eq!(d.labels_at(start, &[0, 0]), ROWS);
    assert_eq!(d.labels(done2), COLUMNS);
    assert_eq!(d.labels(done3), OWN);
    assert_eq!(d.labels_at(gather, &[0]), OWN);
    assert_eq!(d.labels_at(gather, &[1]), ONE);
    assert_eq!(d.labels(gathered), ONE);
    assert_eq!(d.labels(copied), ROWS);
}

#[test]
fn custom_calls_are_pure_only_where_nothing_speaks_against_it() {
    let mut b = two_by_two();
    let custom = |b: &mut Builder, target: &str, operands: &[i64]| {
        let target = target.as_bytes().to_vec();
        b.with("custom-call", operands, array(&[8]), |i| {
            i.custom_call_target = target;
        })
    };
    let pure = custom(&mut b, "TopK", &[2]);
    let manual = custom(&mut b, "SPMDFullToShardShape", &[1]);
    let full = custom(&mut b, "SPMDShardToFullShape", &[1]);
    let callback = custom(&mut b, "xla_ffi_python_cpu_callback", &[1]);
    let source = custom(&mut b, "Whatever", &[]);
    let effect = b.with("custom-call", &[1], array(&[8]), |i| {
        i.custom_call_target = b"Thing".to_vec();
        i.custom_call_has_side_effect = true;
    });
    let kernel = b.with("custom-call", &[1], array(&[8]), |i| {
        i.custom_call_target = b"tpu_custom_call".to_vec();
        i.backend_config = br#"{"custom_call_config": {"collective_id": 0}}"#.to_vec();
    });
    let told = b.with("custom-call", &[4], array(&[8]), |i| {
        i.custom_call_target = b"SPMDShardToFullShape".to_vec();
        i.sharding = Some(rows(2, 2));
    });
    let d = b.finish(pure);
    // `full` carries no sharding, which reads as nothing said.
    for (v, want) in [
        (pure, ROWS),
        (manual, OWN),
        (full, OWN),
        (callback, OWN),
        (source, OWN),
        (effect, OWN),
        (kernel, OWN),
        (told, ROWS),
    ] {
        assert_eq!(d.labels(v), want);
    }
}

#[test]
fn computations_that_call_each_other_end() {
    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let again = b.call("call", &[100_000], &[p], array(&[8]));
    let c = b.end(again);
    assert_eq!(c, 100_000);
    let v = b.call("call", &[c], &[2], array(&[8]));
    let d = b.finish(v);
    for v in [v, p, again] {
        assert_eq!(d.labels(v), OWN, "what does not return makes nothing");
    }
}

#[test]
fn deep_nesting_and_shared_callees_cost_what_they_are_long() {
    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let mut c = b.end(p);
    // Each level calls the one below twice: 2^4000 paths, 4000 computations.
    for _ in 0..4000 {
        b.begin();
        let p = b.parameter(0, array(&[8]));
        let x = b.call("call", &[c], &[p], array(&[8]));
        let y = b.call("call", &[c], &[x], array(&[8]));
        c = b.end(y);
    }
    let id = b.op_of("partition-id", &[], integer());
    let v = b.call("fusion", &[c], &[2], array(&[8]));
    let d = b.finish(v);
    let start = std::time::Instant::now();
    assert_eq!(d.labels(v), ROWS);
    assert_eq!(d.labels(id), OWN);
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn a_tuple_passed_many_times_is_connected_once() {
    let mut b = two_by_two();
    let many = vec![2; 3000];
    let t = b.tuple(&many);
    let shape = b.shapes[t as usize].clone();
    b.begin();
    let p = b.parameter(0, shape);
    let e = b.element(p, 2999);
    let c = b.end(e);
    let mut last = 0;
    for _ in 0..3000 {
        last = b.call("call", &[c], &[t], array(&[8]));
    }
    let d = b.finish(last);
    let start = std::time::Instant::now();
    assert_eq!(d.labels(last), ROWS);
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn absurd_device_counts_say_nothing() {
    for (r, p) in [(i32::MAX, i32::MAX), (1, i32::MAX), (-1, -1), (0, 0)] {
        let b = Builder::new(r, p, vec![replicated()]);
        b.finish(1).analyse(|program, r| {
            assert_eq!(r.devices(), 1);
            let i = program.module.find_wire_id(1).unwrap();
            assert_eq!(r.classes().count(r.classes_of(&program.module, i, &[])), 1);
        });
    }
}

#[test]
fn thousands_of_devices_are_followed() {
    let n = 4096;
    let mut b = Builder::new(
        1,
        n as i32,
        vec![rows(64, 64), columns(64, 64), replicated()],
    );
    let groups: Vec<Vec<i64>> = (0..64)
        .map(|g| (0..64).map(|k| g * 64 + k).collect())
        .collect();
    let groups: Vec<&[i64]> = groups.iter().map(Vec::as_slice).collect();
    let own = b.op("add", &[1, 2]);
    let gathered = b.collective("all-gather", own, &groups);
    let mut v = gathered;
    for k in 0..2000 {
        v = b.op("add", &[v, if k % 2 == 0 { 1 } else { 3 }]);
    }
    let d = b.finish(v);
    let start = std::time::Instant::now();
    d.analyse(|p, r| {
        let count = |v: i64| {
            let i = p.module.find_wire_id(v).unwrap();
            r.classes().count(r.classes_of(&p.module, i, &[]))
        };
        assert_eq!((count(1), count(own), count(gathered)), (64, 4096, 64));
        assert_eq!(count(v), 64);
    });
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn malformed_programs_do_not_panic() {
    let mut b = two_by_two();
    let ops = [
        "while",
        "conditional",
        "fusion",
        "call",
        "async-start",
        "async-done",
        "async-update",
        "all-gather",
        "all-gather-done",
        "all-reduce-start",
        "collective-permute-done",
        "collective-permute-start",
        "get-tuple-element",
        "tuple",
        "custom-call",
        "all-to-all",
        "copy",
        "opt-barrier",
        "reduce-scatter",
        "dynamic-slice",
    ];
    let shapes = [
        array(&[8]),
        tuple_of(vec![]),
        tuple_of(vec![array(&[8]), integer()]),
    ];
    let mut values = Vec::new();
    for op in ops {
        for shape in &shapes {
            for operands in [&[][..], &[1], &[1, 2, 3]] {
                values.push(b.op_of(op, operands, shape.clone()));
                let target: &[u8] = b"AsyncCollectiveDone";
                values.push(b.with(op, operands, shape.clone(), |i| {
                    i.called_computation_ids = vec![100_000, 77];
                    i.custom_call_target = target.to_vec();
                    i.tuple_index = 7;
                    i.channel_id = i64::MIN;
                }));
            }
        }
    }
    let d = b.finish(1);
    d.analyse(|p, r| {
        for &v in &values {
            let i = p.module.find_wire_id(v).unwrap();
            for index in [&[][..], &[0], &[1], &[-1], &[0, 0, 0]] {
                let c = r.classes().count(r.classes_of(&p.module, i, index));
                assert!((1..=4).contains(&c));
            }
        }
    });
}

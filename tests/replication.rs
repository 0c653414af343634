//! Who holds the same data after each kind of operation, on modules built here.
#![allow(clippy::unwrap_used)]

mod hlo_builder;

use hlo_builder::*;
use prost::Message;
use xpeak_protos::hlo::{
    CollectiveDeviceListProto, HloComputationProto, HloInstructionProto, HloModuleProto, HloProto,
    IotaReplicaGroupListProto, ReplicaGroup, ShapeProto, SourceTarget,
};

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

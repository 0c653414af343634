//! Every sharding encoding: how it prints (as XLA does) and which devices it says hold the same.
#![allow(clippy::unwrap_used)]

use prost::Message;
use xpeak::hlo::decode_sharding;
use xpeak::hlo::Sharding;
use xpeak_protos::hlo::mesh_proto::{IotaTransform, MeshAxis};
use xpeak_protos::hlo::named_sharding_proto::DimensionSharding;
use xpeak_protos::hlo::{AxisRefProto, MeshProto, NamedShardingProto, OpSharding};

fn read(s: &OpSharding) -> Sharding {
    decode_sharding(&s.encode_to_vec()).unwrap()
}

fn of_type(t: i32) -> OpSharding {
    OpSharding {
        r#type: t,
        ..Default::default()
    }
}

fn tiled(dims: &[i64], iota: &[i64], perm: &[i32]) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: dims.to_vec(),
        iota_reshape_dims: iota.to_vec(),
        iota_transpose_perm: perm.to_vec(),
        ..Default::default()
    }
}

fn listed(dims: &[i64], devices: &[i64]) -> OpSharding {
    OpSharding {
        r#type: 3,
        tile_assignment_dimensions: dims.to_vec(),
        tile_assignment_devices: devices.to_vec(),
        ..Default::default()
    }
}

/// Printed by XLA's own `HloSharding::ToString` for the same messages.
#[test]
fn shardings_print_as_xla_prints_them() {
    let last = |mut s: OpSharding| {
        s.replicate_on_last_tile_dim = true;
        s
    };
    let sub = |mut s: OpSharding, kinds: &[i32]| {
        s.last_tile_dims = kinds.to_vec();
        s
    };
    let maximal = OpSharding {
        r#type: 1,
        tile_assignment_dimensions: vec![1],
        tile_assignment_devices: vec![3],
        ..Default::default()
    };
    let tuple = OpSharding {
        r#type: 2,
        tuple_shardings: vec![of_type(0), tiled(&[4], &[4], &[0])],
        ..Default::default()
    };
    let cases = [
        (of_type(0), "{replicated}"),
        (maximal, "{maximal device=3}"),
        (of_type(4), "{manual}"),
        (of_type(5), "{unknown}"),
        (of_type(6), "{unreduced}"),
        (
            last(tiled(&[2, 1, 2], &[4], &[0])),
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        ),
        (
            tiled(&[2, 2], &[2, 2], &[1, 0]),
            "{devices=[2,2]<=[2,2]T(1,0)}",
        ),
        (listed(&[2, 2], &[0, 3, 1, 2]), "{devices=[2,2]0,3,1,2}"),
        (
            sub(tiled(&[1, 2, 2], &[4], &[0]), &[4, 0]),
            "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}",
        ),
        (
            sub(tiled(&[2, 2], &[4], &[0]), &[0]),
            "{devices=[2,2]<=[4] last_tile_dim_replicate}",
        ),
        (tuple, "{{replicated}, {devices=[4]<=[4]}}"),
    ];
    for (proto, text) in cases {
        assert_eq!(read(&proto).to_string(), text);
    }
}

fn mesh() -> MeshProto {
    let axis = |name: &str, size| MeshAxis {
        name: name.into(),
        size,
    };
    MeshProto {
        axes: vec![axis("fsdp", 2), axis("tp", 4)],
        ..Default::default()
    }
}

fn axis(index: i64) -> AxisRefProto {
    AxisRefProto {
        mesh_axis_index: index,
        sub_axis_info: None,
    }
}

fn dimension(axes: Vec<AxisRefProto>, is_closed: bool) -> DimensionSharding {
    DimensionSharding { axes, is_closed }
}

fn named(mesh: MeshProto, dims: Vec<DimensionSharding>) -> OpSharding {
    OpSharding {
        named_sharding: Some(NamedShardingProto {
            mesh: Some(mesh),
            dim_shardings: dims,
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[test]
fn named_shardings_print_as_xla_prints_them() {
    let part = AxisRefProto {
        mesh_axis_index: 1,
        sub_axis_info: Some(xpeak_protos::hlo::axis_ref_proto::SubAxis {
            pre_size: 1,
            size: 2,
        }),
    };
    let with = |f: fn(&mut NamedShardingProto)| {
        let mut s = named(mesh(), vec![dimension(vec![axis(1)], true)]);
        s.named_sharding.iter_mut().for_each(f);
        s
    };
    let transformed = MeshProto {
        iota_transform: Some(IotaTransform {
            reshape_dims: vec![4, 2],
            transpose_perm: vec![1, 0],
        }),
        ..mesh()
    };
    let cases = [
        (
            named(
                mesh(),
                vec![dimension(vec![axis(0)], true), dimension(vec![], true)],
            ),
            "{mesh['fsdp'=2,'tp'=4], [{'fsdp'}, {}]}",
        ),
        (
            named(
                mesh(),
                vec![
                    dimension(vec![axis(1), axis(0)], true),
                    dimension(vec![], false),
                ],
            ),
            "{mesh['fsdp'=2,'tp'=4], [{'tp', 'fsdp'}, {?}]}",
        ),
        (
            named(mesh(), vec![dimension(vec![part], true)]),
            "{mesh['fsdp'=2,'tp'=4], [{'tp':(1)2}]}",
        ),
        (
            with(|n| n.manual_axes = vec![axis(0)]),
            "{mesh['fsdp'=2,'tp'=4], [{'tp'}], manual={'fsdp'}}",
        ),
        (
            with(|n| n.unreduced_axes = vec![axis(0)]),
            "{mesh['fsdp'=2,'tp'=4], [{'tp'}], unreduced={'fsdp'}}",
        ),
        (
            named(transformed, vec![dimension(vec![axis(0)], true)]),
            "{mesh['fsdp'=2,'tp'=4], device_ids=([4,2]T(1,0)), [{'fsdp'}]}",
        ),
        (
            named(
                MeshProto {
                    device_ids: vec![3],
                    ..Default::default()
                },
                vec![],
            ),
            "{maximal_mesh[device_id=3]}",
        ),
    ];
    for (proto, text) in cases {
        assert_eq!(read(&proto).to_string(), text);
    }
}

#[test]
fn labels_say_who_holds_the_same() {
    let labels = |s: &OpSharding, n| read(s).data_labels(n);
    let partial = OpSharding {
        replicate_on_last_tile_dim: true,
        ..tiled(&[2, 1, 2], &[4], &[0])
    };
    assert_eq!(labels(&of_type(0), 3), Some(vec![0, 0, 0]));
    assert_eq!(labels(&partial, 4), Some(vec![0, 0, 1, 1]));
    assert_eq!(
        labels(&tiled(&[2, 2], &[2, 2], &[1, 0]), 4),
        Some(vec![0, 2, 1, 3])
    );
    assert_eq!(
        labels(&listed(&[2, 2], &[0, 3, 1, 2]), 4),
        Some(vec![0, 2, 3, 1])
    );
    let manual_and_copies = OpSharding {
        last_tile_dims: vec![4, 0],
        ..tiled(&[1, 2, 2], &[4], &[0])
    };
    assert_eq!(labels(&manual_and_copies, 4), Some(vec![0, 0, 1, 1]));
    let copies_and_manual = OpSharding {
        last_tile_dims: vec![0, 4],
        ..tiled(&[1, 2, 2], &[4], &[0])
    };
    assert_eq!(labels(&copies_and_manual, 4), Some(vec![0, 1, 0, 1]));
    for silent in [1, 2, 4, 5, 6, 77] {
        assert_eq!(labels(&of_type(silent), 4), None, "type {silent}");
    }
}

/// `v3_to_v2_sharding` of XLA gives the tiled spelling of the same layout.
#[test]
fn named_and_tiled_spellings_agree() {
    let tp = || vec![dimension(vec![axis(1)], true)];
    let replicated_last = |s: OpSharding| OpSharding {
        replicate_on_last_tile_dim: true,
        ..s
    };
    let same = |a: &OpSharding, b: &OpSharding| {
        let (a, b) = (read(a).data_labels(8), read(b).data_labels(8));
        assert!(a.is_some());
        assert_eq!(a, b);
    };
    same(
        &named(mesh(), tp()),
        &replicated_last(tiled(&[4, 2], &[2, 4], &[1, 0])),
    );
    let transformed = MeshProto {
        iota_transform: Some(IotaTransform {
            reshape_dims: vec![4, 2],
            transpose_perm: vec![1, 0],
        }),
        ..mesh()
    };
    same(
        &named(transformed, tp()),
        &replicated_last(tiled(&[4, 2], &[8], &[0])),
    );
    // Replicated, by a mesh without axes and by axes that are not used.
    same(&named(MeshProto::default(), vec![]), &of_type(0));
    same(&named(mesh(), vec![dimension(vec![], true)]), &of_type(0));
    assert!(read(&named(mesh(), vec![])).is_fully_replicated(8));
    assert!(!read(&named(mesh(), vec![])).is_fully_replicated(4));
}

#[test]
fn whole_or_cut_and_into_what() {
    let s = read(&tiled(&[1, 2, 4], &[8], &[0]));
    assert_eq!(s.tile_count(), Some(8));
    assert_eq!(s.local_dimensions(&[3, 10, 9]), Some(vec![3, 5, 3]));
    assert_eq!(s.global_dimensions(&[3, 5, 3]), Some(vec![3, 10, 12]));
    assert_eq!(s.global_dimensions(&[u64::MAX, u64::MAX, 1]), None);
    assert_eq!(s.local_dimensions(&[3]), None, "another rank");
    assert!(!s.is_fully_replicated(8));
    let whole = OpSharding {
        replicate_on_last_tile_dim: true,
        ..tiled(&[1, 1, 8], &[8], &[0])
    };
    assert!(read(&whole).is_fully_replicated(8));
    assert!(!read(&whole).is_fully_replicated(1));
    assert!(!read(&of_type(0)).is_fully_replicated(1));
}

#[test]
fn numbers_that_do_not_fit_say_nothing() {
    let bad = [
        tiled(&[2, 2], &[5], &[0]),
        tiled(&[2, 2], &[4], &[3]),
        tiled(&[2, 2], &[2, 2], &[0, 0]),
        tiled(&[3, 2], &[6], &[0]),
        tiled(&[-2, -2], &[4], &[0]),
        tiled(&[], &[], &[]),
        tiled(&[i64::MAX, 4], &[i64::MAX, 4], &[]),
        tiled(&[1 << 21], &[1 << 21], &[0]),
        listed(&[2, 2], &[0, 1, 2, 2]),
        listed(&[2, 2], &[0, 1, 2]),
        listed(&[2, 2], &[0, 1, 2, 9]),
        OpSharding {
            last_tile_dims: vec![0, 0, 0],
            ..tiled(&[2, 2], &[4], &[0])
        },
        named(mesh(), vec![dimension(vec![axis(7)], true)]),
        named(mesh(), vec![dimension(vec![axis(-1)], true)]),
    ];
    for s in bad {
        let s = read(&s);
        assert_eq!(s.data_labels(4), None, "{s}");
        assert!(!s.is_fully_replicated(4), "{s}");
        let _ = (s.tile_count(), s.local_dimensions(&[8, 8]));
    }
    assert_eq!(read(&of_type(0)).data_labels(1 << 40), None);
    assert_eq!(read(&of_type(0)).data_labels(0), None);
}

#[test]
fn endless_nesting_is_refused() {
    let mut s = of_type(2);
    for _ in 0..90 {
        s = OpSharding {
            r#type: 2,
            tuple_shardings: vec![s],
            ..Default::default()
        };
    }
    assert!(decode_sharding(&s.encode_to_vec()).is_err());
    assert!(decode_sharding(&[0xff, 0xff]).is_err());
}

//! What is rarely needed of an instruction, read from its bytes on demand.

use super::module::decode_attributes;
use super::schema::{
    collective_device_list, hlo_instruction, iota_replica_group_list, mesh_axes_replica_group_list,
    replica_group, source_target,
};
use super::sharding::{decode_axis, decode_mesh};
use super::wire::{bytes_of, fields, numbers, text, Value};
use crate::hlo::{transposed_iota, AxisRef, HloInstruction, Mesh, Opcode};

/// The less common fields of one instruction. Damaged fields read as absent.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Attributes<'a> {
    /// Of a custom call: its target.
    pub custom_call_target: &'a str,
    /// Of a fusion: `kLoop`, `kOutput`, ...
    pub fusion_kind: &'a str,
    /// `dimensions={...}` of a broadcast, reduce, transpose, concatenate, all-gather, ...
    pub dimensions: Vec<i64>,
    /// Collective channel; 0 = none.
    pub channel_id: i64,
    /// Serialized sharding.
    pub sharding: Option<&'a [u8]>,
    /// Opaque configuration of the back end.
    pub backend_config: &'a [u8],
    /// Whether it moves data to or from the host.
    pub is_host_transfer: bool,
    /// Whether replica group ids count replicas × partitions rather than replicas.
    pub use_global_device_ids: bool,
    /// Of a custom call: whether it does more than compute its result.
    pub has_side_effect: bool,
    /// Device groups of a collective.
    pub groups: CollectiveGroups,
    /// Source and target device of each pair of a collective-permute.
    pub source_target_pairs: Vec<(i64, i64)>,
    /// Key and value, sorted by key.
    pub frontend_attributes: Vec<(&'a str, &'a str)>,
    /// Instructions (ids on the wire) that must run before this one.
    pub control_predecessors: Vec<i64>,
}

/// Device groups of a collective, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CollectiveGroups {
    /// No groups given: all devices form one.
    #[default]
    All,
    /// Spelled out.
    Explicit(Vec<Vec<i64>>),
    /// `iota(reshape_dims)` transposed by `transpose_perm`, then cut into groups of equal size.
    Iota {
        /// Number of groups.
        groups: i64,
        /// Devices in each.
        size: i64,
        /// Dimensions the device numbers are laid out in.
        reshape_dims: Vec<i64>,
        /// Permutation of those dimensions; empty = none.
        transpose_perm: Vec<i64>,
    },
    /// The devices that differ only along some axes of a mesh.
    Mesh {
        /// The mesh.
        mesh: Mesh,
        /// The axes.
        axes: Vec<AxisRef>,
    },
    /// Groups are there and cannot be read: nothing may be assumed of them.
    Unreadable,
}

impl CollectiveGroups {
    /// The groups spelled out, where they are over ids `0..count`; `None` where they cannot be,
    /// or name an id twice or out of range.
    pub fn lists(&self, count: u64) -> Option<Vec<Vec<u32>>> {
        let narrow = |id: i64| u32::try_from(id).ok().filter(|&d| u64::from(d) < count);
        let lists: Vec<Vec<u32>> = match self {
            CollectiveGroups::All => vec![(0..u32::try_from(count).ok()?).collect()],
            CollectiveGroups::Explicit(groups) => groups
                .iter()
                .map(|g| g.iter().map(|&id| narrow(id)).collect())
                .collect::<Option<_>>()?,
            CollectiveGroups::Iota {
                groups,
                size,
                reshape_dims,
                transpose_perm,
            } => {
                let unsigned = |v: &[i64]| {
                    let v: Result<Vec<u64>, _> = v.iter().map(|&x| u64::try_from(x)).collect();
                    v.ok()
                };
                if groups
                    .checked_mul(*size)
                    .and_then(|n| u64::try_from(n).ok())
                    != Some(count)
                {
                    return None;
                }
                let (dims, perm) = (unsigned(reshape_dims)?, unsigned(transpose_perm)?);
                let order: Vec<u32> = transposed_iota(count, &dims, &perm)?
                    .into_iter()
                    .map(|d| u32::try_from(d).ok())
                    .collect::<Option<_>>()?;
                let size = usize::try_from(*size).ok().filter(|&s| s > 0)?;
                order.chunks(size).map(<[u32]>::to_vec).collect()
            }
            CollectiveGroups::Mesh { mesh, axes } => {
                if mesh.device_count() != Some(count) {
                    return None;
                }
                mesh.groups_along(axes)?
                    .iter()
                    .map(|g| g.iter().map(|&id| narrow(id)).collect())
                    .collect::<Option<_>>()?
            }
            CollectiveGroups::Unreadable => return None,
        };
        let mut seen = vec![false; usize::try_from(count).ok()?];
        for &id in lists.iter().flatten() {
            let slot = seen.get_mut(id as usize)?;
            if std::mem::replace(slot, true) {
                return None;
            }
        }
        Some(lists)
    }
}

impl<'a> HloInstruction<'a> {
    /// The less common fields, decoded now.
    pub fn attributes(&self) -> Attributes<'a> {
        let mut a = Attributes::default();
        let mut explicit = Vec::new();
        for field in fields(self.raw) {
            let Ok(field) = field else { break };
            match field {
                (hlo_instruction::FUSION_KIND, Value::Bytes(b)) => a.fusion_kind = text(b),
                (hlo_instruction::DIMENSIONS, v) => {
                    drop(numbers(v, |n| a.dimensions.push(n as i64)))
                }
                (hlo_instruction::CHANNEL_ID, Value::Varint(v)) => a.channel_id = v as i64,
                (hlo_instruction::CUSTOM_CALL_TARGET, Value::Bytes(b)) => {
                    a.custom_call_target = text(b)
                }
                (hlo_instruction::CONTROL_PREDECESSOR_IDS, v) => {
                    drop(numbers(v, |n| a.control_predecessors.push(n as i64)))
                }
                (hlo_instruction::SHARDING, Value::Bytes(b)) => a.sharding = Some(b),
                (hlo_instruction::BACKEND_CONFIG, Value::Bytes(b)) => a.backend_config = b,
                (hlo_instruction::IS_HOST_TRANSFER, Value::Varint(v)) => {
                    a.is_host_transfer = v != 0
                }
                (hlo_instruction::REPLICA_GROUPS, Value::Bytes(b)) => {
                    explicit.push(replica_group(b))
                }
                (hlo_instruction::SOURCE_TARGET_PAIRS, Value::Bytes(b)) => {
                    let pair = integers_by_field(b);
                    let end = |number| first(&pair, number);
                    a.source_target_pairs
                        .push((end(source_target::SOURCE), end(source_target::TARGET)));
                }
                (hlo_instruction::FRONTEND_ATTRIBUTES, Value::Bytes(b)) => {
                    a.frontend_attributes = decode_attributes(b).unwrap_or_default();
                }
                (hlo_instruction::CUSTOM_CALL_HAS_SIDE_EFFECT, Value::Varint(v)) => {
                    a.has_side_effect = v != 0
                }
                (hlo_instruction::USE_GLOBAL_DEVICE_IDS, Value::Varint(v)) => {
                    a.use_global_device_ids = v != 0
                }
                (hlo_instruction::COLLECTIVE_DEVICE_LIST, Value::Bytes(b)) => {
                    if let Some(groups) = device_list(b) {
                        a.groups = groups;
                    }
                }
                (hlo_instruction::IOTA_COLLECTIVE_DEVICE_LIST, Value::Bytes(b)) => {
                    a.groups = iota_groups(b)
                }
                (hlo_instruction::MESH_AXES_REPLICA_GROUP_LIST, Value::Bytes(b)) => {
                    a.groups = mesh_groups(b)
                }
                _ => {}
            }
        }
        if a.groups == CollectiveGroups::All && !explicit.is_empty() {
            a.groups = CollectiveGroups::Explicit(explicit);
        }
        a
    }

    /// The opcode as the file has it, also where [`Opcode`] does not know it.
    pub fn opcode_name(&self) -> &'a str {
        if self.opcode != Opcode::Unknown {
            return self.opcode.name();
        }
        bytes_of(self.raw, hlo_instruction::OPCODE).map_or("", text)
    }

    /// Target of a custom call; empty for other instructions.
    pub fn custom_call_target(&self) -> &'a str {
        bytes_of(self.raw, hlo_instruction::CUSTOM_CALL_TARGET).map_or("", text)
    }

    /// Whether it is a custom call of the compiler's that puts slices of an array together again.
    pub fn joins_slices(&self) -> bool {
        self.opcode == Opcode::CustomCall && self.custom_call_target().contains("Concat")
    }

    /// The serialized fields that give a collective's device groups, as they stand: a key for
    /// those who want to read each kind of group once.
    pub(crate) fn group_fields(&self) -> Vec<(u32, &'a [u8])> {
        const GROUPS: [u32; 4] = [
            hlo_instruction::REPLICA_GROUPS,
            hlo_instruction::COLLECTIVE_DEVICE_LIST,
            hlo_instruction::IOTA_COLLECTIVE_DEVICE_LIST,
            hlo_instruction::MESH_AXES_REPLICA_GROUP_LIST,
        ];
        fields(self.raw)
            .filter_map(Result::ok)
            .filter(|(n, _)| GROUPS.contains(n))
            .filter_map(|(n, v)| Some((n, v.bytes()?)))
            .collect()
    }

    /// Serialized sharding, if it carries one.
    pub fn sharding(&self) -> Option<&'a [u8]> {
        bytes_of(self.raw, hlo_instruction::SHARDING)
    }
}

fn replica_group(bytes: &[u8]) -> Vec<i64> {
    let mut out = Vec::new();
    for field in fields(bytes).filter_map(Result::ok) {
        if let (replica_group::REPLICA_IDS, v) = field {
            drop(numbers(v, |n| out.push(n as i64)));
        }
    }
    out
}

fn integers_by_field(bytes: &[u8]) -> Vec<(u32, i64)> {
    let mut out = Vec::new();
    for (number, value) in fields(bytes).filter_map(Result::ok) {
        drop(numbers(value, |n| out.push((number, n as i64))));
    }
    out
}

fn first(numbers: &[(u32, i64)], field: u32) -> i64 {
    numbers
        .iter()
        .find(|(f, _)| *f == field)
        .map_or(0, |(_, n)| *n)
}

fn device_list(bytes: &[u8]) -> Option<CollectiveGroups> {
    let mut explicit = Vec::new();
    for field in fields(bytes).filter_map(Result::ok) {
        match field {
            (collective_device_list::REPLICA_GROUPS, Value::Bytes(b)) => {
                explicit.push(replica_group(b))
            }
            (collective_device_list::IOTA_REPLICA_GROUP_LIST, Value::Bytes(b)) => {
                return Some(iota_groups(b))
            }
            _ => {}
        }
    }
    (!explicit.is_empty()).then_some(CollectiveGroups::Explicit(explicit))
}

fn iota_groups(bytes: &[u8]) -> CollectiveGroups {
    let n = integers_by_field(bytes);
    let all = |f: u32| n.iter().filter(|(g, _)| *g == f).map(|(_, v)| *v).collect();
    CollectiveGroups::Iota {
        groups: first(&n, iota_replica_group_list::NUM_REPLICA_GROUPS),
        size: first(&n, iota_replica_group_list::NUM_DEVICES_PER_GROUP),
        reshape_dims: all(iota_replica_group_list::IOTA_RESHAPE_DIMS),
        transpose_perm: all(iota_replica_group_list::IOTA_TRANSPOSE_PERM),
    }
}

/// Groups of the devices that differ only along some axes of a mesh.
fn mesh_groups(bytes: &[u8]) -> CollectiveGroups {
    let mut mesh = None;
    let mut axes = Vec::new();
    for field in fields(bytes) {
        match field {
            Ok((mesh_axes_replica_group_list::MESH, Value::Bytes(b))) => mesh = decode_mesh(b).ok(),
            Ok((mesh_axes_replica_group_list::AXES, Value::Bytes(b))) => match decode_axis(b) {
                Ok(axis) => axes.push(axis),
                Err(_) => return CollectiveGroups::Unreadable,
            },
            Ok(_) => {}
            Err(_) => return CollectiveGroups::Unreadable,
        }
    }
    match mesh {
        Some(mesh) => CollectiveGroups::Mesh { mesh, axes },
        None => CollectiveGroups::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use xpeak_protos::hlo;

    fn groups(i: &hlo::HloInstructionProto) -> CollectiveGroups {
        let bytes = hlo::HloProto {
            hlo_module: Some(hlo::HloModuleProto {
                computations: vec![hlo::HloComputationProto {
                    instructions: vec![i.clone()],
                    ..Default::default()
                }],
                ..Default::default()
            }),
            ..Default::default()
        }
        .encode_to_vec();
        let p = crate::hlo::decode::decode_program(&bytes, crate::hlo::decode::HloContainer::Proto)
            .unwrap();
        p.module.instructions[0].attributes().groups
    }

    #[test]
    fn every_spelling_of_device_groups_is_read() {
        let iota = hlo::IotaReplicaGroupListProto {
            num_replica_groups: 2,
            num_devices_per_group: 2,
            iota_reshape_dims: vec![2, 2],
            iota_transpose_perm: vec![1, 0],
        };
        let want = CollectiveGroups::Iota {
            groups: 2,
            size: 2,
            reshape_dims: vec![2, 2],
            transpose_perm: vec![1, 0],
        };
        let newer = hlo::HloInstructionProto {
            iota_collective_device_list: Some(iota.clone()),
            ..Default::default()
        };
        let older = hlo::HloInstructionProto {
            collective_device_list: Some(hlo::CollectiveDeviceListProto {
                iota_replica_group_list: Some(iota),
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(groups(&newer), want);
        assert_eq!(groups(&older), want);
        let axis = |size| hlo::mesh_proto::MeshAxis {
            name: b"a".to_vec(),
            size,
        };
        let mesh = |index, sizes: &[i64]| hlo::HloInstructionProto {
            mesh_axes_replica_group_list: Some(hlo::MeshAxesReplicaGroupListProto {
                mesh: Some(hlo::MeshProto {
                    axes: sizes.iter().map(|&s| axis(s)).collect(),
                    ..Default::default()
                }),
                axes: vec![hlo::AxisRefProto {
                    mesh_axis_index: index,
                    ..Default::default()
                }],
            }),
            ..Default::default()
        };
        let lists = |i: &hlo::HloInstructionProto| groups(i).lists(4);
        let columns = Some(vec![vec![0, 2], vec![1, 3]]);
        assert_eq!(want.lists(4), columns);
        assert_eq!(lists(&mesh(0, &[2, 2])), columns);
        assert_eq!(lists(&mesh(1, &[2, 2])), Some(vec![vec![0, 1], vec![2, 3]]));
        assert_eq!(lists(&mesh(9, &[2, 2])), None, "an axis that is not there");
        assert_eq!(lists(&mesh(0, &[i64::MAX, 2])), None);
        let explicit = |g: &[&[i64]]| {
            CollectiveGroups::Explicit(g.iter().map(|g| g.to_vec()).collect()).lists(4)
        };
        assert_eq!(explicit(&[&[0, 4]]), None, "out of range");
        assert_eq!(explicit(&[&[0, 1], &[1, 2]]), None, "twice");
        assert_eq!(CollectiveGroups::All.lists(2), Some(vec![vec![0, 1]]));
    }
}

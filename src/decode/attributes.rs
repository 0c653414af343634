//! What is rarely needed of an instruction, read from its bytes on demand.

use super::module::decode_attributes;
use super::wire::{fields, numbers, text, Value};
use crate::model::HloInstruction;

/// The less common fields of one instruction. Damaged fields read as absent.
#[derive(Debug, Clone, Default)]
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
}

impl<'a> HloInstruction<'a> {
    /// The less common fields, decoded now.
    pub fn attributes(&self) -> Attributes<'a> {
        let mut a = Attributes::default();
        let mut explicit = Vec::new();
        for field in fields(self.raw) {
            let Ok(field) = field else { break };
            match field {
                (11, Value::Bytes(b)) => a.fusion_kind = text(b),
                (14, v) => drop(numbers(v, |n| a.dimensions.push(n as i64))),
                (26, Value::Varint(v)) => a.channel_id = v as i64,
                (28, Value::Bytes(b)) => a.custom_call_target = text(b),
                (37, v) => drop(numbers(v, |n| a.control_predecessors.push(n as i64))),
                (40, Value::Bytes(b)) => a.sharding = Some(b),
                (43, Value::Bytes(b)) => a.backend_config = b,
                (47, Value::Varint(v)) => a.is_host_transfer = v != 0,
                (49, Value::Bytes(b)) => explicit.push(replica_group(b)),
                (52, Value::Bytes(b)) => {
                    let pair = integers_by_field(b);
                    a.source_target_pairs
                        .push((first(&pair, 1), first(&pair, 2)));
                }
                (68, Value::Bytes(b)) => {
                    a.frontend_attributes = decode_attributes(b).unwrap_or_default();
                }
                (71, Value::Varint(v)) => a.use_global_device_ids = v != 0,
                (87, Value::Bytes(b)) => {
                    if let Some(groups) = device_list(b) {
                        a.groups = groups;
                    }
                }
                _ => {}
            }
        }
        if a.groups == CollectiveGroups::All && !explicit.is_empty() {
            a.groups = CollectiveGroups::Explicit(explicit);
        }
        a
    }

    /// Target of a custom call; empty for other instructions.
    pub fn custom_call_target(&self) -> &'a str {
        fields(self.raw)
            .filter_map(Result::ok)
            .find_map(|(n, v)| (n == 28).then(|| v.bytes().map(text)).flatten())
            .unwrap_or_default()
    }

    /// Serialized sharding, if it carries one.
    pub fn sharding(&self) -> Option<&'a [u8]> {
        fields(self.raw)
            .filter_map(Result::ok)
            .find_map(|(n, v)| (n == 40).then(|| v.bytes()).flatten())
    }
}

fn replica_group(bytes: &[u8]) -> Vec<i64> {
    let mut out = Vec::new();
    for field in fields(bytes).filter_map(Result::ok) {
        if let (1, v) = field {
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
            (1, Value::Bytes(b)) => explicit.push(replica_group(b)),
            (2, Value::Bytes(b)) => {
                let n = integers_by_field(b);
                let all = |f: u32| n.iter().filter(|(g, _)| *g == f).map(|(_, v)| *v).collect();
                return Some(CollectiveGroups::Iota {
                    groups: first(&n, 1),
                    size: first(&n, 2),
                    reshape_dims: all(3),
                    transpose_perm: all(4),
                });
            }
            _ => {}
        }
    }
    (!explicit.is_empty()).then_some(CollectiveGroups::Explicit(explicit))
}

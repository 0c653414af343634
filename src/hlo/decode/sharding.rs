//! OpSharding bytes → [`Sharding`]. Sizes and device numbers are kept as written; what they mean
//! is checked where they are used.

use super::schema::{axis_ref, mesh, named_sharding, op_sharding};
use super::wire::{fields, numbers, text, Value, WireError, WireResult};
use crate::hlo::{AxisRef, Mesh, MeshAxis, NamedSharding, Sharding, SubgroupKind, TileAssignment};

/// Tuple shardings nested deeper than this are refused: XLA writes them flat.
const MAX_DEPTH: u32 = 64;

/// Reads a serialized OpSharding.
///
/// # Errors
/// Malformed bytes, or tuples nested beyond reason.
pub fn decode_sharding(bytes: &[u8]) -> WireResult<Sharding> {
    at_depth(bytes, 0)
}

fn at_depth(bytes: &[u8], depth: u32) -> WireResult<Sharding> {
    if depth > MAX_DEPTH {
        return Err(WireError::new("tuple shardings nested too deep", bytes));
    }
    let mut kind = 0u64;
    let mut tile = TileAssignment::default();
    let mut tuple = Vec::new();
    let mut replicate_last = false;
    let mut named = None;
    for field in fields(bytes) {
        match field? {
            (op_sharding::TYPE, Value::Varint(v)) => kind = v,
            (op_sharding::TILE_ASSIGNMENT_DIMENSIONS, v) => {
                numbers(v, |n| tile.dimensions.push(non_negative(n)))?
            }
            (op_sharding::TILE_ASSIGNMENT_DEVICES, v) => {
                numbers(v, |n| tile.devices.push(non_negative(n)))?
            }
            (op_sharding::TUPLE_SHARDINGS, Value::Bytes(b)) => {
                let i = tuple.len();
                tuple.push(
                    at_depth(b, depth + 1).map_err(|e| e.within("tuple_shardings", Some(i)))?,
                );
            }
            (op_sharding::REPLICATE_ON_LAST_TILE_DIM, Value::Varint(v)) => replicate_last = v != 0,
            (op_sharding::LAST_TILE_DIMS, v) => numbers(v, |n| tile.subgroups.push(subgroup(n)))?,
            (op_sharding::IOTA_RESHAPE_DIMS, v) => {
                numbers(v, |n| tile.reshape_dims.push(non_negative(n)))?
            }
            (op_sharding::IOTA_TRANSPOSE_PERM, v) => {
                numbers(v, |n| tile.transpose_perm.push(non_negative(n)))?
            }
            (op_sharding::NAMED_SHARDING, Value::Bytes(b)) => {
                named = Some(
                    named_at_depth(b, depth + 1).map_err(|e| e.within("named_sharding", None))?,
                );
            }
            _ => {}
        }
    }
    if let Some(named) = named {
        return Ok(named);
    }
    if replicate_last && tile.subgroups.is_empty() {
        tile.subgroups.push(SubgroupKind::Replicated);
    }
    Ok(match kind {
        0 => Sharding::Replicated,
        1 => Sharding::Maximal(tile.devices.first().copied()),
        2 => Sharding::Tuple(tuple),
        3 => Sharding::Tiled(tile),
        4 => Sharding::Manual,
        6 => Sharding::Unreduced,
        _ => Sharding::Unknown,
    })
}

fn subgroup(n: u64) -> SubgroupKind {
    match n {
        0 => SubgroupKind::Replicated,
        4 => SubgroupKind::Manual,
        6 => SubgroupKind::Unreduced,
        _ => SubgroupKind::Unknown,
    }
}

fn named_at_depth(bytes: &[u8], depth: u32) -> WireResult<Sharding> {
    if depth > MAX_DEPTH {
        return Err(WireError::new("tuple shardings nested too deep", bytes));
    }
    let mut n = NamedSharding::default();
    let mut tuple = Vec::new();
    for field in fields(bytes) {
        match field? {
            (named_sharding::TUPLE_SHARDINGS, Value::Bytes(b)) => {
                tuple.push(named_at_depth(b, depth + 1)?)
            }
            (named_sharding::MESH, Value::Bytes(b)) => n.mesh = decode_mesh(b)?,
            (named_sharding::DIM_SHARDINGS, Value::Bytes(b)) => {
                let (mut axes, mut closed) = (Vec::new(), false);
                for field in fields(b) {
                    match field? {
                        (named_sharding::dimension_sharding::AXES, Value::Bytes(b)) => {
                            axes.push(decode_axis(b)?)
                        }
                        (named_sharding::dimension_sharding::IS_CLOSED, Value::Varint(v)) => {
                            closed = v != 0
                        }
                        _ => {}
                    }
                }
                n.dimensions.push(axes);
                n.closed.push(closed);
            }
            (named_sharding::REPLICATED_AXES, Value::Bytes(b)) => {
                n.replicated_axes.push(decode_axis(b)?)
            }
            (named_sharding::UNREDUCED_AXES, Value::Bytes(b)) => {
                n.unreduced_axes.push(decode_axis(b)?)
            }
            (named_sharding::MANUAL_AXES, Value::Bytes(b)) => n.manual_axes.push(decode_axis(b)?),
            _ => {}
        }
    }
    Ok(if tuple.is_empty() {
        Sharding::Named(Box::new(n))
    } else {
        Sharding::Tuple(tuple)
    })
}

/// Reads a MeshProto.
pub(crate) fn decode_mesh(bytes: &[u8]) -> WireResult<Mesh> {
    let mut mesh = Mesh::default();
    for field in fields(bytes) {
        match field? {
            (mesh::AXES, Value::Bytes(b)) => {
                let mut axis = MeshAxis {
                    name: String::new(),
                    size: 0,
                };
                for field in fields(b) {
                    match field? {
                        (mesh::mesh_axis::NAME, Value::Bytes(b)) => {
                            text(b).clone_into(&mut axis.name)
                        }
                        (mesh::mesh_axis::SIZE, Value::Varint(v)) => axis.size = non_negative(v),
                        _ => {}
                    }
                }
                mesh.axes.push(axis);
            }
            (mesh::DEVICE_IDS, v) => numbers(v, |n| mesh.device_ids.push(non_negative(n)))?,
            (mesh::IOTA_TRANSFORM, Value::Bytes(b)) => {
                for field in fields(b) {
                    match field? {
                        (mesh::iota_transform::RESHAPE_DIMS, v) => {
                            numbers(v, |n| mesh.reshape_dims.push(non_negative(n)))?
                        }
                        (mesh::iota_transform::TRANSPOSE_PERM, v) => {
                            numbers(v, |n| mesh.transpose_perm.push(non_negative(n)))?
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(mesh)
}

/// Reads an AxisRefProto.
pub(crate) fn decode_axis(bytes: &[u8]) -> WireResult<AxisRef> {
    let mut axis = AxisRef {
        axis: 0,
        part: None,
    };
    for field in fields(bytes) {
        match field? {
            (axis_ref::MESH_AXIS_INDEX, Value::Varint(v)) => {
                axis.axis = usize::try_from(v).unwrap_or(usize::MAX)
            }
            (axis_ref::SUB_AXIS_INFO, Value::Bytes(b)) => {
                let mut part = (0, 0);
                for field in fields(b) {
                    match field? {
                        (axis_ref::sub_axis::PRE_SIZE, Value::Varint(v)) => {
                            part.0 = non_negative(v)
                        }
                        (axis_ref::sub_axis::SIZE, Value::Varint(v)) => part.1 = non_negative(v),
                        _ => {}
                    }
                }
                axis.part = Some(part);
            }
            _ => {}
        }
    }
    Ok(axis)
}

/// Numbers as stored; a negative one is damage and becomes one that fits nowhere.
fn non_negative(n: u64) -> u64 {
    if (n as i64) < 0 {
        u64::MAX
    } else {
        n
    }
}

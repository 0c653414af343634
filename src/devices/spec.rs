//! Which mesh axis a dimension belongs on, by how the program's annotated arguments are cut.
//!
//! In: shardings of the entry's parameters and a mesh. Out: a `PartitionSpec` for a whole tensor
//! whose dimensions have the sizes of dimensions that are cut elsewhere; nothing where none has.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::devices::replication::Replication;
use crate::hlo::{AxisRef, Mesh, MeshAxis, Program, Sharding};

/// How arguments of the program are cut.
#[derive(Debug, Default)]
pub(crate) struct SpecHints {
    /// Size of the batch and its axis: the first dimension of data arguments (not floats).
    batch: BTreeMap<(u64, String), usize>,
    /// Global size of a dimension and the axis that cuts it, with the number of arguments.
    sizes: BTreeMap<(u64, String), usize>,
}

impl SpecHints {
    /// Reads the annotations. Empty where no mesh is known.
    pub(crate) fn new(program: &Program<'_>, r: &Replication) -> Self {
        let mut out = SpecHints::default();
        let Some(mesh) = r.meshes().first() else {
            return out;
        };
        let module = &program.module;
        for &p in module.entry_parameters() {
            let number = module.instruction(p).parameter_number;
            let Some(sharding) = r.parameter_sharding(number) else {
                continue;
            };
            let shape = module.shape(p);
            let global = sharding.global_dimensions(&shape.dimensions);
            let (Some(global), false) = (global, shape.is_tuple()) else {
                continue;
            };
            let axes = axes_of_dimensions(sharding, mesh, global.len()).unwrap_or_default();
            for (d, (size, axes)) in global.into_iter().zip(axes).enumerate() {
                for axis in axes {
                    let is_batch = d == 0 && !shape.element_type.is_float();
                    let hints = if is_batch {
                        &mut out.batch
                    } else {
                        &mut out.sizes
                    };
                    *hints.entry((size, axis)).or_insert(0) += 1;
                }
            }
        }
        out
    }

    /// `PartitionSpec('fsdp', None, 'tp')` for a whole tensor: the batch over the axis of the data
    /// arguments (not for weights), then each dimension, the largest first, over the free axis
    /// that cuts dimensions of its size. No axis twice; `None` if nothing matches.
    pub(crate) fn spec(
        &self,
        dimensions: &[u64],
        free: &[MeshAxis],
        is_weight: bool,
    ) -> Option<String> {
        let mut on: Vec<Option<&MeshAxis>> = vec![None; dimensions.len()];
        let mut left: Vec<&MeshAxis> = free.iter().collect();
        let mut order: Vec<(usize, u64)> = dimensions.iter().copied().enumerate().collect();
        let mut place = |order: &[(usize, u64)], hints: &BTreeMap<(u64, String), usize>| {
            for &(d, size) in order {
                let fits = |a: &MeshAxis| {
                    let known = hints.get(&(size, a.name.clone())).copied();
                    known.filter(|_| a.size > 1 && size.is_multiple_of(a.size))
                };
                let best = left
                    .iter()
                    .enumerate()
                    .filter_map(|(at, a)| Some((fits(a)?, Reverse(at))))
                    .max();
                if let (Some((_, Reverse(at))), Some(slot @ None)) = (best, on.get_mut(d)) {
                    *slot = Some(left.remove(at));
                }
            }
        };
        if !is_weight {
            place(&order, &self.batch);
        }
        order.sort_by_key(|&(d, size)| (Reverse(size), d));
        place(&order, &self.sizes);
        let last = on.iter().rposition(Option::is_some)?;
        let words: Vec<String> = on
            .iter()
            .take(last + 1)
            .map(|a| a.map_or_else(|| "None".to_owned(), |a| format!("'{}'", a.name)))
            .collect();
        Some(format!("PartitionSpec({})", words.join(", ")))
    }
}

/// Names of the mesh axes that cut each dimension.
fn axes_of_dimensions(sharding: &Sharding, mesh: &Mesh, rank: usize) -> Option<Vec<Vec<String>>> {
    let mut out = vec![Vec::new(); rank];
    let tiled = match sharding {
        Sharding::Named(n) => {
            for (names, axes) in out.iter_mut().zip(&n.dimensions) {
                let known = axes.iter().filter_map(|a| n.mesh.axes.get(a.axis));
                names.extend(known.map(|a| a.name.clone()));
            }
            return Some(out);
        }
        Sharding::Tiled(t) => t,
        _ => return None,
    };
    let tiles = tiled.data_dimensions().filter(|d| d.len() == rank)?;
    let order = tiled.device_order()?;
    let all: u64 = tiles.iter().try_fold(1u64, |a, &t| a.checked_mul(t))?;
    let copies = (order.len() as u64).checked_div(all).filter(|&c| c > 0)?;
    // Coordinates of the tile that a device holds.
    let tile_of = |device: u64| {
        let at = order.iter().position(|&d| d == device)? as u64;
        let mut rest = at / copies;
        let mut found = vec![0; rank];
        for (c, &t) in found.iter_mut().zip(tiles).rev() {
            *c = rest % t.max(1);
            rest /= t.max(1);
        }
        Some(found)
    };
    let devices = mesh.devices()?;
    let first = tile_of(*devices.first()?)?;
    for (axis, a) in mesh.axes.iter().enumerate() {
        let Some((stride, size)) = mesh.stride_of(AxisRef { axis, part: None }) else {
            continue;
        };
        let next = usize::try_from(stride).ok().and_then(|s| devices.get(s));
        let (true, Some(&next)) = (size > 1, next) else {
            continue;
        };
        let next = tile_of(next)?;
        for (d, names) in out.iter_mut().enumerate() {
            if first.get(d) != next.get(d) {
                names.push(a.name.clone());
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(name: &str) -> MeshAxis {
        MeshAxis {
            name: name.to_owned(),
            size: 2,
        }
    }

    #[test]
    fn logits_are_cut_like_the_data_and_the_vocabulary() {
        let hint = |size, axis: &str| ((size, axis.to_owned()), 1);
        let hints = SpecHints {
            batch: [hint(16, "fsdp")].into(),
            sizes: [hint(2048, "fsdp"), hint(32000, "tp")].into(),
        };
        let mesh = [axis("fsdp"), axis("tp")];
        let spec = |d: &[u64], weight| hints.spec(d, &mesh, weight);
        assert_eq!(
            spec(&[16, 2048, 32000], false).as_deref(),
            Some("PartitionSpec('fsdp', None, 'tp')")
        );
        assert_eq!(
            spec(&[32000, 2048], true).as_deref(),
            Some("PartitionSpec('tp', 'fsdp')")
        );
        assert_eq!(
            spec(&[2048, 2048], true).as_deref(),
            Some("PartitionSpec('fsdp')")
        );
        assert_eq!(spec(&[7, 9], false), None);
        assert_eq!(spec(&[16], true), None);
    }
}

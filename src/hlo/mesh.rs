//! A mesh of devices: named axes over a numbering of the devices. In: axes as a file or a module
//! attribute gives them; out: where each device stands on each axis.

use std::fmt;

/// More devices than this are not looked at one by one.
pub const MAX_DEVICES: u64 = 1 << 20;

/// Axes over devices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mesh {
    /// Axes, the slowest-varying first.
    pub axes: Vec<MeshAxis>,
    /// Device order spelled out; empty = see `reshape_dims`.
    pub device_ids: Vec<u64>,
    /// Device order as an iota of these dimensions, transposed; empty = devices in order.
    pub reshape_dims: Vec<u64>,
    /// Permutation of `reshape_dims`; empty = none.
    pub transpose_perm: Vec<u64>,
}

/// One axis of a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshAxis {
    /// Name, `tp`.
    pub name: String,
    /// Devices along it.
    pub size: u64,
}

/// An axis of a mesh, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisRef {
    /// Position among the mesh's axes.
    pub axis: usize,
    /// `(pre-size, size)`: the axis seen as `[pre-size, size, rest]`, of which this is the middle.
    pub part: Option<(u64, u64)>,
}

impl Mesh {
    /// Number of devices; `None` if it is 0 or more than [`MAX_DEVICES`].
    pub fn device_count(&self) -> Option<u64> {
        product(self.axes.iter().map(|a| a.size))
    }

    /// Device at each position, in row-major order of the axes; `None` where the numbers do not
    /// fit together.
    pub fn devices(&self) -> Option<Vec<u64>> {
        let count = self.device_count()?;
        if !self.device_ids.is_empty() {
            return is_permutation_of(&self.device_ids, count).then(|| self.device_ids.clone());
        }
        if !self.reshape_dims.is_empty() {
            return transposed_iota(count, &self.reshape_dims, &self.transpose_perm);
        }
        Some((0..count).collect())
    }

    /// `(stride, size)` of an axis among mesh positions: position ÷ stride mod size is the
    /// coordinate. `None` if there is no such axis or part.
    pub fn stride_of(&self, axis: AxisRef) -> Option<(u64, u64)> {
        self.device_count()?;
        let size = self.axes.get(axis.axis)?.size;
        let after = product(self.axes.get(axis.axis + 1..)?.iter().map(|a| a.size))?;
        match axis.part {
            None => Some((after, size)),
            Some((pre, part)) => {
                let used = pre.checked_mul(part)?;
                if used == 0 || !size.is_multiple_of(used) {
                    return None;
                }
                Some((after.checked_mul(size / used)?, part))
            }
        }
    }

    /// Groups of the devices that differ along `axes` alone, each in row-major order of those
    /// axes as listed; groups in order of their first position. `None` where the numbers do not
    /// fit together.
    pub fn groups_along(&self, axes: &[AxisRef]) -> Option<Vec<Vec<i64>>> {
        let devices = self.devices()?;
        let strides: Vec<_> = axes
            .iter()
            .map(|&a| self.stride_of(a))
            .collect::<Option<_>>()?;
        let size = product(strides.iter().map(|s| s.1))?;
        let mut group_of: rustc_hash::FxHashMap<u64, usize> = rustc_hash::FxHashMap::default();
        let mut out: Vec<Vec<i64>> = Vec::new();
        for (position, &device) in devices.iter().enumerate() {
            let position = position as u64;
            let (mut base, mut within) = (position, 0);
            for &(stride, n) in &strides {
                let coordinate = position / stride % n;
                // Axes that overlap would take a coordinate off twice.
                base = base.checked_sub(coordinate * stride)?;
                within = within * n + coordinate;
            }
            let next = out.len();
            let g = *group_of.entry(base).or_insert(next);
            if g == next {
                // Only where axes overlap do groups hold more than all devices.
                if (next as u64 + 1).checked_mul(size)? > devices.len() as u64 {
                    return None;
                }
                out.push(vec![-1; usize::try_from(size).ok()?]);
            }
            *out.get_mut(g)?.get_mut(usize::try_from(within).ok()?)? =
                i64::try_from(device).ok()?;
        }
        out.iter().flatten().all(|&d| d >= 0).then_some(out)
    }

    /// Meshes of a module attribute: `{mesh = #sdy.mesh<["fsdp"=2, "tp"=2]>}`, also with
    /// `device_ids=[...]`. Meshes of a single device are left out.
    pub fn parse_sdy(text: &str) -> Vec<Mesh> {
        text.split("#sdy.mesh<")
            .skip(1)
            .filter_map(|t| {
                let body = t.split('>').next()?;
                let (axes, rest) = body.strip_prefix('[')?.split_once(']')?;
                let mut mesh = Mesh::default();
                for axis in axes.split(',').filter(|a| !a.trim().is_empty()) {
                    let (name, size) = axis.rsplit_once('=')?;
                    mesh.axes.push(MeshAxis {
                        name: name.trim().trim_matches('"').to_owned(),
                        size: size.trim().parse().ok()?,
                    });
                }
                if let Some((_, ids)) = rest.split_once("device_ids=[") {
                    for id in ids.trim_end_matches(']').split(',') {
                        mesh.device_ids.push(id.trim().parse().ok()?);
                    }
                }
                (mesh.device_count()? > 1).then_some(mesh)
            })
            .collect()
    }
}

impl fmt::Display for Mesh {
    /// As XLA prints it: `mesh['fsdp'=2,'tp'=4], device_ids=([4,2]T(1,0))`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mesh[")?;
        for (i, a) in self.axes.iter().enumerate() {
            write!(f, "{}'{}'={}", if i > 0 { "," } else { "" }, a.name, a.size)?;
        }
        f.write_str("]")?;
        if !self.device_ids.is_empty() {
            write!(f, ", device_ids=({})", comma(&self.device_ids))?;
        } else if !self.reshape_dims.is_empty() {
            write!(
                f,
                ", device_ids=([{}]T({}))",
                comma(&self.reshape_dims),
                comma(&self.transpose_perm)
            )?;
        }
        Ok(())
    }
}

/// Numbers separated by commas.
pub(crate) fn comma(numbers: &[u64]) -> String {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    words.join(",")
}

/// Product of sizes; `None` if it is 0 or more than [`MAX_DEVICES`].
pub(crate) fn product(sizes: impl Iterator<Item = u64>) -> Option<u64> {
    let mut out = 1u64;
    for s in sizes {
        out = out.checked_mul(s).filter(|&p| p > 0 && p <= MAX_DEVICES)?;
    }
    Some(out)
}

/// `0..count`, laid out in `dims` row-major, transposed by `perm` (empty = not), read row-major.
/// `None` where the numbers do not fit together.
pub(crate) fn transposed_iota(count: u64, dims: &[u64], perm: &[u64]) -> Option<Vec<u64>> {
    if product(dims.iter().copied())? != count {
        return None;
    }
    let rank = dims.len();
    let fits = perm.is_empty() || is_permutation_of(perm, rank as u64);
    if !fits {
        return None;
    }
    let mut stride = vec![1u64; rank];
    for d in (0..rank.saturating_sub(1)).rev() {
        stride[d] = stride[d + 1] * dims[d + 1];
    }
    // Sizes and strides in the order they are read.
    let order: Vec<(u64, u64)> = (0..rank)
        .map(|i| perm.get(i).map_or(i, |&p| p as usize))
        .map(|d| (dims[d], stride[d]))
        .collect();
    let mut out = Vec::with_capacity(usize::try_from(count).ok()?);
    for mut i in 0..count {
        let mut device = 0;
        for &(size, stride) in order.iter().rev() {
            device += i % size * stride;
            i /= size;
        }
        out.push(device);
    }
    Some(out)
}

/// Whether `numbers` are `0..count` in some order.
pub(crate) fn is_permutation_of(numbers: &[u64], count: u64) -> bool {
    if numbers.len() as u64 != count {
        return false;
    }
    let mut seen = vec![false; numbers.len()];
    numbers.iter().all(
        |&n| match usize::try_from(n).ok().and_then(|n| seen.get_mut(n)) {
            Some(s) if !*s => {
                *s = true;
                true
            }
            _ => false,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iota_is_read_in_transposed_order() {
        assert_eq!(
            transposed_iota(6, &[2, 3], &[1, 0]),
            Some(vec![0, 3, 1, 4, 2, 5])
        );
        assert_eq!(transposed_iota(4, &[4], &[0]), Some(vec![0, 1, 2, 3]));
        for bad in [&[0u64, 0][..], &[2], &[0, 1, 2]] {
            assert_eq!(transposed_iota(6, &[2, 3], bad), None);
        }
        assert_eq!(transposed_iota(7, &[2, 3], &[]), None);
        assert_eq!(transposed_iota(0, &[0], &[]), None);
    }

    #[test]
    fn meshes_read_from_a_module_attribute() {
        let m = Mesh::parse_sdy(
            "{maximal_mesh_0 = #sdy.mesh<[], device_ids=[0]>, mesh = #sdy.mesh<[\"fsdp\"=2, \"tp\"=2]>}",
        );
        assert_eq!(m.len(), 1);
        assert_eq!(m[0].to_string(), "mesh['fsdp'=2,'tp'=2]");
        let m = Mesh::parse_sdy("{m = #sdy.mesh<[\"x\"=4], device_ids=[3, 1, 2, 0]>}");
        assert_eq!(m[0].devices(), Some(vec![3, 1, 2, 0]));
        assert!(Mesh::parse_sdy("#sdy.mesh<[\"x\"=zz]>").is_empty());
        assert!(Mesh::parse_sdy("#sdy.mesh<[\"x\"=99999999999]>").is_empty());
    }

    #[test]
    fn parts_of_an_axis_have_strides() {
        let m = Mesh::parse_sdy("#sdy.mesh<[\"a\"=8, \"b\"=3]>").remove(0);
        let part = |pre, size| AxisRef {
            axis: 0,
            part: Some((pre, size)),
        };
        assert_eq!(m.stride_of(part(1, 2)), Some((12, 2)));
        assert_eq!(m.stride_of(part(2, 4)), Some((3, 4)));
        assert_eq!(m.stride_of(part(3, 2)), None);
        let twice = [
            part(1, 2),
            AxisRef {
                axis: 0,
                part: None,
            },
        ];
        assert_eq!(m.groups_along(&twice), None, "an axis used twice");
    }
}

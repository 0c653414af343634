//! How a tensor is laid out over devices, in every spelling XLA has had, and which devices hold
//! the same data under it. Anything that does not fit together answers "unknown", never a guess.

use std::fmt;

use super::mesh::{comma, is_permutation_of, product, transposed_iota, AxisRef, Mesh, MAX_DEVICES};

/// A sharding as written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharding {
    /// Every device holds all of it.
    Replicated,
    /// One device holds all of it; the others hold nothing that counts.
    Maximal(Option<u64>),
    /// One sharding a leaf of a tuple.
    Tuple(Vec<Sharding>),
    /// Cut into tiles.
    Tiled(TileAssignment),
    /// Already cut by the user; what devices hold is not told.
    Manual,
    /// Not told.
    Unknown,
    /// Every device holds a term of a sum.
    Unreduced,
    /// By axes of a mesh.
    Named(Box<NamedSharding>),
}

/// Which device holds which tile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileAssignment {
    /// Tiles along each dimension of the tensor, then devices along each subgroup.
    pub dimensions: Vec<u64>,
    /// Devices in row-major order of `dimensions`; empty = see `reshape_dims`.
    pub devices: Vec<u64>,
    /// Devices as an iota of these dimensions, transposed.
    pub reshape_dims: Vec<u64>,
    /// Permutation of `reshape_dims`.
    pub transpose_perm: Vec<u64>,
    /// What the last dimensions mean instead of tiles.
    pub subgroups: Vec<SubgroupKind>,
}

/// How devices that hold the same tile relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubgroupKind {
    /// They hold copies.
    Replicated,
    /// The user's own code decides.
    Manual,
    /// They hold terms of a sum.
    Unreduced,
    /// Not told.
    Unknown,
}

/// A sharding by axes of a mesh.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedSharding {
    /// The mesh.
    pub mesh: Mesh,
    /// Axes that each dimension of the tensor is cut along, major to minor.
    pub dimensions: Vec<Vec<AxisRef>>,
    /// Whether each dimension may not be cut further.
    pub closed: Vec<bool>,
    /// Axes along which devices hold copies, where said so.
    pub replicated_axes: Vec<AxisRef>,
    /// Axes along which devices hold terms of a sum.
    pub unreduced_axes: Vec<AxisRef>,
    /// Axes that the user's own code deals with.
    pub manual_axes: Vec<AxisRef>,
}

impl Sharding {
    /// The sharding of the `leaf`-th array of a tuple (in order); a sharding that is no tuple's
    /// holds for every leaf.
    pub fn leaf(&self, leaf: usize) -> Option<&Sharding> {
        match self {
            Sharding::Tuple(t) => t.get(leaf),
            s => Some(s),
        }
    }

    /// Per partition, a label of the data it holds: equal labels, equal data. `None` where that
    /// is not told, or does not fit `num_partitions`: nothing may be assumed then.
    pub fn data_labels(&self, num_partitions: u64) -> Option<Vec<u32>> {
        if num_partitions == 0 || num_partitions > MAX_DEVICES {
            return None;
        }
        match self {
            Sharding::Replicated => Some(vec![0; usize::try_from(num_partitions).ok()?]),
            Sharding::Tiled(t) => t.data_labels(num_partitions),
            Sharding::Named(n) => n.data_labels(num_partitions),
            Sharding::Maximal(_)
            | Sharding::Tuple(_)
            | Sharding::Manual
            | Sharding::Unknown
            | Sharding::Unreduced => None,
        }
    }

    /// Whether all of `num_partitions` devices, more than one, hold all of it.
    pub fn is_fully_replicated(&self, num_partitions: u64) -> bool {
        num_partitions > 1
            && match self {
                Sharding::Replicated => true,
                Sharding::Tiled(_) | Sharding::Named(_) => self
                    .data_labels(num_partitions)
                    .is_some_and(|l| l.iter().all(|&x| x == 0)),
                _ => false,
            }
    }

    /// Number of different tiles the data is cut into; `None` where that is not told.
    pub fn tile_count(&self) -> Option<u64> {
        match self {
            Sharding::Replicated => Some(1),
            Sharding::Tiled(t) => product(t.data_dimensions()?.iter().copied()),
            Sharding::Named(n) => product(n.tiles_per_dimension()?.into_iter()),
            _ => None,
        }
    }

    /// Tiles along each dimension of a tensor of that rank; `None` where that is not told.
    pub fn tiles_per_dimension(&self, rank: usize) -> Option<Vec<u64>> {
        match self {
            Sharding::Replicated => Some(vec![1; rank]),
            Sharding::Tiled(t) => t
                .data_dimensions()
                .filter(|d| d.len() == rank)
                .map(<[u64]>::to_vec),
            Sharding::Named(n) => n.tiles_per_dimension().filter(|d| d.len() == rank),
            _ => None,
        }
    }

    /// Dimensions of one device's part of a tensor of these dimensions; the last part along a
    /// dimension may hold less.
    pub fn local_dimensions(&self, global: &[u64]) -> Option<Vec<u64>> {
        let tiles = self.tiles_per_dimension(global.len())?;
        let local = global.iter().zip(tiles).map(|(&g, t)| g.div_ceil(t.max(1)));
        Some(local.collect())
    }

    /// Dimensions of the whole tensor, of which `local` are one device's part (too large by less
    /// than a part's size where the cut is uneven); `None` also where they overflow.
    pub fn global_dimensions(&self, local: &[u64]) -> Option<Vec<u64>> {
        let tiles = self.tiles_per_dimension(local.len())?;
        let global = local.iter().zip(tiles).map(|(&l, t)| l.checked_mul(t));
        global.collect()
    }

    /// The mesh, where the sharding names one.
    pub fn mesh(&self) -> Option<&Mesh> {
        match self {
            Sharding::Named(n) => Some(&n.mesh),
            Sharding::Tuple(t) => t.iter().find_map(Sharding::mesh),
            _ => None,
        }
    }
}

impl TileAssignment {
    /// Tiles along each dimension of the tensor; `None` if there are more subgroups than
    /// dimensions.
    pub fn data_dimensions(&self) -> Option<&[u64]> {
        let rank = self.dimensions.len().checked_sub(self.subgroups.len())?;
        self.dimensions.get(..rank)
    }

    /// Devices in row-major order of the tiles; `None` where the numbers do not fit together.
    pub fn device_order(&self) -> Option<Vec<u64>> {
        let count = product(self.dimensions.iter().copied())?;
        if self.devices.is_empty() {
            return transposed_iota(count, &self.reshape_dims, &self.transpose_perm);
        }
        is_permutation_of(&self.devices, count).then(|| self.devices.clone())
    }

    fn data_labels(&self, num_partitions: u64) -> Option<Vec<u32>> {
        if product(self.dimensions.iter().copied())? != num_partitions {
            return None;
        }
        let subgroup_sizes = self.dimensions.get(self.data_dimensions()?.len()..)?;
        let devices = self.device_order()?;
        let mut out = vec![0; devices.len()];
        for (position, &device) in devices.iter().enumerate() {
            // What is left after dropping the coordinates along which data is the same.
            let mut rest = position as u64;
            let (mut label, mut stride) = (0u64, 1u64);
            for (&size, kind) in subgroup_sizes.iter().zip(&self.subgroups).rev() {
                if *kind != SubgroupKind::Replicated {
                    label += rest % size * stride;
                    stride *= size;
                }
                rest /= size;
            }
            label += rest * stride;
            *out.get_mut(usize::try_from(device).ok()?)? = u32::try_from(label).ok()?;
        }
        Some(out)
    }
}

impl NamedSharding {
    fn tiles_per_dimension(&self) -> Option<Vec<u64>> {
        let size = |a: &AxisRef| self.mesh.stride_of(*a).map(|s| s.1);
        self.dimensions
            .iter()
            .map(|axes| {
                let sizes: Option<Vec<u64>> = axes.iter().map(size).collect();
                product(sizes?.into_iter())
            })
            .collect()
    }

    fn data_labels(&self, num_partitions: u64) -> Option<Vec<u32>> {
        let telling: Vec<(u64, u64)> = self
            .dimensions
            .iter()
            .flatten()
            .chain(&self.manual_axes)
            .chain(&self.unreduced_axes)
            .map(|&a| self.mesh.stride_of(a))
            .collect::<Option<_>>()?;
        if self.mesh.axes.is_empty() {
            // No mesh and no devices: XLA's other way of writing "replicated".
            let replicated = self.mesh.device_ids.is_empty() && self.mesh.reshape_dims.is_empty();
            return replicated.then(|| vec![0; usize::try_from(num_partitions).unwrap_or(0)]);
        }
        if self.mesh.device_count()? != num_partitions {
            return None;
        }
        product(telling.iter().map(|t| t.1))?;
        let devices = self.mesh.devices()?;
        let mut out = vec![0; devices.len()];
        for (position, &device) in devices.iter().enumerate() {
            let mut label = 0u64;
            for &(stride, size) in &telling {
                label = label * size + position as u64 / stride % size;
            }
            *out.get_mut(usize::try_from(device).ok()?)? = u32::try_from(label).ok()?;
        }
        Some(out)
    }

    fn axis_name(&self, a: AxisRef) -> String {
        let name = self.mesh.axes.get(a.axis).map_or("?", |x| &x.name);
        match a.part {
            Some((pre, size)) => format!("'{name}':({pre}){size}"),
            None => format!("'{name}'"),
        }
    }

    fn axis_names(&self, axes: &[AxisRef]) -> String {
        let names: Vec<String> = axes.iter().map(|&a| self.axis_name(a)).collect();
        names.join(", ")
    }
}

impl fmt::Display for Sharding {
    /// As XLA prints it: `{devices=[2,1,2]<=[4] last_tile_dim_replicate}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sharding::Replicated => f.write_str("{replicated}"),
            Sharding::Maximal(Some(d)) => write!(f, "{{maximal device={d}}}"),
            Sharding::Maximal(None) => f.write_str("{maximal}"),
            Sharding::Tuple(t) => {
                f.write_str("{")?;
                for (i, s) in t.iter().enumerate() {
                    write!(f, "{}{s}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Sharding::Tiled(t) => t.fmt(f),
            Sharding::Manual => f.write_str("{manual}"),
            Sharding::Unknown => f.write_str("{unknown}"),
            Sharding::Unreduced => f.write_str("{unreduced}"),
            Sharding::Named(n) => n.fmt(f),
        }
    }
}

impl fmt::Display for TileAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{devices=[{}]", comma(&self.dimensions))?;
        if self.devices.is_empty() {
            write!(f, "<=[{}]", comma(&self.reshape_dims))?;
            if self.transpose_perm.len() > 1 {
                write!(f, "T({})", comma(&self.transpose_perm))?;
            }
        } else {
            f.write_str(&comma(&self.devices))?;
        }
        match self.subgroups[..] {
            [] => {}
            [SubgroupKind::Replicated] => f.write_str(" last_tile_dim_replicate")?,
            _ => {
                let words = self.subgroups.iter().map(|k| match k {
                    SubgroupKind::Replicated => "replicated",
                    SubgroupKind::Manual => "manual",
                    SubgroupKind::Unreduced => "unreduced",
                    SubgroupKind::Unknown => "unknown",
                });
                let words: Vec<&str> = words.collect();
                write!(f, " last_tile_dims={{{}}}", words.join(", "))?;
            }
        }
        f.write_str("}")
    }
}

impl fmt::Display for NamedSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ([], [device]) = (&self.mesh.axes[..], &self.mesh.device_ids[..]) {
            return write!(f, "{{maximal_mesh[device_id={device}]}}");
        }
        write!(f, "{{{}", self.mesh)?;
        f.write_str(", [")?;
        for (i, axes) in self.dimensions.iter().enumerate() {
            let open = !self.closed.get(i).copied().unwrap_or(false);
            let mut names = self.axis_names(axes);
            if open {
                names.push_str(if axes.is_empty() { "?" } else { ", ?" });
            }
            write!(f, "{}{{{names}}}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")?;
        for (word, axes) in [
            ("replicated", &self.replicated_axes),
            ("unreduced", &self.unreduced_axes),
            ("manual", &self.manual_axes),
        ] {
            if !axes.is_empty() {
                write!(f, ", {word}={{{}}}", self.axis_names(axes))?;
            }
        }
        f.write_str("}")
    }
}

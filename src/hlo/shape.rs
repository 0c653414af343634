//! Shapes, layouts, and what an array takes in memory: [`Shape::padded_bytes`] follows the tile
//! that the layout states, [`Shape::unpadded_bytes`] is the data alone.

use std::fmt;

use super::element::ElementType;

/// An array's or a tuple's shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    /// `ElementType::TUPLE` for tuples.
    pub element_type: ElementType,
    /// Logical dimensions, as the program names them.
    pub dimensions: Vec<u64>,
    /// Of a tuple: its elements.
    pub tuple: Vec<Shape>,
    /// How the array lies in memory, where the file says.
    pub layout: Option<Layout>,
}

/// How an array lies in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    /// Logical dimension numbers, the fastest-varying first.
    pub minor_to_major: Vec<u32>,
    /// Tiles, outermost first. Only the first one pads.
    pub tiles: Vec<Vec<u64>>,
    /// Bits of one element; 0 means the type's own.
    pub element_size_in_bits: u32,
    /// Memory space (colour); prints as `S(n)`.
    pub memory_space: i64,
    /// Element count is rounded up to a multiple of this; 0 and 1 mean not at all.
    pub tail_padding_alignment_in_elements: u64,
}

/// One physical dimension of an array: its logical size and what the tile rounds it up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhysicalDimension {
    /// Logical dimension number.
    pub dimension: usize,
    /// Elements that the program uses.
    pub size: u64,
    /// Elements that memory holds.
    pub padded: u64,
    /// What it is rounded up to a multiple of; 1 when the tile does not reach it.
    pub tile: u64,
}

impl Shape {
    /// An array without a layout.
    pub fn array(element_type: ElementType, dimensions: &[u64]) -> Self {
        Shape {
            element_type,
            dimensions: dimensions.to_vec(),
            ..Shape::default()
        }
    }

    /// Whether it is a tuple.
    pub fn is_tuple(&self) -> bool {
        self.element_type == ElementType::TUPLE
    }

    /// The part of a tuple at `index` (empty: the shape itself).
    pub fn leaf(&self, index: &[i64]) -> Option<&Shape> {
        index
            .iter()
            .try_fold(self, |s, &i| s.tuple.get(usize::try_from(i).ok()?))
    }

    /// Calls `each` for every array leaf with its shape index, in order.
    pub fn for_each_leaf<'s>(&'s self, each: &mut dyn FnMut(&[i64], &'s Shape)) {
        fn walk<'s>(s: &'s Shape, at: &mut Vec<i64>, each: &mut dyn FnMut(&[i64], &'s Shape)) {
            if s.is_tuple() {
                for (i, t) in s.tuple.iter().enumerate() {
                    at.push(i as i64);
                    walk(t, at, each);
                    at.pop();
                }
            } else {
                each(at, s);
            }
        }
        walk(self, &mut Vec::new(), each);
    }

    /// Bits of one element.
    pub fn element_bits(&self) -> u32 {
        match &self.layout {
            Some(l) if l.element_size_in_bits != 0 => l.element_size_in_bits,
            _ => self.element_type.bits(),
        }
    }

    /// Product of the logical dimensions (1 for a scalar), saturating.
    pub fn element_count(&self) -> u64 {
        self.dimensions
            .iter()
            .fold(1u64, |a, &d| a.saturating_mul(d))
    }

    /// Bytes of the data alone; of a tuple, the sum over its leaves (without index tables).
    pub fn unpadded_bytes(&self) -> u64 {
        if self.is_tuple() {
            return self
                .tuple
                .iter()
                .fold(0, |a, t| a.saturating_add(t.unpadded_bytes()));
        }
        bits_to_bytes(self.element_count(), self.element_bits())
    }

    /// Bytes in memory under the layout's tile and tail padding; of a tuple, the sum over leaves.
    pub fn padded_bytes(&self) -> u64 {
        if self.is_tuple() {
            return self
                .tuple
                .iter()
                .fold(0, |a, t| a.saturating_add(t.padded_bytes()));
        }
        let mut count = self
            .physical_dimensions()
            .iter()
            .fold(1u64, |a, d| a.saturating_mul(d.padded));
        if let Some(l) = &self.layout {
            if self.dimensions.is_empty() {
                // A scalar is padded as a one-element array under a tile of rank one.
                if let Some(tile) = l.tiles.first() {
                    count = tile.iter().fold(1u64, |a, &t| a.saturating_mul(t.max(1)));
                }
            }
            if l.tail_padding_alignment_in_elements > 1 {
                count = round_up(count, l.tail_padding_alignment_in_elements);
            }
        }
        bits_to_bytes(count, self.element_bits())
    }

    /// Dimensions from major to minor with what the first tile rounds each up to. A rank below the
    /// tile's is padded as if led by ones: those extra tile dimensions come first, with
    /// `dimension == usize::MAX` and size 1.
    pub fn physical_dimensions(&self) -> Vec<PhysicalDimension> {
        let rank = self.dimensions.len();
        let mut out: Vec<PhysicalDimension> = self
            .major_to_minor()
            .into_iter()
            .map(|d| {
                let size = self.dimensions.get(d).copied().unwrap_or(1);
                PhysicalDimension {
                    dimension: d,
                    size,
                    padded: size,
                    tile: 1,
                }
            })
            .collect();
        let tile = match &self.layout {
            Some(l) if rank > 0 => l.tiles.first().map_or(&[][..], Vec::as_slice),
            _ => &[],
        };
        while out.len() < tile.len() {
            out.insert(
                0,
                PhysicalDimension {
                    dimension: usize::MAX,
                    size: 1,
                    padded: 1,
                    tile: 1,
                },
            );
        }
        for (d, &t) in out.iter_mut().rev().zip(tile.iter().rev()) {
            d.tile = t.max(1);
            d.padded = round_up(d.size, d.tile);
        }
        out
    }

    /// Logical dimension numbers, the slowest-varying first.
    pub fn major_to_minor(&self) -> Vec<usize> {
        let rank = self.dimensions.len();
        match &self.layout {
            Some(l) if is_permutation(&l.minor_to_major, rank) => {
                l.minor_to_major.iter().rev().map(|&d| d as usize).collect()
            }
            _ => (0..rank).collect(),
        }
    }
}

fn is_permutation(order: &[u32], rank: usize) -> bool {
    if order.len() != rank {
        return false;
    }
    let mut seen = vec![false; rank];
    order.iter().all(|&d| match seen.get_mut(d as usize) {
        Some(s) if !*s => {
            *s = true;
            true
        }
        _ => false,
    })
}

fn round_up(value: u64, multiple: u64) -> u64 {
    value
        .div_ceil(multiple.max(1))
        .saturating_mul(multiple.max(1))
}

fn bits_to_bytes(count: u64, bits: u32) -> u64 {
    u64::try_from((u128::from(count) * u128::from(bits)).div_ceil(8)).unwrap_or(u64::MAX)
}

impl fmt::Display for Shape {
    /// HLO text: `f32[129,1024]{1,0:T(8,128)}`, `(f32[2], s32[])`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_tuple() {
            f.write_str("(")?;
            for (i, t) in self.tuple.iter().enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                t.fmt(f)?;
            }
            return f.write_str(")");
        }
        write!(f, "{}[", self.element_type)?;
        write_list(f, &self.dimensions)?;
        f.write_str("]")?;
        if let Some(l) = &self.layout {
            l.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extra = !self.tiles.is_empty()
            || self.memory_space != 0
            || self.tail_padding_alignment_in_elements > 1
            || self.element_size_in_bits != 0;
        if self.minor_to_major.is_empty() && !extra {
            return Ok(());
        }
        f.write_str("{")?;
        write_list(f, &self.minor_to_major)?;
        if extra {
            f.write_str(":")?;
        }
        if !self.tiles.is_empty() {
            f.write_str("T")?;
            for t in &self.tiles {
                f.write_str("(")?;
                write_list(f, t)?;
                f.write_str(")")?;
            }
        }
        if self.tail_padding_alignment_in_elements > 1 {
            write!(f, "L({})", self.tail_padding_alignment_in_elements)?;
        }
        if self.element_size_in_bits != 0 {
            write!(f, "E({})", self.element_size_in_bits)?;
        }
        if self.memory_space != 0 {
            write!(f, "S({})", self.memory_space)?;
        }
        f.write_str("}")
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiled(name: &str, dims: &[u64], m2m: &[u32], tile: &[u64]) -> Shape {
        Shape {
            element_type: ElementType::from_name(name).unwrap(),
            dimensions: dims.to_vec(),
            tuple: Vec::new(),
            layout: Some(Layout {
                minor_to_major: m2m.to_vec(),
                tiles: vec![tile.to_vec()],
                ..Layout::default()
            }),
        }
    }

    /// Published messages of the compiler, with the figures they printed.
    #[test]
    // Long: a table of cases.
    fn padding_agrees_with_published_messages() {
        type Case<'a> = (&'a str, &'a [u64], &'a [u32], &'a [u64], f64, f64);
        const G: f64 = 1073741824.0;
        const M: f64 = 1048576.0;
        let cases: &[Case<'_>] = &[
            (
                "s32",
                &[8388608, 8, 4],
                &[2, 1, 0],
                &[8, 128],
                32.0 * G,
                1.0 * G,
            ),
            ("u32", &[12582912, 1], &[1, 0], &[8, 128], 6.0 * G, 48.0 * M),
            (
                "bf16",
                &[2048, 1, 2048, 128],
                &[0, 1, 3, 2],
                &[4, 128],
                4.0 * G,
                1.0 * G,
            ),
            (
                "s32",
                &[29360128, 10],
                &[1, 0],
                &[8, 128],
                14.0 * G,
                1.09 * G,
            ),
            (
                "f32",
                &[128, 256, 896, 18],
                &[0, 3, 2, 1],
                &[8, 128],
                2.62 * G,
                1.97 * G,
            ),
            (
                "f32",
                &[4, 128, 128, 9, 18],
                &[4, 3, 0, 2, 1],
                &[8, 128],
                512.0 * M,
                40.5 * M,
            ),
            (
                "bf16",
                &[4, 512, 512, 64],
                &[3, 0, 2, 1],
                &[4, 128],
                256.0 * M,
                128.0 * M,
            ),
            (
                "f32",
                &[512, 245, 256],
                &[2, 1, 0],
                &[8, 128],
                124.0 * M,
                122.5 * M,
            ),
            (
                "f32",
                &[29184, 1, 2560],
                &[2, 1, 0],
                &[2, 128],
                570.0 * M,
                285.0 * M,
            ),
            (
                "f32",
                &[29184, 2, 2560],
                &[2, 1, 0],
                &[2, 128],
                570.0 * M,
                570.0 * M,
            ),
            (
                "f32",
                &[32, 4096, 4096],
                &[1, 2, 0],
                &[8, 128],
                2.0 * G,
                2.0 * G,
            ),
        ];
        for (ty, dims, m2m, tile, padded, unpadded) in cases {
            let s = tiled(ty, dims, m2m, tile);
            let close = |a: u64, b: f64| (a as f64 - b).abs() <= 0.005 * G.min(b.max(M)) + 1.0;
            assert!(
                close(s.padded_bytes(), *padded),
                "{s}: {}",
                s.padded_bytes()
            );
            assert!(
                close(s.unpadded_bytes(), *unpadded),
                "{s}: {}",
                s.unpadded_bytes()
            );
        }
        let wide = tiled("bf16", &[16, 1280, 40], &[2, 1, 0], &[8, 128]);
        let tall = tiled("bf16", &[16, 1280, 40], &[1, 2, 0], &[8, 128]);
        assert_eq!(
            (wide.padded_bytes(), tall.padded_bytes()),
            (5_242_880, 1_638_400)
        );
        assert_eq!(wide.unpadded_bytes(), 1_638_400);
        let guide = tiled("f32", &[129, 1024], &[1, 0], &[8, 128]);
        assert_eq!(guide.padded_bytes(), 136 * 1024 * 4);
    }

    #[test]
    fn scalars_and_low_ranks_fill_a_tile() {
        assert_eq!(tiled("f32", &[], &[], &[128]).padded_bytes(), 512);
        assert_eq!(
            tiled("f32", &[3], &[0], &[8, 128]).padded_bytes(),
            8 * 128 * 4
        );
        assert_eq!(Shape::array(ElementType::F32, &[]).padded_bytes(), 4);
    }

    #[test]
    fn hostile_sizes_saturate() {
        let s = tiled("f32", &[u64::MAX, u64::MAX], &[1, 0], &[u64::MAX, 0]);
        assert_eq!(s.padded_bytes(), u64::MAX);
        assert_eq!(s.unpadded_bytes(), u64::MAX);
    }

    #[test]
    fn a_bad_layout_falls_back_to_row_major() {
        let s = tiled("f32", &[8, 4], &[7, 7], &[8, 128]);
        assert_eq!(s.major_to_minor(), [0, 1]);
    }

    #[test]
    fn prints_as_hlo_text() {
        let mut s = tiled("bf16", &[4, 8], &[1, 0], &[8, 128]);
        if let Some(l) = &mut s.layout {
            l.tiles.push(vec![2, 1]);
            l.memory_space = 1;
        }
        assert_eq!(s.to_string(), "bf16[4,8]{1,0:T(8,128)(2,1)S(1)}");
        let t = Shape {
            element_type: ElementType::TUPLE,
            tuple: vec![s],
            ..Shape::default()
        };
        assert_eq!(t.to_string(), "(bf16[4,8]{1,0:T(8,128)(2,1)S(1)})");
        assert_eq!(t.leaf(&[0]).map(|s| s.dimensions.len()), Some(2));
        assert!(t.leaf(&[1]).is_none() && t.leaf(&[-1]).is_none());
    }
}

//! Tile padding at the peak: per buffer, what each dimension costs and which shape would lose
//! less.

use super::finding::Context;
use crate::model::{PhysicalDimension, Shape};

/// Padding of one buffer at the peak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaddingRow {
    /// Position in the snapshot's buffers.
    pub buffer: usize,
    /// Bytes in memory.
    pub size_bytes: u64,
    /// Bytes of data.
    pub unpadded_bytes: u64,
    /// What each padded dimension adds, in the order in which they are charged (the one that
    /// multiplies most first). Adds up to the padding that the shape explains.
    pub causes: Vec<PaddingCause>,
    /// A shape of the same data that loses less.
    pub better: Option<BetterShape>,
}

impl PaddingRow {
    /// Bytes lost.
    pub fn padding_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.unpadded_bytes)
    }
}

/// What rounding one dimension up to the tile costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaddingCause {
    /// Logical dimension; `None` for a tile dimension that the array does not have.
    pub dimension: Option<usize>,
    /// Its size.
    pub size: u64,
    /// What memory holds.
    pub padded: u64,
    /// Bytes that this adds.
    pub bytes: u64,
}

/// A shape that holds the same data in less memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BetterShape {
    /// How to get there.
    pub change: ShapeChange,
    /// Logical dimensions, the last one minor-most.
    pub dimensions: Vec<u64>,
    /// Bytes it takes under the same tile.
    pub size_bytes: u64,
}

/// How a better shape differs from the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShapeChange {
    /// The dimensions in another order.
    Move,
    /// The innermost dimensions merged into one.
    Merge,
    /// A dimension made smaller, to a multiple of the tile.
    RoundDown,
}

/// Buffers at the peak with padding, most lost first, ties by position.
pub fn padding_rows(ctx: &Context<'_, '_>) -> Vec<PaddingRow> {
    let mut out: Vec<PaddingRow> = ctx
        .peak
        .buffers
        .iter()
        .enumerate()
        .filter(|(_, b)| b.padding_bytes() > 0)
        .map(|(i, b)| PaddingRow {
            buffer: i,
            size_bytes: b.counted_bytes,
            unpadded_bytes: b.unpadded_bytes,
            causes: b.shape.as_ref().map(causes).unwrap_or_default(),
            better: b.shape.as_ref().and_then(better_shape),
        })
        .collect();
    out.sort_by_key(|r| (std::cmp::Reverse(r.padding_bytes()), r.buffer));
    out
}

/// What each padded dimension of `shape` adds, the largest factor first.
pub fn causes(shape: &Shape) -> Vec<PaddingCause> {
    let mut dims: Vec<PhysicalDimension> = shape
        .physical_dimensions()
        .into_iter()
        .filter(|d| d.padded > d.size)
        .collect();
    let growth = |d: &PhysicalDimension| d.padded as f64 / d.size.max(1) as f64;
    dims.sort_by(|a, b| {
        growth(b)
            .total_cmp(&growth(a))
            .then(a.dimension.cmp(&b.dimension))
    });
    let mut bytes = shape.unpadded_bytes();
    dims.into_iter()
        .map(|d| {
            let grown = u128::from(bytes) * u128::from(d.padded) / u128::from(d.size.max(1));
            let grown = u64::try_from(grown).unwrap_or(u64::MAX);
            let cause = PaddingCause {
                dimension: (d.dimension != usize::MAX).then_some(d.dimension),
                size: d.size,
                padded: d.padded,
                bytes: grown.saturating_sub(bytes),
            };
            bytes = grown;
            cause
        })
        .collect()
}

/// The shape of the same data (or, rounded down, of almost the same) that takes least under the
/// present tile; `None` when nothing saves at least a tenth of the padding.
pub fn better_shape(shape: &Shape) -> Option<BetterShape> {
    let now = shape.padded_bytes();
    let lost = now.saturating_sub(shape.unpadded_bytes());
    if lost == 0 || shape.dimensions.len() < 2 {
        return None;
    }
    let best = |candidates: Vec<BetterShape>| {
        candidates
            .into_iter()
            .filter(|c| now.saturating_sub(c.size_bytes) > lost / 10)
            .min_by_key(|c| (c.size_bytes, c.change, c.dimensions.clone()))
    };
    let same_data = best(moved(shape).into_iter().chain(merged(shape)).collect());
    let less_data = best(rounded_down(shape));
    let saving = |c: &Option<BetterShape>| c.as_ref().map_or(0, |c| now - c.size_bytes);
    // A shape of the same data is worth more than one that drops some, unless it saves far less.
    if saving(&same_data) >= saving(&less_data) / 5 * 4 {
        same_data
    } else {
        less_data
    }
}

/// Bytes of `dims`, row-major, under the tile of `like`.
fn bytes_of(like: &Shape, dims: &[u64]) -> u64 {
    let mut layout = like.layout.clone().unwrap_or_default();
    layout.minor_to_major = (0..dims.len() as u32).rev().collect();
    Shape {
        element_type: like.element_type,
        dimensions: dims.to_vec(),
        tuple: Vec::new(),
        layout: Some(layout),
    }
    .padded_bytes()
}

fn physical_sizes(shape: &Shape) -> Vec<u64> {
    shape
        .major_to_minor()
        .iter()
        .map(|&d| shape.dimensions.get(d).copied().unwrap_or(1))
        .collect()
}

fn candidate(shape: &Shape, change: ShapeChange, dimensions: Vec<u64>) -> BetterShape {
    BetterShape {
        change,
        size_bytes: bytes_of(shape, &dimensions),
        dimensions,
    }
}

/// Every choice of the two minor-most dimensions (ranks beyond 8 do not occur in practice and are
/// left alone).
fn moved(shape: &Shape) -> Vec<BetterShape> {
    let sizes = physical_sizes(shape);
    let rank = sizes.len();
    if rank > 8 {
        return Vec::new();
    }
    let mut out = Vec::new();
    for second in 0..rank {
        for minor in (0..rank).filter(|&m| m != second) {
            let mut order: Vec<u64> = (0..rank)
                .filter(|d| *d != second && *d != minor)
                .filter_map(|d| sizes.get(d).copied())
                .collect();
            order.extend([sizes[second], sizes[minor]]);
            if order != sizes {
                out.push(candidate(shape, ShapeChange::Move, order));
            }
        }
    }
    out
}

/// The innermost two, three, ... dimensions merged into one.
fn merged(shape: &Shape) -> Vec<BetterShape> {
    let sizes = physical_sizes(shape);
    (2..=sizes.len())
        .filter_map(|n| {
            let (outer, inner) = sizes.split_at(sizes.len() - n);
            let product = inner.iter().try_fold(1u64, |a, &d| a.checked_mul(d))?;
            let mut dims = outer.to_vec();
            dims.push(product);
            Some(candidate(shape, ShapeChange::Merge, dims))
        })
        .collect()
}

/// A dimension a little over a multiple of its tile, brought down to it: only where that takes
/// less than an eighth of the data.
fn rounded_down(shape: &Shape) -> Vec<BetterShape> {
    let dims = shape.physical_dimensions();
    let skip = dims.len() - shape.dimensions.len().min(dims.len());
    let dims = dims.get(skip..).unwrap_or_default();
    dims.iter()
        .enumerate()
        .filter_map(|(i, d)| {
            let down = d.size / d.tile * d.tile;
            if d.tile < 2 || down == d.size || down * 8 < d.size * 7 {
                return None;
            }
            let mut sizes: Vec<u64> = dims.iter().map(|d| d.size).collect();
            *sizes.get_mut(i)? = down;
            Some(candidate(shape, ShapeChange::RoundDown, sizes))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ElementType, Layout};

    fn tiled(name: &str, dims: &[u64]) -> Shape {
        Shape {
            element_type: ElementType::from_name(name).unwrap(),
            dimensions: dims.to_vec(),
            tuple: Vec::new(),
            layout: Some(Layout {
                minor_to_major: (0..dims.len() as u32).rev().collect(),
                tiles: vec![vec![8, 128]],
                ..Layout::default()
            }),
        }
    }

    #[test]
    fn causes_add_up_to_the_padding() {
        let s = tiled("s32", &[1024, 8, 4]);
        let c = causes(&s);
        assert_eq!(c.len(), 1);
        assert_eq!((c[0].dimension, c[0].size, c[0].padded), (Some(2), 4, 128));
        let s = tiled("f32", &[1000, 3]);
        let sum: u64 = causes(&s).iter().map(|c| c.bytes).sum();
        assert_eq!(sum, s.padded_bytes() - s.unpadded_bytes());
        let s = tiled("f32", &[129, 200]);
        let sum: u64 = causes(&s).iter().map(|c| c.bytes).sum();
        assert_eq!(sum, s.padded_bytes() - s.unpadded_bytes());
    }

    #[test]
    fn a_small_last_dimension_is_merged_or_moved() {
        let b = better_shape(&tiled("s32", &[8388608, 8, 4])).unwrap();
        assert_eq!(b.size_bytes, 1 << 30);
        let b = better_shape(&tiled("f32", &[1 << 20, 3])).unwrap();
        assert!(b.size_bytes < (1 << 20) * 3 * 4 * 3);
    }

    #[test]
    fn one_row_over_the_tile_is_rounded_down() {
        let b = better_shape(&tiled("f32", &[1024, 129])).unwrap();
        assert_eq!(
            (b.change, b.size_bytes),
            (ShapeChange::Move, 136 * 1024 * 4)
        );
        let b = better_shape(&tiled("f32", &[1025, 1_000_003])).unwrap();
        assert!(b.size_bytes < tiled("f32", &[1025, 1_000_003]).padded_bytes());
    }

    #[test]
    fn nothing_is_said_of_a_shape_that_fits() {
        assert_eq!(better_shape(&tiled("f32", &[1024, 1024])), None);
        assert!(causes(&tiled("f32", &[1024, 1024])).is_empty());
    }
}

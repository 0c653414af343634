//! Tile padding at the peak: per buffer, what each dimension costs and which shape would lose
//! less.

use std::cmp::Reverse;

use super::context::Context;
use super::labels::producer_of;
use crate::hlo::{InstructionId, Opcode, PhysicalDimension, Program, Shape};

/// Padding of one buffer at the peak.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Whether a convolution reads or makes it, so that its dimensions are given.
    pub is_convolution: bool,
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
#[non_exhaustive]
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
#[non_exhaustive]
pub struct BetterShape {
    /// How to get there.
    pub change: ShapeChange,
    /// Its logical dimensions; of a `Move` the last one is the minor-most.
    pub dimensions: Vec<u64>,
    /// Bytes it takes under the same tile.
    pub size_bytes: u64,
    /// Padding that it saves; data that it drops is no saving.
    pub saving_bytes: u64,
}

/// How a better shape differs from the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ShapeChange {
    /// The dimensions in another order.
    Move,
    /// Dimensions that follow each other merged into one.
    Merge,
    /// A dimension made smaller, to the nearest multiple of the tile.
    RoundDown,
}

/// Buffers at the peak with padding, most lost first, ties by position.
pub fn padding_rows(ctx: &Context<'_, '_>) -> Vec<PaddingRow> {
    let any = ctx.peak.buffers.iter().any(|b| b.padding_bytes() > 0);
    let convolutions = match any {
        true => Convolutions::new(ctx.program),
        false => Convolutions::default(),
    };
    let mut out: Vec<PaddingRow> = ctx
        .peak
        .buffers
        .iter()
        .enumerate()
        .filter(|(_, b)| b.padding_bytes() > 0)
        .map(|(i, b)| {
            let is_convolution = convolutions.touch([b.instruction, producer_of(ctx, b)]);
            let shape = b.shape.as_ref();
            let mut better = shape.filter(|_| !is_convolution).and_then(better_shape);
            if let Some(s) = &mut better {
                s.saving_bytes = s.saving_bytes.min(b.padding_bytes());
            }
            PaddingRow {
                buffer: i,
                size_bytes: b.counted_bytes,
                unpadded_bytes: b.unpadded_bytes,
                causes: shape.map(causes).unwrap_or_default(),
                is_convolution,
                better,
            }
        })
        .collect();
    out.sort_by_key(|r| (Reverse(r.padding_bytes()), r.buffer));
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

/// The shape of the same data (or, rounded down, of almost the same) that loses least under the
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
            .filter(|c| c.saving_bytes > lost / 10)
            .min_by_key(|c| (Reverse(c.saving_bytes), c.change, c.dimensions.clone()))
    };
    let same_data = best(moved(shape).into_iter().chain(merged(shape)).collect());
    let less_data = best(rounded_down(shape));
    let saving = |c: &Option<BetterShape>| c.as_ref().map_or(0, |c| c.saving_bytes);
    // A shape of the same data is worth more than one that drops some, unless it saves far less.
    if saving(&same_data) >= saving(&less_data) / 5 * 4 {
        same_data
    } else {
        less_data
    }
}

/// `dims`, from major to minor, under the tile of `like`.
fn laid_out(like: &Shape, dims: &[u64]) -> Shape {
    let mut layout = like.layout.clone().unwrap_or_default();
    layout.minor_to_major = (0..dims.len() as u32).rev().collect();
    Shape {
        element_type: like.element_type,
        dimensions: dims.to_vec(),
        tuple: Vec::new(),
        layout: Some(layout),
    }
}

fn physical_sizes(shape: &Shape) -> Vec<u64> {
    let sizes = shape.physical_dimensions().into_iter();
    sizes
        .filter(|d| d.dimension != usize::MAX)
        .map(|d| d.size)
        .collect()
}

/// A candidate that has the sizes `physical`, from major to minor, and the logical `dimensions`.
/// What it saves is padding: data that it drops does not count.
fn candidate(
    shape: &Shape,
    change: ShapeChange,
    physical: &[u64],
    dimensions: Vec<u64>,
) -> BetterShape {
    let padding = |s: &Shape| s.padded_bytes().saturating_sub(s.unpadded_bytes());
    let then = laid_out(shape, physical);
    BetterShape {
        change,
        dimensions,
        size_bytes: then.padded_bytes(),
        saving_bytes: padding(shape).saturating_sub(padding(&then)),
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
            order.extend(sizes.get(second));
            order.extend(sizes.get(minor));
            if order != sizes {
                out.push(candidate(shape, ShapeChange::Move, &order, order.clone()));
            }
        }
    }
    out
}

/// Neighbouring dimensions merged into one, so that the last or the one before it grows: only
/// those that follow each other in memory and in the program, for others need a transpose.
fn merged(shape: &Shape) -> Vec<BetterShape> {
    let order = shape.major_to_minor();
    let sizes = physical_sizes(shape);
    let rank = order.len();
    let mut out = Vec::new();
    for end in rank.saturating_sub(1)..=rank {
        for from in (0..end.saturating_sub(1)).rev() {
            let Some(run) = order.get(from..end) else {
                break;
            };
            let follows = |w: &[usize]| matches!(w, [a, b] if a + 1 == *b);
            if !run.windows(2).all(follows) {
                break;
            }
            let (Some(&first), Some(inner)) = (run.first(), sizes.get(from..end)) else {
                break;
            };
            let Some(product) = inner.iter().try_fold(1u64, |a, &d| a.checked_mul(d)) else {
                break;
            };
            let mut physical = sizes.clone();
            physical.splice(from..end, [product]);
            let mut logical = shape.dimensions.clone();
            logical.splice(first..first + run.len(), [product]);
            out.push(candidate(shape, ShapeChange::Merge, &physical, logical));
        }
    }
    out
}

/// A dimension a little over a multiple of its tile, brought down to it: only where that multiple
/// is the nearest, and takes less than an eighth of the data.
fn rounded_down(shape: &Shape) -> Vec<BetterShape> {
    let dims: Vec<PhysicalDimension> = shape
        .physical_dimensions()
        .into_iter()
        .filter(|d| d.dimension != usize::MAX)
        .collect();
    let mut out = Vec::new();
    for (i, d) in dims.iter().enumerate() {
        let down = d.size / d.tile.max(1) * d.tile;
        let is_nearest = d.size - down < d.padded.saturating_sub(d.size);
        if d.tile < 2 || down == 0 || !is_nearest || (d.size - down) > d.size / 8 {
            continue;
        }
        let mut physical: Vec<u64> = dims.iter().map(|d| d.size).collect();
        let mut logical = shape.dimensions.clone();
        if let (Some(p), Some(l)) = (physical.get_mut(i), logical.get_mut(d.dimension)) {
            (*p, *l) = (down, down);
            let change = ShapeChange::RoundDown;
            out.push(candidate(shape, change, &physical, logical));
        }
    }
    out
}

/// What convolutions of the user's read and make: their dimensions are fixed by the operation. (A
/// compiler may run matrix products as convolutions; those do not count.)
#[derive(Debug, Default)]
pub(crate) struct Convolutions {
    touches: Vec<bool>,
}

impl Convolutions {
    pub(crate) fn new(program: &Program<'_>) -> Self {
        let module = &program.module;
        let mut holds = vec![false; module.computations.len()];
        let mut touches = vec![false; module.instructions.len()];
        let mark = |flags: &mut Vec<bool>, at: usize| {
            if let Some(f) = flags.get_mut(at) {
                *f = true;
            }
        };
        for id in module.ids() {
            let i = module.instruction(id);
            if i.op_name.contains("conv_general_dilated") {
                mark(&mut touches, id.index());
                if module.computation(i.computation).is_fusion {
                    mark(&mut holds, i.computation.index());
                }
            }
        }
        for id in module.ids() {
            let called = module.called(id);
            if module.instruction(id).opcode == Opcode::Fusion
                && called
                    .iter()
                    .any(|c| holds.get(c.index()).copied().unwrap_or(false))
            {
                mark(&mut touches, id.index());
            }
        }
        // Backwards: operands come before their users.
        let computes = touches.clone();
        for at in (0..touches.len()).rev() {
            let id = InstructionId(at as u32);
            let opcode = module.instruction(id).opcode;
            let hands_on = opcode.keeps_elements() || opcode == Opcode::Convert;
            let reads = computes.get(at).copied().unwrap_or(false)
                || hands_on && touches.get(at).copied().unwrap_or(false);
            if reads {
                for o in module.operands(id) {
                    mark(&mut touches, o.index());
                }
            }
        }
        Convolutions { touches }
    }

    /// Whether a convolution reads or makes what any of these define.
    pub(crate) fn touch(&self, of: [Option<InstructionId>; 2]) -> bool {
        let touched = |i: InstructionId| self.touches.get(i.index()).copied().unwrap_or(false);
        of.into_iter().flatten().any(touched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::{ElementType, Layout};

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
    fn dropped_data_is_no_saving() {
        // 2048 costs what 2047 does; 2040 would drop data to save less than that.
        let s = tiled("f32", &[8, 2047, 16000]);
        assert!(rounded_down(&s).is_empty());
        let over = tiled("f32", &[8, 2049, 16000]);
        let [b] = &rounded_down(&over)[..] else {
            panic!("one candidate");
        };
        assert_eq!(b.dimensions, [8, 2048, 16000]);
        let padding = over.padded_bytes() - over.unpadded_bytes();
        assert_eq!(b.saving_bytes, padding);
        assert!(b.saving_bytes < over.padded_bytes() - b.size_bytes);
    }

    #[test]
    fn only_neighbours_in_program_and_memory_are_merged() {
        let merges = |order: &[u32]| {
            let mut s = tiled("f32", &[64, 3, 5]);
            if let Some(l) = &mut s.layout {
                l.minor_to_major = order.to_vec();
            }
            let found = merged(&s).into_iter().map(|b| b.dimensions);
            found.collect::<Vec<_>>()
        };
        assert_eq!(merges(&[2, 1, 0]), [vec![192, 5], vec![64, 15], vec![960]]);
        // Major to minor 2, 0, 1: the first two follow each other in the program, the last is
        // before them in memory.
        assert_eq!(merges(&[1, 0, 2]), [vec![192, 5]]);
        // Nothing does both.
        assert!(merges(&[0, 1, 2]).is_empty());
    }

    #[test]
    fn nothing_is_said_of_a_shape_that_fits() {
        assert_eq!(better_shape(&tiled("f32", &[1024, 1024])), None);
        assert!(causes(&tiled("f32", &[1024, 1024])).is_empty());
    }
}

//! Follows one dimension through the module: from a data argument's batch dimension to every
//! array that carries it.
//!
//! In: links, and the dimensions of arguments that are the batch. Out: [`BatchDimensions`]: per node,
//! the dimensions that carry it.

use rustc_hash::FxHashMap;

use super::values::{DimensionMap, Group, Link, NodeId, Piece, Values};

/// A dimension that carries the batch, alone or as a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchDimension {
    /// Dimension of the node.
    pub dimension: u8,
    /// Elements of this dimension per step of the batch (1: it is the batch).
    pub inner: u64,
}

/// Dimensions that carry the batch, by node.
#[derive(Debug, Clone, Default)]
pub struct BatchDimensions(FxHashMap<NodeId, Vec<BatchDimension>>);

/// A node with more such dimensions than this is no batch of anything.
const MOST: usize = 4;

impl BatchDimensions {
    /// Follows seeds `(node, dimension)` along all links, both ways.
    pub fn follow(values: &Values, seeds: &[(NodeId, u8)]) -> BatchDimensions {
        let mut batch_dimensions = BatchDimensions::default();
        let mut queue: Vec<(NodeId, BatchDimension)> = Vec::new();
        for &(node, dimension) in seeds {
            let batch_dimension = BatchDimension {
                dimension,
                inner: 1,
            };
            if batch_dimensions.add(values, node, batch_dimension) {
                queue.push((node, batch_dimension));
            }
        }
        while let Some((node, batch_dimension)) = queue.pop() {
            for (link, other) in values.neighbours(node) {
                for found in carried(link, link.a == node, batch_dimension) {
                    if batch_dimensions.add(values, other, found) {
                        queue.push((other, found));
                    }
                }
            }
        }
        batch_dimensions
    }

    fn add(&mut self, values: &Values, node: NodeId, batch_dimension: BatchDimension) -> bool {
        let size = values
            .dimensions(node)
            .get(usize::from(batch_dimension.dimension))
            .copied()
            .unwrap_or(0);
        if size <= 1 || size / batch_dimension.inner.max(1) == 0 {
            return false;
        }
        let list = self.0.entry(node).or_default();
        if list.len() >= MOST
            || list
                .iter()
                .any(|m| m.dimension == batch_dimension.dimension)
        {
            return false;
        }
        list.push(batch_dimension);
        true
    }

    /// Those of a node.
    pub fn of(&self, node: NodeId) -> &[BatchDimension] {
        self.0.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Number of nodes that carry the batch.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// `dimensions` of a node with every one that carries the batch scaled by `new` / `old`, rounded up.
    pub fn scale(&self, node: NodeId, dimensions: &mut [u64], old: u64, new: u64) {
        for m in self.of(node) {
            if let Some(d) = dimensions.get_mut(usize::from(m.dimension)) {
                *d = scaled(*d, m.inner, old, new);
            }
        }
    }
}

fn scaled(size: u64, inner: u64, old: u64, new: u64) -> u64 {
    let times = |v: u64| {
        let product = u128::from(v) * u128::from(new);
        u64::try_from(product.div_ceil(u128::from(old.max(1)))).unwrap_or(u64::MAX)
    };
    if inner > 1 && size.is_multiple_of(inner) {
        times(size / inner).saturating_mul(inner)
    } else {
        times(size)
    }
}

/// What carries the batch at the other end of a link.
fn carried(link: &Link, forward: bool, batch_dimension: BatchDimension) -> Vec<BatchDimension> {
    match &link.map {
        DimensionMap::Unrelated => Vec::new(),
        DimensionMap::Same => vec![batch_dimension],
        DimensionMap::Pairs(pairs) => pairs
            .iter()
            .map(|&(a, b)| if forward { (a, b) } else { (b, a) })
            .filter(|p| p.0 == batch_dimension.dimension)
            .map(|p| BatchDimension {
                dimension: p.1,
                inner: batch_dimension.inner,
            })
            .collect(),
        DimensionMap::Groups(groups) => regrouped(groups, forward, batch_dimension)
            .into_iter()
            .collect(),
    }
}

/// Where the batch is found again after a reshape. A dimension can be in several groups (tiles, and
/// what is inside a tile): the piece that its step falls into stands for it.
fn regrouped(
    groups: &[Group],
    forward: bool,
    batch_dimension: BatchDimension,
) -> Option<BatchDimension> {
    let sides = |g: &'_ Group| {
        if forward {
            (g.a.clone(), g.b.clone())
        } else {
            (g.b.clone(), g.a.clone())
        }
    };
    let of = |p: &Piece| {
        p.dimension == batch_dimension.dimension
            && p.stride <= batch_dimension.inner
            && batch_dimension.inner < p.stride.saturating_mul(p.size)
    };
    let (from, to, at) = groups.iter().find_map(|g| {
        let (from, to) = sides(g);
        let at = from.iter().position(of)?;
        Some((from, to, at))
    })?;
    let inner = batch_dimension.inner / from.get(at)?.stride.max(1);
    // Elements of the whole group per step of the seed.
    let below = from.iter().skip(at + 1);
    let stride = below.fold(inner, |s, d| s.saturating_mul(d.size));
    let mut below = 1u64;
    for piece in to.iter().rev() {
        let above = below.saturating_mul(piece.size);
        if stride < above {
            return (stride % below == 0).then_some(BatchDimension {
                dimension: piece.dimension,
                inner: (stride / below).saturating_mul(piece.stride),
            });
        }
        below = above;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(a: &[(u8, u64)], b: &[(u8, u64)]) -> [Group; 1] {
        let pieces = |list: &[(u8, u64)]| {
            let piece = |&(dimension, size): &(u8, u64)| Piece {
                dimension,
                size,
                stride: 1,
            };
            list.iter().map(piece).collect()
        };
        [Group {
            a: pieces(a),
            b: pieces(b),
        }]
    }

    #[test]
    fn a_factor_is_found_again_after_a_reshape() {
        let g = group(&[(0, 8), (1, 2048)], &[(0, 16384)]);
        let batch = BatchDimension {
            dimension: 0,
            inner: 1,
        };
        let merged = regrouped(&g, true, batch).unwrap();
        assert_eq!(
            merged,
            BatchDimension {
                dimension: 0,
                inner: 2048
            }
        );
        assert_eq!(regrouped(&g, false, merged), Some(batch));
        let sequence = BatchDimension {
            dimension: 1,
            inner: 1,
        };
        let merged = regrouped(&g, true, sequence).unwrap();
        assert_eq!(merged.inner, 1);
        assert_eq!(regrouped(&g, false, merged), Some(sequence));
    }

    #[test]
    fn factors_scale_in_whole_steps() {
        assert_eq!(scaled(16384, 2048, 16, 8), 8192);
        assert_eq!(scaled(2048, 2048, 16, 8), 2048);
        assert_eq!(scaled(3, 1, 2, 1), 2);
        assert_eq!(scaled(u64::MAX, 1, 1, u64::MAX), u64::MAX);
        assert_eq!(scaled(7, 1, 0, 2), 14);
    }
}

//! Follows one dimension through the module: from a data argument's batch dimension to every
//! array that carries it.
//!
//! In: links and seeds. Out: marks: per node, the dimensions that carry what was seeded.

use rustc_hash::FxHashMap;

use super::values::{DimensionMap, Group, Link, NodeId, Piece, Values};

/// A dimension that carries the seeded one, alone or as a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Dimension of the node.
    pub dimension: u8,
    /// Elements of this dimension per step of the seeded one (1: it is the seeded one).
    pub inner: u64,
}

/// Marks by node.
#[derive(Debug, Clone, Default)]
pub struct Marks(FxHashMap<NodeId, Vec<Mark>>);

/// A node with more marked dimensions than this is no batch of anything.
const MOST: usize = 4;

impl Marks {
    /// Follows seeds `(node, dimension)` along all links, both ways.
    pub fn flood(values: &Values, seeds: &[(NodeId, u8)]) -> Marks {
        let mut marks = Marks::default();
        let mut queue: Vec<(NodeId, Mark)> = Vec::new();
        for &(node, dimension) in seeds {
            let mark = Mark {
                dimension,
                inner: 1,
            };
            if marks.add(values, node, mark) {
                queue.push((node, mark));
            }
        }
        while let Some((node, mark)) = queue.pop() {
            for (link, other) in values.neighbours(node) {
                for found in carried(link, link.a == node, mark) {
                    if marks.add(values, other, found) {
                        queue.push((other, found));
                    }
                }
            }
        }
        marks
    }

    fn add(&mut self, values: &Values, node: NodeId, mark: Mark) -> bool {
        let size = values
            .dimensions(node)
            .get(usize::from(mark.dimension))
            .copied()
            .unwrap_or(0);
        if size <= 1 || size / mark.inner.max(1) == 0 {
            return false;
        }
        let list = self.0.entry(node).or_default();
        if list.len() >= MOST || list.iter().any(|m| m.dimension == mark.dimension) {
            return false;
        }
        list.push(mark);
        true
    }

    /// Marks of a node.
    pub fn of(&self, node: NodeId) -> &[Mark] {
        self.0.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Number of nodes with a mark.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// `dimensions` of a node with every marked one scaled by `new` / `old`, rounded up.
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

/// Marks that a mark on one end of a link gives the other end.
fn carried(link: &Link, forward: bool, mark: Mark) -> Vec<Mark> {
    match &link.map {
        DimensionMap::Unrelated => Vec::new(),
        DimensionMap::Same => vec![mark],
        DimensionMap::Pairs(pairs) => pairs
            .iter()
            .map(|&(a, b)| if forward { (a, b) } else { (b, a) })
            .filter(|p| p.0 == mark.dimension)
            .map(|p| Mark {
                dimension: p.1,
                inner: mark.inner,
            })
            .collect(),
        DimensionMap::Groups(groups) => regrouped(groups, forward, mark).into_iter().collect(),
    }
}

/// Where a mark is found again after a reshape. A dimension can be in several groups (tiles, and
/// what is inside a tile): the piece that the mark's step falls into stands for it.
fn regrouped(groups: &[Group], forward: bool, mark: Mark) -> Option<Mark> {
    let sides = |g: &'_ Group| {
        if forward {
            (g.a.clone(), g.b.clone())
        } else {
            (g.b.clone(), g.a.clone())
        }
    };
    let of = |p: &Piece| {
        p.dimension == mark.dimension
            && p.stride <= mark.inner
            && mark.inner < p.stride.saturating_mul(p.size)
    };
    let (from, to, at) = groups.iter().find_map(|g| {
        let (from, to) = sides(g);
        let at = from.iter().position(of)?;
        Some((from, to, at))
    })?;
    let inner = mark.inner / from.get(at)?.stride.max(1);
    // Elements of the whole group per step of the seed.
    let below = from.iter().skip(at + 1);
    let stride = below.fold(inner, |s, d| s.saturating_mul(d.size));
    let mut below = 1u64;
    for piece in to.iter().rev() {
        let above = below.saturating_mul(piece.size);
        if stride < above {
            return (stride % below == 0).then_some(Mark {
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
        let batch = Mark {
            dimension: 0,
            inner: 1,
        };
        let merged = regrouped(&g, true, batch).unwrap();
        assert_eq!(
            merged,
            Mark {
                dimension: 0,
                inner: 2048
            }
        );
        assert_eq!(regrouped(&g, false, merged), Some(batch));
        let sequence = Mark {
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

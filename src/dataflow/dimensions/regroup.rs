//! Reshapes and bitcasts: which dimensions of both sides hold the same elements.
//!
//! In: two shapes. Out: groups of their dimensions, or of parts of dimensions where tiles cut them.

use super::values::{Group, Piece};
use crate::hlo::Shape;

/// Dimensions as pieces, slowest first: as the program counts them, or as they lie.
pub(crate) fn ordered(shape: &Shape, physical: bool) -> Vec<Piece> {
    let rank = shape.dimensions.len();
    let order: Vec<usize> = if physical {
        shape.major_to_minor()
    } else {
        (0..rank).collect()
    };
    let piece = |d: usize| {
        Some(Piece {
            dimension: u8::try_from(d).ok()?,
            size: *shape.dimensions.get(d)?,
            stride: 1,
        })
    };
    order.into_iter().filter_map(piece).collect()
}

/// Dimensions as they lie, tiled ones cut into tiles and what is inside a tile; `None` where a
/// dimension does not fill its tiles.
pub(crate) fn tiled(shape: &Shape) -> Option<Vec<Piece>> {
    let tile = shape.layout.as_ref()?.tiles.first()?;
    let mut out = ordered(shape, true);
    let from = out.len().checked_sub(tile.len())?;
    let mut inside = Vec::new();
    for (piece, &t) in out.iter_mut().skip(from).zip(tile) {
        if piece.size == 1 {
            continue;
        }
        if t == 0 || piece.size % t != 0 {
            return None;
        }
        inside.push(Piece { size: t, ..*piece });
        piece.size /= t;
        piece.stride = t;
    }
    out.extend(inside);
    Some(out)
}

/// Cuts both lists into the shortest runs of equal product. A rest that does not match is left
/// out. Pieces of size one belong to no group.
pub(crate) fn regroup(a: &[Piece], b: &[Piece]) -> Box<[Group]> {
    let mut out = Vec::new();
    let mut group = Group::default();
    let (mut pa, mut pb) = (1u64, 1u64);
    let mut a = a.iter().filter(|d| d.size != 1);
    let mut b = b.iter().filter(|d| d.size != 1);
    loop {
        if pa == pb && !group.a.is_empty() && !group.b.is_empty() {
            out.push(std::mem::take(&mut group));
            (pa, pb) = (1, 1);
        }
        let next = if pa <= pb { a.next() } else { None };
        if let Some(&d) = next {
            pa = pa.saturating_mul(d.size);
            group.a.push(d);
        } else if let Some(&d) = b.next() {
            pb = pb.saturating_mul(d.size);
            group.b.push(d);
        } else {
            return out.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(list: &[(u8, u64)]) -> Vec<Piece> {
        list.iter()
            .map(|&(dimension, size)| Piece {
                dimension,
                size,
                stride: 1,
            })
            .collect()
    }

    #[test]
    fn reshapes_fall_into_groups() {
        let group = |a: &[(u8, u64)], b: &[(u8, u64)]| regroup(&pieces(a), &pieces(b));
        let g = group(
            &[(0, 8), (1, 2048), (2, 16), (3, 128)],
            &[(0, 16384), (1, 2048)],
        );
        assert_eq!(g.len(), 2);
        assert_eq!(g[0].a, pieces(&[(0, 8), (1, 2048)]));
        assert_eq!(g[0].b, pieces(&[(0, 16384)]));
        assert_eq!(g[1].a, pieces(&[(2, 16), (3, 128)]));
        assert!(group(&[(0, 6)], &[(0, 4)]).is_empty());
        assert!(group(&[], &[(0, 1)]).is_empty());
    }

    #[test]
    fn tiles_are_dimensions_of_their_own() {
        use crate::hlo::{ElementType, Layout};
        let shape = |d: &[u64], order: &[u32]| Shape {
            layout: Some(Layout {
                minor_to_major: order.to_vec(),
                tiles: vec![vec![8, 128]],
                ..Layout::default()
            }),
            ..Shape::array(ElementType::F32, d)
        };
        let a = tiled(&shape(&[16, 2048, 1], &[1, 0, 2])).unwrap();
        let b = tiled(&shape(&[2, 16, 8, 128], &[3, 2, 1, 0])).unwrap();
        let g = regroup(&a, &b);
        let pairs: Vec<(u8, u8)> = g
            .iter()
            .map(|g| (g.a[0].dimension, g.b[0].dimension))
            .collect();
        assert_eq!(pairs, [(0, 0), (1, 1), (0, 2), (1, 3)]);
        assert!(tiled(&shape(&[8, 100], &[1, 0])).is_none());
    }
}

//! Squarified treemap layout (Bruls, Huizing, van Wijk 2000). In: weights and an area. Out: one
//! rectangle a weight, whose areas are in proportion, side by side, as square as can be.

use super::canvas::Area;

/// Rectangles for `weights`, in their order. Best looking when weights descend. Weights that are
/// zero, or all of them when their sum is, get empty rectangles.
pub(crate) fn squarify(weights: &[f64], area: Area) -> Vec<Area> {
    let weights: Vec<f64> = weights
        .iter()
        .map(|w| if w.is_finite() { w.max(0.0) } else { 0.0 })
        .collect();
    let total: f64 = weights.iter().sum();
    let nothing = Area::new(area.x, area.y, 0.0, 0.0);
    if total <= 0.0 || !total.is_finite() || area.w <= 0.0 || area.h <= 0.0 {
        return vec![nothing; weights.len()];
    }
    let scale = f64::from(area.w) * f64::from(area.h) / total;
    let mut out = Vec::with_capacity(weights.len());
    let mut free = area;
    let mut rest = weights.as_slice();
    let mut positive = weights.iter().filter(|w| **w > 0.0).count();
    while !rest.is_empty() {
        let short = f64::from(free.w.min(free.h)).max(f64::MIN_POSITIVE);
        let (count, sum) = best_row(rest, scale, short);
        let (row, after) = rest.split_at(count);
        positive -= row.iter().filter(|w| **w > 0.0).count();
        place_row(row, sum, scale, positive > 0, &mut free, &mut out);
        rest = after;
    }
    out
}

/// How many of `weights` go in one row along a side of length `short`, and their sum: as long as
/// the worst aspect ratio gets better.
fn best_row(weights: &[f64], scale: f64, short: f64) -> (usize, f64) {
    let (mut sum, mut least, mut most) = (0.0, f64::INFINITY, 0.0f64);
    let mut worst = f64::INFINITY;
    for (i, w) in weights.iter().enumerate() {
        let a = w * scale;
        let (s, lo, hi) = (sum + a, least.min(a), most.max(a));
        let ratio = (short * short * hi / (s * s)).max(s * s / (short * short * lo));
        // Zero weights have no ratio (NaN): they end a row.
        let better = ratio <= worst;
        if i > 0 && !better {
            return (i, sum / scale);
        }
        (sum, least, most, worst) = (s, lo, hi, ratio);
    }
    (weights.len(), sum / scale)
}

/// Lays a row along the free area's shorter side and takes it off the free area.
fn place_row(row: &[f64], sum: f64, scale: f64, more: bool, free: &mut Area, out: &mut Vec<Area>) {
    let upright = free.w >= free.h;
    let side = f64::from(if upright { free.h } else { free.w });
    let all = f64::from(if upright { free.w } else { free.h });
    let depth = if more {
        (sum * scale / side.max(f64::MIN_POSITIVE)).min(all) as f32
    } else {
        all as f32
    };
    let mut done = 0.0;
    for w in row {
        let share = |part: f64| (if sum > 0.0 { part / sum * side } else { 0.0 }) as f32;
        let (from, to) = (share(done), share(done + w));
        done += w;
        out.push(if upright {
            Area::new(free.x, free.y + from, depth, to - from)
        } else {
            Area::new(free.x + from, free.y, to - from, depth)
        });
    }
    *free = if upright {
        Area::new(free.x + depth, free.y, free.w - depth, free.h)
    } else {
        Area::new(free.x, free.y + depth, free.w, free.h - depth)
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(a: &Area) -> f64 {
        f64::from(a.w) * f64::from(a.h)
    }

    #[test]
    fn the_papers_example_starts_with_two_stacked() {
        let out = squarify(
            &[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0],
            Area::new(0.0, 0.0, 6.0, 4.0),
        );
        assert_eq!(out[0], Area::new(0.0, 0.0, 3.0, 2.0));
        assert_eq!(out[1], Area::new(0.0, 2.0, 3.0, 2.0));
        assert!((size(&out[6]) - 1.0).abs() < 1e-4);
    }

    #[test]
    fn odd_weights_give_empty_rectangles() {
        let area = Area::new(0.0, 0.0, 10.0, 10.0);
        assert!(squarify(&[], area).is_empty());
        for w in [vec![0.0, 0.0], vec![f64::NAN], vec![-1.0, f64::INFINITY]] {
            assert!(squarify(&w, area).iter().all(|a| size(a) == 0.0));
        }
        let some = squarify(&[4.0, 0.0], area);
        assert_eq!((size(&some[0]), size(&some[1])), (100.0, 0.0));
    }

    proptest! {
        #[test]
        fn areas_are_proportional_inside_and_apart(
            mut weights in proptest::collection::vec(0u64..1_000_000_000, 1..60),
            sorted in any::<bool>(),
            w in 20f32..2000.0,
            h in 20f32..2000.0,
        ) {
            if sorted {
                weights.sort_unstable_by(|a, b| b.cmp(a));
            }
            let weights: Vec<f64> = weights.into_iter().map(|w| w as f64).collect();
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let area = Area::new(5.0, 7.0, w, h);
            let out = squarify(&weights, area);
            prop_assert_eq!(out.len(), weights.len());
            let all = size(&area);
            for (a, weight) in out.iter().zip(&weights) {
                prop_assert!((size(a) - weight / total * all).abs() < all * 1e-3 + 0.5);
                prop_assert!(a.x >= area.x - 0.01 && a.right() <= area.right() + 0.02);
                prop_assert!(a.y >= area.y - 0.01 && a.bottom() <= area.bottom() + 0.02);
            }
            for (i, a) in out.iter().enumerate() {
                for b in out.iter().skip(i + 1) {
                    let x = a.right().min(b.right()) - a.x.max(b.x);
                    let y = a.bottom().min(b.bottom()) - a.y.max(b.y);
                    prop_assert!(x < 0.01 || y < 0.01, "{:?} {:?}", a, b);
                }
            }
        }
    }
}

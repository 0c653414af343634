//! Packs an arena the way the compiler does: items go in one by one, the largest first, each into
//! the smallest gap between already placed items that are alive at the same time. A second try
//! takes the longest-lived first; the smaller arena wins.
//!
//! In: items with sizes and live ranges. Out: an offset for each, and the arena's size.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Something to place: a size, and the half-open stretches of program points it is alive over. A
/// buffer that dies and comes back has several, and one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackItem {
    /// Bytes.
    pub size_bytes: u64,
    /// Live ranges `[start, end)`, by start.
    pub ranges: Vec<(u32, u32)>,
}

/// Where everything went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packing {
    /// Offset of each item, in the order given.
    pub offsets: Vec<u64>,
    /// End of the highest item.
    pub size_bytes: u64,
    /// Items that were put on top without a search for gaps, because the budget was spent.
    pub unsearched: usize,
}

/// Neighbours looked at, over a whole packing, before gaps are no longer searched for: keeps a
/// packing of any size within seconds.
const BUDGET: u64 = 4_000_000;

/// Packs `items` at multiples of `alignment` bytes, both ways, and returns the smaller arena.
pub fn pack(items: &[PackItem], alignment: u64) -> Packing {
    let span = |i: &PackItem| {
        i.ranges
            .iter()
            .map(|r| u64::from(r.1.saturating_sub(r.0)))
            .sum::<u64>()
    };
    let mut by_size: Vec<u32> = (0..items.len() as u32).collect();
    let mut by_life = by_size.clone();
    by_size.sort_by_key(|&i| (Reverse(items[i as usize].size_bytes), i));
    by_life.sort_by_key(|&i| {
        let item = &items[i as usize];
        (Reverse(span(item)), Reverse(item.size_bytes), i)
    });
    let spatial = pack_in_order(items, &by_size, alignment, BUDGET);
    if spatial.size_bytes <= lower_bound(items) {
        return spatial;
    }
    let temporal = pack_in_order(items, &by_life, alignment, BUDGET);
    if temporal.size_bytes < spatial.size_bytes {
        temporal
    } else {
        spatial
    }
}

/// The most that is alive at once: no packing is smaller.
pub fn lower_bound(items: &[PackItem]) -> u64 {
    peak_of(items).1
}

/// First program point of the largest sum of live sizes, and that sum.
pub fn peak_of(items: &[PackItem]) -> (u32, u64) {
    let mut edges: Vec<(u32, bool, u64)> = Vec::with_capacity(items.len() * 2);
    for item in items {
        for &(start, end) in &item.ranges {
            if end > start {
                edges.push((start, true, item.size_bytes));
                edges.push((end, false, item.size_bytes));
            }
        }
    }
    // At equal points what ends goes first.
    edges.sort_unstable();
    let mut live = 0u64;
    let mut best = (0, 0);
    let mut i = 0;
    while let Some(&(point, ..)) = edges.get(i) {
        while let Some(&(p, begins, size)) = edges.get(i) {
            if p != point {
                break;
            }
            live = if begins {
                live.saturating_add(size)
            } else {
                live.saturating_sub(size)
            };
            i += 1;
        }
        if live > best.1 {
            best = (point, live);
        }
    }
    best
}

fn pack_in_order(items: &[PackItem], order: &[u32], alignment: u64, budget: u64) -> Packing {
    let mut out = Packing {
        offsets: vec![0; items.len()],
        ..Packing::default()
    };
    let mut placed = Placed::new(items);
    let mut spent = 0u64;
    let mut neighbours: Vec<(u64, u64)> = Vec::new();
    for &i in order {
        let Some(item) = items.get(i as usize) else {
            continue;
        };
        if item.size_bytes == 0 || item.ranges.iter().all(|r| r.1 <= r.0) {
            continue;
        }
        let offset = if spent < budget {
            neighbours.clear();
            for &(start, end) in &item.ranges {
                placed.alive_during(start, end, &mut |n| {
                    let at = out.offsets[n as usize];
                    let size = items[n as usize].size_bytes;
                    neighbours.push((at, at.saturating_add(size)));
                });
            }
            spent += neighbours.len() as u64 + 8;
            neighbours.sort_unstable();
            best_gap(&neighbours, item.size_bytes, alignment)
        } else {
            out.unsearched += 1;
            let top = item
                .ranges
                .iter()
                .map(|&(s, e)| placed.top.max(s, e))
                .max()
                .unwrap_or(0);
            round_up(top, alignment)
        };
        out.offsets[i as usize] = offset;
        let end = offset.saturating_add(item.size_bytes);
        out.size_bytes = out.size_bytes.max(end);
        placed.insert(i, item, end);
    }
    out
}

/// Offset of the smallest gap that takes `size`, the lowest of equals; above everything if none
/// does. `taken` is sorted.
fn best_gap(taken: &[(u64, u64)], size: u64, alignment: u64) -> u64 {
    let mut best: Option<(u64, u64)> = None;
    let mut free = 0u64;
    for &(start, end) in taken {
        let at = round_up(free, alignment);
        if start > at && start - at >= size {
            let gap = start - at;
            if best.is_none_or(|(g, _)| gap < g) {
                best = Some((gap, at));
            }
        }
        free = free.max(end);
    }
    best.map_or_else(|| round_up(free, alignment), |(_, at)| at)
}

fn round_up(value: u64, multiple: u64) -> u64 {
    let m = multiple.max(1);
    value.div_ceil(m).saturating_mul(m)
}

/// Placed items, to be asked who is alive during a stretch: those alive at its first point (from a
/// tree over points) and those that begin within it (from an ordered set).
struct Placed {
    leaves: usize,
    covering: Vec<Vec<u32>>,
    begins: BTreeSet<(u32, u32)>,
    top: MaxTree,
}

impl Placed {
    fn new(items: &[PackItem]) -> Self {
        let points = items
            .iter()
            .flat_map(|i| i.ranges.iter().map(|r| r.1))
            .max()
            .unwrap_or(0);
        let leaves = (points as usize + 1).next_power_of_two();
        Placed {
            leaves,
            covering: vec![Vec::new(); 2 * leaves],
            begins: BTreeSet::new(),
            top: MaxTree::new(leaves),
        }
    }

    fn insert(&mut self, index: u32, item: &PackItem, end_offset: u64) {
        for &(start, end) in &item.ranges {
            if end <= start {
                continue;
            }
            let (mut a, mut b) = (start as usize + self.leaves, end as usize + self.leaves);
            while a < b {
                if a % 2 == 1 {
                    self.covering[a].push(index);
                    a += 1;
                }
                if b % 2 == 1 {
                    b -= 1;
                    self.covering[b].push(index);
                }
                a /= 2;
                b /= 2;
            }
            self.begins.insert((start, index));
            self.top.raise(start, end, end_offset);
        }
    }

    fn alive_during(&self, start: u32, end: u32, each: &mut dyn FnMut(u32)) {
        if end <= start {
            return;
        }
        let mut node = start as usize + self.leaves;
        while node > 0 {
            for &i in self.covering.get(node).map_or(&[][..], Vec::as_slice) {
                each(i);
            }
            node /= 2;
        }
        for &(_, i) in self.begins.range((start.saturating_add(1), 0)..(end, 0)) {
            each(i);
        }
    }
}

/// Largest value over a stretch of points; values over stretches only rise.
struct MaxTree {
    leaves: usize,
    /// Largest value raised over the whole of a node's stretch.
    whole: Vec<u64>,
    /// Largest value anywhere in a node's stretch.
    any: Vec<u64>,
}

impl MaxTree {
    fn new(leaves: usize) -> Self {
        MaxTree {
            leaves,
            whole: vec![0; 2 * leaves],
            any: vec![0; 2 * leaves],
        }
    }

    fn raise(&mut self, start: u32, end: u32, value: u64) {
        self.visit(1, 0, self.leaves, (start as usize, end as usize), value);
    }

    fn visit(&mut self, node: usize, lo: usize, hi: usize, range: (usize, usize), value: u64) {
        if range.1 <= lo || hi <= range.0 {
            return;
        }
        self.any[node] = self.any[node].max(value);
        if range.0 <= lo && hi <= range.1 {
            self.whole[node] = self.whole[node].max(value);
            return;
        }
        let mid = lo + (hi - lo) / 2;
        self.visit(2 * node, lo, mid, range, value);
        self.visit(2 * node + 1, mid, hi, range, value);
    }

    fn max(&self, start: u32, end: u32) -> u64 {
        self.look(1, 0, self.leaves, (start as usize, end as usize))
    }

    fn look(&self, node: usize, lo: usize, hi: usize, range: (usize, usize)) -> u64 {
        if range.1 <= lo || hi <= range.0 {
            return 0;
        }
        if range.0 <= lo && hi <= range.1 {
            return self.any[node];
        }
        let mid = lo + (hi - lo) / 2;
        self.whole[node]
            .max(self.look(2 * node, lo, mid, range))
            .max(self.look(2 * node + 1, mid, hi, range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(size: u64, start: u32, end: u32) -> PackItem {
        PackItem {
            size_bytes: size,
            ranges: vec![(start, end)],
        }
    }

    fn check(items: &[PackItem], p: &Packing, alignment: u64) {
        for (i, a) in items.iter().enumerate() {
            assert_eq!(p.offsets[i] % alignment, 0);
            let alive = a.ranges.iter().any(|r| r.0 < r.1);
            assert!(p.offsets[i] + a.size_bytes <= p.size_bytes || !alive);
            for (j, b) in items.iter().enumerate().skip(i + 1) {
                let together = a
                    .ranges
                    .iter()
                    .any(|x| b.ranges.iter().any(|y| x.0.max(y.0) < x.1.min(y.1)));
                let apart = p.offsets[i] + a.size_bytes <= p.offsets[j]
                    || p.offsets[j] + b.size_bytes <= p.offsets[i];
                assert!(!together || apart || a.size_bytes == 0 || b.size_bytes == 0);
            }
        }
        assert!(p.size_bytes >= lower_bound(items));
    }

    #[test]
    fn the_smallest_gap_that_fits_is_taken() {
        // 0..10 and 40..50 and 55..65 taken: 5 goes between the last two.
        assert_eq!(best_gap(&[(0, 10), (40, 50), (55, 65)], 5, 1), 50);
        assert_eq!(best_gap(&[(0, 10), (40, 50), (55, 65)], 6, 1), 10);
        assert_eq!(best_gap(&[(0, 10), (40, 50), (55, 65)], 31, 1), 65);
        assert_eq!(best_gap(&[(0, 10), (40, 50)], 4, 16), 16);
        assert_eq!(best_gap(&[], 4, 16), 0);
    }

    #[test]
    fn what_never_meets_shares_its_place() {
        let items = [item(100, 0, 5), item(100, 5, 9), item(50, 0, 9)];
        let p = pack(&items, 1);
        assert_eq!(p.size_bytes, 150);
        assert_eq!(p.offsets[0], p.offsets[1]);
        assert_eq!(peak_of(&items), (0, 150));
    }

    #[test]
    fn a_spent_budget_still_packs_without_overlap() {
        let items: Vec<PackItem> = (0..40u32)
            .map(|i| item(u64::from(i % 7 + 1) * 3, i, i + 9))
            .collect();
        let order: Vec<u32> = (0..40).collect();
        let p = pack_in_order(&items, &order, 4, 60);
        assert!(p.unsearched > 0);
        check(&items, &p, 4);
    }

    #[test]
    fn many_ranges_take_little_time() {
        let items: Vec<PackItem> = (0..40_000u32)
            .map(|i| {
                let start = i.wrapping_mul(2_654_435_761) % 40_000;
                item(u64::from(i % 977) * 512 + 1, start, start + 1 + i % 2_000)
            })
            .collect();
        let p = pack(&items, 512);
        assert!(p.size_bytes >= lower_bound(&items) && p.unsearched > 0);
    }

    #[test]
    fn huge_sizes_saturate() {
        let items = [item(u64::MAX, 0, 4), item(u64::MAX, 1, 3)];
        assert_eq!(pack(&items, 512).size_bytes, u64::MAX);
    }

    proptest! {
        #[test]
        fn nothing_alive_together_overlaps(
            raw in proptest::collection::vec((0u64..2000, 0u32..60, 0u32..30, 0u32..9), 0..60),
            alignment in prop::sample::select(vec![1u64, 8, 128]),
            budget in prop::sample::select(vec![0u64, 50, BUDGET]),
        ) {
            let items: Vec<PackItem> = raw
                .iter()
                .map(|&(size, s, len, again)| PackItem {
                    size_bytes: size,
                    ranges: if again > 6 {
                        vec![(s, s + len), (s + len + again, s + len + 2 * again)]
                    } else {
                        vec![(s, s + len)]
                    },
                })
                .collect();
            check(&items, &pack(&items, alignment), alignment);
            let order: Vec<u32> = (0..items.len() as u32).collect();
            check(&items, &pack_in_order(&items, &order, alignment, budget), alignment);
        }
    }
}

//! Length of the union of address ranges as ranges come and go: in on-chip memory, live buffers
//! may overlap in address, and then their plain sum is more than they occupy.

/// Keeps the covered length over a fixed set of coordinates; adding or removing a range costs
/// O(log n).
#[derive(Debug)]
pub struct RangeUnion {
    coordinates: Vec<u64>,
    /// Per node: how many ranges cover it whole, and its covered length.
    nodes: Vec<(u32, u64)>,
}

impl RangeUnion {
    /// A union over ranges whose ends are all among `ends`.
    pub fn new(mut ends: Vec<u64>) -> Self {
        ends.sort_unstable();
        ends.dedup();
        let leaves = ends.len().saturating_sub(1).max(1);
        RangeUnion {
            coordinates: ends,
            nodes: vec![(0, 0); 4 * leaves],
        }
    }

    /// Covered length now.
    pub fn covered(&self) -> u64 {
        self.nodes.get(1).map_or(0, |n| n.1)
    }

    /// Adds `[start, end)`.
    pub fn add(&mut self, start: u64, end: u64) {
        self.change(start, end, true);
    }

    /// Removes a range added before.
    pub fn remove(&mut self, start: u64, end: u64) {
        self.change(start, end, false);
    }

    fn change(&mut self, start: u64, end: u64, add: bool) {
        let (Ok(a), Ok(b)) = (
            self.coordinates.binary_search(&start),
            self.coordinates.binary_search(&end),
        ) else {
            return;
        };
        if a < b {
            self.update(1, 0, self.coordinates.len() - 1, a, b, add);
        }
    }

    /// Node `n` stands for the elementary ranges `lo..hi`.
    fn update(&mut self, n: usize, lo: usize, hi: usize, a: usize, b: usize, add: bool) {
        if a <= lo && hi <= b {
            let count = &mut self.nodes[n].0;
            *count = if add {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        } else {
            let mid = lo + (hi - lo) / 2;
            if a < mid {
                self.update(2 * n, lo, mid, a, b, add);
            }
            if b > mid {
                self.update(2 * n + 1, mid, hi, a, b, add);
            }
        }
        self.nodes[n].1 = if self.nodes[n].0 > 0 {
            self.coordinates[hi] - self.coordinates[lo]
        } else if hi - lo > 1 {
            self.nodes[2 * n].1 + self.nodes[2 * n + 1].1
        } else {
            0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_count_once() {
        let mut u = RangeUnion::new(vec![0, 10, 5, 20, 30]);
        u.add(0, 10);
        u.add(5, 20);
        assert_eq!(u.covered(), 20);
        u.remove(0, 10);
        assert_eq!(u.covered(), 15);
        u.add(5, 20);
        u.remove(5, 20);
        assert_eq!(u.covered(), 15);
        u.add(20, 30);
        assert_eq!(u.covered(), 25);
    }

    #[test]
    fn nothing_is_covered_by_nothing() {
        let mut u = RangeUnion::new(vec![]);
        assert_eq!(u.covered(), 0);
        u.add(3, 3);
        assert_eq!(u.covered(), 0);
    }
}

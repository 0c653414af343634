//! Partitions of the devices into classes that hold identical data, interned: two partitions are
//! equal if and only if their ids are, and operations on ids are remembered.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

/// A partition of the devices; meaningful with the [`DeviceClasses`] that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceClassesId(pub(crate) u32);

impl DeviceClassesId {
    /// One class: all devices hold the same.
    pub const ONE: DeviceClassesId = DeviceClassesId(0);

    /// Position in its table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Labels kept at most, over all partitions; beyond it every device counts as its own class.
const MAX_LABELS: usize = 1 << 24;

/// All partitions seen. Labels are canonical: numbered by first appearance, from 0.
#[derive(Debug)]
pub struct DeviceClasses {
    devices: usize,
    /// Partition after partition, one label a device.
    labels: Vec<u32>,
    counts: Vec<u32>,
    by_hash: FxHashMap<u64, Vec<u32>>,
    refined: FxHashMap<(u32, u32), u32>,
    joined: FxHashMap<(u32, u32), u32>,
}

impl DeviceClasses {
    /// For that many devices, at least 1.
    pub fn new(devices: usize) -> Self {
        let devices = devices.clamp(1, u32::MAX as usize);
        let mut out = DeviceClasses {
            devices,
            labels: Vec::new(),
            counts: Vec::new(),
            by_hash: FxHashMap::default(),
            refined: FxHashMap::default(),
            joined: FxHashMap::default(),
        };
        out.add(vec![0; devices], 1);
        if devices > 1 {
            out.add((0..devices as u32).collect(), devices as u32);
        }
        out
    }

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Every device its own class: nothing is known to be equal.
    pub fn own(&self) -> DeviceClassesId {
        DeviceClassesId(u32::from(self.devices > 1))
    }

    /// Number of classes, at least 1.
    pub fn count(&self, id: DeviceClassesId) -> u32 {
        self.counts.get(id.0 as usize).copied().unwrap_or(1)
    }

    /// Class of each device, numbered by first appearance.
    pub fn labels(&self, id: DeviceClassesId) -> &[u32] {
        let from = id.0 as usize * self.devices;
        self.labels
            .get(from..from + self.devices)
            .unwrap_or_default()
    }

    fn add(&mut self, labels: Vec<u32>, count: u32) -> u32 {
        let id = self.counts.len() as u32;
        self.by_hash.entry(hash(&labels)).or_default().push(id);
        self.counts.push(count);
        self.labels.extend(labels);
        id
    }

    /// The partition in which devices with equal keys are together. `keys` has one entry a
    /// device; with another length, every device is its own.
    pub fn of_keys<K: Eq + Hash>(&mut self, keys: &[K]) -> DeviceClassesId {
        if keys.len() != self.devices {
            return self.own();
        }
        let mut label_of: FxHashMap<&K, u32> = FxHashMap::default();
        let labels: Vec<u32> = keys
            .iter()
            .map(|k| {
                let next = label_of.len() as u32;
                *label_of.entry(k).or_insert(next)
            })
            .collect();
        let count = label_of.len() as u32;
        let known = self.by_hash.get(&hash(&labels)).and_then(|ids| {
            ids.iter()
                .find(|&&id| self.labels(DeviceClassesId(id)) == labels)
                .copied()
        });
        match known {
            Some(id) => DeviceClassesId(id),
            None if self.labels.len() + labels.len() > MAX_LABELS => self.own(),
            None => DeviceClassesId(self.add(labels, count)),
        }
    }

    /// The coarsest partition finer than both: devices are together if both say so.
    pub fn refine(&mut self, a: DeviceClassesId, b: DeviceClassesId) -> DeviceClassesId {
        if a == b || b == DeviceClassesId::ONE || a == self.own() {
            return a;
        }
        if a == DeviceClassesId::ONE || b == self.own() {
            return b;
        }
        let key = (a.0.min(b.0), a.0.max(b.0));
        if let Some(&id) = self.refined.get(&key) {
            return DeviceClassesId(id);
        }
        let pairs: Vec<(u32, u32)> = self
            .labels(a)
            .iter()
            .copied()
            .zip(self.labels(b).iter().copied())
            .collect();
        let id = self.of_keys(&pairs);
        self.refined.insert(key, id.0);
        id
    }

    /// The finest partition coarser than both: devices are together if a chain of "the same"
    /// from either leads from one to the other.
    pub fn join(&mut self, a: DeviceClassesId, b: DeviceClassesId) -> DeviceClassesId {
        if a == b || a == DeviceClassesId::ONE || b == self.own() {
            return a;
        }
        if b == DeviceClassesId::ONE || a == self.own() {
            return b;
        }
        let key = (a.0.min(b.0), a.0.max(b.0));
        if let Some(&id) = self.joined.get(&key) {
            return DeviceClassesId(id);
        }
        // Classes of `a`, united wherever a class of `b` holds members of both.
        let mut parent: Vec<u32> = (0..self.count(a)).collect();
        let mut first_in_b = vec![u32::MAX; self.count(b) as usize];
        for (&x, &y) in self.labels(a).iter().zip(self.labels(b)) {
            let x = root(&mut parent, x);
            if let Some(seen) = first_in_b.get_mut(y as usize) {
                if *seen == u32::MAX {
                    *seen = x;
                } else {
                    let other = root(&mut parent, *seen);
                    if let Some(p) = parent.get_mut(x as usize) {
                        *p = other;
                    }
                }
            }
        }
        let keys: Vec<u32> = self
            .labels(a)
            .iter()
            .map(|&x| root(&mut parent, x))
            .collect();
        let id = self.of_keys(&keys);
        self.joined.insert(key, id.0);
        id
    }
}

fn root(parent: &mut [u32], mut x: u32) -> u32 {
    loop {
        let up = parent.get(x as usize).copied().unwrap_or(x);
        if up == x {
            return x;
        }
        let above = parent.get(up as usize).copied().unwrap_or(up);
        if let Some(p) = parent.get_mut(x as usize) {
            *p = above;
        }
        x = above;
    }
}

fn hash(labels: &[u32]) -> u64 {
    let mut h = FxHasher::default();
    labels.hash(&mut h);
    h.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_partitions_have_equal_ids() {
        let mut c = DeviceClasses::new(4);
        let a = c.of_keys(&[7, 7, 3, 3]);
        let b = c.of_keys(&["x", "x", "y", "y"]);
        assert_eq!(a, b);
        assert_eq!(c.labels(a), [0, 0, 1, 1]);
        assert_eq!(c.count(a), 2);
        assert_eq!(c.of_keys(&[1, 1, 1, 1]), DeviceClassesId::ONE);
        assert_eq!(c.of_keys(&[4, 3, 2, 1]), c.own());
        assert_eq!(c.of_keys(&[1]), c.own(), "the wrong length");
    }

    #[test]
    fn one_device_has_one_class() {
        let mut c = DeviceClasses::new(1);
        assert_eq!(c.own(), DeviceClassesId::ONE);
        assert_eq!(c.of_keys(&[9]), DeviceClassesId::ONE);
    }

    #[test]
    fn rows_and_columns() {
        let mut c = DeviceClasses::new(4);
        let rows = c.of_keys(&[0, 0, 1, 1]);
        let columns = c.of_keys(&[0, 1, 0, 1]);
        assert_eq!(c.refine(rows, columns), c.own());
        assert_eq!(c.join(rows, columns), DeviceClassesId::ONE);
    }

    fn partition() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0u8..4, 12)
    }

    proptest! {
        #[test]
        fn operations_keep_their_laws(a in partition(), b in partition(), d in partition()) {
            let mut c = DeviceClasses::new(12);
            let (a, b, d) = (c.of_keys(&a), c.of_keys(&b), c.of_keys(&d));
            let (ab, ba) = (c.refine(a, b), c.refine(b, a));
            prop_assert_eq!(ab, ba);
            prop_assert_eq!(c.refine(a, a), a);
            prop_assert_eq!(c.refine(ab, a), ab);
            let left = c.refine(ab, d);
            let bd = c.refine(b, d);
            prop_assert_eq!(left, c.refine(a, bd));
            prop_assert!(c.count(ab) <= 12 && c.count(ab) >= c.count(a).max(c.count(b)));
            let (j, k) = (c.join(a, b), c.join(b, a));
            prop_assert_eq!(j, k);
            prop_assert_eq!(c.refine(j, a), a);
            prop_assert_eq!(c.join(ab, a), a);
            prop_assert!(c.count(j) <= c.count(a).min(c.count(b)));
        }
    }
}

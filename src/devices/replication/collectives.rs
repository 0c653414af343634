//! What a collective does to device classes: each kind, over its device groups, as a function
//! from a partition to a partition.

use rustc_hash::FxHashMap;

use super::classes::{DeviceClasses, DeviceClassesId};
use crate::hlo::decode::{Attributes, CollectiveGroups};
use crate::hlo::{HloInstruction, Opcode};

/// A function from partitions to partitions; position in [`Transforms`]. 0 is the identity.
pub(crate) type TransformId = u32;

/// Device ids spelled out at most, over all distinct groups of a module.
const MAX_IDS: usize = 1 << 26;

#[derive(Debug)]
enum Transform {
    Identity,
    /// Nothing known of the result.
    Own,
    /// Members of a group get the same, made from what all of them have.
    Gather(Groups),
    /// Each member gets a part, by its position, of what is made from what all of them have.
    Scatter(Groups),
    /// Members get what the first one has; others get zeros.
    Broadcast(Groups),
    /// Each device gets what its source has; those without get zeros.
    Permute(Vec<u32>),
}

/// Disjoint device groups, one after the other.
#[derive(Debug, Default)]
struct Groups {
    members: Vec<u32>,
    ends: Vec<usize>,
}

impl Groups {
    fn each(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.ends.iter().enumerate().map(|(g, &end)| {
            let from = g
                .checked_sub(1)
                .and_then(|p| self.ends.get(p))
                .copied()
                .unwrap_or(0);
            (from, self.members.get(from..end).unwrap_or_default())
        })
    }
}

/// How ids in replica groups are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IdKind {
    /// Replicas; each partition on its own.
    Replica,
    /// Partitions; each replica on its own.
    Partition,
    /// Replicas, with all of their partitions.
    ReplicaAndPartition,
    /// Devices.
    Flattened,
}

type Key<'a> = (&'static str, IdKind, Vec<(u32, &'a [u8])>, Vec<(i64, i64)>);

/// All functions of a module's collectives.
#[derive(Debug)]
pub(crate) struct Transforms<'a> {
    replicas: u64,
    partitions: u64,
    all: Vec<Transform>,
    known: FxHashMap<Key<'a>, TransformId>,
    results: FxHashMap<(TransformId, DeviceClassesId), DeviceClassesId>,
    ids: usize,
}

impl<'a> Transforms<'a> {
    pub(crate) const OWN: TransformId = 1;

    pub(crate) fn new(replicas: u64, partitions: u64) -> Self {
        Transforms {
            replicas,
            partitions,
            all: vec![Transform::Identity, Transform::Own],
            known: FxHashMap::default(),
            results: FxHashMap::default(),
            ids: 0,
        }
    }

    pub(crate) fn partitions(&self) -> u64 {
        self.partitions
    }

    /// The function of a collective instruction. `opcode` without `-start`.
    pub(crate) fn of(&mut self, opcode: Opcode, i: &HloInstruction<'a>) -> TransformId {
        let name = match opcode {
            Opcode::AllGather | Opcode::AllReduce => "gather",
            Opcode::ReduceScatter | Opcode::AllToAll => "scatter",
            Opcode::CollectiveBroadcast => "broadcast",
            Opcode::CollectivePermute => "permute",
            _ => return Self::OWN,
        };
        let a = i.attributes();
        let kind = id_kind(opcode, &a);
        let key = (name, kind, i.group_fields(), a.source_target_pairs);
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        let made = if name == "permute" {
            self.permute(kind, &key.3).map(Transform::Permute)
        } else {
            self.groups(kind, &a.groups).map(|g| match name {
                "gather" => Transform::Gather(g),
                "scatter" => Transform::Scatter(g),
                _ => Transform::Broadcast(g),
            })
        };
        let id = match made {
            Some(t) => {
                self.all.push(t);
                self.all.len() as TransformId - 1
            }
            None => Self::OWN,
        };
        self.known.insert(key, id);
        id
    }

    fn device(&self, replica: u64, partition: u64) -> u32 {
        (replica * self.partitions + partition) as u32
    }

    /// Lists of ids of one kind → lists of devices.
    fn spread(&self, kind: IdKind, lists: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
        let mut out = Vec::new();
        match kind {
            IdKind::Flattened => return lists,
            IdKind::Replica => {
                for l in &lists {
                    for p in 0..self.partitions {
                        out.push(l.iter().map(|&r| self.device(r.into(), p)).collect());
                    }
                }
            }
            IdKind::Partition => {
                for l in &lists {
                    for r in 0..self.replicas {
                        out.push(l.iter().map(|&p| self.device(r, p.into())).collect());
                    }
                }
            }
            IdKind::ReplicaAndPartition => {
                for l in &lists {
                    let devices = l
                        .iter()
                        .flat_map(|&r| (0..self.partitions).map(move |p| (u64::from(r), p)));
                    out.push(devices.map(|(r, p)| self.device(r, p)).collect());
                }
            }
        }
        out
    }

    fn id_count(&self, kind: IdKind) -> u64 {
        match kind {
            IdKind::Replica | IdKind::ReplicaAndPartition => self.replicas,
            IdKind::Partition => self.partitions,
            IdKind::Flattened => self.replicas * self.partitions,
        }
    }

    fn within_budget(&mut self) -> bool {
        self.ids = self
            .ids
            .saturating_add((self.replicas * self.partitions) as usize);
        self.ids <= MAX_IDS
    }

    fn groups(&mut self, kind: IdKind, groups: &CollectiveGroups) -> Option<Groups> {
        if !self.within_budget() {
            return None;
        }
        let lists = groups.lists(self.id_count(kind))?;
        let mut out = Groups::default();
        for l in self.spread(kind, lists) {
            out.members.extend(l);
            out.ends.push(out.members.len());
        }
        Some(out)
    }

    /// Source of each device; `u32::MAX` = none.
    fn permute(&mut self, kind: IdKind, pairs: &[(i64, i64)]) -> Option<Vec<u32>> {
        if !self.within_budget() {
            return None;
        }
        let count = self.id_count(kind);
        let narrow = |id: i64| u32::try_from(id).ok().filter(|&d| u64::from(d) < count);
        let mut source = vec![u32::MAX; usize::try_from(self.replicas * self.partitions).ok()?];
        for &(from, to) in pairs {
            let both = vec![vec![narrow(from)?], vec![narrow(to)?]];
            let spread = self.spread(kind, both);
            let (froms, tos) = spread.split_at(spread.len() / 2);
            for (from, to) in froms.iter().flatten().zip(tos.iter().flatten()) {
                let slot = source.get_mut(*to as usize)?;
                if *slot != u32::MAX {
                    return None;
                }
                *slot = *from;
            }
        }
        Some(source)
    }

    /// The result's classes for an input's.
    pub(crate) fn apply(
        &mut self,
        t: TransformId,
        input: DeviceClassesId,
        classes: &mut DeviceClasses,
    ) -> DeviceClassesId {
        if t == 0 {
            return input;
        }
        if let Some(&known) = self.results.get(&(t, input)) {
            return known;
        }
        let out = match self.all.get(t as usize) {
            Some(Transform::Identity) => input,
            Some(Transform::Own) | None => classes.own(),
            Some(Transform::Gather(g)) => gathered(g, input, classes, false),
            Some(Transform::Scatter(g)) => gathered(g, input, classes, true),
            Some(Transform::Broadcast(g)) => {
                let labels = classes.labels(input);
                let mut keys = vec![u32::MAX; classes.devices()];
                for (_, members) in g.each() {
                    let first = members.first().and_then(|&d| labels.get(d as usize));
                    for &d in members {
                        if let (Some(k), Some(&f)) = (keys.get_mut(d as usize), first) {
                            *k = f;
                        }
                    }
                }
                classes.of_keys(&keys)
            }
            Some(Transform::Permute(source)) => {
                let labels = classes.labels(input);
                let keys: Vec<u32> = source
                    .iter()
                    .map(|&s| labels.get(s as usize).copied().unwrap_or(u32::MAX))
                    .collect();
                classes.of_keys(&keys)
            }
        };
        self.results.insert((t, input), out);
        out
    }
}

/// Groups whose members have the same, member by member, end up the same.
fn gathered(
    groups: &Groups,
    input: DeviceClassesId,
    classes: &mut DeviceClasses,
    by_position: bool,
) -> DeviceClassesId {
    let labels = classes.labels(input);
    let held: Vec<u32> = groups
        .members
        .iter()
        .map(|&d| labels.get(d as usize).copied().unwrap_or(u32::MAX))
        .collect();
    let mut sort_of: FxHashMap<&[u32], u32> = FxHashMap::default();
    // Devices in no group: each its own.
    let mut keys: Vec<(u32, u32)> = (0..classes.devices() as u32)
        .map(|d| (u32::MAX, d))
        .collect();
    for (from, members) in groups.each() {
        let have = held.get(from..from + members.len()).unwrap_or_default();
        let next = sort_of.len() as u32;
        let sort = *sort_of.entry(have).or_insert(next);
        for (position, &d) in members.iter().enumerate() {
            if let Some(k) = keys.get_mut(d as usize) {
                *k = (sort, if by_position { position as u32 } else { 0 });
            }
        }
    }
    classes.of_keys(&keys)
}

fn id_kind(opcode: Opcode, a: &Attributes<'_>) -> IdKind {
    let has_flag = matches!(
        opcode,
        Opcode::AllGather | Opcode::AllReduce | Opcode::ReduceScatter
    );
    match (a.channel_id > 0, a.use_global_device_ids) {
        (false, _) => IdKind::Replica,
        (true, true) => IdKind::Flattened,
        (true, false) if has_flag => IdKind::ReplicaAndPartition,
        (true, false) => IdKind::Partition,
    }
}

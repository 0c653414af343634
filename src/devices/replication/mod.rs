//! Which devices hold identical data, for every value of a partitioned program.
//!
//! In: a compiled module, whose shapes are per device. Out: per array a partition of the devices
//! into classes; devices of a class hold the same bytes. The partition is never too coarse: what
//! is not known to be equal counts as different.
//!
//! It is a fixed point over the whole module, from the assumption that everything is equal down
//! to the coarsest partitions that contradict nothing: parameters by their sharding, device
//! numbers by value, everything else by what it is made from. One computation is looked at once,
//! for all its callers together.

mod axes;
mod classes;
mod collectives;
mod custom;
mod flow;
mod graph;
mod known;
mod leaves;
mod solve;

use rustc_hash::FxHashMap;

pub use classes::{DeviceClasses, DeviceClassesId};

use crate::error::Diagnostic;
use crate::hlo::decode::decode_sharding;
use crate::hlo::{HloModule, InstructionId, Mesh, MeshAxis, Program, Sharding, MAX_DEVICES};
use crate::peak::Context;
use crate::peak::PeakBuffer;
use graph::{Builder, Computations, ValueGraph};

/// How often a buffer's data exists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferReplication {
    /// Devices that hold the buffer.
    pub devices: u64,
    /// Different contents among them.
    pub distinct_copies: u64,
    /// Bytes a device would save if each content were stored once, spread over the devices that
    /// hold it: size × (1 − distinct ÷ devices), rounded down.
    pub redundant_bytes: u64,
    /// What it is replicated over, in words: "`tp`", "2 groups of 2: {0,1}, {2,3}"; `None` where
    /// every device holds something else.
    pub axes: Option<String>,
}

/// Device classes of every value of a module.
#[derive(Debug)]
pub struct Replication {
    classes: DeviceClasses,
    /// First entry in `values` of each instruction; tuples have one a leaf.
    first: Vec<u32>,
    values: Vec<DeviceClassesId>,
    /// Parallel to `values`: whether anything from outside the program goes in.
    from_data: Vec<bool>,
    meshes: Vec<Mesh>,
    parameter_shardings: Vec<Sharding>,
    output_shardings: Vec<Sharding>,
    num_partitions: u64,
    diagnostics: Vec<Diagnostic>,
}

impl Replication {
    /// Analyses a program as compiled. Of `meshes` (of another dump of the same program, say),
    /// those over the right number of devices lend their axes' names, before the program's own.
    pub fn new(program: &Program<'_>, meshes: &[Mesh]) -> Replication {
        let module = &program.module;
        let (replicas, partitions) = device_counts(module);
        let mut diagnostics = Vec::new();
        let devices = replicas
            .checked_mul(partitions)
            .filter(|&d| d <= MAX_DEVICES);
        if devices.is_none() {
            diagnostics.push(Diagnostic::warning(
                "too_many_devices",
                format!("the program is for {replicas} x {partitions} devices, more than xpeak follows: nothing is said of who holds the same data"),
            ));
        }
        let parameter_shardings = module
            .parameter_shardings
            .iter()
            .map(|b| decode_sharding(b).unwrap_or(Sharding::Unknown))
            .collect();
        let output_shardings = match module.output_sharding.map(decode_sharding) {
            Some(Ok(Sharding::Tuple(t))) => t,
            Some(Ok(s)) => vec![s],
            _ => Vec::new(),
        };
        let mut out = Replication {
            classes: DeviceClasses::new(devices.unwrap_or(1) as usize),
            first: Vec::new(),
            values: Vec::new(),
            from_data: Vec::new(),
            meshes: Vec::new(),
            parameter_shardings,
            output_shardings,
            num_partitions: partitions,
            diagnostics,
        };
        if out.classes.devices() > 1 {
            out.solve(module, replicas, partitions);
            out.name_axes(module, meshes);
        }
        out
    }

    /// Devices that the program runs on; 1 also where there are too many to follow.
    pub fn devices(&self) -> u64 {
        self.classes.devices() as u64
    }

    /// All partitions that occur.
    pub fn classes(&self) -> &DeviceClasses {
        &self.classes
    }

    /// What could not be followed.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Devices that one replica is partitioned over.
    pub fn num_partitions(&self) -> u64 {
        self.num_partitions
    }

    /// Annotation of an entry parameter.
    pub fn parameter_sharding(&self, number: u32) -> Option<&Sharding> {
        self.parameter_shardings.get(number as usize)
    }

    /// Annotation of each array of the entry's result, in order; may be empty.
    pub fn output_shardings(&self) -> &[Sharding] {
        &self.output_shardings
    }

    /// Meshes whose axes' names are used, the preferred one first.
    pub fn meshes(&self) -> &[Mesh] {
        &self.meshes
    }

    fn solve<'a>(&mut self, module: &HloModule<'a>, replicas: u64, partitions: u64) {
        let Some(graph) = ValueGraph::new(module) else {
            self.diagnostics.push(Diagnostic::warning(
                "too_many_values",
                "the program has more values than xpeak follows: nothing is said of who holds the same data",
            ));
            return;
        };
        let classes = std::mem::replace(&mut self.classes, DeviceClasses::new(1));
        let mut b = Builder {
            module,
            graph,
            computations: Computations::new(module),
            own: classes.own(),
            classes,
            transforms: collectives::Transforms::new(replicas, partitions),
            async_of: FxHashMap::default(),
            reached: vec![false; module.computations.len()],
        };
        b.connect();
        b.seed_parameters(&self.parameter_shardings);
        b.forget_recursion();
        let pinned = b.pin_known();
        let data = b.data_sources();
        let Some(solution) = solve::solve(&mut b, &pinned, &data) else {
            self.diagnostics.push(Diagnostic::warning(
                "replication_unfinished",
                "who holds the same data could not be worked out in reasonable time: nothing is said of it",
            ));
            self.classes = b.classes;
            return;
        };
        let value = |n: u32| solution.classes.get(n as usize).copied().unwrap_or(b.own);
        let mut classes = b.classes;
        for (k, i) in module.instructions.iter().enumerate() {
            let c = i.computation;
            // Devices that get to an instruction at different times, or not at all, hold
            // different data after it. Nobody is known to run what nobody calls.
            let control = match b.reached.get(c.index()) {
                Some(true) => value(b.graph.control(c)),
                _ => b.own,
            };
            let nodes = b.graph.nodes(InstructionId(k as u32));
            self.first.push(self.values.len() as u32);
            for n in nodes.from..nodes.from + nodes.count {
                self.values.push(classes.refine(value(n), control));
                let from_data = solution.from_data.get(n as usize);
                self.from_data.push(from_data.copied().unwrap_or(true));
            }
        }
        self.first.push(self.values.len() as u32);
        self.classes = classes;
    }

    /// Classes of one part of an instruction's result (an empty index: of all of it). Every
    /// device its own where there is no such part, or nothing is known, or the part is a tuple
    /// of arrays that differ in this.
    pub fn classes_of(
        &self,
        module: &HloModule<'_>,
        i: InstructionId,
        index: &[i64],
    ) -> DeviceClassesId {
        let part = || {
            let (first, rest) = self
                .values
                .get(self.leaves(module, i, index)?)?
                .split_first()?;
            rest.iter().all(|r| r == first).then_some(*first)
        };
        part().unwrap_or(self.classes.own())
    }

    /// Classes of every array of an instruction's result, in the order of its leaves; empty where
    /// nothing is known.
    pub fn leaf_classes(&self, i: InstructionId) -> &[DeviceClassesId] {
        let at = |k: usize| self.first.get(k).map(|&x| x as usize);
        match (at(i.index()), at(i.index() + 1)) {
            (Some(from), Some(to)) => self.values.get(from..to).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// Entries of `values` for one part of an instruction's result.
    fn leaves(
        &self,
        module: &HloModule<'_>,
        i: InstructionId,
        index: &[i64],
    ) -> Option<std::ops::Range<usize>> {
        let at = |k: usize| self.first.get(k).map(|&x| x as usize);
        let shape = module.instructions.get(i.index())?.shape;
        let (from, to) = leaves::leaf_range(shape, index)?;
        let (start, end) = (at(i.index())?, at(i.index() + 1)?);
        let range = start + from as usize..start + to as usize;
        (range.end <= end).then_some(range)
    }

    /// Whether anything from outside the program goes into what a buffer holds: arguments, other
    /// devices' data, the host's. Constants, zeros and masks have the same contents everywhere
    /// without being copies of anything that could be sharded.
    pub fn buffer_depends_on_data(&self, ctx: &Context<'_, '_>, b: &PeakBuffer) -> bool {
        let part = || {
            let assignment = ctx.program.assignment.as_ref()?;
            let index = assignment.shape_index(b.buffer?);
            let range = self.leaves(&ctx.program.module, b.instruction?, index)?;
            Some(self.from_data.get(range)?.iter().any(|&d| d))
        };
        part().unwrap_or(true)
    }

    /// Bytes of `size_bytes` that a device could do without if devices of a class shared one copy.
    pub fn redundant_bytes(&self, size_bytes: u64, classes: DeviceClassesId) -> u64 {
        let n = self.devices().max(1);
        let spare = n.saturating_sub(self.classes.count(classes).into());
        u64::try_from(u128::from(size_bytes) * u128::from(spare) / u128::from(n)).unwrap_or(0)
    }

    /// How often a buffer's data exists; `None` for memory that no instruction accounts for, or
    /// in a program for one device.
    pub fn of_buffer(&self, ctx: &Context<'_, '_>, b: &PeakBuffer) -> Option<BufferReplication> {
        let classes = self.buffer_classes(ctx, b)?;
        Some(BufferReplication {
            devices: self.devices(),
            distinct_copies: self.classes.count(classes).into(),
            redundant_bytes: self.redundant_bytes(b.counted_bytes, classes),
            axes: self.axes(classes),
        })
    }

    /// Classes of what a buffer holds.
    pub fn buffer_classes(&self, ctx: &Context<'_, '_>, b: &PeakBuffer) -> Option<DeviceClassesId> {
        if self.classes.devices() <= 1 {
            return None;
        }
        let assignment = ctx.program.assignment.as_ref()?;
        let index = assignment.shape_index(b.buffer?);
        Some(self.classes_of(&ctx.program.module, b.instruction?, index))
    }

    /// What a partition is replicated over, in words; `None` where every device is its own.
    pub fn axes(&self, classes: DeviceClassesId) -> Option<String> {
        let distinct = self.classes.count(classes) as usize;
        (distinct < self.classes.devices())
            .then(|| axes::describe(&self.classes, classes, &self.meshes))
    }

    /// Mesh axes that data of these classes is replicated over; empty where no mesh is known or
    /// none explains them.
    pub fn free_axes(&self, classes: DeviceClassesId) -> Vec<MeshAxis> {
        axes::free_axes(&self.classes, classes, &self.meshes)
    }

    /// Meshes over all devices, those given first, then the module's own, then those of its
    /// shardings.
    fn name_axes(&mut self, module: &HloModule<'_>, given: &[Mesh]) {
        let own = meshes_of(module);
        let named = self
            .parameter_shardings
            .iter()
            .chain(&self.output_shardings)
            .filter_map(|s| s.mesh().cloned());
        let mut meshes: Vec<Mesh> = Vec::new();
        for m in given.iter().cloned().chain(own).chain(named) {
            let fits =
                m.device_count() == Some(self.devices()) && self.num_partitions == self.devices();
            if fits && m.devices().is_some() && meshes.len() < 16 && !meshes.contains(&m) {
                meshes.push(m);
            }
        }
        self.meshes = meshes;
    }
}

/// Meshes that a module's attributes name. Compilers drop them: the dump from before
/// optimization has them.
pub fn meshes_of(module: &HloModule<'_>) -> Vec<Mesh> {
    module
        .frontend_attributes
        .iter()
        .filter(|(k, _)| *k == "xla.sdy.meshes")
        .flat_map(|(_, v)| Mesh::parse_sdy(v))
        .collect()
}

impl Builder<'_, '_> {
    /// Devices that one replica is partitioned over.
    pub(crate) fn partitions(&self) -> u64 {
        self.transforms.partitions()
    }

    /// Classes by a label for each partition; replicas count as different.
    pub(crate) fn of_partition_labels(&mut self, labels: &[u32]) -> DeviceClassesId {
        let p = labels.len().max(1);
        let keys: Vec<(usize, u32)> = (0..self.classes.devices())
            .map(|d| (d / p, labels.get(d % p).copied().unwrap_or(u32::MAX)))
            .collect();
        self.classes.of_keys(&keys)
    }

    /// HLO has no recursion. Where a file has it all the same, what such computations take and
    /// make is unknown: a fixed point says nothing of a call that does not return.
    fn forget_recursion(&mut self) {
        let module = self.module;
        let n = module.computations.len();
        let mut callees: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut waiting = vec![0u32; n];
        for (k, i) in module.instructions.iter().enumerate() {
            for c in module.called(InstructionId(k as u32)) {
                if let (Some(list), Some(w)) = (
                    callees.get_mut(i.computation.index()),
                    waiting.get_mut(c.index()),
                ) {
                    list.push(c.0);
                    *w = w.saturating_add(1);
                }
            }
        }
        // Callers leave first; what remains is called, in the end, by itself.
        let mut ready: Vec<u32> = (0..n as u32)
            .filter(|&c| waiting.get(c as usize) == Some(&0))
            .collect();
        while let Some(c) = ready.pop() {
            for &callee in callees.get(c as usize).map_or(&[][..], Vec::as_slice) {
                if let Some(w) = waiting.get_mut(callee as usize) {
                    *w = w.saturating_sub(1);
                    if *w == 0 {
                        ready.push(callee);
                    }
                }
            }
        }
        for (c, _) in waiting.iter().enumerate().filter(|(_, &w)| w > 0) {
            let Some(computation) = module.computations.get(c) else {
                continue;
            };
            for i in computation.instructions() {
                self.unknown(i);
            }
        }
    }

    /// Nodes that bring something from outside the program: the entry's parameters, and
    /// everything that is not known to be made from its operands alone.
    fn data_sources(&self) -> Vec<u32> {
        let mut out: Vec<u32> = (0..self.graph.seed.len() as u32)
            .filter(|&n| self.graph.seed.get(n as usize) != Some(&DeviceClassesId::ONE))
            .collect();
        if let Some(entry) = self.module.entry {
            for &p in self.module.parameters(entry) {
                let n = self.graph.nodes(p);
                out.extend(n.from..n.from + n.count);
            }
        }
        out
    }

    /// What shardings say of the entry's parameters. Parameters of computations that nobody is
    /// known to run are unknown.
    fn seed_parameters(&mut self, shardings: &[Sharding]) {
        let mut known: FxHashMap<&[u8], DeviceClassesId> = FxHashMap::default();
        let module = self.module;
        for k in 0..module.computations.len() as u32 {
            let c = crate::hlo::ComputationId(k);
            if Some(c) == module.entry || self.reached.get(c.index()) == Some(&true) {
                continue;
            }
            for &p in module.parameters(c) {
                self.unknown(p);
            }
        }
        let Some(entry) = module.entry else { return };
        if let Some(r) = self.reached.get_mut(entry.index()) {
            *r = true;
        }
        for &i in module.parameters(entry) {
            let number = module.instruction(i).parameter_number;
            let bytes = module.parameter_shardings.get(number as usize).copied();
            let bytes = bytes.or_else(|| module.instruction(i).sharding());
            let nodes = self.graph.nodes(i);
            let Some(bytes) = bytes else {
                self.unknown(i);
                continue;
            };
            let own_sharding;
            let sharding = match shardings.get(number as usize) {
                Some(s) => s,
                None => {
                    own_sharding = decode_sharding(bytes).unwrap_or(Sharding::Unknown);
                    &own_sharding
                }
            };
            if let (Some(&id), false) = (known.get(bytes), matches!(sharding, Sharding::Tuple(_))) {
                self.graph.seed_all(nodes, id);
                continue;
            }
            for leaf in 0..nodes.count {
                let labels = sharding
                    .leaf(leaf as usize)
                    .and_then(|s| s.data_labels(self.partitions()));
                let id = match labels {
                    Some(l) => self.of_partition_labels(&l),
                    None => self.own,
                };
                if let Some(one) = nodes.part(leaf, leaf + 1) {
                    self.graph.seed_all(one, id);
                }
                if !matches!(sharding, Sharding::Tuple(_)) {
                    known.insert(bytes, id);
                    self.graph.seed_all(nodes, id);
                    break;
                }
            }
        }
    }
}

/// Replicas and partitions. Files without a device assignment may still say in their shardings
/// how many devices there are.
fn device_counts(module: &HloModule<'_>) -> (u64, u64) {
    let replicas = u64::from(module.replica_count.max(1));
    let mut partitions = u64::from(module.num_partitions.max(1));
    if partitions == 1 && replicas == 1 {
        for bytes in module.parameter_shardings.iter().take(4096) {
            let count = match decode_sharding(bytes) {
                Ok(Sharding::Tiled(t)) => {
                    crate::hlo::product(t.dimensions.iter().copied()).unwrap_or(1)
                }
                Ok(Sharding::Named(n)) => n.mesh.device_count().unwrap_or(1),
                _ => 1,
            };
            partitions = partitions.max(count);
        }
    }
    (replicas, partitions)
}

//! The compiled program as the simulator starts from it: whole-program blocks, and arenas with
//! their slots, each slot a canonical buffer with all its names and live ranges.
//!
//! In: a program and a memory space. Out: [`Base`], made once; every edit starts from it.

use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dataflow::dimensions::{NodeId, Values};
use crate::dataflow::{reads_of, Graph, ProgramPoints, Read, Through, Value};
use crate::devices::replication::Replication;
use crate::error::{Error, Result};
use crate::hlo::op_name::{is_rematerialized, phase, Phase};
use crate::hlo::{
    AllocationId, AllocationKind, BufferAssignment, BufferId, HeapEventKind, InstructionId,
    MemorySpace, Mesh, Opcode, Program, Shape,
};
use crate::memory::pack::{lower_bound, pack, PackItem};
use crate::memory::{space_usage, SpaceUsage};
use crate::peak::{peak_snapshot, Context, PeakSnapshot};
use crate::training::{donation_candidates, DonationPair};

/// A program ready to be edited.
#[derive(Debug)]
pub struct Base<'p, 'a> {
    /// The program.
    pub program: &'p Program<'a>,
    /// Its buffer assignment.
    pub assignment: &'p BufferAssignment<'a>,
    /// The space as compiled.
    pub usage: SpaceUsage,
    /// Users and program order.
    pub graph: Graph,
    /// Program order against points of the main arena.
    pub points: ProgramPoints,
    /// What depends on what, dimension by dimension.
    pub(crate) values: Values,
    /// Arenas of temporaries, as in `usage.arenas`.
    pub(crate) arenas: Vec<Arena>,
    /// Parameters, outputs, constants, in file order.
    pub(crate) blocks: Vec<Block>,
    /// Which devices hold the same data.
    pub replication: Replication,
    /// Instructions that the compiler computes twice to save memory, by their names (`.remat`).
    pub rematerialized: usize,
    /// What every buffer in a slot or block holds, where the file says.
    contents: FxHashMap<BufferId, (NodeId, Shape)>,
    /// What goes into the program and comes out.
    pub(crate) boundary: Boundary,
    /// Which argument could give its memory to which output; looked for when first asked.
    donations: OnceLock<Vec<DonationPair>>,
    peak: OnceLock<PeakSnapshot>,
}

/// Arguments and results of a program, looked up once.
#[derive(Debug, Default)]
pub(crate) struct Boundary {
    /// Shapes of the parts of the program's result.
    result_shapes: FxHashSet<Shape>,
    /// Numbers of parameters whose memory goes to an output.
    donated: FxHashSet<u32>,
}

impl Boundary {
    fn new(program: &Program<'_>, blocks: &[Block]) -> Self {
        let module = &program.module;
        let mut out = Boundary::default();
        if let Some(root) = module.entry_root() {
            let mut add = |_: &[i64], leaf: &Shape| {
                if !out.result_shapes.contains(leaf) {
                    out.result_shapes.insert(leaf.clone());
                }
            };
            module
                .shape(root)
                .for_each_leaf(&mut |i, leaf| add(i, leaf));
        }
        let donated = blocks.iter().filter(|b| b.kind == AllocationKind::Donated);
        out.donated = donated.filter_map(|b| b.parameter).collect();
        out
    }

    /// Whether the memory of a parameter goes to an output.
    pub(crate) fn is_donated(&self, number: u32) -> bool {
        self.donated.contains(&number)
    }

    /// Whether a part of the result has exactly this shape and layout.
    pub(crate) fn returns(&self, shape: &Shape) -> bool {
        self.result_shapes.contains(shape)
    }
}

/// Uses of one value that are looked at.
const MAX_USES: usize = 5_000;

/// One arena of temporaries.
#[derive(Debug, Clone)]
pub struct Arena {
    /// Bytes the compiler gave it.
    pub compiled_bytes: u64,
    /// Bytes that packing its slots gives.
    pub packed_bytes: u64,
    /// Slots that were packed without a search for gaps: there are too many.
    pub unsearched: usize,
    /// Largest heap as replayed.
    pub compiled_peak: u64,
    /// Largest power of two that all offsets are multiples of, at most 4096.
    pub alignment: u64,
    /// What is in it; empty where the file has no trace.
    pub slots: Vec<Slot>,
}

/// A canonical buffer in an arena.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Every buffer that lives there, the canonical one first, then in order of first use.
    pub names: Vec<BufferId>,
    /// Its size and live ranges.
    pub item: PackItem,
}

/// A whole-program allocation.
#[derive(Debug, Clone)]
pub struct Block {
    /// The allocation.
    pub allocation: AllocationId,
    /// What it is for.
    pub kind: AllocationKind,
    /// Bytes.
    pub size_bytes: u64,
    /// Buffers in it.
    pub names: Vec<BufferId>,
    /// Entry parameter that it holds, where it does.
    pub parameter: Option<u32>,
}

impl<'p, 'a> Base<'p, 'a> {
    /// Prepares `space` of `program`.
    ///
    /// # Errors
    /// The program carries no buffer assignment, or has nothing in that space.
    pub fn new(program: &'p Program<'a>, space: MemorySpace) -> Result<Self> {
        Self::with_meshes(program, space, &[])
    }

    /// As [`Base::new`], with meshes that name the axes of the devices: those of the dump from
    /// before optimization, say.
    ///
    /// # Errors
    /// As [`Base::new`].
    pub fn with_meshes(
        program: &'p Program<'a>,
        space: MemorySpace,
        meshes: &[Mesh],
    ) -> Result<Self> {
        let assignment = program.assignment.as_ref().ok_or_else(|| {
            Error::missing(
                format!("{} carries no buffer assignment", program.module.name),
                "simulate an after_optimizations.hlo.pb, or a module from a profile",
            )
        })?;
        let usage = space_usage(assignment, space);
        let graph = Graph::new(program);
        let points = ProgramPoints::new(program, &graph, usage.main_arena());
        let mut names = shared_names(assignment);
        let arenas: Vec<Arena> = usage
            .arenas
            .iter()
            .map(|a| arena(assignment, a, &mut names))
            .collect();
        let blocks: Vec<Block> = assignment
            .allocation_ids()
            .filter(|&id| {
                let a = assignment.allocation(id);
                a.space == space && a.kind.is_whole_program()
            })
            .map(|id| block(assignment, id))
            .collect();
        if usage.allocated_bytes == 0 {
            return Err(Error::missing(
                format!("{} has nothing in {}", program.module.name, space.name()),
                "`xpeak ls` lists the spaces in use",
            ));
        }
        let values = Values::new(program);
        let contents = contents(program, assignment, &values, &arenas, &blocks);
        Ok(Base {
            replication: Replication::new(program, meshes),
            rematerialized: rematerialized(program),
            contents,
            boundary: Boundary::new(program, &blocks),
            donations: OnceLock::new(),
            peak: OnceLock::new(),
            program,
            assignment,
            values,
            usage,
            graph,
            points,
            arenas,
            blocks,
        })
    }

    /// Every argument that fits an output, with whether donating it would save memory: the verdict
    /// that findings print too.
    pub fn donations(&self) -> &[DonationPair] {
        self.donations
            .get_or_init(|| donation_candidates(&self.context(), &self.graph))
    }

    /// What the verdicts that findings go by need.
    pub(crate) fn context(&self) -> Context<'_, 'a> {
        let peak = || peak_snapshot(self.program, &self.usage);
        Context {
            program: self.program,
            usage: &self.usage,
            peak: self.peak.get_or_init(peak),
            capacity_bytes: None,
        }
    }

    /// The node and shape that a buffer holds.
    pub(crate) fn content(&self, buffer: BufferId) -> Option<(NodeId, &Shape)> {
        self.contents.get(&buffer).map(|(n, s)| (*n, s))
    }

    /// The instruction of the program order that an instruction is part of: itself, or the fusion
    /// around it.
    pub fn scheduled(&self, id: InstructionId) -> Option<InstructionId> {
        let mut at = id;
        for _ in 0..16 {
            if self.graph.order_of(at).is_some() {
                return Some(at);
            }
            let c = self.program.module.instruction(at).computation;
            at = *self.program.module.callers(c).first()?;
        }
        None
    }

    /// Program point of an instruction, or of the fusion around it.
    pub fn point(&self, id: InstructionId) -> Option<u32> {
        self.points.point_of(&self.graph, self.scheduled(id)?)
    }

    /// Who reads a value, looked for through copies too. (A loop only carries: what reads is in its
    /// body.)
    pub(crate) fn readers(&self, value: &Value) -> Vec<Read> {
        let module = &self.program.module;
        let mut budget = MAX_USES;
        let mut reads = reads_of(
            self.program,
            &self.graph,
            value,
            Through::Copies,
            &mut budget,
        )
        .reads;
        reads.retain(|r| module.instruction(r.reader).opcode != Opcode::While);
        reads
    }

    /// Whether an instruction belongs to a backward pass, by its operation path.
    pub(crate) fn is_backward(&self, i: InstructionId) -> bool {
        phase(self.program.module.instruction(i).op_name) == Phase::Backward
    }

    /// How well packing reproduces the compiler's arenas: bytes compiled, packed, and alive at the
    /// peak, over all arenas with a trace.
    pub fn packing_check(&self) -> (u64, u64, u64) {
        let mut out = (0u64, 0u64, 0u64);
        for a in self.arenas.iter().filter(|a| !a.slots.is_empty()) {
            let items = a.items();
            out.0 = out.0.saturating_add(a.compiled_bytes);
            out.1 = out.1.saturating_add(a.packed_bytes);
            out.2 = out.2.saturating_add(lower_bound(&items));
        }
        out
    }
}

impl Arena {
    /// Its slots as items to pack.
    pub(crate) fn items(&self) -> Vec<PackItem> {
        self.slots.iter().map(|s| s.item.clone()).collect()
    }
}

/// Every buffer that became a name of a canonical one, in order of its event.
fn shared_names(assignment: &BufferAssignment<'_>) -> FxHashMap<BufferId, Vec<BufferId>> {
    let mut names: FxHashMap<BufferId, Vec<BufferId>> = FxHashMap::default();
    let mut root: FxHashMap<BufferId, BufferId> = FxHashMap::default();
    for event in assignment.traces.iter().flat_map(|t| &t.events) {
        let Some(b) = event.buffer else { continue };
        match event.kind {
            HeapEventKind::Alloc => {
                root.insert(b, b);
            }
            HeapEventKind::ShareWith { canonical: Some(c) } => {
                let r = root.get(&c).copied().unwrap_or(c);
                root.insert(b, r);
                if r != b {
                    names.entry(r).or_default().push(b);
                }
            }
            _ => {}
        }
    }
    names
}

fn arena(
    assignment: &BufferAssignment<'_>,
    usage: &crate::memory::ArenaUsage,
    names: &mut FxHashMap<BufferId, Vec<BufferId>>,
) -> Arena {
    let mut slots: Vec<Slot> = Vec::new();
    let mut at: FxHashMap<BufferId, usize> = FxHashMap::default();
    for r in &usage.ranges {
        let size_bytes = assignment.buffer(r.buffer).size_bytes;
        let i = *at.entry(r.buffer).or_insert_with(|| {
            let mut all = vec![r.buffer];
            for n in names.remove(&r.buffer).unwrap_or_default() {
                if !all.contains(&n) || all.len() > 64 {
                    all.push(n);
                }
            }
            slots.push(Slot {
                names: all,
                item: PackItem {
                    size_bytes,
                    ranges: Vec::new(),
                },
            });
            slots.len() - 1
        });
        if let Some(slot) = slots.get_mut(i) {
            slot.item.ranges.push((r.start, r.end));
        }
    }
    let offsets = usage
        .allocation
        .map_or(&[][..], |id| assignment.assigned(id));
    let bits = offsets.iter().fold(4096u64, |m, a| m | a.offset_bytes);
    let alignment = 1 << bits.trailing_zeros();
    let items: Vec<PackItem> = slots.iter().map(|s| s.item.clone()).collect();
    let packing = pack(&items, alignment);
    Arena {
        compiled_bytes: usage
            .allocation
            .map_or(usage.peak_bytes, |id| assignment.allocation(id).size_bytes),
        packed_bytes: packing.size_bytes,
        unsearched: packing.unsearched,
        compiled_peak: usage.peak_bytes,
        alignment,
        slots,
    }
}

/// How many instructions the compiler rematerialised.
fn rematerialized(program: &Program<'_>) -> usize {
    let names = program.module.instructions.iter().map(|i| i.name);
    names.filter(|n| is_rematerialized(n)).count()
}

fn contents(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    values: &Values,
    arenas: &[Arena],
    blocks: &[Block],
) -> FxHashMap<BufferId, (NodeId, Shape)> {
    let slots = arenas.iter().flat_map(|a| &a.slots).flat_map(|s| &s.names);
    let mut all: Vec<BufferId> = slots
        .chain(blocks.iter().flat_map(|b| &b.names))
        .copied()
        .collect();
    // By instruction: the shape of a long tuple is decoded once.
    all.sort_unstable_by_key(|&b| (assignment.buffer(b).instruction, b));
    all.dedup();
    let mut out = FxHashMap::default();
    let mut last: Option<(InstructionId, Shape)> = None;
    for b in all {
        let Some(i) = assignment.buffer(b).instruction else {
            continue;
        };
        if last.as_ref().is_none_or(|(at, _)| *at != i) {
            last = Some((i, program.module.shape(i)));
        }
        let index = assignment.shape_index(b);
        let leaf = last.as_ref().and_then(|(_, s)| s.leaf(index));
        if let (Some(leaf), Some(node)) = (leaf, values.node_at(program, i, index)) {
            if !leaf.is_tuple() {
                out.insert(b, (node, leaf.clone()));
            }
        }
    }
    out
}

fn block(assignment: &BufferAssignment<'_>, id: AllocationId) -> Block {
    let a = assignment.allocation(id);
    let mut names: Vec<BufferId> = assignment.assigned(id).iter().map(|a| a.buffer).collect();
    names.sort_unstable();
    names.dedup();
    Block {
        allocation: id,
        kind: a.kind,
        size_bytes: a.size_bytes,
        names,
        parameter: a.parameter_number,
    }
}

//! One memory space of a program: whole-program bytes, each arena replayed, the peak.
//!
//! The peak is the whole-program allocations plus the largest heap. Where a space has several
//! arenas, they exist side by side, so their peaks add up; traces that fill the same arena follow
//! one another. An arena without a trace counts as live throughout.

use rustc_hash::FxHashMap;

use super::replay::{replay, LiveRange, Replay};
use super::union::RangeUnion;
use crate::error::Diagnostic;
use crate::hlo::{AllocationId, AllocationKind, BufferAssignment, MemorySpace};

/// Memory use of one space.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SpaceUsage {
    /// The space.
    pub space: MemorySpace,
    /// Parameters, outputs, constants: live at every point.
    pub indefinite_bytes: u64,
    /// Sum of the arenas' largest heaps.
    pub heap_peak_bytes: u64,
    /// Sum of all allocations but thread-local ones: what must fit.
    pub allocated_bytes: u64,
    /// Bytes of the whole-program allocations, by kind.
    pub parameter_bytes: u64,
    /// Outputs that take over no argument.
    pub output_bytes: u64,
    /// Arguments whose memory an output takes over.
    pub donated_bytes: u64,
    /// Constants.
    pub constant_bytes: u64,
    /// Arenas, the one with the largest heap first (then by allocation).
    pub arenas: Vec<ArenaUsage>,
    /// What was odd.
    pub diagnostics: Vec<Diagnostic>,
}

/// One arena of temporaries.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ArenaUsage {
    /// Its allocation; `None` where a trace's buffers are in no allocation.
    pub allocation: Option<AllocationId>,
    /// Traces that fill it, by position in the assignment, in order; empty = no trace.
    pub traces: Vec<usize>,
    /// Live bytes at each program point; points of the traces are joined in order. The union of
    /// addresses where buffers may overlap, else the sum of sizes. Empty without a trace.
    pub heap_bytes: Vec<u64>,
    /// Live ranges over those points.
    pub ranges: Vec<LiveRange>,
    /// First point of the largest heap.
    pub peak_point: u32,
    /// Largest heap; the whole arena without a trace.
    pub peak_bytes: u64,
    /// Whether `heap_bytes` is the union of addresses.
    pub is_union: bool,
}

impl SpaceUsage {
    /// Whole-program bytes plus the largest heap.
    pub fn peak_bytes(&self) -> u64 {
        self.indefinite_bytes.saturating_add(self.heap_peak_bytes)
    }

    /// What is allocated and not in use at the peak.
    pub fn fragmentation_bytes(&self) -> u64 {
        self.allocated_bytes.saturating_sub(self.peak_bytes())
    }

    /// The arena whose program points stand for the space's (the one with the largest heap).
    pub fn main_arena(&self) -> Option<&ArenaUsage> {
        self.arenas.first().filter(|a| !a.heap_bytes.is_empty())
    }

    /// Number of program points.
    pub fn point_count(&self) -> usize {
        self.main_arena().map_or(0, |a| a.heap_bytes.len())
    }

    /// Program point of the peak; 0 where there is no trace.
    pub fn peak_point(&self) -> u32 {
        self.main_arena().map_or(0, |a| a.peak_point)
    }

    /// Live bytes of the whole space at each program point of the main arena: whole-program bytes,
    /// its heap, and the other arenas at their largest.
    pub fn timeline(&self) -> Vec<u64> {
        let Some(main) = self.main_arena() else {
            return Vec::new();
        };
        let base = self.peak_bytes().saturating_sub(main.peak_bytes);
        main.heap_bytes
            .iter()
            .map(|b| b.saturating_add(base))
            .collect()
    }
}

/// Replays every arena of `space`.
pub fn space_usage(assignment: &BufferAssignment<'_>, space: MemorySpace) -> SpaceUsage {
    let mut out = SpaceUsage {
        space,
        indefinite_bytes: 0,
        heap_peak_bytes: 0,
        allocated_bytes: 0,
        parameter_bytes: 0,
        output_bytes: 0,
        donated_bytes: 0,
        constant_bytes: 0,
        arenas: Vec::new(),
        diagnostics: Vec::new(),
    };
    let mut arenas: Vec<AllocationId> = Vec::new();
    for id in assignment.allocation_ids() {
        let a = assignment.allocation(id);
        if a.space != space || a.kind == AllocationKind::ThreadLocal {
            continue;
        }
        let add = |to: &mut u64| *to = to.saturating_add(a.size_bytes);
        add(&mut out.allocated_bytes);
        match a.kind {
            AllocationKind::Parameter => add(&mut out.parameter_bytes),
            AllocationKind::Donated => add(&mut out.donated_bytes),
            AllocationKind::Output => add(&mut out.output_bytes),
            AllocationKind::Constant => add(&mut out.constant_bytes),
            AllocationKind::Temporary => arenas.push(id),
            AllocationKind::ThreadLocal => {}
        }
        if a.kind.is_whole_program() {
            add(&mut out.indefinite_bytes);
        }
    }
    let mut traces_of: FxHashMap<AllocationId, Vec<usize>> = FxHashMap::default();
    for (t, trace) in assignment.traces.iter().enumerate() {
        if let Some(id) = trace.allocation {
            traces_of.entry(id).or_default().push(t);
        }
    }
    for id in arenas {
        let traces = traces_of.remove(&id).unwrap_or_default();
        out.arenas
            .push(arena_usage(assignment, id, traces, &mut out.diagnostics));
    }
    // The largest heap first; an arena without a trace has no points to show.
    out.arenas.sort_by_key(|a| {
        (
            a.heap_bytes.is_empty(),
            std::cmp::Reverse(a.peak_bytes),
            a.allocation,
        )
    });
    out.heap_peak_bytes = out
        .arenas
        .iter()
        .fold(0, |s, a| s.saturating_add(a.peak_bytes));
    out
}

// Long: one walk over the traces: what it sums up is used at its end.
fn arena_usage(
    assignment: &BufferAssignment<'_>,
    id: AllocationId,
    traces: Vec<usize>,
    diagnostics: &mut Vec<Diagnostic>,
) -> ArenaUsage {
    let allocation = assignment.allocation(id);
    let mut out = ArenaUsage {
        allocation: Some(id),
        traces,
        heap_bytes: Vec::new(),
        ranges: Vec::new(),
        peak_point: 0,
        peak_bytes: 0,
        is_union: false,
    };
    for &t in &out.traces {
        let trace = &assignment.traces[t];
        let mut r = replay(assignment, trace);
        if r.unbalanced_frees > 0 {
            diagnostics.push(Diagnostic::warning(
                "unbalanced_frees",
                format!(
                    "heap simulator trace {t} frees {} buffers that are not alive",
                    r.unbalanced_frees
                ),
            ));
        }
        if !trace.whole_module && allocation.space != MemorySpace::HBM {
            count_addresses_once(assignment, &mut r);
            out.is_union = true;
        }
        let shift = out.heap_bytes.len() as u32;
        if r.peak_bytes > out.peak_bytes {
            out.peak_bytes = r.peak_bytes;
            out.peak_point = shift + r.peak_point;
        }
        out.heap_bytes.extend(r.heap_bytes);
        out.ranges.extend(r.ranges.into_iter().map(|x| LiveRange {
            start: x.start + shift,
            end: x.end + shift,
            ..x
        }));
    }
    if out.heap_bytes.is_empty() {
        out.peak_bytes = allocation.size_bytes;
        diagnostics.push(Diagnostic::note(
            "no_trace",
            format!(
                "{}: allocation {} has no heap simulator trace, so all of it counts as live",
                allocation.space.name(),
                allocation.index
            ),
        ));
    } else if out.peak_bytes > allocation.size_bytes {
        diagnostics.push(Diagnostic::warning(
            "peak_over_arena",
            format!(
                "{}: the replayed heap is {} bytes larger than allocation {}",
                allocation.space.name(),
                out.peak_bytes - allocation.size_bytes,
                allocation.index
            ),
        ));
    }
    out
}

/// Replaces the plain sums of a replay by the union of the live address ranges.
fn count_addresses_once(assignment: &BufferAssignment<'_>, r: &mut Replay) {
    let span = |range: &LiveRange| {
        let b = assignment.buffer(range.buffer);
        (b.offset_bytes, b.offset_bytes.saturating_add(b.size_bytes))
    };
    let ends = r
        .ranges
        .iter()
        .flat_map(|x| <[u64; 2]>::from(span(x)))
        .collect();
    let mut union = RangeUnion::new(ends);
    let mut freed: Vec<usize> = (0..r.ranges.len()).collect();
    freed.sort_by_key(|&i| r.ranges[i].end);
    let (mut started, mut ended) = (0, 0);
    (r.peak_bytes, r.peak_point) = (0, 0);
    for (point, heap) in r.heap_bytes.iter_mut().enumerate() {
        while let Some(&i) = freed
            .get(ended)
            .filter(|&&i| r.ranges[i].end as usize <= point)
        {
            let (a, b) = span(&r.ranges[i]);
            union.remove(a, b);
            ended += 1;
        }
        while let Some(x) = r.ranges.get(started).filter(|x| x.start as usize <= point) {
            let (a, b) = span(x);
            union.add(a, b);
            started += 1;
        }
        *heap = union.covered();
        if *heap > r.peak_bytes {
            r.peak_bytes = *heap;
            r.peak_point = point as u32;
        }
    }
}

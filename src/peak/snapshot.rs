//! Who is alive at the peak: every whole-program allocation and every temporary, with its size,
//! its data and its padding. Counted bytes add up to the peak; nothing is cut.

use std::cmp::Reverse;

use crate::hlo::{
    AllocationId, AllocationKind, BufferAssignment, BufferId, HeapEvent, InstructionId, Opcode,
    Program, Shape,
};
use crate::memory::last_names;
use crate::memory::replay::next_names;
use crate::memory::SpaceUsage;

/// Everything alive at a space's peak.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PeakSnapshot {
    /// Program point (of the main arena).
    pub point: u32,
    /// Largest first, ties by logical buffer id, then allocation.
    pub buffers: Vec<PeakBuffer>,
    /// Instruction whose event is the peak's.
    pub instruction_name: String,
    /// That instruction, where the module has it.
    pub instruction: Option<InstructionId>,
}

/// One block of memory at the peak.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PeakBuffer {
    /// Logical buffer that names it; `None` for memory that nothing in the file accounts for.
    pub buffer: Option<BufferId>,
    /// Canonical buffer whose size and live range count (differs from `buffer` under sharing).
    pub canonical: Option<BufferId>,
    /// The loop's result that it becomes later in its life: what a loop fills is zeros before.
    pub becomes: Option<BufferId>,
    /// Allocation that holds it.
    pub allocation: Option<AllocationId>,
    /// Instruction that defines it.
    pub instruction: Option<InstructionId>,
    /// Offset in the allocation.
    pub offset_bytes: u64,
    /// Bytes, padding included.
    pub size_bytes: u64,
    /// Bytes that count towards the peak: `size_bytes`, less what a larger buffer at the same
    /// addresses already counts (on-chip spaces only).
    pub counted_bytes: u64,
    /// Bytes of data: `counted_bytes` without tile padding.
    pub unpadded_bytes: u64,
    /// What its allocation is for.
    pub kind: AllocationKind,
    /// Program points over which it is alive, half open; `None` = all.
    pub live: Option<(u32, u32)>,
    /// Shape of what it holds, where the file says.
    pub shape: Option<Shape>,
}

impl PeakBuffer {
    /// Bytes lost to tile padding.
    pub fn padding_bytes(&self) -> u64 {
        self.counted_bytes.saturating_sub(self.unpadded_bytes)
    }
}

impl PeakSnapshot {
    /// Sum of the data at the peak.
    pub fn unpadded_bytes(&self) -> u64 {
        self.buffers
            .iter()
            .fold(0, |s, b| s.saturating_add(b.unpadded_bytes))
    }
}

/// Takes stock of `usage`'s peak.
pub fn peak_snapshot(program: &Program<'_>, usage: &SpaceUsage) -> PeakSnapshot {
    let mut out = PeakSnapshot {
        point: usage.peak_point(),
        buffers: Vec::new(),
        instruction_name: String::new(),
        instruction: None,
    };
    let Some(assignment) = &program.assignment else {
        return out;
    };
    whole_program_buffers(program, assignment, usage, &mut out.buffers);
    for (i, arena) in usage.arenas.iter().enumerate() {
        arena_buffers(program, assignment, usage, i, &mut out.buffers);
        if i == 0 {
            if let Some(event) = event_at(assignment, &arena.traces, arena.peak_point) {
                out.instruction_name = event.instruction_name.to_owned();
                out.instruction = instruction_named(program, event);
            }
        }
    }
    let id = |b: &PeakBuffer| b.buffer.map(|b| assignment.buffer(b).id);
    out.buffers.sort_by_key(|b| {
        (
            Reverse(b.size_bytes),
            id(b).unwrap_or(i64::MAX),
            b.allocation,
        )
    });
    out
}

fn event_at<'p, 'a>(
    assignment: &'p BufferAssignment<'a>,
    traces: &[usize],
    point: u32,
) -> Option<&'p HeapEvent<'a>> {
    let mut at = point as usize;
    for &t in traces {
        let events = &assignment.traces.get(t)?.events;
        if let Some(e) = events.get(at) {
            return Some(e);
        }
        at -= events.len();
    }
    None
}

/// The instruction of an event: the one that defines its buffer, if the names agree; else by name.
fn instruction_named(program: &Program<'_>, event: &HeapEvent<'_>) -> Option<InstructionId> {
    let defines = program
        .assignment
        .as_ref()
        .and_then(|a| a.buffer(event.buffer?).instruction)
        .filter(|&i| program.module.instruction(i).name == event.instruction_name);
    defines.or_else(|| {
        let named = |i: &crate::hlo::HloInstruction<'_>| i.name == event.instruction_name;
        program
            .module
            .instructions
            .iter()
            .position(named)
            .map(|i| InstructionId(i as u32))
    })
}

fn whole_program_buffers(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    usage: &SpaceUsage,
    out: &mut Vec<PeakBuffer>,
) {
    for id in assignment.allocation_ids() {
        let a = assignment.allocation(id);
        if a.space != usage.space || !a.kind.is_whole_program() || a.size_bytes == 0 {
            continue;
        }
        let buffer = naming_buffer(program, assignment, id);
        out.push(describe(
            program,
            assignment,
            buffer,
            Some(id),
            a.size_bytes,
            a.kind,
        ));
    }
}

/// The buffer that names a whole-program allocation: of a parameter's, the parameter itself; of
/// others the largest, then the first.
fn naming_buffer(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    id: AllocationId,
) -> Option<BufferId> {
    let kind = assignment.allocation(id).kind;
    let of_parameter = matches!(kind, AllocationKind::Parameter | AllocationKind::Donated);
    let rank = |b: BufferId| {
        let buffer = assignment.buffer(b);
        let is_parameter = buffer
            .instruction
            .is_some_and(|i| program.module.instruction(i).opcode == Opcode::Parameter);
        (
            Reverse(of_parameter && is_parameter),
            Reverse(buffer.size_bytes),
            buffer.id,
        )
    };
    assignment
        .assigned(id)
        .iter()
        .map(|a| a.buffer)
        .min_by_key(|&b| rank(b))
}

fn describe(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    buffer: Option<BufferId>,
    allocation: Option<AllocationId>,
    size_bytes: u64,
    kind: AllocationKind,
) -> PeakBuffer {
    let shape = buffer.and_then(|b| program.buffer_shape(b));
    let unpadded = match &shape {
        // A tuple's own buffer is its table of pointers: all data.
        Some(s) if !s.is_tuple() => s.unpadded_bytes().min(size_bytes),
        _ => size_bytes,
    };
    let logical = buffer.map(|b| assignment.buffer(b));
    PeakBuffer {
        buffer,
        canonical: buffer,
        becomes: None,
        allocation,
        instruction: logical.and_then(|b| b.instruction),
        offset_bytes: logical.map_or(0, |b| b.offset_bytes),
        size_bytes,
        counted_bytes: size_bytes,
        unpadded_bytes: unpadded,
        kind,
        live: None,
        shape,
    }
}

// Long: one walk over live ranges, with the names that each has at the peak.
fn arena_buffers(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    usage: &SpaceUsage,
    arena: usize,
    out: &mut Vec<PeakBuffer>,
) {
    let arena = &usage.arenas[arena];
    let from = out.len();
    let kind = AllocationKind::Temporary;
    if arena.heap_bytes.is_empty() {
        arena_without_trace(program, assignment, arena.allocation, out);
    } else {
        let (trace, shift) = trace_of_point(assignment, arena);
        let names = last_names(assignment, trace, arena.peak_point - shift);
        let at_peak = || {
            let ranges = arena.ranges.iter();
            ranges.filter(|r| (r.start..r.end).contains(&arena.peak_point))
        };
        let ends = at_peak()
            .map(|r| (r.buffer, r.end.saturating_sub(shift)))
            .collect();
        let is_loop = |b: BufferId| {
            let defined_by = assignment.buffer(b).instruction;
            defined_by.is_some_and(|i| program.module.instruction(i).opcode == Opcode::While)
        };
        let point = arena.peak_point - shift;
        let later = next_names(assignment, trace, point, &ends, is_loop);
        for r in at_peak() {
            let canonical = assignment.buffer(r.buffer);
            if canonical.size_bytes == 0 {
                continue;
            }
            let named = names.get(&r.buffer).copied().unwrap_or(r.buffer);
            let mut b = describe(
                program,
                assignment,
                Some(named),
                arena.allocation,
                canonical.size_bytes,
                kind,
            );
            b.canonical = Some(r.buffer);
            b.becomes = later.get(&r.buffer).copied();
            b.offset_bytes = canonical.offset_bytes;
            b.live = Some((r.start, r.end));
            out.push(b);
        }
        if arena.is_union {
            count_overlaps_once(out.get_mut(from..).unwrap_or_default(), u64::MAX);
        }
    }
    let counted = out
        .iter()
        .skip(from)
        .fold(0u64, |s, b| s.saturating_add(b.counted_bytes));
    if arena.peak_bytes > counted {
        out.push(describe(
            program,
            assignment,
            None,
            arena.allocation,
            arena.peak_bytes - counted,
            kind,
        ));
    }
}

/// The trace that holds the arena's peak, and the points before it.
fn trace_of_point<'p, 'a>(
    assignment: &'p BufferAssignment<'a>,
    arena: &crate::memory::ArenaUsage,
) -> (&'p crate::hlo::HeapTrace<'a>, u32) {
    let mut shift = 0;
    for &t in &arena.traces {
        let n = assignment.traces[t].events.len() as u32;
        if arena.peak_point < shift + n {
            return (&assignment.traces[t], shift);
        }
        shift += n;
    }
    (&assignment.traces[arena.traces[0]], 0)
}

/// Without a trace all of the arena counts: its buffers where they do not overlap, largest first.
fn arena_without_trace(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    allocation: Option<AllocationId>,
    out: &mut Vec<PeakBuffer>,
) {
    let Some(id) = allocation else { return };
    let from = out.len();
    for a in assignment.assigned(id) {
        let size = assignment.buffer(a.buffer).size_bytes;
        if size > 0 {
            let kind = AllocationKind::Temporary;
            let mut b = describe(program, assignment, Some(a.buffer), Some(id), size, kind);
            b.offset_bytes = a.offset_bytes;
            out.push(b);
        }
    }
    let limit = assignment.allocation(id).size_bytes;
    count_overlaps_once(out.get_mut(from..).unwrap_or_default(), limit);
    let tail = out.split_off(from);
    out.extend(tail.into_iter().filter(|b| b.counted_bytes > 0));
}

/// Gives each address below `limit` to the largest buffer that covers it.
fn count_overlaps_once(buffers: &mut [PeakBuffer], limit: u64) {
    let span = |b: &PeakBuffer| {
        let end = b.offset_bytes.saturating_add(b.size_bytes);
        (b.offset_bytes.min(limit), end.min(limit))
    };
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&i| (Reverse(buffers[i].size_bytes), buffers[i].buffer));
    let ends = buffers
        .iter()
        .flat_map(|b| <[u64; 2]>::from(span(b)))
        .collect();
    let mut union = crate::memory::union::RangeUnion::new(ends);
    for i in order {
        let before = union.covered();
        let b = &mut buffers[i];
        let (start, end) = span(b);
        union.add(start, end);
        b.counted_bytes = union.covered() - before;
        if b.counted_bytes < b.size_bytes {
            // The share of the data in what is counted.
            let share = u128::from(b.unpadded_bytes) * u128::from(b.counted_bytes);
            b.unpadded_bytes =
                u64::try_from(share / u128::from(b.size_bytes.max(1))).unwrap_or(u64::MAX);
        }
    }
}

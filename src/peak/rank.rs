//! Sums of the peak by some property: source line, opcode, element type.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::context::Context;
use super::labels::{buffer_label, label_of, opcode, producer_of};
use super::snapshot::PeakBuffer;
use crate::dataflow::producer_of_buffer;
use crate::hlo::{AllocationKind, BufferAssignment, BufferId};
use crate::memory::range_names;
use crate::memory::{ArenaUsage, SpaceUsage};

/// Buffers that share a property.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RankRow {
    /// The property.
    pub label: String,
    /// Buffers.
    pub count: usize,
    /// Their bytes at the peak.
    pub bytes: u64,
    /// Their tile padding.
    pub padding_bytes: u64,
}

/// Sums the peak by `key`; largest first, ties by label. Adds up to the peak.
pub fn rank_by(ctx: &Context<'_, '_>, mut key: impl FnMut(&PeakBuffer) -> String) -> Vec<RankRow> {
    let mut sums: BTreeMap<String, RankRow> = BTreeMap::new();
    for b in &ctx.peak.buffers {
        let label = key(b);
        let row = sums.entry(label.clone()).or_insert(RankRow {
            label,
            count: 0,
            bytes: 0,
            padding_bytes: 0,
        });
        row.count += 1;
        row.bytes = row.bytes.saturating_add(b.counted_bytes);
        row.padding_bytes = row.padding_bytes.saturating_add(b.padding_bytes());
    }
    let mut out: Vec<RankRow> = sums.into_values().collect();
    out.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.label.cmp(&b.label)));
    out
}

/// By the user's source line; arguments and what the framework gave no place are rows of their own.
pub fn rank_by_source(ctx: &Context<'_, '_>) -> Vec<RankRow> {
    rank_by(ctx, |b| match (b.kind, producer_of(ctx, b)) {
        (AllocationKind::Parameter | AllocationKind::Donated, _) => "(arguments)".to_owned(),
        (_, Some(i)) => ctx.program.module.source_of(i).map_or_else(
            || "(no source line)".to_owned(),
            |s| format!("{}:{}", s.file, s.line),
        ),
        _ => "(no source line)".to_owned(),
    })
}

/// By HLO opcode.
pub fn rank_by_opcode(ctx: &Context<'_, '_>) -> Vec<RankRow> {
    rank_by(ctx, |b| match opcode(ctx, b) {
        "" => "[unattributed]".to_owned(),
        o => o.to_owned(),
    })
}

/// By element type.
pub fn rank_by_element_type(ctx: &Context<'_, '_>) -> Vec<RankRow> {
    rank_by(ctx, |b| {
        b.shape
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), |s| s.element_type.to_string())
    })
}

/// A temporary and how long it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldRow {
    /// The canonical buffer.
    pub buffer: BufferId,
    /// The buffer that last became a name of it while it lived.
    pub name: BufferId,
    /// Bytes.
    pub size_bytes: u64,
    /// First program point.
    pub start: u32,
    /// End (exclusive).
    pub end: u32,
}

impl HeldRow {
    /// Bytes times program points: what it occupies of the memory-over-order picture.
    pub fn byte_points(&self) -> u128 {
        u128::from(self.size_bytes) * u128::from(self.end.saturating_sub(self.start))
    }
}

/// Temporaries of the main arena by bytes × program points, most first, whether or not they are
/// alive at the peak.
pub fn long_held(ctx: &Context<'_, '_>, usage: &SpaceUsage) -> Vec<HeldRow> {
    let (Some(arena), Some(assignment)) = (usage.main_arena(), &ctx.program.assignment) else {
        return Vec::new();
    };
    let names = arena_names(assignment, arena);
    let mut out: Vec<HeldRow> = arena
        .ranges
        .iter()
        .map(|r| HeldRow {
            buffer: r.buffer,
            name: names.get(&(r.buffer, r.start)).copied().unwrap_or(r.buffer),
            size_bytes: assignment.buffer(r.buffer).size_bytes,
            start: r.start,
            end: r.end,
        })
        .collect();
    out.sort_by_key(|h| (std::cmp::Reverse(h.byte_points()), h.buffer, h.start));
    out
}

/// Last names of all live ranges of an arena, by canonical buffer and first point.
fn arena_names(
    assignment: &BufferAssignment<'_>,
    arena: &ArenaUsage,
) -> rustc_hash::FxHashMap<(BufferId, u32), BufferId> {
    let mut out = rustc_hash::FxHashMap::default();
    let mut shift = 0;
    for trace in arena
        .traces
        .iter()
        .filter_map(|&t| assignment.traces.get(t))
    {
        let names = range_names(assignment, trace);
        out.extend(
            names
                .into_iter()
                .map(|((b, start), name)| ((b, start + shift), name)),
        );
        shift += trace.events.len() as u32;
    }
    out
}

/// Names of live ranges: of what is alive at the peak the names that it has there.
#[derive(Debug, Clone, Default)]
pub struct RangeLabels {
    at_peak: FxHashMap<(BufferId, u32), usize>,
}

impl RangeLabels {
    /// Looks up the peak's blocks by canonical buffer and first point.
    pub fn new(ctx: &Context<'_, '_>) -> Self {
        let blocks = ctx.peak.buffers.iter().enumerate();
        RangeLabels {
            at_peak: blocks
                .filter_map(|(i, b)| Some(((b.canonical?, b.live?.0), i)))
                .collect(),
        }
    }

    /// The buffer that stands for a range: at the peak the snapshot's, else the canonical one.
    pub fn buffer(&self, ctx: &Context<'_, '_>, range: &HeldRow) -> BufferId {
        let b = self.block(ctx, range).and_then(|b| b.buffer);
        b.unwrap_or(range.buffer)
    }

    /// What people call a range's data (see [`buffer_label`]).
    pub fn label(&self, ctx: &Context<'_, '_>, range: &HeldRow) -> String {
        if let Some(b) = self.block(ctx, range) {
            return buffer_label(ctx, b);
        }
        let made = producer_of_buffer(ctx.program, range.name).map(|m| m.instruction);
        label_of(ctx.program, made)
    }

    fn block<'c>(&self, ctx: &Context<'c, '_>, range: &HeldRow) -> Option<&'c PeakBuffer> {
        let &i = self.at_peak.get(&(range.buffer, range.start))?;
        ctx.peak.buffers.get(i)
    }
}

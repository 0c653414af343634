//! Analyses → the report's data. Nothing is computed here but look-ups and sums over groups.

use std::collections::BTreeMap;

use super::loaded::SpaceAnalysis;
use super::schema::{
    BetterShapeEntry, Breakdown, BufferEntry, GroupEntry, HeldEntry, LiveEntry, PaddingCauseEntry,
    PaddingEntry, RankEntry, Rankings, ScopeEntry, ShapeEntry, ShapesOnly, SpaceReport, Timeline,
};
use crate::hlo::{AllocationKind, BufferAssignment, Program, Shape};
use crate::memory::SpaceUsage;
use crate::peak::{
    argument_name, buffer_label, long_held, opcode, producer_of, rank_by_element_type,
    rank_by_opcode, rank_by_source, BetterShape, Context, HeldRow, PeakBuffer, RangeLabels,
    RankRow, ScopeNode, ShapeChange,
};

/// Rows of the ranking by bytes × program points that the report keeps.
const LONG_HELD_ROWS: usize = 1000;

/// The contract's word for what an allocation is for.
pub fn kind_name(kind: AllocationKind) -> &'static str {
    match kind {
        AllocationKind::Parameter => "parameter",
        AllocationKind::Donated => "donated",
        AllocationKind::Output => "output",
        AllocationKind::Constant => "constant",
        AllocationKind::ThreadLocal => "thread_local",
        AllocationKind::Temporary => "temporary",
    }
}

/// One space's report, without findings and replication (their analyses add them).
pub fn space_report(
    program: &Program<'_>,
    analysis: &SpaceAnalysis,
    with_timeline: bool,
) -> Option<SpaceReport> {
    let assignment = program.assignment.as_ref()?;
    let ctx = analysis.context(program, None);
    let usage = &analysis.usage;
    let peak_instruction = analysis
        .peak
        .instruction
        .map(|i| program.module.instruction(i));
    let unpadded = analysis.peak.unpadded_bytes().min(usage.peak_bytes());
    let buffers = analysis.peak.buffers.iter();
    Some(SpaceReport {
        peak_unpadded_bytes: unpadded,
        padding_bytes: usage.peak_bytes() - unpadded,
        peak_instruction: analysis.peak.instruction_name.clone(),
        peak_op_name: peak_instruction.map_or_else(String::new, |i| i.op_name.to_owned()),
        peak_source: analysis
            .peak
            .instruction
            .and_then(|i| program.module.source_of(i)),
        buffers: buffers.map(|b| buffer_entry(&ctx, assignment, b)).collect(),
        groups: groups(&ctx, analysis),
        rankings: rankings(&ctx, assignment, analysis),
        timeline: with_timeline.then(|| timeline(program, assignment, analysis)),
        ..space_totals(usage)
    })
}

/// The totals of a space alone: no buffers, padding unknown (as if there were none).
pub fn space_totals(usage: &SpaceUsage) -> SpaceReport {
    SpaceReport {
        color: usage.space.0,
        name: usage.space.name(),
        peak_bytes: usage.peak_bytes(),
        peak_unpadded_bytes: usage.peak_bytes(),
        padding_bytes: 0,
        indefinite_bytes: usage.indefinite_bytes,
        heap_peak_bytes: usage.heap_peak_bytes,
        allocated_bytes: usage.allocated_bytes,
        fragmentation_bytes: usage.fragmentation_bytes(),
        is_address_union: usage.arenas.iter().any(|a| a.is_union),
        breakdown: Breakdown {
            parameter_bytes: usage.parameter_bytes,
            output_bytes: usage.output_bytes,
            donated_bytes: usage.donated_bytes,
            constant_bytes: usage.constant_bytes,
            temporary_bytes: usage.heap_peak_bytes,
        },
        peak_point: usage.peak_point(),
        point_count: usage.point_count(),
        peak_instruction: String::new(),
        peak_op_name: String::new(),
        peak_source: None,
        buffers: Vec::new(),
        groups: Vec::new(),
        findings: Vec::new(),
        rankings: Rankings::default(),
        replication: None,
        timeline: None,
    }
}

fn buffer_entry(
    ctx: &Context<'_, '_>,
    assignment: &BufferAssignment<'_>,
    b: &PeakBuffer,
) -> BufferEntry {
    let module = &ctx.program.module;
    let instruction = b.instruction.map(|i| module.instruction(i));
    let allocation = b.allocation.map(|a| assignment.allocation(a));
    // What computes the value says more of the user's code than a loop that carries it.
    let place = producer_of(ctx, b).or(b.instruction);
    BufferEntry {
        logical_buffer_id: ctx.buffer_id(b),
        allocation_index: allocation.map(|a| a.index),
        offset_bytes: b.offset_bytes,
        instruction: instruction.map_or_else(String::new, |i| i.name.to_owned()),
        shape_index: b
            .buffer
            .map_or_else(Vec::new, |b| assignment.shape_index(b).to_vec()),
        opcode: opcode(ctx, b).to_owned(),
        op_name: ctx.op_name(b).to_owned(),
        label: buffer_label(ctx, b),
        source: place.and_then(|i| module.source_of(i)),
        stack: place.map_or_else(Vec::new, |i| module.stack_of(i)),
        shape: b
            .shape
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        element_type: b
            .shape
            .as_ref()
            .map_or_else(String::new, |s| s.element_type.to_string()),
        dimensions: b
            .shape
            .as_ref()
            .map_or_else(Vec::new, |s| s.dimensions.clone()),
        size_bytes: b.size_bytes,
        counted_bytes: b.counted_bytes,
        unpadded_bytes: b.unpadded_bytes,
        padding_bytes: b.padding_bytes(),
        kind: kind_name(b.kind),
        parameter_number: allocation.and_then(|a| a.parameter_number),
        live: b.live.map(|(start, end)| LiveEntry { start, end }),
        devices: module.device_count(),
        distinct_copies: None,
        redundant_bytes: None,
        sharding: None,
        origin: None,
        origin_certainty: None,
        origin_rule: None,
    }
}

fn groups(ctx: &Context<'_, '_>, analysis: &SpaceAnalysis) -> Vec<GroupEntry> {
    let ids = |members: &[usize]| {
        members
            .iter()
            .filter_map(|&i| ctx.buffer_id(&ctx.peak.buffers[i]))
            .collect()
    };
    analysis
        .groups
        .iter()
        .map(|g| GroupEntry {
            label: g.label.clone(),
            shape: g.shape.clone(),
            opcode: g.opcode.clone(),
            count: g.members.len(),
            size_bytes: g.size_bytes,
            padding_bytes: g.padding_bytes,
            kind: kind_name(g.kind),
            source: g
                .members
                .first()
                .and_then(|&m| producer_of(ctx, ctx.peak.buffers.get(m)?))
                .and_then(|i| ctx.program.module.source_of(i)),
            buffer_ids: ids(&g.members),
        })
        .collect()
}

/// Rows of a ranking as entries.
pub fn rank_entries(rows: Vec<RankRow>) -> Vec<RankEntry> {
    rows.into_iter()
        .map(|r| RankEntry {
            label: r.label,
            count: r.count,
            size_bytes: r.bytes,
            padding_bytes: r.padding_bytes,
        })
        .collect()
}

fn rankings(
    ctx: &Context<'_, '_>,
    assignment: &BufferAssignment<'_>,
    analysis: &SpaceAnalysis,
) -> Rankings {
    let mut by_op_path = Vec::new();
    for child in &analysis.tree.children {
        flatten(child, 0, &mut by_op_path);
    }
    let labels = RangeLabels::new(ctx);
    let long_held = long_held(ctx, &analysis.usage)
        .into_iter()
        .take(LONG_HELD_ROWS)
        .map(|h| held_entry(ctx, assignment, &labels, h))
        .collect();
    Rankings {
        by_source_line: rank_entries(rank_by_source(ctx)),
        by_op_path,
        by_element_type: rank_entries(rank_by_element_type(ctx)),
        by_opcode: rank_entries(rank_by_opcode(ctx)),
        by_origin: Vec::new(),
        long_held,
        padding: padding_entries(ctx, analysis),
        unsharded: Vec::new(),
    }
}

fn held_entry(
    ctx: &Context<'_, '_>,
    assignment: &BufferAssignment<'_>,
    labels: &RangeLabels,
    h: HeldRow,
) -> HeldEntry {
    let named = labels.buffer(ctx, &h);
    let at_peak = (h.start..h.end).contains(&ctx.peak.point);
    let shape = ctx
        .program
        .buffer_shape(if at_peak { named } else { h.name });
    HeldEntry {
        logical_buffer_id: assignment.buffer(named).id,
        label: labels.label(ctx, &h),
        shape: shape.as_ref().map(ToString::to_string).unwrap_or_default(),
        size_bytes: h.size_bytes,
        live: LiveEntry {
            start: h.start,
            end: h.end,
        },
        at_peak,
    }
}

fn flatten(node: &ScopeNode, depth: usize, out: &mut Vec<ScopeEntry>) {
    out.push(ScopeEntry {
        name: node.name.clone(),
        depth,
        count: node.count,
        size_bytes: node.bytes,
        padding_bytes: node.padding_bytes,
    });
    for child in &node.children {
        flatten(child, depth + 1, out);
    }
}

/// Padding folded by group: a group's members have one shape.
fn padding_entries(ctx: &Context<'_, '_>, analysis: &SpaceAnalysis) -> Vec<PaddingEntry> {
    let mut group_of = BTreeMap::new();
    for (g, group) in analysis.groups.iter().enumerate() {
        group_of.extend(group.members.iter().map(|&m| (m, g)));
    }
    let mut out: Vec<PaddingEntry> = Vec::new();
    let mut entry_of: BTreeMap<usize, usize> = BTreeMap::new();
    for row in &analysis.padding {
        let b = &ctx.peak.buffers[row.buffer];
        let group = group_of.get(&row.buffer).copied();
        let at = group.and_then(|g| entry_of.get(&g).copied());
        let saved = row.better.as_ref().map_or(0, |s| s.saving_bytes);
        let id = ctx.buffer_id(b);
        if let Some(entry) = at.and_then(|i| out.get_mut(i)) {
            entry.buffer_ids.extend(id);
            entry.size_bytes = entry.size_bytes.saturating_add(row.size_bytes);
            entry.unpadded_bytes = entry.unpadded_bytes.saturating_add(row.unpadded_bytes);
            entry.padding_bytes = entry.padding_bytes.saturating_add(row.padding_bytes());
            if let Some(better) = &mut entry.better {
                better.saving_bytes = better.saving_bytes.saturating_add(saved);
            }
            continue;
        }
        if let Some(g) = group {
            entry_of.insert(g, out.len());
        }
        let group = group.and_then(|g| analysis.groups.get(g));
        out.push(PaddingEntry {
            buffer_ids: id.into_iter().collect(),
            label: group.map_or_else(|| buffer_label(ctx, b), |g| g.label.clone()),
            shape: b
                .shape
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            size_bytes: row.size_bytes,
            unpadded_bytes: row.unpadded_bytes,
            padding_bytes: row.padding_bytes(),
            causes: row
                .causes
                .iter()
                .map(|c| PaddingCauseEntry {
                    dimension: c.dimension,
                    size: c.size,
                    padded: c.padded,
                    bytes: c.bytes,
                })
                .collect(),
            better: row.better.as_ref().map(|s| better_entry(s, saved)),
        });
    }
    out.sort_by(|a, b| {
        (b.padding_bytes, &a.label, &a.shape).cmp(&(a.padding_bytes, &b.label, &b.shape))
    });
    out
}

fn better_entry(s: &BetterShape, saving_bytes: u64) -> BetterShapeEntry {
    BetterShapeEntry {
        change: match s.change {
            ShapeChange::Move => "move",
            ShapeChange::Merge => "merge",
            ShapeChange::RoundDown => "round_down",
        },
        dimensions: s.dimensions.clone(),
        size_bytes: s.size_bytes,
        saving_bytes,
    }
}

/// Memory at every program point of the space's main arena.
pub fn timeline(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    analysis: &SpaceAnalysis,
) -> Timeline {
    let Some(arena) = analysis.usage.main_arena() else {
        return Timeline::default();
    };
    let mut change = vec![0i128; arena.heap_bytes.len() + 1];
    for r in &arena.ranges {
        let size = assignment.buffer(r.buffer).size_bytes;
        let data = program.buffer_shape(r.buffer).filter(|s| !s.is_tuple());
        let data = i128::from(data.map_or(size, |s| s.unpadded_bytes().min(size)));
        change[r.start as usize] += data;
        change[r.end as usize] -= data;
    }
    let mut live = 0i128;
    let unpadded_bytes = change
        .iter()
        .zip(&arena.heap_bytes)
        .map(|(c, &heap)| {
            live += c;
            u64::try_from(live.max(0)).unwrap_or(u64::MAX).min(heap)
        })
        .collect();
    let events = arena
        .traces
        .iter()
        .flat_map(|&t| &assignment.traces[t].events);
    Timeline {
        total_bytes: analysis.usage.timeline(),
        heap_bytes: arena.heap_bytes.clone(),
        unpadded_bytes,
        instruction: events.map(|e| e.instruction_name.to_owned()).collect(),
    }
}

/// What a module without buffer assignment tells: its parameters and its result.
pub fn shapes_only(program: &Program<'_>, shapes_are_global: bool) -> ShapesOnly {
    let module = &program.module;
    let mut arrays = Vec::new();
    let mut add = |name: &str, kind: &'static str, shape: &Shape| {
        shape.for_each_leaf(&mut |index, leaf| {
            let size_bytes = leaf.padded_bytes();
            let part: String = index.iter().map(|i| format!("{{{i}}}")).collect();
            arrays.push(ShapeEntry {
                name: format!("{name}{part}"),
                kind,
                shape: leaf.to_string(),
                size_bytes,
                unpadded_bytes: leaf.unpadded_bytes().min(size_bytes),
            });
        });
    };
    for &p in module.entry_parameters() {
        add(argument_name(program, p), "parameter", &module.shape(p));
    }
    if let Some(root) = module.entry_root() {
        add("output", "output", &module.shape(root));
    }
    let sum = |kind: &str, f: fn(&ShapeEntry) -> u64| {
        let of_kind = arrays.iter().filter(|a| a.kind == kind);
        of_kind.fold(0u64, |s, a| s.saturating_add(f(a)))
    };
    let padding = |a: &ShapeEntry| a.size_bytes.saturating_sub(a.unpadded_bytes);
    let (parameter_bytes, output_bytes) = (
        sum("parameter", |a| a.size_bytes),
        sum("output", |a| a.size_bytes),
    );
    let padding_bytes = sum("parameter", padding).saturating_add(sum("output", padding));
    arrays.sort_by(|a, b| (b.size_bytes, a.kind, &a.name).cmp(&(a.size_bytes, b.kind, &b.name)));
    ShapesOnly {
        parameter_bytes,
        output_bytes,
        padding_bytes,
        shapes_are_global,
        arrays,
    }
}

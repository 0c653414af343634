//! From an analysed memory space to [`ChartData`]. Cost is linear in buffers and program points
//! (up to sorting).

use super::data::{ChartData, ChartGroup, ChartTitle, Coverage, MapBlock, MemoryMap, Timeline};
use super::scopes::scope_tree;
use crate::hlo::op_name::scopes;
use crate::hlo::{AllocationKind, BufferAssignment, BufferId, Program, Shape};
use crate::memory::ArenaUsage;
use crate::peak::{long_held, BufferGroup, Context, HeldRow, RangeLabels};

/// Blocks that a map draws one by one.
const MAX_BLOCKS: usize = 3000;
/// Of these, the ones that carry a label.
const MAX_LABELS: usize = 80;
/// The grid for the others.
const GRID: (usize, usize) = (700, 320);

/// Data for the charts of `ctx`'s space. `groups` are the buffers at its peak, repeats folded;
/// `device` may be empty. Sharding rows and what-if are left for others to fill.
pub fn chart_data(ctx: &Context<'_, '_>, groups: &[BufferGroup], device: &str) -> ChartData {
    let usage = ctx.usage;
    let temporary = usage.heap_peak_bytes;
    let breakdown = [
        (AllocationKind::Parameter, usage.parameter_bytes),
        (AllocationKind::Donated, usage.donated_bytes),
        (AllocationKind::Output, usage.output_bytes),
        (AllocationKind::Constant, usage.constant_bytes),
        (AllocationKind::Temporary, temporary),
    ];
    let arena = usage.main_arena();
    let assignment = ctx.program.assignment.as_ref();
    ChartData {
        title: ChartTitle {
            module: ctx.program.module.name.to_owned(),
            device: device.to_owned(),
            space: usage.space.name(),
            peak_instruction: ctx.peak.instruction_name.clone(),
        },
        capacity_bytes: ctx.capacity_bytes,
        peak_bytes: usage.peak_bytes(),
        peak_unpadded_bytes: ctx.peak.unpadded_bytes(),
        allocated_bytes: usage.allocated_bytes,
        breakdown: breakdown.into_iter().filter(|b| b.1 > 0).collect(),
        timeline: arena.map(|arena| {
            let bytes = usage.timeline();
            let unpadded = unpadded_timeline(ctx, arena);
            Timeline::thin(&bytes, unpadded.as_deref(), arena.peak_point)
        }),
        groups: groups.iter().map(chart_group).collect(),
        map: arena
            .zip(assignment)
            .map(|(arena, assignment)| memory_map(ctx, assignment, arena)),
        scopes: scope_tree(ctx),
        sharding: Vec::new(),
        what_if: None,
    }
}

fn chart_group(g: &BufferGroup) -> ChartGroup {
    ChartGroup {
        label: g.label.clone(),
        shape: g.shape.clone(),
        count: g.members.len() as u64,
        size_bytes: g.size_bytes,
        padding_bytes: g.padding_bytes,
        kind: g.kind,
    }
}

/// Live bytes without tile padding at every program point; `None` where buffers may lie over one
/// another, for then the sum means nothing.
fn unpadded_timeline(ctx: &Context<'_, '_>, arena: &ArenaUsage) -> Option<Vec<u64>> {
    let assignment = ctx.program.assignment.as_ref()?;
    if arena.is_union {
        return None;
    }
    let points = arena.heap_bytes.len();
    let mut steps = vec![0i128; points + 1];
    for_each_shape(ctx.program, assignment, arena, |i, shape| {
        let Some(range) = arena.ranges.get(i) else {
            return;
        };
        let size = assignment.buffer(range.buffer).size_bytes;
        let data = match shape {
            Some(s) if !s.is_tuple() => s.unpadded_bytes().min(size),
            _ => size,
        };
        if let Some(s) = steps.get_mut(range.start as usize) {
            *s += i128::from(data);
        }
        if let Some(s) = steps.get_mut(range.end as usize) {
            *s -= i128::from(data);
        }
    });
    let others = ctx
        .peak
        .buffers
        .iter()
        .filter(|b| b.kind != AllocationKind::Temporary || b.allocation != arena.allocation);
    let base = others.fold(0u64, |s, b| s.saturating_add(b.unpadded_bytes));
    let mut live = i128::from(base);
    steps.pop();
    Some(
        steps
            .into_iter()
            .map(|step| {
                live += step;
                u64::try_from(live.max(0)).unwrap_or(u64::MAX)
            })
            .collect(),
    )
}

/// Calls `each` with every live range's position and its buffer's shape. A shape is decoded once
/// an instruction: a tuple of many parts would cost too much otherwise.
fn for_each_shape(
    program: &Program<'_>,
    assignment: &BufferAssignment<'_>,
    arena: &ArenaUsage,
    mut each: impl FnMut(usize, Option<&Shape>),
) {
    let instruction = |b: BufferId| assignment.buffer(b).instruction;
    let mut order: Vec<usize> = (0..arena.ranges.len()).collect();
    let key = |i: &usize| arena.ranges.get(*i).and_then(|r| instruction(r.buffer));
    order.sort_by_key(key);
    let mut known = None;
    for i in order {
        let Some(range) = arena.ranges.get(i) else {
            continue;
        };
        let Some(id) = instruction(range.buffer) else {
            each(i, None);
            continue;
        };
        if known.as_ref().is_none_or(|(at, _)| *at != id) {
            known = Some((id, program.module.shape(id)));
        }
        let index = assignment.shape_index(range.buffer);
        each(i, known.as_ref().and_then(|(_, s)| s.leaf(index)));
    }
}

fn memory_map(
    ctx: &Context<'_, '_>,
    assignment: &BufferAssignment<'_>,
    arena: &ArenaUsage,
) -> MemoryMap {
    // Most bytes × points first: the largest are drawn one by one.
    let held = long_held(ctx, ctx.usage);
    let mut blocks: Vec<MapBlock> = held
        .iter()
        .filter(|h| h.size_bytes > 0)
        .map(|h| MapBlock {
            start: h.start,
            end: h.end,
            offset_bytes: assignment.buffer(h.buffer).offset_bytes,
            size_bytes: h.size_bytes,
            label: String::new(),
            shape: String::new(),
        })
        .collect();
    let reach = |b: &MapBlock| b.offset_bytes.saturating_add(b.size_bytes);
    let arena_bytes = arena.allocation.map_or_else(
        || blocks.iter().map(reach).max().unwrap_or(0),
        |id| assignment.allocation(id).size_bytes,
    );
    let range_count = blocks.len() as u64;
    let points = arena.heap_bytes.len() as u32;
    let small = blocks.split_off(blocks.len().min(MAX_BLOCKS));
    let rest = coverage(small.iter(), arena_bytes, points);
    let labels = RangeLabels::new(ctx);
    let named = held.iter().filter(|h| h.size_bytes > 0);
    for (block, range) in blocks.iter_mut().zip(named).take(MAX_LABELS) {
        block.label = label(ctx, &labels, range);
        let shape = ctx.program.buffer_shape(labels.buffer(ctx, range));
        if let Some(mut shape) = shape {
            shape.layout = None;
            block.shape = shape.to_string();
        }
    }
    MemoryMap {
        arena_bytes,
        live_bytes: arena.peak_bytes,
        point_count: points,
        peak_point: arena.peak_point,
        range_count,
        blocks,
        rest,
    }
}

/// A range's name as in the tables, without the leading `jit(...)`.
fn label(ctx: &Context<'_, '_>, labels: &RangeLabels, range: &HeldRow) -> String {
    scopes(&labels.label(ctx, range)).join("/")
}

/// Adds blocks up on a grid. Linear in blocks times grid rows that each covers.
fn coverage<'b>(
    blocks: impl Iterator<Item = &'b MapBlock>,
    arena_bytes: u64,
    points: u32,
) -> Coverage {
    let (columns, rows) = GRID;
    let mut out = Coverage::default();
    if arena_bytes == 0 || points == 0 {
        return out;
    }
    // Row by row, what changes from one column to the next.
    let mut change = vec![0f64; (columns + 1) * rows];
    let row_bytes = arena_bytes as f64 / rows as f64;
    let column = |point: u32| f64::from(point) / f64::from(points) * columns as f64;
    let mut any = false;
    for b in blocks {
        any = true;
        let (from, to) = (column(b.start), column(b.end));
        let low = b.offset_bytes as f64 / row_bytes;
        let high = (b.offset_bytes as f64 + b.size_bytes as f64) / row_bytes;
        let last = (high.ceil() as usize).min(rows);
        for row in (low as usize)..last {
            let share = high.min((row + 1) as f64) - low.max(row as f64);
            add_span(&mut change, row * (columns + 1), columns, (from, to), share);
        }
    }
    if any {
        out.columns = columns;
        out.rows = rows;
        for row in change.chunks_exact(columns + 1) {
            let mut full = 0.0;
            for step in row.iter().take(columns) {
                full += step;
                out.cells.push((full.clamp(0.0, 1.0) * 255.0).round() as u8);
            }
        }
    }
    out
}

/// Adds `share` over `from..to` columns, in part where the ends are inside a column.
fn add_span(change: &mut [f64], row: usize, columns: usize, (from, to): (f64, f64), share: f64) {
    let mut add = |column: usize, v: f64| {
        if let Some(c) = change.get_mut(row + column.min(columns)) {
            *c += v;
        }
    };
    let (first, last) = (from as usize, to as usize);
    // A ramp in the first column and one in the last: each is a step now and the rest a column on.
    let (a, b) = (from - first as f64, to - last as f64);
    add(first, share * (1.0 - a));
    add(first + 1, share * a);
    add(last, -share * (1.0 - b));
    add(last + 1, -share * b);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32, end: u32, offset_bytes: u64, size_bytes: u64) -> MapBlock {
        MapBlock {
            start,
            end,
            offset_bytes,
            size_bytes,
            label: String::new(),
            shape: String::new(),
        }
    }

    #[test]
    fn coverage_is_the_share_of_each_cell() {
        let (columns, rows) = GRID;
        let (arena, points) = (rows as u64 * 100, columns as u32);
        let c = coverage([block(0, points / 2, 0, 150)].iter(), arena, points);
        let cell = |x: usize, y: usize| c.cells[y * columns + x];
        assert_eq!((cell(0, 0), cell(0, 1), cell(0, 2)), (255, 128, 0));
        assert_eq!((cell(columns / 2 - 1, 0), cell(columns / 2, 0)), (255, 0));
    }

    #[test]
    fn a_life_shorter_than_a_column_covers_its_part() {
        let (columns, rows) = GRID;
        let points = columns as u32 * 4;
        let c = coverage([block(5, 6, 0, rows as u64)].iter(), rows as u64, points);
        assert_eq!((c.cells[0], c.cells[1], c.cells[2]), (0, 64, 0));
    }

    #[test]
    fn blocks_beyond_the_arena_do_not_reach_out_of_the_grid() {
        let c = coverage([block(0, 9, u64::MAX - 1, u64::MAX)].iter(), 10, 3);
        assert!(c.cells.iter().all(|c| *c == 0));
        assert!(coverage([].iter(), 10, 3).cells.is_empty());
    }
}

//! Rankings of a space: which there are, in which order, with which columns.

use crate::render::{cut, Cell, Column, Table};
use crate::report::{GroupEntry, PaddingEntry, RankEntry, ScopeEntry, ShapeEntry, SpaceReport};
use crate::units;

/// Every ranking of a space that has something to say, `top` rows each.
pub fn rankings(space: &SpaceReport, top: usize) -> Vec<Table> {
    let mut out = vec![largest(space, top)];
    // The first list says most; the others are its other sides.
    let top = top.div_ceil(2).max(top.min(3));
    out.extend(temporaries(space, top));
    out.extend(held(space, top));
    out.extend(replication(space, top));
    out.extend(unsharded(space, top));
    out.extend(padding(space, top));
    let r = &space.rankings;
    out.extend(scopes(space, top));
    out.extend(ranking(
        "By source line",
        "where",
        &r.by_source_line,
        space,
        top,
    ));
    out.extend(ranking("By origin", "what it is", &r.by_origin, space, top));
    out.extend(ranking(
        "By element type",
        "type",
        &r.by_element_type,
        space,
        top,
    ));
    out.extend(ranking("By opcode", "opcode", &r.by_opcode, space, top));
    out
}

/// A name without the leading `jit(...)/`, which is the same for all.
fn short(label: &str) -> String {
    match label.split_once('/') {
        Some((head, rest)) if head.starts_with("jit(") && head.ends_with(')') => rest.to_owned(),
        _ => label.to_owned(),
    }
}

/// A group's name and its place in the code.
pub(super) fn what(g: &GroupEntry) -> Cell {
    match &g.source {
        Some(s) => Cell::Code(format!("{}  {}:{}", short(&g.label), s.file, s.line)),
        None => Cell::Code(short(&g.label)),
    }
}

/// The largest groups at the peak.
pub(super) fn largest(space: &SpaceReport, top: usize) -> Table {
    let (shown, left_out) = cut(&space.groups, top, |g| g.size_bytes, "groups");
    Table {
        title: "Largest buffers at the peak".to_owned(),
        note: "repeats folded; shapes are per device".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("count"),
            Column::left("kind"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|g| {
                vec![
                    Cell::Bytes(g.size_bytes),
                    Cell::Share(g.size_bytes, space.peak_bytes),
                    Cell::Text(repeats(g.count, g.size_bytes)),
                    Cell::Text(short_kind(g.kind).to_owned()),
                    Cell::Shape(g.shape.clone()),
                    what(g),
                ]
            })
            .collect(),
        left_out,
    }
}

/// `48 × 128 MiB`; empty for one.
pub(super) fn repeats(count: usize, bytes: u64) -> String {
    match count {
        0 | 1 => String::new(),
        n => format!("{n} × {}", units::bytes(bytes / n as u64)),
    }
}

fn short_kind(kind: &str) -> &str {
    match kind {
        "parameter" => "arg",
        "temporary" => "temp",
        other => other,
    }
}

fn temporaries(space: &SpaceReport, top: usize) -> Option<Table> {
    let groups: Vec<_> = space
        .groups
        .iter()
        .filter(|g| g.kind == "temporary")
        .collect();
    // Without anything else the list would repeat the one above.
    if groups.is_empty() || groups.len() == space.groups.len() {
        return None;
    }
    let (shown, left_out) = cut(&groups, top, |g| g.size_bytes, "groups");
    Some(Table {
        title: "Temporaries at the peak".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("count"),
            Column::optional("opcode"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|g| {
                vec![
                    Cell::Bytes(g.size_bytes),
                    Cell::Share(g.size_bytes, space.heap_peak_bytes),
                    Cell::Text(repeats(g.count, g.size_bytes)),
                    Cell::Code(g.opcode.clone()),
                    Cell::Shape(g.shape.clone()),
                    what(g),
                ]
            })
            .collect(),
        left_out,
        ..Table::default()
    })
}

fn held(space: &SpaceReport, top: usize) -> Option<Table> {
    let rows = &space.rankings.long_held;
    if rows.is_empty() {
        return None;
    }
    let shown = rows.get(..top.min(rows.len())).unwrap_or_default();
    Some(Table {
        title: "Temporaries held longest".to_owned(),
        note: "by bytes × program points; * = alive at the peak".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("points"),
            Column::right("of run"),
            Column::left(""),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|h| {
                let points = u64::from(h.live.end.saturating_sub(h.live.start));
                vec![
                    Cell::Bytes(h.size_bytes),
                    Cell::Count(points),
                    Cell::Share(points, space.point_count as u64),
                    Cell::Text(if h.at_peak { "*" } else { "" }.to_owned()),
                    Cell::Shape(h.shape.clone()),
                    Cell::Code(short(&h.label)),
                ]
            })
            .collect(),
        left_out: match rows.len().saturating_sub(top) {
            0 => String::new(),
            n => format!("… and {} more temporaries", units::count(n as u64)),
        },
    })
}

/// Smallest amount worth a row in the tables of padding and of copies.
const WORTH_BYTES: u64 = 64 << 10;

/// How many rows, the largest first, are worth showing: the others are noise.
fn worth<T>(rows: &[T], space: &SpaceReport, bytes: impl Fn(&T) -> u64) -> usize {
    // A space smaller than that in all has rows of its own size.
    let least = (space.peak_bytes / 2000).max(WORTH_BYTES.min(space.peak_bytes / 100));
    rows.iter().take_while(|x| bytes(x) >= least.max(1)).count()
}

fn replication(space: &SpaceReport, top: usize) -> Option<Table> {
    let r = space
        .replication
        .as_ref()
        .filter(|r| r.redundant_bytes > 0)?;
    let top = top.min(worth(&r.rows, space, |x| x.redundant_bytes));
    if top == 0 {
        return None;
    }
    let (shown, left_out) = cut(&r.rows, top, |x| x.redundant_bytes, "groups");
    Some(Table {
        title: "Held identically by several devices".to_owned(),
        note: format!(
            "{} of {} at the peak is data that another of the {} devices holds too{}",
            units::bytes(r.redundant_bytes),
            units::bytes(space.peak_bytes),
            units::count(r.devices),
            match r.unshardable_bytes {
                0 => String::new(),
                n => format!(
                    "; {} of that depends on no argument (masks, zeros) and is not shardable",
                    units::bytes(n)
                ),
            }
        ),
        columns: vec![
            Column::right("size"),
            Column::right("redundant"),
            Column::right("distinct"),
            Column::left("same over"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.size_bytes),
                    Cell::Bytes(x.redundant_bytes),
                    Cell::Text(format!("{} of {}", x.distinct_copies, r.devices)),
                    Cell::Text(x.axes.clone().unwrap_or_default()),
                    Cell::Shape(x.shape.clone()),
                    Cell::Code(x.label.clone()),
                ]
            })
            .collect(),
        left_out,
    })
}

fn unsharded(space: &SpaceReport, top: usize) -> Option<Table> {
    let rows = &space.rankings.unsharded;
    if rows.is_empty() {
        return None;
    }
    let (shown, left_out) = cut(rows, top, |x| x.size_bytes, "arrays");
    Some(Table {
        title: "Arguments and outputs that are whole on every device".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("would save"),
            Column::left("kind"),
            Column::flexible("sharding"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.size_bytes),
                    Cell::Bytes(x.saving_bytes),
                    Cell::Text(short_kind(x.kind).to_owned()),
                    Cell::Code(x.sharding.clone().unwrap_or_else(|| "none".to_owned())),
                    Cell::Shape(x.shape.clone()),
                    Cell::Code(x.label.clone()),
                ]
            })
            .collect(),
        left_out,
        ..Table::default()
    })
}

fn padding(space: &SpaceReport, top: usize) -> Option<Table> {
    let rows = &space.rankings.padding;
    let top = top.min(worth(rows, space, |x| x.padding_bytes));
    let matters = u128::from(space.padding_bytes) * 1000 >= u128::from(space.peak_bytes);
    if top == 0 || !matters {
        return None;
    }
    let (shown, left_out) = cut(rows, top, |x| x.padding_bytes, "groups");
    Some(Table {
        title: "Tile padding at the peak".to_owned(),
        note: format!(
            "{} of {} is padding; cause: the dimension that costs most",
            units::bytes(space.padding_bytes),
            units::bytes(space.peak_bytes)
        ),
        columns: vec![
            Column::right("lost"),
            Column::right("of size"),
            Column::right("factor"),
            Column::left("cause"),
            Column::flexible("shape"),
            Column::flexible("better"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.padding_bytes),
                    Cell::Share(x.padding_bytes, x.size_bytes),
                    Cell::Factor(x.size_bytes, x.unpadded_bytes),
                    Cell::Text(cause(x)),
                    Cell::Shape(x.shape.clone()),
                    Cell::Text(better(x)),
                    Cell::Code(short(&x.label)),
                ]
            })
            .collect(),
        left_out,
    })
}

/// `dim 2: 4→128`.
fn cause(x: &PaddingEntry) -> String {
    let Some(c) = x.causes.first() else {
        return "rounding".to_owned();
    };
    match c.dimension {
        Some(d) => format!("dim {d}: {}→{}", c.size, c.padded),
        None => format!("rank: 1→{}", c.padded),
    }
}

/// `merge to [8388608,32], saves 31.00 GiB`.
fn better(x: &PaddingEntry) -> String {
    let Some(b) = &x.better else {
        return String::new();
    };
    let dims: Vec<String> = b.dimensions.iter().map(ToString::to_string).collect();
    let how = match b.change {
        "move" => "order",
        "merge" => "merge to",
        _ => "round to",
    };
    format!(
        "{how} [{}], saves {}",
        dims.join(","),
        units::bytes(b.saving_bytes)
    )
}

fn scopes(space: &SpaceReport, top: usize) -> Option<Table> {
    // A tree is cut by size, not by rows: nodes under a hundredth of the peak are left out.
    let limit = space.peak_bytes / 100;
    let kept: Vec<&ScopeEntry> = space
        .rankings
        .by_op_path
        .iter()
        .filter(|s| s.depth < 6 && s.size_bytes > limit)
        .take(top.saturating_mul(3))
        .collect();
    if kept.is_empty() {
        return None;
    }
    let shown: u64 = kept
        .iter()
        .filter(|s| s.depth == 0)
        .map(|s| s.size_bytes)
        .sum();
    let rest = space.peak_bytes.saturating_sub(shown);
    Some(Table {
        title: "By operation path".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("count"),
            Column::flexible("scope"),
        ],
        rows: kept
            .iter()
            .map(|s| {
                vec![
                    Cell::Bytes(s.size_bytes),
                    Cell::Share(s.size_bytes, space.peak_bytes),
                    Cell::Count(s.count as u64),
                    Cell::Scope(s.depth, s.name.clone()),
                ]
            })
            .collect(),
        left_out: if rest > 0 {
            format!("… and smaller scopes, {}", units::bytes(rest))
        } else {
            String::new()
        },
        ..Table::default()
    })
}

fn ranking(
    title: &str,
    what: &'static str,
    rows: &[RankEntry],
    space: &SpaceReport,
    top: usize,
) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let (shown, left_out) = cut(rows, top, |x| x.size_bytes, "rows");
    Some(Table {
        title: title.to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("buffers"),
            Column::right("padding"),
            Column::flexible(what),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.size_bytes),
                    Cell::Share(x.size_bytes, space.peak_bytes),
                    Cell::Count(x.count as u64),
                    Cell::Bytes(x.padding_bytes),
                    Cell::Code(x.label.clone()),
                ]
            })
            .collect(),
        left_out,
        ..Table::default()
    })
}

/// Arguments and results of a module without buffer assignment.
pub(super) fn arrays(shown: &[ShapeEntry]) -> Table {
    Table {
        columns: vec![
            Column::right("size"),
            Column::right("padding"),
            Column::left("kind"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|a| {
                vec![
                    Cell::Bytes(a.size_bytes),
                    Cell::Bytes(a.size_bytes - a.unpadded_bytes.min(a.size_bytes)),
                    Cell::of(a.kind),
                    Cell::Shape(a.shape.clone()),
                    Cell::Code(a.name.clone()),
                ]
            })
            .collect(),
        ..Table::default()
    }
}

//! Findings on tile padding: which tensors lose most, to which dimension, and a shape that would
//! lose less. Silent while all padding together is under a hundredth of the peak.

use std::collections::BTreeMap;

use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::hlo::Shape;
use crate::peak::BufferGroup;
use crate::peak::Context;
use crate::peak::{PaddingRow, ShapeChange};
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "padding",
    intervention: Some("dimensions"),
    brief: "bytes that only fill tiles up",
    text: "Tile padding: a TPU lays the trailing physical dimensions out in tiles, such as T(8,128), and rounds them up. f32[129,1024] takes (136,1024), 5 % more. The compiler chooses which dimensions trail and often picks a layout and a tile that avoid most of it: f32[N,3] is then f32[N,3]{0,1:T(4,128)}, N last, at 4/3 of its size. Only where row order is forced on it (a layout you ask for, an operation that needs it) does f32[N,3] take 42 times its size, s32[N,8,4] 32 times, a trailing 1 128 times, head size 64 twice. What counts is the layout in the dump, {1,0:T(8,128)}, not the shape.",
    detects: "Bytes lost to tiles.",
    how: "The layouts' first tiles; a shape that would lose less.",
    silent: "Under a hundredth of the peak.",
    saving: "`upper_bound`: what the better shape would not lose.",
    every_space: true,
    find: |facts, _| padding_findings(facts, facts.groups(), facts.padding()),
    yields_to: &[FindingKind::DEBUG_CALLBACK],
};

impl FindingKind {
    /// Tile padding.
    pub const PADDING: FindingKind = FindingKind::new(&DETECTOR);
}

const LINK: &str = "https://openxla.org/xla/tiled_layout";

/// A group's padding, summed over its members.
struct Waste<'r> {
    row: &'r PaddingRow,
    padding: u64,
    size: u64,
    saving: u64,
    ids: Vec<i64>,
}

/// One finding for each group of buffers that loses at least a hundredth of the peak, most lost
/// first.
pub fn padding_findings(
    ctx: &Context<'_, '_>,
    groups: &[BufferGroup],
    rows: &[PaddingRow],
) -> Vec<Finding> {
    let peak = ctx.usage.peak_bytes();
    let total = rows
        .iter()
        .fold(0u64, |s, r| s.saturating_add(r.padding_bytes()));
    let matters = |bytes: u64| u128::from(bytes) * 100 >= u128::from(peak) && bytes > 0;
    if !matters(total) {
        return Vec::new();
    }
    let mut group_of = BTreeMap::new();
    for (g, group) in groups.iter().enumerate() {
        group_of.extend(group.members.iter().map(|&m| (m, g)));
    }
    let mut wastes: BTreeMap<usize, Waste<'_>> = BTreeMap::new();
    for row in rows {
        let Some(&g) = group_of.get(&row.buffer) else {
            continue;
        };
        let saved = row.better.as_ref().map_or(0, |b| b.saving_bytes);
        let id = ctx
            .peak
            .buffers
            .get(row.buffer)
            .and_then(|b| ctx.buffer_id(b));
        let w = wastes.entry(g).or_insert(Waste {
            row,
            padding: 0,
            size: 0,
            saving: 0,
            ids: Vec::new(),
        });
        w.padding = w.padding.saturating_add(row.padding_bytes());
        w.size = w.size.saturating_add(row.size_bytes);
        w.saving = w.saving.saturating_add(saved);
        w.ids.extend(id);
    }
    let mut found: Vec<(usize, Waste<'_>)> = wastes
        .into_iter()
        .filter(|(_, w)| matters(w.padding))
        .collect();
    found.sort_by_key(|(g, w)| (std::cmp::Reverse(w.padding), *g));
    found
        .into_iter()
        .filter_map(|(g, w)| finding(ctx, groups.get(g)?, w, total))
        .collect()
}

// Long: one finding's words from title to links.
fn finding(
    ctx: &Context<'_, '_>,
    group: &BufferGroup,
    w: Waste<'_>,
    total: u64,
) -> Option<Finding> {
    let buffer = ctx.peak.buffers.get(w.row.buffer)?;
    let shape = buffer.shape.as_ref()?;
    let peak = ctx.usage.peak_bytes();
    let count = match w.ids.len() {
        0 | 1 => String::new(),
        n => format!("{n} × "),
    };
    let plain = Shape::array(shape.element_type, &shape.dimensions);
    let mut evidence = vec![format!(
        "{count}{shape}: {} in memory for {} of data ({})",
        units::bytes(w.size),
        units::bytes(w.size - w.padding),
        units::factor(w.size, w.size - w.padding)
    )];
    evidence.extend(w.row.causes.iter().map(|c| match c.dimension {
        Some(d) => format!(
            "dimension {d} has {} elements and takes the place of {}: {} in each",
            units::count(c.size),
            units::count(c.padded),
            units::bytes(c.bytes)
        ),
        None => format!(
            "its rank is below the tile's: {} in each",
            units::bytes(c.bytes)
        ),
    }));
    evidence.push(format!("all padding at the peak: {}", units::bytes(total)));
    if let Some(s) =
        crate::peak::producer_of(ctx, buffer).and_then(|i| ctx.program.module.source_of(i))
    {
        evidence.push(format!("made at {}:{}", s.file, s.line));
    }
    let cause = w
        .row
        .causes
        .first()
        .map_or_else(String::new, |c| match c.dimension {
            Some(d) => format!(
                ": dimension {d} is {} and is padded to {}",
                c.size, c.padded
            ),
            None => String::new(),
        });
    let (action, safety) = advice(shape, w.row);
    Some(Finding {
        kind: FindingKind::PADDING,
        severity: FindingSeverity::of_share(w.padding, peak),
        title: format!(
            "{} of tile padding in {count}{plain} ({}){cause}",
            units::bytes(w.padding),
            group.label
        ),
        bytes: w.padding,
        saving_bytes: w.saving,
        saving: SavingKind::UpperBound,
        safety,
        evidence,
        action,
        buffer_ids: w.ids,
        links: vec![LINK.to_owned()],
    })
}

// Long: advice by cause, one arm each.
fn advice(shape: &Shape, row: &PaddingRow) -> (String, Safety) {
    let list = |dims: &[u64]| {
        dims.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if let Some(better) = &row.better {
        let each = units::bytes(better.size_bytes);
        let dims = list(&better.dimensions);
        return match better.change {
            ShapeChange::Move => (
                format!(
                    "keep it with the dimensions in the order [{dims}] (a long one last): {each} \
                     each under the same tile; the compiler chooses layouts of temporaries, so \
                     compile to see"
                ),
                Safety::ChangesSpeed,
            ),
            ShapeChange::Merge => (
                format!(
                    "merge neighbouring dimensions, x.reshape({dims}), and split them where they \
                     are used: {each} each under the same tile"
                ),
                Safety::ChangesSpeed,
            ),
            ShapeChange::RoundDown => (
                format!(
                    "make its dimensions [{dims}], a multiple of the tile: that saves {} of \
                     padding each",
                    units::bytes(better.saving_bytes)
                ),
                Safety::ChangesModel,
            ),
        };
    }
    if row.is_convolution {
        return (
            "channels or images below the tile pad: more channels in each convolution use the \
             same memory for more data, or another layout (NHWC or NCHW) puts a longer dimension \
             last; the compiler chooses layouts of temporaries, so compile to see"
                .to_owned(),
            Safety::ChangesModel,
        );
    }
    let cause = row
        .causes
        .iter()
        .find_map(|c| Some((c.dimension?, c.size, c.padded)));
    match cause {
        Some((d, size, 128)) if (64..128).contains(&size) && d + 1 == shape.dimensions.len() => (
            format!(
                "a head size of {size} fills {} of each row of 128: a head size of 128 with fewer \
                 heads takes the same memory for more data",
                units::percent(size, 128)
            ),
            Safety::ChangesModel,
        ),
        Some((d, size, padded)) if size.saturating_mul(4) < padded.saturating_mul(3) => (
            format!(
                "dimension {d} is far below the tile: {size} elements take the place of {padded}; \
                 no other order of its dimensions avoids that, only a longer dimension there or \
                 fewer such arrays"
            ),
            Safety::ChangesModel,
        ),
        Some((d, size, padded)) => (
            format!("dimension {d} may grow from {size} to {padded} at no cost in memory"),
            Safety::ChangesModel,
        ),
        None => (String::new(), Safety::Safe),
    }
}

//! Ranked bars: a label over each bar, its value at the right, part of the bar hatched. In: rows,
//! largest first. Out: `buffers.png`, `padding.png`, `sharding.png`, and sections of the report.

use std::cmp::Reverse;

use plotters_backend::DrawingBackend;

use super::canvas::{Align, Area, Canvas};
use super::data::{ChartData, ChartGroup, ShardingRow};
use super::palette;
use super::palette::Color;
use super::parts::{
    hatched, head, is_visible, kind_name, legend, sentence, Swatch, BODY, HEAD, INNER, MARGIN,
    NOTE, STRONG,
};
use super::scale::Scale;
use crate::hlo::AllocationKind;
use crate::units;

/// Height of one row.
pub(crate) const ROW: f32 = 76.0;
const BAR: f32 = 24.0;
/// Rows in the single charts.
const MAX_ROWS: usize = 14;
/// Height of a chart that has nothing to show.
const EMPTY: f32 = 420.0;

/// One bar.
#[derive(Debug, Clone)]
pub(crate) struct BarRow {
    pub label: String,
    /// Said after the label, quieter.
    pub note: String,
    /// At the right, strong.
    pub value: String,
    /// After the value, quieter.
    pub share: String,
    pub solid_bytes: u64,
    pub hatched_bytes: u64,
    pub color: Color,
}

/// Draws rows in `area` from its top; the longest bar fills its width.
pub(crate) fn draw_rows<B: DrawingBackend>(c: &mut Canvas<'_, B>, area: Area, rows: &[BarRow]) {
    let total = |r: &BarRow| r.solid_bytes.saturating_add(r.hatched_bytes);
    let most = rows.iter().map(total).max().unwrap_or(0);
    let scale = Scale::new(most, 0.0, area.w);
    for (i, row) in rows.iter().enumerate() {
        let y = area.y + i as f32 * ROW;
        row_text(c, area, y + 25.0, row);
        let bar = Area::new(area.x, y + 37.0, area.w, BAR);
        c.rect(bar, palette::TRACK);
        let solid = scale.at(row.solid_bytes);
        let all = scale.at(total(row)).max(2.0);
        c.rect(Area::new(bar.x, bar.y, all, BAR), row.color);
        // Stripes need some room.
        if all > solid && all >= 6.0 {
            hatched(
                c,
                Area::new(bar.x + solid, bar.y, all - solid, BAR),
                row.color,
            );
        }
    }
}

fn row_text<B: DrawingBackend>(c: &mut Canvas<'_, B>, area: Area, base: f32, row: &BarRow) {
    c.text(&row.share, (area.right(), base), NOTE, Align::Right);
    let share_width = match row.share.as_str() {
        "" => 0.0,
        share => c.width(share, NOTE) + 14.0,
    };
    let value_right = area.right() - share_width;
    c.text(&row.value, (value_right, base), STRONG, Align::Right);
    let room = value_right - c.width(&row.value, STRONG) - 36.0 - area.x;
    let gap = if row.note.is_empty() { 0.0 } else { 22.0 };
    let note_room = (room - gap - c.width(&row.label, BODY)).max(room * 0.4);
    let note = c.elide(&row.note, NOTE, note_room);
    let label = c.elide(&row.label, BODY, room - gap - c.width(&note, NOTE));
    c.text(&label, (area.x, base), BODY, Align::Left);
    let at = area.x + c.width(&label, BODY) + gap;
    c.text(&note, (at, base), NOTE, Align::Left);
}

/// How many groups get a row: at most `limit`, and none that cannot be seen beside the first.
fn shown_groups(data: &ChartData, limit: usize) -> usize {
    let seen = |g: &&ChartGroup| is_visible(g.size_bytes, data.peak_bytes);
    let seen = data.groups.iter().take(limit).take_while(seen).count();
    // One row for a single group more says less than the group itself.
    let all = data.groups.len();
    if seen + 1 >= all || seen == 0 {
        all.min(limit.max(1))
    } else {
        seen
    }
}

/// Rows for the largest `limit` groups, and one for the rest.
pub(crate) fn group_rows(data: &ChartData, limit: usize) -> Vec<BarRow> {
    let whole = data.peak_bytes;
    let (shown, rest) = data.groups.split_at(shown_groups(data, limit));
    let mut rows: Vec<BarRow> = shown
        .iter()
        .map(|g| BarRow {
            label: label_of(g),
            note: note_of(g),
            value: units::bytes(g.size_bytes),
            share: units::percent(g.size_bytes, whole),
            solid_bytes: g.size_bytes.saturating_sub(g.padding_bytes),
            hatched_bytes: g.padding_bytes.min(g.size_bytes),
            color: palette::of_kind(g.kind),
        })
        .collect();
    if !rest.is_empty() {
        let sum = |f: fn(&ChartGroup) -> u64| rest.iter().fold(0u64, |s, g| s.saturating_add(f(g)));
        let (size, count) = (sum(|g| g.size_bytes), sum(|g| g.count));
        let padding = sum(|g| g.padding_bytes).min(size);
        let s = if count == 1 { "" } else { "s" };
        rows.push(BarRow {
            label: format!("{} smaller buffer{s}", units::count(count)),
            note: String::new(),
            value: units::bytes(size),
            share: units::percent(size, whole),
            solid_bytes: size - padding,
            hatched_bytes: padding,
            color: palette::OTHER,
        });
    }
    rows
}

/// The label without the jitted function that every operation is in.
fn label_of(g: &ChartGroup) -> String {
    let inside = match g.label.split_once(")/") {
        Some((head, rest)) if head.starts_with("jit(") && !head.contains('/') => rest,
        _ => &g.label,
    };
    if inside.is_empty() {
        format!("{} without a name", kind_name(g.kind))
    } else {
        inside.to_owned()
    }
}

/// `48 × 128 MiB  bf16[8,4096]`.
fn note_of(g: &ChartGroup) -> String {
    // The layout belongs in the tables.
    let shape = g.shape.split('{').next().unwrap_or_default();
    let each = g.size_bytes / g.count.max(1);
    match (g.count, shape.is_empty()) {
        (0 | 1, _) => shape.to_owned(),
        (n, true) => format!("{} × {}", units::count(n), units::bytes(each)),
        (n, false) => format!("{} × {}  {shape}", units::count(n), units::bytes(each)),
    }
}

/// Groups that lose bytes to padding, most first.
fn padded_groups(data: &ChartData) -> Vec<&ChartGroup> {
    let mut out: Vec<&ChartGroup> = data.groups.iter().filter(|g| g.padding_bytes > 0).collect();
    out.sort_by_key(|g| {
        (
            Reverse(g.padding_bytes),
            Reverse(g.size_bytes),
            &g.label,
            &g.shape,
        )
    });
    out
}

/// Rows for the `limit` groups that lose most to padding, and one for the rest; the bars are what
/// is lost.
pub(crate) fn padding_rows(data: &ChartData, limit: usize) -> Vec<BarRow> {
    if !padding_matters(data) {
        return Vec::new();
    }
    let groups = padded_groups(data);
    // What loses next to nothing is noise here.
    let all = lost(&groups);
    let worth = groups
        .iter()
        .take(limit)
        .take_while(|g| g.padding_bytes > all / 200);
    let (shown, rest) = groups.split_at(worth.count().max(1).min(groups.len()));
    let row = |g: &&ChartGroup| BarRow {
        label: label_of(g),
        note: note_of(g),
        value: format!("{} lost", units::bytes(g.padding_bytes)),
        share: format!(
            "of {}  {}",
            units::bytes(g.size_bytes),
            units::factor(g.size_bytes, g.size_bytes.saturating_sub(g.padding_bytes))
        ),
        solid_bytes: 0,
        hatched_bytes: g.padding_bytes,
        color: palette::of_kind(g.kind),
    };
    let mut rows: Vec<BarRow> = shown.iter().map(row).collect();
    if !rest.is_empty() {
        let count: u64 = rest.iter().fold(0, |s, g| s.saturating_add(g.count));
        let size = rest
            .iter()
            .fold(0u64, |s, g| s.saturating_add(g.size_bytes));
        let s = if count == 1 { "" } else { "s" };
        rows.push(BarRow {
            label: format!("{} more buffer{s}", units::count(count)),
            note: String::new(),
            value: format!("{} lost", units::bytes(lost(rest))),
            share: format!("of {}", units::bytes(size)),
            solid_bytes: 0,
            hatched_bytes: lost(rest),
            color: palette::OTHER,
        });
    }
    rows
}

/// Whether padding is at least a thousandth of the peak.
fn padding_matters(data: &ChartData) -> bool {
    u128::from(data.padding_bytes()) * 1000 >= u128::from(data.peak_bytes)
        && data.padding_bytes() > 0
}

fn lost(groups: &[&ChartGroup]) -> u64 {
    groups
        .iter()
        .fold(0u64, |s, g| s.saturating_add(g.padding_bytes))
}

/// One legend entry a kind that is among `kinds`, in fixed order, and one for padding.
fn kind_legend(kinds: &[AllocationKind], padding: bool) -> Vec<(Swatch, String)> {
    use AllocationKind::*;
    let mut out: Vec<(Swatch, String)> = [Parameter, Donated, Output, Constant, Temporary]
        .into_iter()
        .filter(|k| kinds.contains(k))
        .map(|k| (Swatch::Fill(palette::of_kind(k)), kind_name(k).to_owned()))
        .collect();
    if padding {
        out.push((Swatch::Hatch(palette::MUTED), "tile padding".to_owned()));
    }
    out
}

/// Legend for the group rows drawn with `limit`.
pub(crate) fn group_legend(data: &ChartData, limit: usize) -> Vec<(Swatch, String)> {
    let shown = data.groups.iter().take(shown_groups(data, limit));
    let kinds: Vec<AllocationKind> = shown.map(|g| g.kind).collect();
    kind_legend(&kinds, data.groups.iter().any(|g| g.padding_bytes > 0))
}

fn page_height(rows: usize) -> f32 {
    if rows == 0 {
        HEAD + EMPTY
    } else {
        HEAD + 62.0 + rows as f32 * ROW + 30.0
    }
}

/// A page of rows under a head and a legend, or a sentence.
fn page<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    rows: &[BarRow],
    items: &[(Swatch, String)],
    nothing: &str,
) {
    if rows.is_empty() {
        let area = Area::new(MARGIN, HEAD + 10.0, INNER, EMPTY - 60.0);
        sentence(c, area, nothing);
        return;
    }
    legend(c, (MARGIN, HEAD), INNER, items);
    draw_rows(c, Area::new(MARGIN, HEAD + 58.0, INNER, 0.0), rows);
}

/// Height of `buffers.png`.
pub(crate) fn buffers_height(data: &ChartData) -> f32 {
    page_height(group_rows(data, MAX_ROWS).len())
}

/// `buffers.png`: the largest groups of buffers at the peak.
pub(crate) fn draw_buffers<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    head(c, data, "What fills memory at the peak");
    page(
        c,
        &group_rows(data, MAX_ROWS),
        &group_legend(data, MAX_ROWS),
        "No buffer is live at the peak.",
    );
}

/// Height of `padding.png`.
pub(crate) fn padding_height(data: &ChartData) -> f32 {
    page_height(padding_rows(data, MAX_ROWS).len())
}

/// `padding.png`: what is lost to tile padding.
pub(crate) fn draw_padding<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    head(c, data, &padding_title(data));
    let shown = padded_groups(data);
    let kinds: Vec<AllocationKind> = shown.iter().take(MAX_ROWS).map(|g| g.kind).collect();
    let items = kind_legend(&kinds, true);
    let nothing = match data.padding_bytes() {
        0 => "No tile padding at the peak: every byte holds data.",
        _ => "Less than a thousandth of the peak is tile padding: nothing to gain here.",
    };
    page(c, &padding_rows(data, MAX_ROWS), &items, nothing);
}

/// What padding costs, in one line.
pub(crate) fn padding_title(data: &ChartData) -> String {
    match data.padding_bytes() {
        0 => "No tile padding at the peak".to_owned(),
        lost => format!(
            "Tile padding: {} of the peak ({})",
            units::bytes(lost),
            units::percent(lost, data.peak_bytes)
        ),
    }
}

fn sharding_rows(rows: &[ShardingRow]) -> Vec<BarRow> {
    let row = |r: &ShardingRow| {
        let redundant = r.redundant_bytes.min(r.size_bytes);
        BarRow {
            label: r.label.clone(),
            note: match r.copies {
                0 | 1 => "every device holds its own part".to_owned(),
                n if n >= r.devices => format!("the same on all {n} devices"),
                n => format!(
                    "{} different contents over {} devices",
                    units::count(r.devices / n),
                    units::count(r.devices)
                ),
            },
            value: units::bytes(r.size_bytes),
            share: if redundant == 0 {
                String::new()
            } else {
                format!("{} redundant", units::bytes(redundant))
            },
            solid_bytes: r.size_bytes - redundant,
            hatched_bytes: redundant,
            color: palette::of_kind(AllocationKind::Parameter),
        }
    };
    rows.iter().take(MAX_ROWS).map(row).collect()
}

/// Height of `sharding.png`.
pub(crate) fn sharding_height(data: &ChartData) -> f32 {
    page_height(data.sharding.len().min(MAX_ROWS))
}

/// `sharding.png`: data that several devices hold alike.
pub(crate) fn draw_sharding<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    let sum = data.sharding.iter().fold(0u64, |s, r| {
        s.saturating_add(r.redundant_bytes.min(r.size_bytes))
    });
    let title = if data.sharding.is_empty() {
        "Copies over devices".to_owned()
    } else if sum == 0 {
        "No device holds data that another one has".to_owned()
    } else {
        format!(
            "{} on each device is a copy of what others hold",
            units::bytes(sum)
        )
    };
    head(c, data, &title);
    let blue = palette::of_kind(AllocationKind::Parameter);
    let items = [
        (Swatch::Fill(blue), "a device's own share".to_owned()),
        (
            Swatch::Hatch(blue),
            "would go with full sharding".to_owned(),
        ),
    ];
    page(
        c,
        &sharding_rows(&data.sharding),
        &items,
        "Nothing to show: how tensors are spread over devices is not known here, or there is one device.",
    );
}

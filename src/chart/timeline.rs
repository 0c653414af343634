//! Memory over program order, by kind, with the peak, the capacity and the line without padding.
//! In: a thinned timeline. Out: `timeline.png`, and a section of the report.

use plotters_backend::DrawingBackend;

use super::canvas::{Align, Area, Canvas};
use super::data::{ChartData, Timeline, TimelineColumn};
use super::palette;
use super::parts::{
    head, is_visible, kind_name, legend, legend_height, sentence, x_axis, y_axis, y_axis_width,
    Swatch, BODY, HEAD, INNER, MARGIN, NOTE, POINT, STRONG, X_AXIS,
};
use super::scale::{byte_ticks, count_ticks, Scale};
use crate::hlo::AllocationKind;
use crate::units;

/// Height of `timeline.png`.
pub(crate) const HEIGHT: f32 = 920.0;
/// Above the plot, for the peak's label.
const STRIP: f32 = 46.0;

/// Said where there is no trace.
pub(crate) const NO_TRACE: &str =
    "No heap simulator trace in the file: memory over program order is not known.";

/// `timeline.png`.
pub(crate) fn draw_page<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    head(c, data, "Memory over program order");
    let area = Area::new(MARGIN, HEAD + 6.0, INNER, HEIGHT - HEAD - 36.0);
    draw(c, area, data, true);
}

/// The chart in `area`; `kinds` adds the kinds and their bytes to the legend.
pub(crate) fn draw<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    area: Area,
    data: &ChartData,
    kinds: bool,
) {
    let Some(t) = data.timeline.as_ref().filter(|t| !t.columns.is_empty()) else {
        sentence(c, area, NO_TRACE);
        return;
    };
    let top = top_of(t, data.capacity_bytes);
    let items = legend_items(t, data, kinds, top);
    let legend_h = if items.is_empty() {
        0.0
    } else {
        14.0 + legend_height(c, area.w, &items)
    };
    let ticks = byte_ticks(top, 6);
    let left = y_axis_width(c, &ticks);
    let plot = Area::new(
        area.x + left,
        area.y + STRIP,
        area.w - left,
        area.h - STRIP - X_AXIS - legend_h,
    );
    let y = Scale::new(top, plot.bottom(), plot.y);
    let x = Scale::new(u64::from(t.point_count), plot.x, plot.right());
    y_axis(c, plot, y, &ticks);
    layers(c, plot, (x, y), t, data);
    if has_padding(t) {
        let line = outline(t, x, y, |k| k.max_unpadded_bytes.unwrap_or(0));
        c.line(&line, palette::BACKGROUND.alpha(150), 6.0);
        c.dashed(&line, palette::UNPADDED, 3.0, (12.0, 6.0));
    }
    let ticks = count_ticks(u64::from(t.point_count), 8);
    x_axis(c, plot, x, &ticks, POINT);
    if let Some(capacity) = data.capacity_bytes.filter(|b| *b <= top) {
        let peak_right = x.at(u64::from(t.peak_point)) > plot.x + plot.w / 2.0;
        draw_capacity(c, plot, y, capacity, peak_right);
    }
    draw_peak(c, plot, (x, y), t, data);
    legend(c, (area.x, area.bottom() - legend_h + 14.0), area.w, &items);
}

/// The value at the top of the plot: over the peak, and over the capacity if that is near.
fn top_of(t: &Timeline, capacity: Option<u64>) -> u64 {
    let near = t.peak_bytes.saturating_mul(5) / 2;
    let most = t.columns.iter().map(|k| k.max_bytes).max().unwrap_or(0);
    let top = most
        .max(capacity.filter(|b| *b <= near).unwrap_or(0))
        .max(1);
    top.saturating_add(top / 14)
}

fn has_padding(t: &Timeline) -> bool {
    t.columns.iter().any(|k| {
        k.max_unpadded_bytes
            .is_some_and(|u| k.max_bytes > u.saturating_add(k.max_bytes / 200))
    })
}

/// Corners of a stepped line, one step a column.
pub(crate) fn outline(
    t: &Timeline,
    x: Scale,
    y: Scale,
    value: impl Fn(&TimelineColumn) -> u64,
) -> Vec<(f32, f32)> {
    let mut out: Vec<(f32, f32)> = Vec::with_capacity(2 * t.columns.len());
    for k in &t.columns {
        let at = y.at(value(k));
        let (from, to) = (x.at(u64::from(k.start)), x.at(u64::from(k.end)));
        match out.last_mut() {
            // Level stretches need no corner between them.
            Some(last) if last.1 == at => last.0 = to,
            _ => out.extend([(from, at), (to, at)]),
        }
    }
    out
}

/// The same line closed along the bottom of the plot.
pub(crate) fn closed(mut line: Vec<(f32, f32)>, bottom: f32) -> Vec<(f32, f32)> {
    if let (Some(first), Some(last)) = (line.first().copied(), line.last().copied()) {
        line.push((last.0, bottom));
        line.push((first.0, bottom));
    }
    line
}

/// Whole-program kinds as bands from the bottom, temporaries on top of them.
fn layers<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    plot: Area,
    (x, y): (Scale, Scale),
    t: &Timeline,
    data: &ChartData,
) {
    let color = palette::of_kind(AllocationKind::Temporary);
    let high = closed(outline(t, x, y, |k| k.max_bytes), plot.bottom());
    let low = closed(outline(t, x, y, |k| k.min_bytes), plot.bottom());
    if high != low {
        // Between the least and the most of a column memory goes up and down.
        c.polygon(&high, color.tint(0.45));
    }
    c.polygon(&low, color);
    let mut base = 0u64;
    for (kind, bytes) in &data.breakdown {
        if *kind == AllocationKind::Temporary {
            continue;
        }
        let (from, to) = (y.at(base), y.at(base.saturating_add(*bytes)));
        base = base.saturating_add(*bytes);
        c.rect(
            Area::new(plot.x, to, plot.w, from - to),
            palette::of_kind(*kind),
        );
        c.line(
            &[(plot.x, to), (plot.right(), to)],
            palette::BACKGROUND,
            1.0,
        );
    }
}

fn draw_capacity<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    plot: Area,
    y: Scale,
    capacity: u64,
    label_left: bool,
) {
    let at = y.at(capacity).round();
    c.line(&[(plot.x, at), (plot.right(), at)], palette::CAPACITY, 2.5);
    let label = format!("capacity {}", units::bytes(capacity));
    let w = c.width(&label, BODY);
    let x = if label_left {
        plot.x + 12.0
    } else {
        plot.right() - w - 12.0
    };
    // Under the line, or over it where there is no room under it.
    let base = if at + 44.0 < plot.bottom() {
        at + 31.0
    } else {
        at - 15.0
    };
    let ground = Area::new(x - 8.0, base - 25.0, w + 16.0, 34.0);
    c.rect(ground, palette::BACKGROUND.alpha(225));
    c.text(&label, (x, base), BODY, Align::Left);
}

fn draw_peak<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    plot: Area,
    (x, y): (Scale, Scale),
    t: &Timeline,
    data: &ChartData,
) {
    let left = x.at(u64::from(t.peak_point));
    let right = x.at(u64::from(t.peak_point) + 1);
    let at = ((left + right) / 2.0, y.at(t.peak_bytes));
    c.line(&[(at.0, plot.y - 6.0), at], palette::PEAK, 2.0);
    c.dashed(&[at, (at.0, plot.bottom())], palette::PEAK, 1.5, (5.0, 5.0));
    c.dot(at, 9.0, palette::BACKGROUND);
    c.dot(at, 6.5, palette::PEAK);
    let strong = format!("peak {}", units::bytes(t.peak_bytes));
    let mut font = STRONG;
    font.color = palette::PEAK;
    let width = c.width(&strong, font);
    let place = format!("at point {}", units::count(u64::from(t.peak_point)));
    let note = if data.title.peak_instruction.is_empty() {
        place
    } else {
        format!("{place}, {}", data.title.peak_instruction)
    };
    let note = c.elide(&note, NOTE, plot.w - width - 40.0);
    let all = width + 14.0 + c.width(&note, NOTE);
    let start = (at.0 - all / 2.0).clamp(plot.x.min(plot.right() - all), plot.right() - all);
    let base = plot.y - 16.0;
    c.text(&strong, (start, base), font, Align::Left);
    c.text(&note, (start + width + 14.0, base), NOTE, Align::Left);
}

/// What lines mean that carry no label of their own, and the kinds that can be seen.
fn legend_items(t: &Timeline, data: &ChartData, kinds: bool, top: u64) -> Vec<(Swatch, String)> {
    let mut items = Vec::new();
    if kinds {
        let seen = data.breakdown.iter();
        items.extend(seen.filter(|b| is_visible(b.1, top)).map(|(kind, bytes)| {
            let label = format!("{} {}", kind_name(*kind), units::bytes(*bytes));
            (Swatch::Fill(palette::of_kind(*kind)), label)
        }));
    }
    if has_padding(t) {
        let label = "without tile padding".to_owned();
        items.push((Swatch::Dashes(palette::UNPADDED), label));
    }
    items
}

//! Memory over program order before and after a change, with the move of the peak. In: two
//! timelines. Out: `whatif.png`.

use plotters_backend::DrawingBackend;

use super::canvas::{Align, Area, Canvas};
use super::data::{ChartData, Timeline, WhatIfData};
use super::palette;
use super::palette::Color;
use super::parts::{
    head, legend, legend_height, sentence, x_axis, y_axis, y_axis_width, Swatch, BODY, HEAD, INNER,
    MARGIN, POINT, X_AXIS,
};
use super::scale::{byte_ticks, count_ticks, Scale};
use super::timeline::{closed, outline};
use crate::hlo::AllocationKind;
use crate::units;

/// Height of `whatif.png`.
pub(crate) const HEIGHT: f32 = 960.0;
const STRIP: f32 = 80.0;

/// `whatif.png`.
pub(crate) fn draw_page<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    let area = Area::new(MARGIN, HEAD + 6.0, INNER, HEIGHT - HEAD - 36.0);
    match data
        .what_if
        .as_ref()
        .filter(|w| !w.before.columns.is_empty() && !w.after.columns.is_empty())
    {
        Some(w) => {
            head(c, data, &title(w));
            draw(c, area, w, data.capacity_bytes);
        }
        None => {
            head(c, data, "Effect of a change");
            sentence(c, area, "No change to show.");
        }
    }
}

fn title(w: &WhatIfData) -> String {
    let (before, after) = (w.before.peak_bytes, w.after.peak_bytes);
    let by = units::bytes(before.abs_diff(after));
    match after.cmp(&before) {
        std::cmp::Ordering::Less => format!(
            "The change takes {by} ({}) off the peak",
            units::percent(before - after, before)
        ),
        std::cmp::Ordering::Equal => "The change leaves the peak as it is".to_owned(),
        std::cmp::Ordering::Greater => format!("The change adds {by} to the peak"),
    }
}

// Long: the picture from its top to its foot.
fn draw<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    area: Area,
    w: &WhatIfData,
    capacity: Option<u64>,
) {
    let most = w.before.peak_bytes.max(w.after.peak_bytes).max(1);
    let capacity = capacity.filter(|b| *b <= most.saturating_mul(5) / 2);
    let top = most.max(capacity.unwrap_or(0));
    let top = top.saturating_add(top / 14);
    let before = palette::MUTED;
    let after = palette::of_kind(AllocationKind::Temporary);
    let mut items = vec![
        (Swatch::Dashes(before), w.before_label.clone()),
        (Swatch::Fill(after), w.after_label.clone()),
    ];
    if let Some(b) = capacity {
        let label = format!("capacity {}", units::bytes(b));
        items.push((Swatch::Line(palette::CAPACITY), label));
    }
    items.push((Swatch::Dot(palette::PEAK), "peak".to_owned()));
    let legend_h = legend_height(c, area.w, &items);
    let ticks = byte_ticks(top, 6);
    let left = y_axis_width(c, &ticks);
    let plot = Area::new(
        area.x + left,
        area.y + STRIP,
        area.w - left,
        area.h - STRIP - X_AXIS - 14.0 - legend_h,
    );
    let points = w.before.point_count.max(w.after.point_count);
    let y = Scale::new(top, plot.bottom(), plot.y);
    let x = Scale::new(u64::from(points), plot.x, plot.right());
    y_axis(c, plot, y, &ticks);
    let line = outline(&w.before, x, y, |k| k.max_bytes);
    c.polygon(
        &closed(line.clone(), plot.bottom()),
        palette::OTHER.tint(0.55),
    );
    c.polygon(
        &closed(outline(&w.after, x, y, |k| k.max_bytes), plot.bottom()),
        after,
    );
    c.dashed(&line, before, 2.5, (10.0, 5.0));
    x_axis(c, plot, x, &count_ticks(u64::from(points), 8), POINT);
    if let Some(b) = capacity {
        let at = y.at(b).round();
        c.line(&[(plot.x, at), (plot.right(), at)], palette::CAPACITY, 2.5);
    }
    let from = peak_at(&w.before, x, y);
    let to = peak_at(&w.after, x, y);
    mark(
        c,
        plot,
        from,
        plot.y - 52.0,
        before,
        &format!("before {}", units::bytes(w.before.peak_bytes)),
    );
    mark(
        c,
        plot,
        to,
        plot.y - 16.0,
        palette::PEAK,
        &format!("after {}", units::bytes(w.after.peak_bytes)),
    );
    arrow(c, from, to);
    legend(c, (area.x, area.bottom() - legend_h), area.w, &items);
}

fn peak_at(t: &Timeline, x: Scale, y: Scale) -> (f32, f32) {
    let left = x.at(u64::from(t.peak_point));
    let right = x.at(u64::from(t.peak_point) + 1);
    ((left + right) / 2.0, y.at(t.peak_bytes))
}

/// A peak's dot, its line upwards, and its label on the baseline `base`.
fn mark<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    plot: Area,
    at: (f32, f32),
    base: f32,
    color: Color,
    text: &str,
) {
    c.line(&[(at.0, base + 8.0), at], color, 2.0);
    c.dot(at, 9.0, palette::BACKGROUND);
    c.dot(at, 6.5, color);
    let mut font = BODY;
    (font.bold, font.color) = (true, color);
    let half = c.width(text, font) / 2.0 + 4.0;
    let x =
        at.0.clamp(plot.x + half, (plot.right() - half).max(plot.x + half));
    let ground = Area::new(x - half, base - 22.0, 2.0 * half, 28.0);
    c.rect(ground, palette::BACKGROUND);
    c.text(text, (x, base), font, Align::Center);
}

/// From the old peak to the new one, where they are far enough apart to see.
fn arrow<B: DrawingBackend>(c: &mut Canvas<'_, B>, from: (f32, f32), to: (f32, f32)) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    if length < 40.0 {
        return;
    }
    let (ux, uy) = (dx / length, dy / length);
    let tip = (to.0 - ux * 12.0, to.1 - uy * 12.0);
    let base = (tip.0 - ux * 16.0, tip.1 - uy * 16.0);
    let start = (from.0 + ux * 12.0, from.1 + uy * 12.0);
    c.line(&[start, base], palette::BACKGROUND, 6.0);
    c.line(&[start, base], palette::PEAK, 2.5);
    let wing = |s: f32| (base.0 - uy * s, base.1 + ux * s);
    c.polygon(&[tip, wing(7.0), wing(-7.0)], palette::PEAK);
}

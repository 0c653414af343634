//! What several charts share: page measures, heads, legends, axes, a sentence instead of a chart.

use plotters_backend::DrawingBackend;

use super::canvas::{Align, Area, Canvas, Font};
use super::data::ChartData;
use super::palette;
use super::palette::Color;
use super::scale::Scale;
use crate::hlo::AllocationKind;
use crate::units;

/// Width of every picture.
pub(crate) const WIDTH: f32 = 1600.0;
/// Left and right margin.
pub(crate) const MARGIN: f32 = 56.0;
/// Width between the margins.
pub(crate) const INNER: f32 = WIDTH - 2.0 * MARGIN;
/// Height that [`head`] takes.
pub(crate) const HEAD: f32 = 136.0;

pub(crate) const H1: Font = Font::bold(40.0, palette::TEXT);
pub(crate) const H2: Font = Font::bold(29.0, palette::TEXT);
pub(crate) const SUB: Font = Font::new(25.0, palette::MUTED);
pub(crate) const BODY: Font = Font::new(23.0, palette::TEXT);
pub(crate) const STRONG: Font = Font::bold(23.0, palette::TEXT);
pub(crate) const NOTE: Font = Font::new(22.0, palette::MUTED);

/// Whether a part of the peak is large enough to be seen.
pub(crate) fn is_visible(part: u64, whole: u64) -> bool {
    part > whole / 500
}

/// Words for a kind.
pub(crate) fn kind_name(kind: AllocationKind) -> &'static str {
    match kind {
        AllocationKind::Parameter => "parameters",
        AllocationKind::Donated => "donated parameters",
        AllocationKind::Output => "outputs",
        AllocationKind::Constant => "constants",
        AllocationKind::Temporary => "temporaries",
        AllocationKind::ThreadLocal => "thread-local",
    }
}

/// `module · device · HBM`, without what is not known.
pub(crate) fn place_line(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join("  ·  ")
}

/// `peak 26.41 GiB of 31.24 GiB (85 %)`.
pub(crate) fn peak_line(data: &ChartData) -> String {
    let peak = units::bytes(data.peak_bytes);
    match data.capacity_bytes {
        Some(c) if c > 0 => format!(
            "peak {peak} of {} ({})",
            units::bytes(c),
            units::percent(data.peak_bytes, c)
        ),
        _ => format!("peak {peak}"),
    }
}

/// Title and second line at the top of a picture.
pub(crate) fn head<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData, title: &str) {
    let title = c.elide(title, H1, INNER);
    c.text(&title, (MARGIN, 72.0), H1, Align::Left);
    let peak = peak_line(data);
    let room = INNER - c.width(&peak, SUB) - 40.0;
    let t = &data.title;
    let place = place_line(&[&t.module, &t.device, &t.space]);
    let place = c.elide(&place, SUB, room);
    c.text(&place, (MARGIN, 112.0), SUB, Align::Left);
    c.text(&peak, (WIDTH - MARGIN, 112.0), SUB, Align::Right);
}

/// How a legend shows a colour.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Swatch {
    Fill(Color),
    Hatch(Color),
    Line(Color),
    Dashes(Color),
    Dot(Color),
}

/// A legend in lines from the left, wrapped in `width`; the height it takes.
pub(crate) fn legend<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    (x, y): (f32, f32),
    width: f32,
    items: &[(Swatch, String)],
) -> f32 {
    const LINE: f32 = 38.0;
    let (mut at, mut base) = (x, y + 26.0);
    for (swatch, label) in items {
        let label = c.elide(label, BODY, width - 44.0);
        let w = 38.0 + c.width(&label, BODY);
        if at > x && at + w > x + width {
            (at, base) = (x, base + LINE);
        }
        draw_swatch(c, Area::new(at, base - 19.0, 26.0, 22.0), *swatch);
        c.text(&label, (at + 38.0, base), BODY, Align::Left);
        at += w + 34.0;
    }
    base + 12.0 - y
}

/// Height that [`legend`] takes, without drawing.
pub(crate) fn legend_height<B: DrawingBackend>(
    c: &Canvas<'_, B>,
    width: f32,
    items: &[(Swatch, String)],
) -> f32 {
    let (mut at, mut lines) = (0.0, 1.0);
    for (_, label) in items {
        let w = 38.0 + c.width(&c.elide(label, BODY, width - 44.0), BODY);
        if at > 0.0 && at + w > width {
            (at, lines) = (0.0, lines + 1.0);
        }
        at += w + 34.0;
    }
    38.0 * lines
}

fn draw_swatch<B: DrawingBackend>(c: &mut Canvas<'_, B>, a: Area, swatch: Swatch) {
    let middle = a.y + a.h / 2.0;
    let line = [(a.x, middle), (a.right(), middle)];
    match swatch {
        Swatch::Fill(color) => c.rect(a, color),
        Swatch::Hatch(color) => hatched(c, a, color),
        Swatch::Line(color) => c.line(&line, color, 3.0),
        Swatch::Dashes(color) => c.dashed(&line, color, 3.0, (7.0, 4.0)),
        Swatch::Dot(color) => c.dot((a.x + a.w / 2.0, middle), 7.0, color),
    }
}

/// A rectangle that stands for padding in what has `color`.
pub(crate) fn hatched<B: DrawingBackend>(c: &mut Canvas<'_, B>, a: Area, color: Color) {
    c.rect(a, color.tint(0.72));
    c.hatch(a, color, 8.0);
}

/// Horizontal grid lines with labels to the left of `plot`.
pub(crate) fn y_axis<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    plot: Area,
    scale: Scale,
    ticks: &[(u64, String)],
) {
    for (value, label) in ticks {
        let y = scale.at(*value).round();
        let color = if *value == 0 {
            palette::AXIS
        } else {
            palette::GRID
        };
        c.line(&[(plot.x, y + 0.5), (plot.right(), y + 0.5)], color, 1.0);
        c.text(label, (plot.x - 14.0, y + 8.0), NOTE, Align::Right);
    }
}

/// Width that [`y_axis`] needs to the left of the plot.
pub(crate) fn y_axis_width<B: DrawingBackend>(c: &Canvas<'_, B>, ticks: &[(u64, String)]) -> f32 {
    let widths = ticks.iter().map(|t| c.width(&t.1, NOTE));
    widths.fold(c.width(POINT, NOTE), f32::max) + 18.0
}

/// What the horizontal axis counts.
pub(crate) const POINT: &str = "point";

/// Height that [`x_axis`] takes below the plot.
pub(crate) const X_AXIS: f32 = 46.0;

/// Tick marks with labels below `plot`; left of them what they count.
pub(crate) fn x_axis<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    plot: Area,
    scale: Scale,
    ticks: &[(u64, String)],
    name: &str,
) {
    let base = plot.bottom() + 34.0;
    for (value, label) in ticks {
        let x = scale.at(*value).round();
        c.line(
            &[(x + 0.5, plot.bottom()), (x + 0.5, plot.bottom() + 7.0)],
            palette::AXIS,
            1.0,
        );
        let half = c.width(label, NOTE) / 2.0;
        if x + half <= WIDTH - 8.0 {
            c.text(label, (x, base), NOTE, Align::Center);
        }
    }
    c.text(name, (plot.x - 14.0, base), NOTE, Align::Right);
}

/// A sentence in the place of a chart.
pub(crate) fn sentence<B: DrawingBackend>(c: &mut Canvas<'_, B>, area: Area, text: &str) {
    c.rect(area, palette::TRACK.tint(0.4));
    let font = Font::new(26.0, palette::MUTED);
    let lines = wrap(c, text, font, area.w - 120.0);
    let mut y = area.y + area.h / 2.0 - (lines.len() as f32 - 1.0) * 19.0 + 9.0;
    for line in lines {
        c.text(&line, (area.x + area.w / 2.0, y), font, Align::Center);
        y += 38.0;
    }
}

/// Breaks a text into lines at spaces.
fn wrap<B: DrawingBackend>(c: &Canvas<'_, B>, text: &str, font: Font, max: f32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if c.width(&format!("{line} {word}"), font) <= max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(c.elide(word, font, max)),
        }
    }
    lines
}

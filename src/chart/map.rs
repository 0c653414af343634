//! Addresses over program order: each temporary a rectangle, darker the larger it is, so that gaps
//! between them can be seen. In: a [`MemoryMap`]. Out: `map.png`.

use plotters_backend::DrawingBackend;

use super::canvas::{Align, Area, Canvas, Font};
use super::data::{ChartData, Coverage, MapBlock, MemoryMap};
use super::palette;
use super::palette::Color;
use super::parts::{
    head, legend, sentence, x_axis, y_axis, y_axis_width, Swatch, HEAD, INNER, MARGIN, NOTE, POINT,
    STRONG, X_AXIS,
};
use super::scale::{byte_ticks, count_ticks, Scale};
use super::timeline::NO_TRACE;
use crate::units;

/// Height of `map.png`.
pub(crate) const HEIGHT: f32 = 1080.0;
const STRIP: f32 = 46.0;

/// `map.png`.
pub(crate) fn draw_page<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    head(c, data, "Where temporaries lie in memory");
    let area = Area::new(MARGIN, HEAD + 6.0, INNER, HEIGHT - HEAD - 30.0);
    match data
        .map
        .as_ref()
        .filter(|m| m.point_count > 0 && m.arena_bytes > 0)
    {
        Some(map) => draw(c, area, map),
        None => sentence(
            c,
            area,
            &NO_TRACE.replace("memory over program order", "where buffers lie"),
        ),
    }
}

fn draw<B: DrawingBackend>(c: &mut Canvas<'_, B>, area: Area, map: &MemoryMap) {
    let ticks = byte_ticks(map.arena_bytes, 8);
    let left = y_axis_width(c, &ticks);
    let plot = Area::new(
        area.x + left,
        area.y + STRIP,
        area.w - left,
        area.h - STRIP - X_AXIS - 14.0 - 40.0,
    );
    let y = Scale::new(map.arena_bytes, plot.bottom(), plot.y);
    let x = Scale::new(u64::from(map.point_count), plot.x, plot.right());
    c.rect(plot, palette::TRACK);
    rest(c, plot, &map.rest);
    let mut drawn: Vec<(Area, &MapBlock)> = map
        .blocks
        .iter()
        .map(|b| {
            let (l, r) = (x.at(u64::from(b.start)), x.at(u64::from(b.end)));
            let top = y.at(b.offset_bytes.saturating_add(b.size_bytes));
            let bottom = y.at(b.offset_bytes);
            (
                Area::new(l, top, (r - l).max(0.5), (bottom - top).max(0.5)),
                b,
            )
        })
        .collect();
    for (a, b) in &drawn {
        block(c, *a, shade(b.size_bytes, map.arena_bytes));
    }
    y_axis_labels(c, plot, y, &ticks);
    let ticks = count_ticks(u64::from(map.point_count), 8);
    x_axis(c, plot, x, &ticks, POINT);
    let peak = (x.at(u64::from(map.peak_point)) + x.at(u64::from(map.peak_point) + 1)) / 2.0;
    c.line(
        &[(peak, plot.y - 6.0), (peak, plot.bottom())],
        palette::PEAK,
        2.5,
    );
    drawn.retain(|(a, b)| !b.label.is_empty() && a.h >= 30.0 && a.w > 90.0);
    for (a, b) in drawn {
        block_label(c, a, b, peak, shade(b.size_bytes, map.arena_bytes));
    }
    peak_label(c, plot, peak, map);
    legend(
        c,
        (area.x, area.bottom() - 40.0),
        area.w,
        &legend_items(map.arena_bytes),
    );
}

/// Grid lines would run through the blocks: labels only.
fn y_axis_labels<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    plot: Area,
    y: Scale,
    ticks: &[(u64, String)],
) {
    let none = Area::new(plot.x, plot.y, 0.0, plot.h);
    y_axis(c, none, y, ticks);
    c.line(
        &[(plot.x, plot.bottom()), (plot.right(), plot.bottom())],
        palette::AXIS,
        1.0,
    );
}

/// Largest sizes of the shades, as parts of the arena: one in so many.
const PARTS: [u64; 4] = [1024, 128, 32, 8];

fn shade(size: u64, arena: u64) -> Color {
    let at = PARTS.iter().take_while(|p| size > arena / **p).count();
    let shades = palette::TEMPORARY_SHADES;
    shades.get(at).copied().unwrap_or(palette::OTHER)
}

fn legend_items(arena: u64) -> Vec<(Swatch, String)> {
    let mut items = vec![(Swatch::Fill(palette::TRACK), "free".to_owned())];
    let shades = palette::TEMPORARY_SHADES;
    for (i, color) in shades.iter().enumerate() {
        let label = match (i.checked_sub(1).and_then(|b| PARTS.get(b)), PARTS.get(i)) {
            (None, Some(to)) => format!("up to {}", units::bytes(arena / to)),
            (Some(_), Some(to)) => format!("to {}", units::bytes(arena / to)),
            (Some(from), None) => format!("over {}", units::bytes(arena / from)),
            (None, None) => continue,
        };
        items.push((Swatch::Fill(*color), label));
    }
    items
}

/// A filled rectangle with a light edge, where it is large enough for one.
fn block<B: DrawingBackend>(c: &mut Canvas<'_, B>, a: Area, color: Color) {
    c.rect(a, color);
    let edge = palette::BACKGROUND.alpha(190);
    if a.h >= 4.0 {
        c.rect(Area::new(a.x, a.y, a.w, 1.0), edge);
    }
    if a.w >= 4.0 {
        c.rect(Area::new(a.x, a.y, 1.0, a.h), edge);
    }
}

/// Small blocks, cell by cell, equal neighbours in one go.
fn rest<B: DrawingBackend>(c: &mut Canvas<'_, B>, plot: Area, rest: &Coverage) {
    if rest.columns == 0 || rest.rows == 0 {
        return;
    }
    let color = palette::TEMPORARY_SHADES
        .get(1)
        .copied()
        .unwrap_or(palette::OTHER);
    let (w, h) = (plot.w / rest.columns as f32, plot.h / rest.rows as f32);
    // Few levels, so that runs are long.
    let level = |v: u8| (u16::from(v) + 31) / 64;
    for (row, cells) in rest.cells.chunks(rest.columns).enumerate() {
        let y = plot.bottom() - (row as f32 + 1.0) * h;
        let mut from = 0;
        while let Some(first) = cells.get(from) {
            let same = |v: &&u8| level(**v) == level(*first);
            let run = cells.iter().skip(from).take_while(same).count();
            let alpha = (level(*first) * 64).min(255) as u8;
            if alpha > 0 {
                let a = Area::new(plot.x + from as f32 * w, y, run as f32 * w, h);
                c.rect(a, color.alpha(alpha));
            }
            from += run;
        }
    }
}

/// A label inside its block, on whichever side of the peak's line has more room.
fn block_label<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    a: Area,
    b: &MapBlock,
    peak: f32,
    color: Color,
) {
    let (mut l, mut r) = (a.x + 10.0, a.right() - 10.0);
    if peak > l - 8.0 && peak < r + 8.0 {
        if peak - l > r - peak {
            r = peak - 8.0;
        } else {
            l = peak + 8.0;
        }
    }
    if r - l < 90.0 {
        return;
    }
    let font = Font::new(22.0, color.text_on());
    let size = units::bytes(b.size_bytes);
    let room = r - l;
    let whole = format!("{size}  {}  {}", b.label, b.shape);
    let without_shape = format!("{size}  {}", b.label);
    let for_label = room - c.width(&size, font) - 14.0;
    let text = if c.width(&whole, font) <= room {
        whole
    } else if c.width(&without_shape, font) <= room {
        without_shape
    } else if for_label > 100.0 {
        format!("{size}  {}", c.elide(&b.label, font, for_label))
    } else if c.width(&size, font) <= room {
        size
    } else {
        return;
    };
    c.text(&text, (l, a.y + a.h / 2.0 + 8.0), font, Align::Left);
}

fn peak_label<B: DrawingBackend>(c: &mut Canvas<'_, B>, plot: Area, peak: f32, map: &MemoryMap) {
    let mut font = STRONG;
    font.color = palette::PEAK;
    let free = map.arena_bytes.saturating_sub(map.live_bytes);
    let strong = format!("{} live at the peak", units::bytes(map.live_bytes));
    let note = format!(
        "of a {} arena, {} free ({})",
        units::bytes(map.arena_bytes),
        units::bytes(free),
        units::percent(free, map.arena_bytes)
    );
    let width = c.width(&strong, font);
    let note = c.elide(&note, NOTE, plot.w - width - 40.0);
    let all = width + 12.0 + c.width(&note, NOTE);
    let start = (peak - all / 2.0).clamp(plot.x.min(plot.right() - all), plot.right() - all);
    let base = plot.y - 16.0;
    c.text(&strong, (start, base), font, Align::Left);
    c.text(&note, (start + width + 12.0, base), NOTE, Align::Left);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_darken_with_size() {
        let at = |size| shade(size, 1 << 30);
        assert_eq!(at(1), palette::TEMPORARY_SHADES[0]);
        assert_eq!(at(1 << 30), palette::TEMPORARY_SHADES[4]);
        assert_eq!(at((1 << 30) / 32), palette::TEMPORARY_SHADES[2]);
        assert_eq!(legend_items(1 << 30).len(), 6);
        assert_eq!(shade(5, 0), palette::TEMPORARY_SHADES[4]);
    }
}

//! One picture that tells the story: title, the peak against capacity, memory over program order,
//! the largest groups, padding waste. Out: `report.png`.

use plotters_backend::DrawingBackend;

use super::bars::{draw_rows, group_rows, padding_rows, padding_title, BarRow, ROW};
use super::breakdown;
use super::canvas::{Align, Area, Canvas, Font};
use super::data::ChartData;
use super::palette;
use super::parts::{
    is_visible, legend, place_line, sentence, Swatch, BODY, H2, INNER, MARGIN, SUB, WIDTH,
};
use super::timeline;
use crate::units;

const GROUPS: usize = 8;
const PADDED: usize = 4;
const TIMELINE: f32 = 600.0;
/// Above a section's title.
const SECTION: f32 = 64.0;
const TOP: f32 = 152.0;
const TITLE: f32 = 20.0;

/// Height of `report.png`.
pub(crate) fn height<B: DrawingBackend>(c: &Canvas<'_, B>, data: &ChartData) -> f32 {
    let groups = group_rows(data, GROUPS).len() as f32;
    let padded = padding(data).len() as f32;
    let mut y = TOP + breakdown::height(c, INNER, data);
    y += SECTION + TITLE + timeline_height(data);
    y += SECTION + TITLE + groups.max(1.0) * ROW;
    y += SECTION + TITLE + padded * ROW;
    y + 40.0
}

fn timeline_height(data: &ChartData) -> f32 {
    if data.timeline.is_some() {
        TIMELINE
    } else {
        160.0
    }
}

/// Padding rows, where padding is worth a look.
fn padding(data: &ChartData) -> Vec<BarRow> {
    if is_visible(data.padding_bytes(), data.peak_bytes) {
        padding_rows(data, PADDED)
    } else {
        Vec::new()
    }
}

/// `report.png`.
pub(crate) fn draw_page<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    title(c, data);
    breakdown::draw(c, Area::new(MARGIN, TOP, INNER, 0.0), data);
    let mut y = TOP + breakdown::height(c, INNER, data);

    y = section(c, y, "Memory over program order", false);
    let area = Area::new(MARGIN, y, INNER, timeline_height(data));
    timeline::draw(c, area, data, false);
    y = area.bottom();

    let hatched = data.groups.iter().any(|g| g.padding_bytes > 0);
    y = section(
        c,
        y,
        "What fills the peak",
        hatched && !padding(data).is_empty(),
    );
    let rows = group_rows(data, GROUPS);
    if rows.is_empty() {
        let area = Area::new(MARGIN, y, INNER, ROW);
        sentence(c, area, "No buffer is live at the peak.");
    }
    draw_rows(c, Area::new(MARGIN, y, INNER, 0.0), &rows);
    y += rows.len().max(1) as f32 * ROW;

    y = section(c, y, &padding_title(data), false);
    draw_rows(c, Area::new(MARGIN, y, INNER, 0.0), &padding(data));
}

/// A section's title, with what hatching means where that is asked for; where its content starts.
fn section<B: DrawingBackend>(c: &mut Canvas<'_, B>, y: f32, title: &str, hatching: bool) -> f32 {
    let base = y + SECTION;
    c.text(&c.elide(title, H2, INNER), (MARGIN, base), H2, Align::Left);
    if hatching {
        let label = "tile padding";
        let x = WIDTH - MARGIN - c.width(label, BODY) - 38.0;
        let items = [(Swatch::Hatch(palette::MUTED), label.to_owned())];
        legend(c, (x, base - 26.0), INNER, &items);
    }
    base + TITLE
}

/// Module and device at the left, the peak's figure at the right.
fn title<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    let over = data.capacity_bytes.is_some_and(|b| data.peak_bytes > b);
    let figure = Font::bold(54.0, if over { palette::PEAK } else { palette::TEXT });
    let peak = units::bytes(data.peak_bytes);
    let under = match data.capacity_bytes {
        Some(b) if b > 0 => format!(
            "peak, {} of {}",
            units::percent(data.peak_bytes, b),
            units::bytes(b)
        ),
        _ => "peak".to_owned(),
    };
    let right = WIDTH - MARGIN;
    c.text(&peak, (right, 78.0), figure, Align::Right);
    c.text(&under, (right, 118.0), SUB, Align::Right);
    let taken = c.width(&peak, figure).max(c.width(&under, SUB)) + 48.0;
    let room = INNER - taken;
    let name = if data.title.module.is_empty() {
        "Memory at the peak"
    } else {
        &data.title.module
    };
    let h1 = Font::bold(46.0, palette::TEXT);
    c.text(&c.elide(name, h1, room), (MARGIN, 76.0), h1, Align::Left);
    let mut place = place_line(&["", &data.title.device, &data.title.space]);
    if !data.title.peak_instruction.is_empty() {
        place = format!("{place}  ·  peak at {}", data.title.peak_instruction);
    }
    c.text(
        &c.elide(&place, SUB, room),
        (MARGIN, 118.0),
        SUB,
        Align::Left,
    );
}

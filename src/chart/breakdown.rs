//! The peak by kind as one stacked bar against the device's capacity. Out: a section of the report.

use plotters_backend::DrawingBackend;

use super::canvas::{Align, Area, Canvas};
use super::data::ChartData;
use super::palette;
use super::parts::{is_visible, kind_name, legend, legend_height, Swatch, BODY, NOTE};
use super::scale::Scale;
use crate::units;

const BAR: f32 = 46.0;
/// Between bar and legend.
const GAP: f32 = 12.0;

/// Height that [`draw`] takes.
pub(crate) fn height<B: DrawingBackend>(c: &Canvas<'_, B>, width: f32, data: &ChartData) -> f32 {
    BAR + GAP + legend_height(c, width, &items(data))
}

/// Bar and legend from the top of `area`.
pub(crate) fn draw<B: DrawingBackend>(c: &mut Canvas<'_, B>, area: Area, data: &ChartData) {
    let used = data.allocated_bytes.max(data.peak_bytes);
    // Against a capacity far above, the parts could not be told apart.
    let near = |b: &u64| *b <= used.saturating_mul(8);
    let capacity = data.capacity_bytes.filter(near).unwrap_or(0);
    let scale = Scale::new(used.max(capacity), area.x, area.right());
    c.rect(Area::new(area.x, area.y, area.w, BAR), palette::TRACK);
    let over = capacity > 0 && used > capacity;
    let mut base = 0u64;
    for (kind, bytes) in &data.breakdown {
        let from = scale.at(base);
        base = base.saturating_add(*bytes);
        let color = palette::of_kind(*kind);
        let part = Area::new(from, area.y, scale.at(base) - from, BAR);
        c.rect(part, color);
        // A hairline between kinds.
        c.rect(
            Area::new(part.right() - 1.0, part.y, 1.0, part.h),
            palette::BACKGROUND,
        );
        let label = units::bytes(*bytes);
        let mut font = BODY;
        font.color = color.text_on();
        let width = c.width(&label, font) + 20.0;
        let x = part.x + part.w / 2.0;
        let crossed = over && (scale.at(capacity) - x).abs() < width / 2.0;
        if width < part.w && !crossed {
            c.text(&label, (x, area.y + 31.0), font, Align::Center);
        }
    }
    if used > base {
        let from = scale.at(base);
        let part = Area::new(from, area.y, scale.at(used) - from, BAR);
        c.rect(part, palette::TRACK);
        c.hatch(part, palette::OTHER, 8.0);
    }
    if over {
        let x = scale.at(capacity).round();
        c.rect(
            Area::new(x - 1.5, area.y - 8.0, 3.0, BAR + 16.0),
            palette::CAPACITY,
        );
    } else if let Some(label) = free_label(used, capacity) {
        let from = scale.at(used);
        if c.width(&label, NOTE) + 24.0 < area.right() - from {
            let at = (area.right() - 12.0, area.y + 31.0);
            c.text(&label, at, NOTE, Align::Right);
        }
    }
    legend(c, (area.x, area.y + BAR + GAP), area.w, &items(data));
}

fn free_label(used: u64, capacity: u64) -> Option<String> {
    let free = capacity.checked_sub(used)?;
    (free > 0).then(|| format!("{} free", units::bytes(free)))
}

fn items(data: &ChartData) -> Vec<(Swatch, String)> {
    let entry = |name: &str, bytes: u64, color| {
        let share = units::percent(bytes, data.peak_bytes);
        let label = format!("{name} {} ({share})", units::bytes(bytes));
        (Swatch::Fill(color), label)
    };
    let (large, small): (Vec<_>, Vec<_>) = data
        .breakdown
        .iter()
        .partition(|b| is_visible(b.1, data.peak_bytes));
    let mut items: Vec<(Swatch, String)> = large
        .iter()
        .map(|(kind, bytes)| entry(kind_name(*kind), *bytes, palette::of_kind(*kind)))
        .collect();
    match small.as_slice() {
        [] => {}
        [(kind, bytes)] => items.push(entry(kind_name(*kind), *bytes, palette::of_kind(*kind))),
        several => {
            let names: Vec<&str> = several.iter().map(|b| kind_name(b.0)).collect();
            let sum = several.iter().fold(0u64, |s, b| s.saturating_add(b.1));
            items.push(entry(&names.join(", "), sum, palette::OTHER));
        }
    }
    let lost = data.allocated_bytes.saturating_sub(data.peak_bytes);
    if lost > 0 {
        let label = format!("fragmentation {}", units::bytes(lost));
        items.push((Swatch::Hatch(palette::OTHER), label));
    }
    if let Some(over) = data
        .capacity_bytes
        .and_then(|c| data.allocated_bytes.max(data.peak_bytes).checked_sub(c))
        .filter(|over| *over > 0)
    {
        let label = format!("capacity, over by {}", units::bytes(over));
        items.push((Swatch::Line(palette::CAPACITY), label));
    }
    items
}

//! The peak as nested rectangles, one a named scope, coloured by kind. In: a tree of scopes. Out:
//! `treemap.png`.

use plotters_backend::DrawingBackend;

use super::canvas::{Align, Area, Canvas, Font};
use super::data::{ChartData, Scope};
use super::palette;
use super::parts::{head, is_visible, kind_name, legend, sentence, Swatch, HEAD, INNER, MARGIN};
use super::squarify::squarify;
use crate::units;

/// Height of `treemap.png`.
pub(crate) const HEIGHT: f32 = 1120.0;
const TITLE: f32 = 34.0;
const MAX_DEPTH: usize = 6;

/// `treemap.png`.
pub(crate) fn draw_page<B: DrawingBackend>(c: &mut Canvas<'_, B>, data: &ChartData) {
    head(c, data, "The peak by named scope");
    let area = Area::new(MARGIN, HEAD + 50.0, INNER, HEIGHT - HEAD - 50.0 - MARGIN);
    if data.scopes.size_bytes == 0 {
        sentence(c, area, "No buffer is live at the peak.");
        return;
    }
    let items: Vec<_> = data
        .breakdown
        .iter()
        .filter(|b| is_visible(b.1, data.peak_bytes))
        .map(|(k, _)| (Swatch::Fill(palette::of_kind(*k)), kind_name(*k).to_owned()))
        .collect();
    legend(c, (MARGIN, HEAD), INNER, &items);
    inside(c, area, &data.scopes, 0);
}

fn inside<B: DrawingBackend>(c: &mut Canvas<'_, B>, area: Area, scope: &Scope, depth: usize) {
    let weights: Vec<f64> = scope.children.iter().map(|s| s.size_bytes as f64).collect();
    for (child, a) in scope.children.iter().zip(squarify(&weights, area)) {
        // What a pixel cannot show is left out; the parent's ground shows through.
        if a.w >= 2.0 && a.h >= 2.0 {
            cell(c, a.inset(1.0), child, depth);
        }
    }
}

fn cell<B: DrawingBackend>(c: &mut Canvas<'_, B>, a: Area, scope: &Scope, depth: usize) {
    // A chain of single children is one cell: `while/body`.
    let mut name = display_name(&scope.name).to_owned();
    let mut scope = scope;
    while let [only] = scope.children.as_slice() {
        scope = only;
        if !scope.name.is_empty() {
            name = format!("{name}/{}", scope.name);
        }
    }
    let opens = !scope.children.is_empty() && depth < MAX_DEPTH && a.w > 130.0 && a.h > 96.0;
    if !opens {
        let color = scope.kind.map_or(palette::OTHER, palette::of_kind);
        c.rect(a, color.tint(0.06 * depth as f32));
        leaf_label(c, a, (&name, scope), color.text_on());
        return;
    }
    c.rect(a, palette::GRID);
    let font = Font::bold(22.0, palette::TEXT);
    let note = Font::new(22.0, palette::MUTED);
    let size = units::bytes(scope.size_bytes);
    let room = a.w - 20.0;
    let base = a.y + 25.0;
    let size_width = c.width(&size, note);
    if size_width + c.width(&name, font).min(140.0) + 16.0 <= room {
        let cut = c.elide(&name, font, room - size_width - 16.0);
        c.text(&cut, (a.x + 10.0, base), font, Align::Left);
        c.text(&size, (a.right() - 10.0, base), note, Align::Right);
    } else {
        let cut = c.elide(&name, font, room);
        c.text(&cut, (a.x + 10.0, base), font, Align::Left);
    }
    let rest = Area::new(a.x + 3.0, a.y + TITLE, a.w - 6.0, a.h - TITLE - 3.0);
    inside(c, rest, scope, depth + 1);
}

fn display_name(name: &str) -> &str {
    if name.is_empty() {
        "(itself)"
    } else {
        name
    }
}

/// Name, in several lines where the cell is high enough, then size.
fn leaf_label<B: DrawingBackend>(
    c: &mut Canvas<'_, B>,
    a: Area,
    (name, scope): (&str, &Scope),
    color: palette::Color,
) {
    const LINE: f32 = 28.0;
    let font = Font::new(22.0, color);
    let room = a.w - 16.0;
    if a.h < 34.0 || room < 84.0 {
        return;
    }
    let mut size = units::bytes(scope.size_bytes);
    if scope.count > 1 {
        let counted = format!("{size} in {} buffers", units::count(scope.count));
        let bold = Font { bold: true, ..font };
        if c.width(&counted, bold) <= room {
            size = counted;
        }
    }
    let lines = ((a.h - 8.0) / LINE) as usize;
    let with_size = lines > 1 && c.width(&size, font) <= room;
    let mut y = a.y + 26.0;
    let name_lines = lines.saturating_sub(usize::from(with_size)).clamp(1, 4);
    for line in break_lines(c, name, font, room, name_lines) {
        c.text(&line, (a.x + 8.0, y), font, Align::Left);
        y += LINE;
    }
    if with_size {
        let mut font = font;
        font.bold = c.width(&size, Font { bold: true, ..font }) <= room;
        c.text(&size, (a.x + 8.0, y), font, Align::Left);
    }
}

/// At most `most` lines that fit `room`; the last one is cut in its middle if need be.
fn break_lines<B: DrawingBackend>(
    c: &Canvas<'_, B>,
    name: &str,
    font: Font,
    room: f32,
    most: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = name;
    while lines.len() + 1 < most && c.width(rest, font) > room {
        let fits = |end: &usize| rest.get(..*end).is_some_and(|s| c.width(s, font) <= room);
        let ends: Vec<usize> = rest
            .char_indices()
            .map(|(i, _)| i)
            .skip(1)
            .take(400)
            .collect();
        let count = ends.partition_point(|e| fits(e));
        let Some(&end) = ends.get(count.saturating_sub(1)).filter(|_| count > 0) else {
            break;
        };
        // Rather after a separator, if that leaves a good part of the line.
        let (line, _) = rest.split_at(end);
        let nice = line
            .rfind(['/', '(', ',', '['])
            .map(|i| i + 1)
            .filter(|i| *i * 2 > end);
        let (line, after) = rest.split_at(nice.unwrap_or(end));
        lines.push(line.to_owned());
        rest = after;
    }
    lines.push(c.elide(rest, font, room));
    lines
}

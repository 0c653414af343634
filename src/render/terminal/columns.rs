//! A table set in columns that fit a width.

use unicode_width::UnicodeWidthStr;

use super::style::Style;
use crate::render::words::{Span, Words};
use crate::render::wrap::wrap;
use crate::render::{clean, elide, Align, Cell, Table};
use crate::text::without_layout;

/// Space between columns.
const GAP: usize = 2;
/// A flexible column is not made narrower than this; columns that then do not fit are left out.
const NARROWEST: usize = 10;

/// From this width on, shapes are shown with their layouts.
const WIDE: usize = 150;

/// Below this width the last of several long columns goes on a line of its own.
const APART: usize = 120;
/// Where that line starts.
const INDENT: usize = 12;

/// From this width on, optional columns are shown.
const ROOMY: usize = 100;

/// Narrowest and widest bar.
const BAR: (usize, usize) = (8, 40);

/// A line with the colours of its words.
pub(super) fn spans(line: &[Span], style: Style) -> String {
    line.iter().map(|s| style.tone(s.tone, &s.text)).collect()
}

/// The table as lines of at most `width` columns.
pub(super) fn render_table(table: &Table, width: usize, style: Style) -> String {
    let mut out = String::new();
    let note = Words::from(table.note.as_str());
    if !table.title.is_empty() {
        out.push_str(&format!("{}\n", style.bold(&clean(&table.title))));
    }
    if !note.is_empty() {
        for line in wrap(&note, width.saturating_sub(GAP)) {
            out.push_str(&style.dim(&format!("  {}\n", spans(&line, style))));
        }
    }
    // Layouts are for wide terminals: what costs by layout is said in a column of its own.
    let text = |c: &Cell| match c {
        Cell::Shape(s) if width < WIDE => without_layout(&clean(s)),
        c => c.text(),
    };
    let mut cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|r| r.iter().map(text).collect())
        .collect();
    let flexible = (0..table.columns.len())
        .filter(|&i| table.columns[i].align == Align::Flexible)
        .filter(|&i| {
            cells
                .iter()
                .any(|r| r.get(i).is_some_and(|t| !t.is_empty()))
        })
        .count();
    // Two long columns side by side would both be cut to nothing: the last one gets a line of its
    // own.
    let last = table.columns.len().saturating_sub(1);
    let apart = flexible > 1 && width < APART && table.columns[last].align == Align::Flexible;
    let mut widths = column_widths(table, &cells, width, apart.then_some(last));
    let heading: Vec<String> = table.columns.iter().map(|c| c.name.to_owned()).collect();
    if apart {
        widths[last] = 0;
    }
    for (row, cells) in table.rows.iter().zip(&mut cells) {
        for ((cell, text), &width) in row.iter().zip(cells).zip(&widths) {
            if let Cell::Bar(part, whole, _) = cell {
                *text = bar(*part, *whole, width);
            }
        }
    }
    if heading.iter().any(|h| !h.is_empty()) {
        let plain = |_: usize, text: &str| text.to_owned();
        let line = line(table, &heading, &widths, plain);
        out.push_str(&format!("{}\n", style.dim(&line)));
    }
    for (cells_of, row) in table.rows.iter().zip(&cells) {
        let tone = |i: usize, text: &str| match cells_of.get(i) {
            Some(Cell::Bar(_, _, tone)) => style.tone(*tone, text),
            _ => text.to_owned(),
        };
        out.push_str(&line(table, row, &widths, tone));
        out.push('\n');
        if let Some(text) = row.get(last).filter(|t| apart && !t.is_empty()) {
            let text = elide(text, width.saturating_sub(INDENT));
            out.push_str(&format!("{}{}\n", " ".repeat(INDENT), style.dim(&text)));
        }
    }
    if !table.left_out.is_empty() {
        out.push_str(&style.dim(&format!("  {}\n", clean(&table.left_out))));
    }
    out
}

/// A bar of `width` characters, filled to `part` of `whole`.
fn bar(part: u64, whole: u64, width: usize) -> String {
    let filled = (u128::from(part) * width as u128)
        .checked_div(u128::from(whole))
        .map_or(0, |f| usize::try_from(f).unwrap_or(width).min(width));
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

/// Width of each column; 0 = left out.
fn column_widths(
    table: &Table,
    cells: &[Vec<String>],
    width: usize,
    apart: Option<usize>,
) -> Vec<usize> {
    let mut widths: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let widest = cells
                .iter()
                .filter_map(|r| r.get(i))
                .map(|t| t.width())
                .max();
            match widest {
                _ if c.align == Align::Bar => BAR.0,
                _ if apart == Some(i) => 0,
                // A column with nothing in it is not worth a heading.
                None | Some(0) => 0,
                _ if c.align == Align::Optional && width < ROOMY => 0,
                Some(w) => w.max(c.name.width()),
            }
        })
        .collect();
    let flexible: Vec<usize> = (0..widths.len())
        .filter(|&i| table.columns[i].align == Align::Flexible && widths[i] > 0)
        .collect();
    let fixed: usize = (0..widths.len())
        .filter(|i| !flexible.contains(i) && widths[*i] > 0)
        .map(|i| widths[i] + GAP)
        .sum();
    let mut left = width.saturating_sub(fixed);
    let wanted: usize = flexible.iter().map(|&i| widths[i] + GAP).sum();
    if let Some(bar) = table.columns.iter().position(|c| c.align == Align::Bar) {
        let more = left.saturating_sub(wanted).min(BAR.1 - BAR.0);
        widths[bar] += more;
        left -= more;
    }
    let mut waiting = flexible;
    // Where even the narrowest do not fit, the last but one goes first: the last says what it is.
    while waiting.len() > 1 && left < waiting.len() * (NARROWEST + GAP) {
        let gone = waiting.remove(waiting.len() - 2);
        widths[gone] = 0;
    }
    // Short columns take what they need; the long ones share the rest.
    while !waiting.is_empty() {
        let share = (left / waiting.len()).saturating_sub(GAP);
        match waiting.iter().position(|&i| widths[i] <= share) {
            Some(at) => {
                left -= widths[waiting.remove(at)] + GAP;
            }
            None => {
                for i in waiting.drain(..) {
                    widths[i] = share.max(4);
                }
            }
        }
    }
    widths
}

/// A row set in columns; `tone` colours a cell by its place.
fn line(
    table: &Table,
    cells: &[String],
    widths: &[usize],
    tone: impl Fn(usize, &str) -> String,
) -> String {
    let mut out = String::new();
    for (i, ((cell, column), &width)) in cells.iter().zip(&table.columns).zip(widths).enumerate() {
        if width == 0 {
            continue;
        }
        out.push_str(&" ".repeat(GAP));
        let text = elide(cell, width);
        let pad = " ".repeat(width.saturating_sub(text.width()));
        let text = tone(i, &text);
        out.push_str(&match column.align {
            Align::Right => format!("{pad}{text}"),
            Align::Left | Align::Optional | Align::Bar | Align::Flexible => format!("{text}{pad}"),
        });
    }
    let start = if table.title.is_empty() { GAP } else { 0 };
    out.get(start..).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Cell, Column};

    #[test]
    fn every_line_fits() {
        let table = Table {
            title: "T".into(),
            columns: vec![
                Column::right("size"),
                Column::flexible("shape"),
                Column::flexible("what"),
            ],
            rows: vec![vec![
                Cell::Bytes(1 << 30),
                Cell::Code("f32[8192,8192,8192]{2,1,0:T(8,128)}".into()),
                Cell::Code("jit(train_step)/transpose(jvp(layer_0))/mlp/dot_general".into()),
            ]],
            ..Table::default()
        };
        for width in [10, 40, 60, 80, 200] {
            let text = render_table(&table, width, Style::default());
            let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= width.max(18), "{width}: {text}");
        }
        assert!(render_table(&table, 200, Style::default()).contains("mlp/dot_general"));
    }
}

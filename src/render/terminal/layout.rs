//! A table set in columns that fit a width.

use unicode_width::UnicodeWidthStr;

use super::style::Style;
use crate::render::table::without_layout;
use crate::render::{clean, elide, Align, Cell, Table};

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

/// The table as lines of at most `width` columns.
pub fn render_table(table: &Table, width: usize, style: Style) -> String {
    let mut out = style.bold(&table.title);
    out.push('\n');
    if !table.note.is_empty() {
        for line in wrap(&table.note, width.saturating_sub(2)) {
            out.push_str(&style.dim(&format!("  {line}\n")));
        }
    }
    // Layouts are for wide terminals: what costs by layout is said in a column of its own.
    let text = |c: &Cell| match c {
        Cell::Shape(s) if width < WIDE => without_layout(&clean(s)),
        c => c.text(),
    };
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|r| r.iter().map(text).collect())
        .collect();
    let flexible = table
        .columns
        .iter()
        .filter(|c| c.align == Align::Flexible)
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
    out.push_str(&style.dim(&line(table, &heading, &widths)));
    out.push('\n');
    for row in &cells {
        out.push_str(&line(table, row, &widths));
        out.push('\n');
        if let Some(text) = row.get(last).filter(|t| apart && !t.is_empty()) {
            let text = elide(text, width.saturating_sub(INDENT));
            out.push_str(&format!("{}{}\n", " ".repeat(INDENT), style.dim(&text)));
        }
    }
    if !table.left_out.is_empty() {
        out.push_str(&style.dim(&format!("  {}\n", table.left_out)));
    }
    out
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

fn line(table: &Table, cells: &[String], widths: &[usize]) -> String {
    let mut out = String::new();
    for ((cell, column), &width) in cells.iter().zip(&table.columns).zip(widths) {
        if width == 0 {
            continue;
        }
        out.push_str(&" ".repeat(GAP));
        let text = elide(cell, width);
        let pad = " ".repeat(width.saturating_sub(text.width()));
        match column.align {
            Align::Right => {
                out.push_str(&pad);
                out.push_str(&text);
            }
            Align::Left | Align::Optional | Align::Flexible => {
                out.push_str(&text);
                out.push_str(&pad);
            }
        }
    }
    out.trim_end().to_owned()
}

/// Breaks text into lines of at most `width` columns, at blanks where it can.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word = word.to_owned();
        loop {
            let current = lines.last_mut().map(|l| l.width()).unwrap_or(0);
            let needed = word.width() + usize::from(current > 0);
            if current + needed <= width {
                if let Some(l) = lines.last_mut() {
                    if current > 0 {
                        l.push(' ');
                    }
                    l.push_str(&word);
                }
                break;
            }
            if current > 0 {
                lines.push(String::new());
                continue;
            }
            // One word longer than the line.
            let cut = word
                .char_indices()
                .map(|(i, c)| i + c.len_utf8())
                .take_while(|&i| word[..i].width() <= width)
                .last()
                .unwrap_or(word.len());
            let rest = word.split_off(cut);
            if let Some(l) = lines.last_mut() {
                l.push_str(&word);
            }
            word = rest;
            if word.is_empty() {
                break;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Cell, Column};

    #[test]
    fn every_line_fits() {
        let column = |name, align| Column { name, align };
        let table = Table {
            title: "T".into(),
            note: String::new(),
            columns: vec![
                column("size", Align::Right),
                column("shape", Align::Flexible),
                column("what", Align::Flexible),
            ],
            rows: vec![vec![
                Cell::Bytes(1 << 30),
                Cell::Code("f32[8192,8192,8192]{2,1,0:T(8,128)}".into()),
                Cell::Code("jit(train_step)/transpose(jvp(layer_0))/mlp/dot_general".into()),
            ]],
            left_out: String::new(),
        };
        for width in [10, 40, 60, 80, 200] {
            let text = render_table(&table, width, Style::default());
            let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= width.max(18), "{width}: {text}");
        }
        assert!(render_table(&table, 200, Style::default()).contains("mlp/dot_general"));
    }

    #[test]
    fn long_words_are_broken() {
        assert_eq!(wrap("aaaaaaaaaaaa bb", 8), ["aaaaaaaa", "aaaa bb"]);
        assert_eq!(wrap("", 8), [""]);
    }
}

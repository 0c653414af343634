//! Rows of typed cells: data is mapped to cells once, every format reads the same cells.

use super::escape::clean;
use super::words::Tone;
use crate::units;

/// A table with a title and a line about what was left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// What it lists; may be empty.
    pub title: String,
    /// One sentence under the title; may be empty.
    pub note: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows; each has one cell a column.
    pub rows: Vec<Vec<Cell>>,
    /// What was left out, in words; empty when nothing was.
    pub left_out: String,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its heading; a table whose headings are all empty has none.
    pub name: &'static str,
    /// How its cells are set.
    pub align: Align,
}

impl Column {
    /// Of numbers.
    pub const fn right(name: &'static str) -> Column {
        let align = Align::Right;
        Column { name, align }
    }

    /// Of short words.
    pub const fn left(name: &'static str) -> Column {
        let align = Align::Left;
        Column { name, align }
    }

    /// Of short words that a narrow terminal does without.
    pub const fn optional(name: &'static str) -> Column {
        let align = Align::Optional;
        Column { name, align }
    }

    /// Of bars.
    pub const fn bar() -> Column {
        let (name, align) = ("", Align::Bar);
        Column { name, align }
    }

    /// Of long text.
    pub const fn flexible(name: &'static str) -> Column {
        let align = Align::Flexible;
        Column { name, align }
    }
}

/// How cells are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Numbers, flush right, never cut.
    Right,
    /// Words that are short, flush left, never cut.
    Left,
    /// Words that are worth their room only on a wide terminal.
    Optional,
    /// Bars: take what the others leave.
    Bar,
    /// Long text: gives way when space is short, its middle is left out.
    Flexible,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Bytes.
    Bytes(u64),
    /// A part of a whole.
    Share(u64, u64),
    /// A count.
    Count(u64),
    /// Memory over data.
    Factor(u64, u64),
    /// A difference in bytes: before, after.
    Change(u64, u64),
    /// A part of a whole, drawn.
    Bar(u64, u64, Tone),
    /// Words.
    Text(String),
    /// Code or a name: monospaced where the format can.
    Code(String),
    /// A shape with its layout.
    Shape(String),
    /// A scope in a tree: depth and name.
    Scope(usize, String),
}

impl Cell {
    /// Words.
    pub fn of(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// The cell in words; a bar has none.
    pub fn text(&self) -> String {
        match self {
            Cell::Bytes(b) => units::bytes(*b),
            Cell::Share(part, whole) => units::percent(*part, *whole),
            Cell::Count(n) => units::count(*n),
            Cell::Factor(padded, data) => units::factor(*padded, *data),
            Cell::Change(before, after) => units::change(*before, *after),
            Cell::Bar(..) => String::new(),
            Cell::Text(t) | Cell::Code(t) | Cell::Shape(t) => clean(t),
            Cell::Scope(depth, t) => format!("{}{}", "  ".repeat(*depth), clean(t)),
        }
    }
}

/// Shortens `text` to `width` columns by leaving out its middle; the end of a path says most, so
/// two thirds of what is kept is the end.
pub fn elide(text: &str, width: usize) -> String {
    use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
    if text.width() <= width {
        return text.to_owned();
    }
    if width < 2 {
        return "…".repeat(width);
    }
    let keep = width - 1;
    let (head, tail) = (keep / 3, keep - keep / 3);
    let take = |chars: &mut dyn Iterator<Item = char>, limit: usize| {
        let mut used = 0;
        let mut out = Vec::new();
        for c in chars {
            used += c.width().unwrap_or(0);
            if used > limit {
                break;
            }
            out.push(c);
        }
        out
    };
    let start: String = take(&mut text.chars(), head).into_iter().collect();
    let end: String = take(&mut text.chars().rev(), tail)
        .into_iter()
        .rev()
        .collect();
    format!("{start}…{end}")
}

/// Rows of a list cut to `top`, with what was left out in words.
pub fn cut<'a, T>(
    items: &'a [T],
    top: usize,
    bytes: impl Fn(&T) -> u64,
    noun: &str,
) -> (&'a [T], String) {
    let (shown, rest) = items.split_at(top.min(items.len()));
    if rest.is_empty() {
        return (shown, String::new());
    }
    let left = rest.iter().fold(0u64, |s, x| s.saturating_add(bytes(x)));
    (
        shown,
        format!(
            "… and {} more {noun}, {}",
            units::count(rest.len() as u64),
            units::bytes(left)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elision_keeps_both_ends_within_the_width() {
        assert_eq!(elide("abcdefghij", 10), "abcdefghij");
        assert_eq!(elide("abcdefghijk", 7), "ab…hijk");
        assert_eq!(elide("abc", 1), "…");
        assert_eq!(elide("abc", 0), "");
        assert!(
            unicode_width::UnicodeWidthStr::width(elide("日本語日本語日本語", 9).as_str()) <= 9
        );
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let (shown, left) = cut(&[5u64, 3, 2], 1, |x| *x << 20, "buffers");
        assert_eq!(
            (shown.len(), left.as_str()),
            (1, "… and 2 more buffers, 5.0 MiB")
        );
        assert_eq!(cut(&[1u64], 3, |x| *x, "x").1, "");
    }
}

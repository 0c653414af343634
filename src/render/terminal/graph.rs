//! Memory over program order in characters, the peak marked.

use super::style::Style;
use crate::units;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ROWS: usize = 7;

/// A graph of `bytes` (one entry a program point) at most `width` columns wide; empty for fewer
/// than two points. Each column shows the largest value of the points it stands for.
pub(super) fn render_graph(bytes: &[u64], peak_point: usize, width: usize, style: Style) -> String {
    let top = bytes.iter().copied().max().unwrap_or(0);
    if bytes.len() < 2 || top == 0 {
        return String::new();
    }
    let axis = 11;
    let columns = width
        .saturating_sub(axis + 1)
        .clamp(10, 160)
        .min(bytes.len().max(10));
    let column_of = |point: usize| point * columns / bytes.len();
    let mut heights = vec![0u64; columns];
    for (point, &b) in bytes.iter().enumerate() {
        if let Some(h) = heights.get_mut(column_of(point)) {
            *h = (*h).max(b);
        }
    }
    // With fewer points than columns, a column without a point repeats the one before.
    if bytes.len() < columns {
        for (c, h) in heights.iter_mut().enumerate() {
            *h = bytes.get(c * bytes.len() / columns).copied().unwrap_or(0);
        }
    }
    let steps = (ROWS * 8) as u128;
    let eighths: Vec<usize> = heights
        .iter()
        .map(|&h| (u128::from(h) * steps).div_ceil(u128::from(top)) as usize)
        .collect();
    let mut out = String::new();
    for row in (0..ROWS).rev() {
        let label = match row {
            r if r == ROWS - 1 => units::bytes(top),
            0 => units::bytes(0),
            _ => String::new(),
        };
        let bars: String = eighths
            .iter()
            .map(|&e| BLOCKS[e.saturating_sub(row * 8).min(8)])
            .collect();
        out.push_str(&format!("{label:>axis$} {}\n", style.blue(bars.trim_end())));
    }
    let at = column_of(peak_point.min(bytes.len() - 1));
    let mark = format!("▲ peak, point {} of {}", peak_point, bytes.len());
    let room = columns.saturating_sub(at);
    let line = if mark.chars().count() <= room {
        format!("{}{mark}", " ".repeat(at))
    } else {
        let text = format!("peak, point {} of {} ▲", peak_point, bytes.len());
        let indent = (at + 1).saturating_sub(text.chars().count());
        format!("{}{text}", " ".repeat(indent))
    };
    out.push_str(&format!("{} {}\n", " ".repeat(axis), style.bold(&line)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stands_under_the_highest_column() {
        let mut bytes = vec![1u64; 100];
        bytes[70] = 100;
        let g = render_graph(&bytes, 70, 60, Style::default());
        let top = g.lines().next().unwrap();
        let column = top.chars().position(|c| c == '█').unwrap();
        let mark = g
            .lines()
            .last()
            .unwrap()
            .chars()
            .position(|c| c == '▲')
            .unwrap();
        assert_eq!(column, mark);
        assert!(g.lines().all(|l| l.chars().count() <= 60), "{g}");
    }

    #[test]
    fn nothing_to_draw_is_nothing() {
        assert_eq!(render_graph(&[], 0, 80, Style::default()), "");
        assert_eq!(render_graph(&[0, 0], 0, 80, Style::default()), "");
        assert!(!render_graph(&[5, 5], 0, 80, Style::default()).is_empty());
    }
}

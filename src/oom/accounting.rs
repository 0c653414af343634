//! In: figures that frameworks print about a program (G19). Out: the figures, as printed.
//!
//! ```text
//! "Post Compilation Analysis: Graph input size:" number "GB" ...                    PyTorch/XLA
//! ( "Total memory size:" | "Total estimated memory size" ... ) { name "size:" number "GB" "," }
//! "Using (GB)" number "/" number "(" percent "%) on" DEVICE                         MaxText
//! "AllocatorStats" { name ":" number unit }                                         Reactant
//! ```
//! GB stays text: none of them says whether it is 10^9 or 2^30.

use super::found::{base, Found};
use super::report::{Figure, Kind};
use super::section::Squeezed;
use super::size::parse_size;

/// Lines looked at, and figures kept.
const MAX_LINES: usize = 16;
const MAX_FIGURES: usize = 24;

/// PyTorch/XLA's lines.
pub(crate) fn parse_pytorch(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    figures(sq, at, end, "pytorch_xla")
}

/// MaxText's summary.
pub(crate) fn parse_maxtext(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    figures(sq, at, sq.line_end(at).min(end), "maxtext")
}

/// MaxText's line per device.
pub(crate) fn parse_maxtext_device(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let text = sq.readable(at, sq.line_end(at).min(end));
    let rest = text.strip_prefix("Using (GB)")?.trim();
    let (amount, device) = rest.split_once(" on ")?;
    let starts_with_number = amount.starts_with(|c: char| c.is_ascii_digit());
    starts_with_number.then_some(())?;
    let name = format!("used on {}", device.trim());
    let text = format!("{} GB", amount.split('(').next()?.trim());
    report(
        sq,
        at,
        "maxtext",
        vec![Figure {
            name,
            text,
            bytes: None,
        }],
    )
}

/// Reactant's box.
pub(crate) fn parse_reactant(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    figures(sq, at, end, "reactant")
}

fn report(sq: &Squeezed, at: usize, from: &str, figures: Vec<Figure>) -> Option<Found> {
    if figures.is_empty() {
        return None;
    }
    let mut r = base(sq, at, Kind::FrameworkAccounting, false);
    r.accounting = figures;
    r.notes.push(format!("figures of {from}, as printed"));
    Some(Found::Report(Box::new(r)))
}

fn figures(sq: &Squeezed, at: usize, end: usize, from: &str) -> Option<Found> {
    let mut out = Vec::new();
    for line in sq.lines_in(at, end).take(MAX_LINES) {
        for part in line.split(", ") {
            if let Some(figure) = figure(part) {
                out.push(figure);
            }
        }
    }
    out.truncate(MAX_FIGURES);
    report(sq, at, from, out)
}

/// `name: number unit`.
fn figure(text: &str) -> Option<Figure> {
    let (name, value) = text.rsplit_once(':')?;
    let mut words = value.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    number.parse::<f64>().ok().filter(|n| n.is_finite())?;
    let unit = unit.trim_end_matches(['.', ',']);
    matches!(
        unit,
        "B" | "KB" | "MB" | "GB" | "TB" | "KiB" | "MiB" | "GiB" | "TiB"
    )
    .then_some(())?;
    let name = name.rsplit(':').next().unwrap_or(name).trim();
    let binary = unit == "B" || unit.ends_with("iB");
    let bytes = if binary {
        parse_size(format!("{number}{unit}").as_bytes())
    } else {
        None
    };
    Some(Figure {
        name: name.to_string(),
        text: format!("{number} {unit}"),
        bytes: bytes.map(|(n, _)| n),
    })
}

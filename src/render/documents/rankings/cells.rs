//! What rows of several rankings share.

use crate::render::{Cell, Column, Table};
use crate::report::{GroupEntry, ShapeEntry, SpaceReport};
use crate::units;

/// A name without the leading `jit(...)/`, which is the same for all.
pub(super) fn short(label: &str) -> String {
    match label.split_once('/') {
        Some((head, rest)) if head.starts_with("jit(") && head.ends_with(')') => rest.to_owned(),
        _ => label.to_owned(),
    }
}

/// A group's name and its place in the code.
pub(in crate::render::documents) fn what(g: &GroupEntry) -> Cell {
    match &g.source {
        Some(s) => Cell::Code(format!("{}  {}:{}", short(&g.label), s.file, s.line)),
        None => Cell::Code(short(&g.label)),
    }
}

/// `48 × 128 MiB`; empty for one.
pub(in crate::render::documents) fn repeats(count: usize, bytes: u64) -> String {
    match count {
        0 | 1 => String::new(),
        n => format!("{n} × {}", units::bytes(bytes / n as u64)),
    }
}

pub(super) fn short_kind(kind: &str) -> &str {
    match kind {
        "parameter" => "arg",
        "temporary" => "temp",
        other => other,
    }
}

/// Smallest amount worth a row in the tables of padding and of copies.
const WORTH_BYTES: u64 = 64 << 10;

/// How many rows, the largest first, are worth showing: the others are noise.
pub(super) fn worth<T>(rows: &[T], space: &SpaceReport, bytes: impl Fn(&T) -> u64) -> usize {
    // A space smaller than that in all has rows of its own size.
    let least = (space.peak_bytes / 2000).max(WORTH_BYTES.min(space.peak_bytes / 100));
    rows.iter().take_while(|x| bytes(x) >= least.max(1)).count()
}

/// Arguments and results of a module without buffer assignment.
pub(in crate::render::documents) fn arrays(shown: &[ShapeEntry]) -> Table {
    Table {
        columns: vec![
            Column::right("size"),
            Column::right("padding"),
            Column::left("kind"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|a| {
                vec![
                    Cell::Bytes(a.size_bytes),
                    Cell::Bytes(a.size_bytes - a.unpadded_bytes.min(a.size_bytes)),
                    Cell::of(a.kind),
                    Cell::Shape(a.shape.clone()),
                    Cell::Code(a.name.clone()),
                ]
            })
            .collect(),
        ..Table::default()
    }
}

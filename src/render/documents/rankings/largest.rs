//! The largest groups of buffers.

use super::cells::{repeats, short_kind, what};
use super::ranking::Ranking;
use crate::render::{cut, Cell, Column, Table};
use crate::report::SpaceReport;

/// The largest groups of buffers.
pub(super) const RANKING: Ranking = Ranking {
    name: "largest",
    table: largest,
};

fn largest(space: &SpaceReport, top: usize) -> Option<Table> {
    let (shown, left_out) = cut(&space.groups, top, |g| g.size_bytes, "groups");
    Some(Table {
        title: "Largest buffers at the peak".to_owned(),
        note: "repeats folded; shapes are per device".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("count"),
            Column::left("kind"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|g| {
                vec![
                    Cell::Bytes(g.size_bytes),
                    Cell::Share(g.size_bytes, space.peak_bytes),
                    Cell::Text(repeats(g.count, g.size_bytes)),
                    Cell::Text(short_kind(g.kind).to_owned()),
                    Cell::Shape(g.shape.clone()),
                    what(g),
                ]
            })
            .collect(),
        left_out,
    })
}

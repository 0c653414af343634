//! The largest temporaries, where there is anything else.

use super::cells::{repeats, what};
use super::ranking::Ranking;
use crate::render::{cut, Cell, Column, Table};
use crate::report::SpaceReport;

/// The largest temporaries, where there is anything else.
pub(super) const RANKING: Ranking = Ranking {
    name: "temporaries",
    table: temporaries,
};

fn temporaries(space: &SpaceReport, top: usize) -> Option<Table> {
    let groups: Vec<_> = space
        .groups
        .iter()
        .filter(|g| g.kind == "temporary")
        .collect();
    // Without anything else the list would repeat the one above.
    if groups.is_empty() || groups.len() == space.groups.len() {
        return None;
    }
    let (shown, left_out) = cut(&groups, top, |g| g.size_bytes, "groups");
    Some(Table {
        title: "Temporaries at the peak".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("count"),
            Column::optional("opcode"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|g| {
                vec![
                    Cell::Bytes(g.size_bytes),
                    Cell::Share(g.size_bytes, space.heap_peak_bytes),
                    Cell::Text(repeats(g.count, g.size_bytes)),
                    Cell::Code(g.opcode.clone()),
                    Cell::Shape(g.shape.clone()),
                    what(g),
                ]
            })
            .collect(),
        left_out,
        ..Table::default()
    })
}

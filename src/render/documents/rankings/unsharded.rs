//! Arguments and outputs that are whole on every device.

use super::cells::short_kind;
use super::ranking::Ranking;
use crate::render::{cut, Cell, Column, Table};
use crate::report::SpaceReport;

/// Arguments and outputs that are whole on every device.
pub(super) const RANKING: Ranking = Ranking {
    name: "unsharded",
    table: unsharded,
};

fn unsharded(space: &SpaceReport, top: usize) -> Option<Table> {
    let rows = &space.rankings.unsharded;
    if rows.is_empty() {
        return None;
    }
    let (shown, left_out) = cut(rows, top, |x| x.size_bytes, "arrays");
    Some(Table {
        title: "Arguments and outputs that are whole on every device".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("would save"),
            Column::left("kind"),
            Column::flexible("sharding"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.size_bytes),
                    Cell::Bytes(x.saving_bytes),
                    Cell::Text(short_kind(x.kind).to_owned()),
                    Cell::Code(x.sharding.clone().unwrap_or_else(|| "none".to_owned())),
                    Cell::Shape(x.shape.clone()),
                    Cell::Code(x.label.clone()),
                ]
            })
            .collect(),
        left_out,
        ..Table::default()
    })
}

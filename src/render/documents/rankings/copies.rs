//! What several devices hold alike.

use super::cells::worth;
use super::ranking::Ranking;
use crate::render::{cut, Cell, Column, Table};
use crate::report::SpaceReport;
use crate::units;

/// What several devices hold alike.
pub(super) const RANKING: Ranking = Ranking {
    name: "copies",
    table: copies,
};

fn copies(space: &SpaceReport, top: usize) -> Option<Table> {
    let r = space
        .replication
        .as_ref()
        .filter(|r| r.redundant_bytes > 0)?;
    let top = top.min(worth(&r.rows, space, |x| x.redundant_bytes));
    if top == 0 {
        return None;
    }
    let (shown, left_out) = cut(&r.rows, top, |x| x.redundant_bytes, "groups");
    Some(Table {
        title: "Held identically by several devices".to_owned(),
        note: format!(
            "{} of {} at the peak is data that another of the {} devices holds too{}",
            units::bytes(r.redundant_bytes),
            units::bytes(space.peak_bytes),
            units::count(r.devices),
            match r.unshardable_bytes {
                0 => String::new(),
                n => format!(
                    "; {} of that depends on no argument (masks, zeros) and is not shardable",
                    units::bytes(n)
                ),
            }
        ),
        columns: vec![
            Column::right("size"),
            Column::right("redundant"),
            Column::right("distinct"),
            Column::left("same over"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.size_bytes),
                    Cell::Bytes(x.redundant_bytes),
                    Cell::Text(format!("{} of {}", x.distinct_copies, r.devices)),
                    Cell::Text(x.axes.clone().unwrap_or_default()),
                    Cell::Shape(x.shape.clone()),
                    Cell::Code(x.label.clone()),
                ]
            })
            .collect(),
        left_out,
    })
}

//! Temporaries that are held longest.

use super::cells::short;
use super::ranking::Ranking;
use crate::render::{Cell, Column, Table};
use crate::report::SpaceReport;
use crate::units;

/// Temporaries that are held longest.
pub(super) const RANKING: Ranking = Ranking {
    name: "held",
    table: held,
};

fn held(space: &SpaceReport, top: usize) -> Option<Table> {
    let rows = &space.rankings.long_held;
    if rows.is_empty() {
        return None;
    }
    let shown = rows.get(..top.min(rows.len())).unwrap_or_default();
    Some(Table {
        title: "Temporaries held longest".to_owned(),
        note: "by bytes × program points; * = alive at the peak".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("points"),
            Column::right("of run"),
            Column::left(""),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|h| {
                let points = u64::from(h.live.end.saturating_sub(h.live.start));
                vec![
                    Cell::Bytes(h.size_bytes),
                    Cell::Count(points),
                    Cell::Share(points, space.point_count as u64),
                    Cell::Text(if h.at_peak { "*" } else { "" }.to_owned()),
                    Cell::Shape(h.shape.clone()),
                    Cell::Code(short(&h.label)),
                ]
            })
            .collect(),
        left_out: match rows.len().saturating_sub(top) {
            0 => String::new(),
            n => format!("… and {} more temporaries", units::count(n as u64)),
        },
    })
}

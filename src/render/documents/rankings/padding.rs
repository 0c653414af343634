//! Tile padding, its cause and a better shape.

use super::cells::{short, worth};
use super::ranking::Ranking;
use crate::render::{cut, Cell, Column, Table};
use crate::report::{PaddingEntry, SpaceReport};
use crate::units;

/// Tile padding, its cause and a better shape.
pub(super) const RANKING: Ranking = Ranking {
    name: "padding",
    table: padding,
};

fn padding(space: &SpaceReport, top: usize) -> Option<Table> {
    let rows = &space.rankings.padding;
    let top = top.min(worth(rows, space, |x| x.padding_bytes));
    let matters = u128::from(space.padding_bytes) * 1000 >= u128::from(space.peak_bytes);
    if top == 0 || !matters {
        return None;
    }
    let (shown, left_out) = cut(rows, top, |x| x.padding_bytes, "groups");
    Some(Table {
        title: "Tile padding at the peak".to_owned(),
        note: format!(
            "{} of {} is padding; cause: the dimension that costs most",
            units::bytes(space.padding_bytes),
            units::bytes(space.peak_bytes)
        ),
        columns: vec![
            Column::right("lost"),
            Column::right("of size"),
            Column::right("factor"),
            Column::left("cause"),
            Column::flexible("shape"),
            Column::flexible("better"),
            Column::flexible("what"),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.padding_bytes),
                    Cell::Share(x.padding_bytes, x.size_bytes),
                    Cell::Factor(x.size_bytes, x.unpadded_bytes),
                    Cell::Text(cause(x)),
                    Cell::Shape(x.shape.clone()),
                    Cell::Text(better(x)),
                    Cell::Code(short(&x.label)),
                ]
            })
            .collect(),
        left_out,
    })
}

/// `dim 2: 4→128`.
fn cause(x: &PaddingEntry) -> String {
    let Some(c) = x.causes.first() else {
        return "rounding".to_owned();
    };
    match c.dimension {
        Some(d) => format!("dim {d}: {}→{}", c.size, c.padded),
        None => format!("rank: 1→{}", c.padded),
    }
}

/// `merge to [8388608,32], saves 31.00 GiB`.
fn better(x: &PaddingEntry) -> String {
    let Some(b) = &x.better else {
        return String::new();
    };
    let dims: Vec<String> = b.dimensions.iter().map(ToString::to_string).collect();
    let how = match b.change {
        "move" => "order",
        "merge" => "merge to",
        _ => "round to",
    };
    format!(
        "{how} [{}], saves {}",
        dims.join(","),
        units::bytes(b.saving_bytes)
    )
}

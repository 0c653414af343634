//! The peak by a label that each buffer has: source line, origin, element type, opcode.

use super::ranking::Ranking;
use crate::render::{cut, Cell, Column, Table};
use crate::report::{RankEntry, SpaceReport};

/// Where in the code.
pub(super) const SOURCE_LINES: Ranking = Ranking {
    name: "source",
    table: |s, top| {
        ranking(
            "By source line",
            "where",
            &s.rankings.by_source_line,
            s,
            top,
        )
    },
};

/// What it is for.
pub(super) const ORIGINS: Ranking = Ranking {
    name: "origin",
    table: |s, top| ranking("By origin", "what it is", &s.rankings.by_origin, s, top),
};

/// Its element type.
pub(super) const ELEMENT_TYPES: Ranking = Ranking {
    name: "type",
    table: |s, top| {
        ranking(
            "By element type",
            "type",
            &s.rankings.by_element_type,
            s,
            top,
        )
    },
};

/// What computes it.
pub(super) const OPCODES: Ranking = Ranking {
    name: "opcode",
    table: |s, top| ranking("By opcode", "opcode", &s.rankings.by_opcode, s, top),
};

fn ranking(
    title: &str,
    what: &'static str,
    rows: &[RankEntry],
    space: &SpaceReport,
    top: usize,
) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let (shown, left_out) = cut(rows, top, |x| x.size_bytes, "rows");
    Some(Table {
        title: title.to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("buffers"),
            Column::right("padding"),
            Column::flexible(what),
        ],
        rows: shown
            .iter()
            .map(|x| {
                vec![
                    Cell::Bytes(x.size_bytes),
                    Cell::Share(x.size_bytes, space.peak_bytes),
                    Cell::Count(x.count as u64),
                    Cell::Bytes(x.padding_bytes),
                    Cell::Code(x.label.clone()),
                ]
            })
            .collect(),
        left_out,
        ..Table::default()
    })
}

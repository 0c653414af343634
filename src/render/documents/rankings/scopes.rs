//! The peak by operation path, a tree.

use super::ranking::Ranking;
use crate::render::{Cell, Column, Table};
use crate::report::{ScopeEntry, SpaceReport};
use crate::units;

/// The peak by operation path, a tree.
pub(super) const RANKING: Ranking = Ranking {
    name: "scopes",
    table: scopes,
};

fn scopes(space: &SpaceReport, top: usize) -> Option<Table> {
    // A tree is cut by size, not by rows: nodes under a hundredth of the peak are left out.
    let limit = space.peak_bytes / 100;
    let kept: Vec<&ScopeEntry> = space
        .rankings
        .by_op_path
        .iter()
        .filter(|s| s.depth < 6 && s.size_bytes > limit)
        .take(top.saturating_mul(3))
        .collect();
    if kept.is_empty() {
        return None;
    }
    let shown: u64 = kept
        .iter()
        .filter(|s| s.depth == 0)
        .map(|s| s.size_bytes)
        .sum();
    let rest = space.peak_bytes.saturating_sub(shown);
    Some(Table {
        title: "By operation path".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("share"),
            Column::right("count"),
            Column::flexible("scope"),
        ],
        rows: kept
            .iter()
            .map(|s| {
                vec![
                    Cell::Bytes(s.size_bytes),
                    Cell::Share(s.size_bytes, space.peak_bytes),
                    Cell::Count(s.count as u64),
                    Cell::Scope(s.depth, s.name.clone()),
                ]
            })
            .collect(),
        left_out: if rest > 0 {
            format!("… and smaller scopes, {}", units::bytes(rest))
        } else {
            String::new()
        },
        ..Table::default()
    })
}

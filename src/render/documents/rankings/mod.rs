//! Rankings of a space: one file a side, one row each in the order they are shown.

pub(super) mod cells;
mod copies;
mod held;
mod labels;
mod largest;
mod padding;
mod ranking;
mod scopes;
mod temporaries;
mod unsharded;

pub use ranking::Ranking;

use crate::render::Table;
use crate::report::SpaceReport;

/// All rankings; the first says most, the others are its other sides.
pub const RANKINGS: [Ranking; 11] = [
    largest::RANKING,
    temporaries::RANKING,
    held::RANKING,
    copies::RANKING,
    unsharded::RANKING,
    padding::RANKING,
    scopes::RANKING,
    labels::SOURCE_LINES,
    labels::ORIGINS,
    labels::ELEMENT_TYPES,
    labels::OPCODES,
];

/// Every ranking of a space that has something to say: `top` rows of the first, about half of it
/// of the others.
pub fn rankings(space: &SpaceReport, top: usize) -> Vec<Table> {
    let half = top.div_ceil(2).max(top.min(3));
    let rows = std::iter::once(top).chain(std::iter::repeat(half));
    let tables = RANKINGS.iter().zip(rows);
    tables
        .filter_map(|(r, rows)| (r.table)(space, rows))
        .collect()
}

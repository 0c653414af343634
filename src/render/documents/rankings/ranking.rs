//! What a ranking is.

use crate::render::Table;
use crate::report::SpaceReport;

/// A list of what fills a space, from one of its sides.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Ranking {
    /// By which it can be asked for.
    pub name: &'static str,
    /// Its rows, `top` at most; `None` where it has nothing to say.
    pub table: fn(&SpaceReport, usize) -> Option<Table>,
}

//! Who is alive at the peak: names, groups, rankings, scopes, padding.
//!
//! In: a program and the use of one of its memory spaces. Out: [`PeakSnapshot`], and views of it
//! through a [`Context`]. May use: `dataflow`, `memory`, `hlo`.

pub(crate) mod arguments;
pub(crate) mod context;
pub(crate) mod group;
pub(crate) mod host;
pub(crate) mod labels;
pub(crate) mod padding;
pub(crate) mod rank;
pub(crate) mod snapshot;
pub(crate) mod tree;

pub use arguments::{argument_name, is_identifier, top_level, top_level_arguments};
pub use context::Context;
pub use group::{buffer_groups, BufferGroup};
pub use labels::{buffer_label, opcode, producer_of, producer_of_block};
pub use padding::{
    better_shape, causes, padding_rows, BetterShape, PaddingCause, PaddingRow, ShapeChange,
};
pub use rank::{
    long_held, rank_by, rank_by_element_type, rank_by_opcode, rank_by_source, HeldRow, RangeLabels,
    RankRow,
};
pub use snapshot::{peak_snapshot, PeakBuffer, PeakSnapshot};
pub use tree::{argument_path, scope_tree, ScopeNode};

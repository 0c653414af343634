//! Questions asked of a program; each answers with data, never with text to print.

mod finding;
mod group;
mod padding;
mod padding_findings;
mod peak;
mod producer;
mod provenance;
mod rank;
mod redundancy;
mod replay;
mod replication;
mod sharding_findings;
mod space;
mod tree;
mod union;
mod witness;

pub use finding::{Context, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
pub use group::{base_name, buffer_groups, buffer_label, opcode, producer_of, BufferGroup};
pub use padding::{
    better_shape, causes, padding_rows, BetterShape, PaddingCause, PaddingRow, ShapeChange,
};
pub use padding_findings::padding_findings;
pub use peak::{peak_snapshot, PeakBuffer, PeakSnapshot};
pub use producer::producer;
pub use rank::{
    long_held, rank_by, rank_by_element_type, rank_by_opcode, rank_by_source, HeldRow, RankRow,
};
pub use redundancy::{replication_summary, RedundantRow, ReplicationSummary};
pub use replay::{last_names, range_names, replay, LiveRange, Replay};
pub use replication::{meshes_of, BufferReplication, DeviceClasses, DeviceClassesId, Replication};
pub use sharding_findings::unsharded_findings;
pub use space::{space_usage, ArenaUsage, SpaceUsage};
pub use tree::{argument_path, scope_tree, scopes, ScopeNode};
pub use witness::{global_shape_witness, Witness};

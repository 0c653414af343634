//! Questions asked of a program; each answers with data, never with text to print.

mod activations;
mod arguments;
mod bound;
mod capacity;
mod context;
mod debug;
mod donation;
mod donation_finding;
mod evidence;
mod finding;
mod findings;
mod float32;
pub mod flow;
mod fragmentation;
mod graph;
mod group;
mod host;
mod inplace;
mod kept;
mod labels;
mod large_tensor;
mod long_lived;
mod maker;
mod origin;
mod padding;
mod padding_findings;
mod peak;
mod provenance;
mod rank;
mod redundancy;
mod replay;
mod replication;
mod sharding_findings;
mod space;
mod spec;
mod text;
mod tree;
mod trip;
mod union;
mod vain;
mod witness;

pub use activations::{activation_findings, saved_activations, SavedActivation};
pub use arguments::{argument_name, top_level, top_level_arguments};
pub use capacity::capacity_findings;
pub use context::Context;
pub use debug::debug_findings;
pub use donation::{donation_candidates, DonationPair};
pub use donation_finding::donation_findings;
pub use finding::{Finding, FindingKind, FindingSeverity, Safety, SavingKind};
pub use findings::all_findings;
pub use float32::float32_findings;
pub use fragmentation::fragmentation_findings;
pub use graph::{runs, Graph, ProgramPoints, Use};
pub use group::{buffer_groups, BufferGroup};
pub use labels::{buffer_label, opcode, producer_of};
pub use large_tensor::large_tensor_findings;
pub use long_lived::long_lived_findings;
pub use maker::{maker_of, maker_of_block, maker_of_buffer, Maker};
pub use origin::{origins, Origin, OriginLabel};
pub use padding::{
    better_shape, causes, padding_rows, BetterShape, PaddingCause, PaddingRow, ShapeChange,
};
pub use padding_findings::padding_findings;
pub use peak::{peak_snapshot, PeakBuffer, PeakSnapshot};
pub use rank::{
    long_held, rank_by, rank_by_element_type, rank_by_opcode, rank_by_source, HeldRow, RangeLabels,
    RankRow,
};
pub use redundancy::{replication_summary, RedundantRow, ReplicationSummary};
pub use replay::{last_names, range_names, replay, LiveRange, Replay};
pub use replication::{meshes_of, BufferReplication, DeviceClasses, DeviceClassesId, Replication};
pub use sharding_findings::unsharded_findings;
pub use space::{space_usage, ArenaUsage, SpaceUsage};
pub use tree::{argument_path, scope_tree, ScopeNode};
pub use trip::trip_count;
pub use witness::{global_shape_witness, Witness};

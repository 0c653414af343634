//! Questions asked of a program; each answers with data, never with text to print.

mod finding;
mod peak;
mod provenance;
mod redundancy;
mod replay;
mod replication;
mod sharding_findings;
mod space;
mod union;
mod witness;

pub use finding::{Context, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
pub use peak::{peak_snapshot, PeakBuffer, PeakSnapshot};
pub use redundancy::{replication_summary, RedundantRow, ReplicationSummary};
pub use replay::{last_names, replay, LiveRange, Replay};
pub use replication::{meshes_of, BufferReplication, DeviceClasses, DeviceClassesId, Replication};
pub use sharding_findings::unsharded_findings;
pub use space::{space_usage, ArenaUsage, SpaceUsage};
pub use witness::{global_shape_witness, Witness};

//! Which devices hold the same data, which mesh axes that is, and what was split over them.
//!
//! In: a program, and meshes that name its axes. Out: classes of devices a value; copies at the
//! peak. May use: `peak`, `dataflow`, `hlo`.

pub(crate) mod provenance;
pub(crate) mod redundancy;
pub(crate) mod replication;
pub(crate) mod spec;
pub(crate) mod witness;

pub use redundancy::{replication_summary, RedundantRow, ReplicationSummary};
pub use replication::{meshes_of, BufferReplication, DeviceClasses, DeviceClassesId, Replication};
pub use witness::{global_shape_witness, Witness};

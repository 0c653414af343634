//! From sources to a [`Report`]: the analyses' data gathered in one serialisable structure, the
//! JSON contract.
//!
//! In: [`Sources`](crate::source::Sources). Out: [`Loaded`] programs and their [`Report`].
//! May use: every room below; knows no format.

pub(crate) mod build;
pub(crate) mod enrich;
pub(crate) mod inventory;
pub(crate) mod load;
pub(crate) mod loaded;
pub(crate) mod schema;

pub use build::{space_report, timeline};
pub use enrich::meshes_beside;
pub use inventory::{inventory, FileEntry, Inventory, ModuleEntry};
pub use load::{load, Detail, Loaded, Options};
pub use loaded::{LoadedModule, SpaceAnalysis};
pub use schema::{
    BetterShapeEntry, Breakdown, BufferEntry, DeviceEntry, GroupEntry, HeldEntry, LiveEntry,
    ModuleReport, PaddingCauseEntry, PaddingEntry, RankEntry, Rankings, ReplicationEntry,
    ReplicationRowEntry, Report, ScopeEntry, ShapeEntry, ShapesOnly, SpaceReport, Timeline, Tool,
    UnshardedEntry, SCHEMA_VERSION,
};

//! Questions asked of a program; each answers with data, never with text to print.

mod finding;
mod graph;
mod peak;
mod replay;
mod space;
mod union;

pub use finding::{Context, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
pub use graph::{runs, Graph, ProgramPoints, Use};
pub use peak::{peak_snapshot, PeakBuffer, PeakSnapshot};
pub use replay::{last_names, replay, LiveRange, Replay};
pub use space::{space_usage, ArenaUsage, SpaceUsage};

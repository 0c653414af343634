//! Questions asked of a program; each answers with data, never with text to print.

mod activations;
mod arguments;
mod donation;
mod evidence;
mod finding;
pub mod flow;
mod graph;
mod inplace;
mod maker;
mod peak;
mod phase;
mod replay;
mod space;
mod trip;
mod union;

pub use activations::{activation_findings, saved_activations, SavedActivation};
pub use arguments::{argument_name, top_level, top_level_arguments};
pub use donation::{donation_candidates, DonationPair};
pub use finding::{Context, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
pub use graph::{runs, Graph, ProgramPoints, Use};
pub use maker::{maker_of, Maker};
pub use phase::{phase, scope, Phase};
pub use peak::{peak_snapshot, PeakBuffer, PeakSnapshot};
pub use replay::{last_names, replay, LiveRange, Replay};
pub use trip::trip_count;
pub use space::{space_usage, ArenaUsage, SpaceUsage};

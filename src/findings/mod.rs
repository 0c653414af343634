//! What is wasted or could be changed: one file a kind.
//!
//! In: a [`Context`](crate::peak::Context), the graph, the verdicts of `training` and `devices`.
//! Out: [`Finding`]s in one order. May use: every room below; knows no format.

pub(crate) mod activations;
pub(crate) mod all;
pub(crate) mod bound;
pub(crate) mod capacity;
pub(crate) mod debug;
pub(crate) mod donation;
pub(crate) mod donation_without_effect;
pub(crate) mod evidence;
pub(crate) mod finding;
pub(crate) mod float32;
pub(crate) mod fragmentation;
pub(crate) mod large_tensor;
pub(crate) mod long_lived;
pub(crate) mod padding;
pub(crate) mod unsharded;

pub use activations::activation_findings;
pub use all::{all_findings, docs_rows};
pub use capacity::capacity_findings;
pub use debug::debug_findings;
pub use donation::donation_findings;
pub use finding::{Finding, FindingKind, FindingSeverity, Safety, SavingKind};
pub use float32::float32_findings;
pub use fragmentation::fragmentation_findings;
pub use large_tensor::large_tensor_findings;
pub use long_lived::long_lived_findings;
pub use padding::padding_findings;
pub use unsharded::unsharded_findings;

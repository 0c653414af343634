//! What to do about a failure: scenarios and steps, the catalogue of interventions and flags, and a
//! failure's text joined with the program it is about.
//!
//! In: what `oom` read, and a report of the program where there is one. Out: steps, a [`Joined`]
//! failure. May use: `oom`, `report`, `findings`, `hlo`.

pub mod catalogue;
pub mod docs;
pub(crate) mod explain;
pub(crate) mod join;
pub(crate) mod join_flags;
pub(crate) mod join_shapes;
pub(crate) mod join_steps;
pub(crate) mod program_steps;
pub(crate) mod runtime_steps;
pub(crate) mod steps;

pub use explain::{explain, suggest};
pub use join::{join, Joined, JoinedGroup, Reconciliation};
pub use join_flags::{flags_in_force, FlagInForce};
pub use join_shapes::{join_shapes, render_shapes, render_shapes_markdown, JoinedShapes};
pub use steps::{next_steps, Step};

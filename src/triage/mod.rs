//! What to do about a failure: scenarios and steps, the catalogue of interventions and flags, and a
//! failure's text joined with the program it is about.
//!
//! In: what `oom` read, and a report of the program where there is one. Out: a [`TriageReport`], a
//! [`Joined`] failure. May use: `oom`, `report`, `findings`, `hlo`.
//!
//! ```text
//! OomReport ─┬─ Failure ─ plan (scenario -> rules) ─ rule (rules -> steps) ─ Triage
//! program ───┘     │      rules: program_steps, runtime_steps; words: actions, catalogue
//!                  └─ join (findings first) ─ Joined
//! ```

pub(crate) mod actions;
pub mod catalogue;
pub(crate) mod explain;
pub(crate) mod failure;
pub(crate) mod from_dump;
pub(crate) mod join;
pub(crate) mod join_flags;
pub(crate) mod join_shapes;
pub(crate) mod join_steps;
pub(crate) mod plan;
pub(crate) mod program_steps;
mod report;
pub(crate) mod rule;
pub(crate) mod runtime_steps;
pub(crate) mod step_id;
pub(crate) mod steps;

pub use explain::{explain, finding_terms, suggest, topics, Topic};
pub use from_dump::{compile_failure, FromDump};
pub use join::{join, DumpFigure, Joined, JoinedGroup, Reconciliation};
pub use join_flags::{flags_in_force, FlagInForce};
pub use join_shapes::{join_shapes, JoinedShapes};
pub use plan::next_steps;
pub use report::{triage, Triage, TriageReport};
pub use step_id::StepId;
pub use steps::{Step, MAX_STEPS};

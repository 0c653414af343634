//! What a change would save, before paying for it: live ranges and sizes of the compiled program
//! are edited, replayed, and packed again.
//!
//! In: a program and [`Edit`]s, findings for selectors. Out: predicted totals, plans, JAX code.
//! May use: every room below; knows no format.
//!
//! [`Base`] is made once per program and memory space; [`whatif`] applies edits to it.

pub(crate) mod apply;
pub(crate) mod applying;
pub(crate) mod arguments;
pub(crate) mod base;
pub(crate) mod batch;
pub(crate) mod candidates;
pub(crate) mod confidence;
pub(crate) mod dead;
pub(crate) mod edit;
pub(crate) mod edits;
pub(crate) mod effects;
pub(crate) mod outputs;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod python;
pub(crate) mod resize;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod selector;
pub(crate) mod sharding_code;
pub(crate) mod split;
pub(crate) mod stacked_residuals;

pub use apply::{apply, Applied, EditNote};
pub use base::Base;
pub(crate) use base::{Block, Slot};
pub use confidence::Confidence;
pub use edit::{Edit, EditKind};
pub use edits::KINDS;
pub use plan::{plan, plan_with, Plan, PlanOptions, PlanStep};
pub use predict::{measure, timeline, LargeBuffer, Outcome};
pub use run::{whatif, whatif_with, SpaceName, WhatIf, WhatIfChart, WhatIfOptions};
pub use scenario::Scenario;

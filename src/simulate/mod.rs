//! What a change would save, before paying for it: live ranges and sizes of the compiled program
//! are edited, replayed, and packed again.
//!
//! [`Base`] is made once per program and memory space; [`whatif`] applies [`Edit`]s to it.

mod advice;
mod apply;
mod base;
mod batch;
mod candidates;
mod checkpoint;
mod confidence;
mod dead;
mod device;
mod dimension_numbers;
mod donate;
pub mod edit;
mod effects;
mod links;
pub mod markdown;
mod microbatch;
mod offload;
mod outputs;
pub mod pack;
mod plan;
mod predict;
mod propagate;
mod python;
mod readers;
mod regroup;
mod resize;
mod scenario;
pub mod selector;
mod shard;
mod sharding_code;
mod split;
mod stacks;
pub mod text;
mod values;
mod whatif;

pub use advice::{how_to_verify, jax_code};
pub use apply::{apply, Applied, EditNote};
pub use base::{Arena, Base, Block, Slot};
pub use candidates::safety_of;
pub use confidence::Confidence;
pub use edit::{Edit, Ways};
pub use plan::{plan, plan_with, Plan, PlanOptions, PlanStep};
pub use predict::{measure, timeline, LargeBuffer, Outcome};
pub use scenario::{EditedArena, Scenario};
pub use values::{DimensionMap, Group, Link, NodeId, Values};
pub use whatif::{whatif, whatif_with, SpaceName, WhatIf, WhatIfChart, WhatIfOptions};

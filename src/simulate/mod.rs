//! What a change would save, before paying for it: live ranges and sizes of the compiled program
//! are edited, replayed, and packed again.
//!
//! [`Base`] is made once per program and memory space; [`whatif`] applies [`Edit`]s to it.

mod apply;
mod base;
mod batch;
mod checkpoint;
mod dead;
mod dimension_numbers;
mod donate;
pub mod edit;
mod effects;
mod links;
mod microbatch;
mod offload;
mod outputs;
pub mod pack;
mod predict;
mod propagate;
mod readers;
mod scenario;
pub mod selector;
mod split;
mod stacks;
mod values;
mod whatif;

pub use apply::{apply, Applied, EditNote};
pub use base::{Arena, Base, Block, Slot};
pub use edit::{Edit, Ways};
pub use predict::{measure, timeline, Confidence, LargeBuffer, Outcome};
pub use scenario::{EditedArena, Scenario};
pub use values::{DimensionMap, Group, Link, NodeId, Values};
pub use whatif::{whatif, whatif_with, SpaceName, WhatIf, WhatIfChart, WhatIfOptions};

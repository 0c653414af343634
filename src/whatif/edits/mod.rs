//! What each edit does to live ranges, sizes and blocks: one file an edit.
//!
//! In: a base and a scenario. Out: the scenario changed. May use: `whatif`'s base and scenario.

pub(crate) mod checkpoint;
pub(crate) mod dead;
pub(crate) mod donate;
pub(crate) mod microbatch;
pub(crate) mod offload;
pub(crate) mod shard;
pub(crate) mod stacks;

//! Every array of a program as a node, and which dimensions of one are those of another.
//!
//! In: a program. Out: [`Values`]. May use: `hlo`.

pub(crate) mod batch_dimensions;
pub(crate) mod build;
pub(crate) mod device_index;
pub(crate) mod dimension_numbers;
pub(crate) mod links;
pub(crate) mod regroup;
pub(crate) mod values;

pub(crate) use values::{NodeId, Values};

//! What to do about it: in a scenario with its values, out steps; and the catalogue they come
//! from, which is data (`catalogue.rs`).

pub mod catalogue;
pub mod docs;
pub mod explain;
pub(crate) mod program_steps;
mod runtime_steps;
pub mod steps;

pub use explain::{explain, suggest};
pub use steps::{next_steps, Step};

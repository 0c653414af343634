//! What to do about it: in a scenario with its values, out steps; and the catalogue they come
//! from, which is data (`catalogue.rs`).

pub mod catalogue;
pub mod docs;
pub mod explain;
mod program_steps;
mod runtime_steps;
pub mod steps;

pub use explain::explain;
pub use steps::{next_steps, Step};

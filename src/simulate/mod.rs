//! What a change would save, before paying for it: live ranges and sizes of the compiled program
//! are edited, replayed, and packed again.

pub mod pack;
mod base;
mod dimension_numbers;
mod links;
mod values;
pub use base::{Arena, Base, Block, Slot};

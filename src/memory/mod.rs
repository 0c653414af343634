//! Bytes over program points, without names: replay of heap traces, use of a memory space, unions
//! of address ranges, packing.
//!
//! In: buffer assignments, sizes and live ranges. Out: live bytes, peaks, offsets. May use: `hlo`.

pub(crate) mod pack;
pub(crate) mod replay;
pub(crate) mod space;
pub(crate) mod union;

pub use replay::{last_names, range_names, replay, LiveRange, Replay};
pub use space::{space_usage, ArenaUsage, SpaceUsage};

//! Bytes → the program's tables. Hand-written walkers over the wire format: an HLO program becomes
//! flat tables that borrow its text, and arrays of literals are never looked at.
//!
//! In: bytes. Out: [`Program`](super::Program) and its parts. May use: the tables of the room around.

pub(crate) mod assignment;
pub(crate) mod attributes;
pub(crate) mod module;
pub(crate) mod program;
pub(crate) mod schema;
pub(crate) mod shape;
pub(crate) mod sharding;
pub(crate) mod wire;

pub use attributes::{Attributes, CollectiveGroups};
pub use program::{decode_program, HloContainer};
pub use shape::{decode_shape, decode_shape_leaf};
pub use sharding::decode_sharding;
pub(crate) use wire::damaged;

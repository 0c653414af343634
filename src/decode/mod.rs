//! File bytes → the model. Hand-written walkers over the wire format: an XSpace is stepped
//! through without reading its events, an HLO program becomes flat tables that borrow its text,
//! and arrays of literals are never looked at.

mod assignment;
mod attributes;
mod hlo;
mod module;
mod shape;
mod sharding;
mod sniff;
pub mod wire;
mod xspace;

pub use attributes::{Attributes, CollectiveGroups};
pub use hlo::{decode_program, HloContainer};
pub use module::decode_sequence;
pub use shape::{decode_shape, decode_shape_leaf};
pub use sharding::decode_sharding;
pub use sniff::{sniff, FileKind};
pub use xspace::{decode_xspace, XPlaneInfo, XProgram, XSpace};

use wire::WireError;

/// A wire error as the library's error about `path`, with the offset within `file`.
pub(crate) fn damaged(path: &std::path::Path, file: &[u8], e: &WireError) -> crate::Error {
    crate::Error::Decode {
        path: path.to_path_buf(),
        field: e.field(),
        offset: e.offset_in(file),
        cause: e.cause().to_owned(),
    }
}

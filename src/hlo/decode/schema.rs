//! Field numbers of `proto/hlo.proto`, read from it by the build: a module a message, without its
//! `Proto`, and a constant a field.
#![allow(dead_code)] // The schema also has what fixtures fill in.

include!(concat!(env!("OUT_DIR"), "/hlo.rs"));

/// What a map is on the wire: a repeated message of these two.
pub(crate) mod map_entry {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

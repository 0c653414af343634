//! The messages of `proto/*.proto` as structs: what fixtures are made of, and the reading that
//! xpeak's own decoding is compared with.
#![allow(missing_docs, clippy::all)]

/// Every field of the schemas as the compiler read them: message, name, number.
pub const FIELDS: &[(&str, &str, u32)] = include!(concat!(env!("OUT_DIR"), "/fields.rs"));

/// Profiler trace container.
pub mod xplane {
    include!(concat!(env!("OUT_DIR"), "/xpeak.xplane.rs"));
}

/// XLA programs and buffer assignment.
pub mod hlo {
    include!(concat!(env!("OUT_DIR"), "/xpeak.hlo.rs"));
}

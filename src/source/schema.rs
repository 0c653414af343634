//! Field numbers of `proto/xplane.proto`, read from it by the build: a module a message and a
//! constant a field.
#![allow(dead_code)] // The schema also has what fixtures fill in.

include!(concat!(env!("OUT_DIR"), "/xplane.rs"));

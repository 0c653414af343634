//! Where values come from and go to: users, program order, what renames a value and what reads it,
//! what computed it, how often loops run.
//!
//! In: a program. Out: [`Graph`] and answers about single values. May use: `hlo`, `memory`.

pub(crate) mod dimensions;
pub(crate) mod flow;
pub(crate) mod graph;
pub(crate) mod inplace;
pub(crate) mod producer;
pub(crate) mod step;
pub(crate) mod trip;

pub use flow::{names_of, reads_of, source_of, Read, Reads};
pub use graph::{runs, Graph, ProgramPoints, Use};
pub use producer::{producer_of_buffer, producer_of_value, Producer};
pub(crate) use step::back;
pub use step::{Path, Through, Value};
pub use trip::trip_count;

//! The compiler itself, asked: a program is compiled again from its dump, changed or not, without a
//! device and without the user's code.
//!
//! In: an unoptimised module, a topology, flags. Out: the compiler's own buffer assignment, or why
//! there is none. May use: every room below; knows no format.
//!
//! The compiler is the user's own; it is looked for in [`find_compiler`] and runs in a child
//! process, which ends as soon as buffers are assigned ([`compile`]). The child is this program
//! again: one that uses the library calls [`child_main`] first thing in its `main`.

mod cache;
mod child;
mod compile;
mod dump;
mod error;
mod find;
mod flags;
mod job;
mod measured;
mod options;
mod pjrt;
mod prepare;
mod process;
mod report;
mod rewrite;
mod source;
mod topology;
mod wire_out;

pub use cache::Cache;
pub use child::child_main;
pub use compile::{compile, compile_all, Compiled, Request, Settings};
pub use error::CompileError;
pub use find::{find_compiler, CompilerLibrary};
pub use flags::{trials, Effect, FitsReport, FitsRow, FlagRow, FlagsReport, Trial};
pub use job::Verdict;
pub use measured::{
    best, is_comparable, program_of, rewritten, DoneEdit, Interval, MeasuredWhatIf, Measurement,
    Rewritten,
};
pub use options::{BuildOptions, FlagValue};
pub use prepare::Prepared;
pub use report::{CompileReport, CompileResult, FlagSetting, Totals};
pub use source::{unoptimised, Unoptimised};
pub use topology::{shape_for, topology_of_dump};

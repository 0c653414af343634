//! What fills TPU and GPU memory at the peak of a JAX/XLA program, why, and what to change.
//!
//! ```text
//! paths ─ source ─ hlo ─ memory ─ dataflow ─ peak ─ devices ─ training ─ findings ─┬─ whatif ─┐
//!                                                                                  └─ report ─┼─ render, chart ─ cli
//! text ── oom ────────────────────────────────────────────────────────────────────── triage ──┘
//! ```
//!
//! ```
//! use xpeak::{report, source::Sources};
//!
//! let sources = Sources::open(&["samples/lm_v6e".into()])?;
//! let options = report::Options::default();
//! let report = report::load(&sources, &options)?.report(&options);
//! let hbm = &report.modules[0].memory_spaces[0];
//! let sum: u64 = hbm.buffers.iter().map(|b| b.counted_bytes).sum();
//! assert_eq!(sum, hbm.peak_bytes);
//! # Ok::<(), xpeak::Error>(())
//! ```

#[cfg(feature = "charts")]
pub mod chart;
pub mod chips;
#[cfg(feature = "cli")]
pub mod cli;
pub mod dataflow;
pub mod devices;
mod error;
pub mod findings;
pub mod hlo;
pub mod memory;
pub mod oom;
pub mod peak;
pub mod render;
pub mod report;
pub mod source;
pub mod text;
pub mod training;
pub mod triage;
pub mod units;
pub mod whatif;

pub use error::{Diagnostic, Error, Result, Severity};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

//! What fills TPU and GPU memory at the peak of a JAX/XLA program, why, and what to change.
//!
//! ```text
//! paths ─ source ─ hlo ─ memory ─ dataflow ─ peak ─ devices ─ training ─ findings ─┬─ whatif ─┐
//!                                                                                  └─ report ─┼─ render, chart ─ cli
//! text ── oom ────────────────────────────────────────────────────────────────────── triage ──┘
//! ```
//!
//! A [report] answers what is there; [findings] say what is wasted; [whatif] predicts what a change
//! saves; [triage] reads the error instead.
//!
//! ```
//! use xpeak::findings::FindingKind;
//! use xpeak::hlo::MemorySpace;
//! use xpeak::report::{self, Options};
//! use xpeak::source::Sources;
//! use xpeak::units::bytes;
//! use xpeak::whatif::{plan_with, whatif_with, Base, Edit, PlanOptions, WhatIfOptions};
//!
//! // A profile's log directory, a dump, or single files; recognised by content.
//! let sources = Sources::open(&["samples/lm_v5e_oom".into()])?;
//! let options = Options::default();
//! let loaded = report::load(&sources, &options)?;
//!
//! // What fills memory at the peak. Every byte of it belongs to a row.
//! let report = loaded.report(&options);
//! let hbm = &report.modules[0].memory_spaces[0];
//! let counted: u64 = hbm.buffers.iter().map(|b| b.counted_bytes).sum();
//! assert_eq!(counted, hbm.peak_bytes);
//! let largest = &hbm.buffers[0];
//! assert_eq!(bytes(largest.counted_bytes), "8.00 GiB");
//!
//! // What is wasted, and what to do about it.
//! let mut findings = hbm.findings.iter();
//! let kept = findings.find(|f| f.kind == FindingKind::SAVED_ACTIVATIONS);
//! assert!(kept.is_some_and(|f| f.action.contains("jax.checkpoint")));
//!
//! // What a change would save: live ranges edited, replayed, packed again.
//! let program = &loaded.modules[0].program;
//! let base = Base::new(program, MemorySpace::HBM)?;
//! let edits = Edit::parse_words(&["--donate", "all"])?;
//! let (result, _) = whatif_with(&base, &WhatIfOptions::new(edits))?;
//! assert!(result.after.allocated_bytes < result.before.allocated_bytes);
//!
//! // What would make the program fit, the harmless steps first.
//! let plan = plan_with(&base, &PlanOptions::new(15 << 30))?;
//! assert!(plan.fits);
//! for step in &plan.steps {
//!     println!("{} saves {}", step.edit, bytes(step.saving_bytes));
//! }
//!
//! // Any of it as text, or as JSON: the data types are serialisable.
//! use xpeak::render::{documents, render_markdown};
//! print!("{}", render_markdown(&documents::plan(&plan)));
//! # Ok::<(), xpeak::Error>(())
//! ```
//!
//! The text of an error needs no program:
//!
//! ```
//! let log = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. \
//!            Used 28.68G of 15.75G hbm. Exceeded hbm capacity by 12.93G.";
//! let read = xpeak::oom::read_str(log);
//! assert_eq!(read.reports[0].limit_bytes, xpeak::units::parse_size("15.75G"));
//! ```
//!
//! # Features
//!
//! | feature | default | adds | costs |
//! |---|---|---|---|
//! | `cli` | yes | `cli`, the `xpeak` command | clap |
//! | `compiler` | yes | [compiler], programs compiled again by the user's own compiler | libloading, rustix, sha2 |
//! | `charts` | yes | `chart`, PNG and SVG pictures | plotters, tiny-skia, a font |
//!
//! Each works without the other; `default-features = false` leaves the analyses and the text formats.
//!
//! # What holds
//!
//! Nothing panics on any input: damage is an [`Error`], or a [`Diagnostic`] where the rest can be
//! used. Handles such as [`hlo::InstructionId`] come from a program and index its tables; they are
//! of no use with another. Structs and enums that may grow are `#[non_exhaustive]`; start options
//! from `new` or `default` and set fields. Lists are in one total order, whatever the machine.
#![deny(unnameable_types)]

#[cfg(feature = "charts")]
pub mod chart;
pub mod chips;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "compiler")]
pub mod compiler;
pub mod dataflow;
pub mod devices;
mod error;
pub mod facts;
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

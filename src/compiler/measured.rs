//! Edits asked of the compiler: done in the unoptimised module, compiled, and read.
//!
//! In: a loaded program made ready, edits. Out: the changed module; [`MeasuredWhatIf`].

use serde::Serialize;

use super::compile::{Compiled, Request};
use super::error::CompileError;
use super::job::Verdict;
use super::options::FlagValue;
use super::prepare::Prepared;
use super::report::SCHEMA_VERSION;
use super::rewrite::{rewrite, Choice, Context, Editable};
use crate::error::{Error, Result};
use crate::findings::Finding;
use crate::hlo::decode::{damaged, decode_program};
use crate::hlo::{HloContainer, MemorySpace, Program};
use crate::report::{meshes_beside, LoadedModule};
use crate::whatif::predict::outcome_as_compiled;
use crate::whatif::{Base, Confidence, Edit, Outcome, SpaceName};

/// Edits done in a module.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rewritten {
    /// The changed module.
    pub module: Vec<u8>,
    /// What each edit did, in the order given.
    pub notes: Vec<String>,
    /// What was chosen where the edits leave a choice.
    pub choice: Option<String>,
}

/// Does edits in a program's unoptimised module. Where they leave a choice (along which dimension to
/// split), every choice that makes another module, the usual one first: the compiler is asked about
/// all, and decides.
///
/// # Errors
/// Damage; an edit that matches nothing, or that the compiler cannot be asked about.
pub fn rewritten(
    loaded: &LoadedModule<'_>,
    prepared: &Prepared,
    edits: &[Edit],
    findings: &[Finding],
) -> Result<Vec<Rewritten>> {
    let bytes = &prepared.source.module;
    let broken = |e| damaged(&prepared.path, bytes, &e);
    let before = decode_program(bytes, HloContainer::Module).map_err(broken)?;
    let module = Editable::read(bytes).map_err(broken)?;
    let splits = edits.iter().any(|e| e.kind().name == "shard");
    let choices = if splits {
        &Choice::ALL[..]
    } else {
        &Choice::ALL[..1]
    };
    let mut out: Vec<Rewritten> = Vec::new();
    for &choice in choices {
        let context = Context {
            after: &loaded.program,
            before: &before,
            meshes: meshes_beside(loaded),
            findings,
            choice,
        };
        let mut module = module.clone();
        let notes = match rewrite(&mut module, &context, edits) {
            Ok(notes) => notes,
            Err(e) if out.is_empty() => return Err(e),
            Err(_) => continue,
        };
        let module = module.write();
        if out.iter().all(|o| o.module != module) {
            out.push(Rewritten {
                module,
                notes,
                choice: splits.then(|| choice.words()),
            });
        }
    }
    Ok(out)
}

impl Rewritten {
    /// The changed program for a topology.
    pub fn request(
        &self,
        prepared: &Prepared,
        topology: &str,
        flags: &[(String, FlagValue)],
    ) -> Request {
        let mut request = prepared.request(topology, flags);
        request.module.clone_from(&self.module);
        // One for each output is one for all once outputs are gone.
        let spread = &mut request.build.outputs_may_spread;
        if spread.iter().all(|&s| s) {
            *spread = vec![true];
        }
        request
    }
}

/// What an edit did, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DoneEdit {
    /// The edit as written.
    pub edit: String,
    /// In words.
    pub note: String,
}

/// How a figure was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measurement {
    /// What it took, until buffers were assigned.
    pub seconds: f64,
    /// Whether that was before, and kept.
    pub cached: bool,
    /// The compiler.
    pub compiler: String,
    /// For which devices.
    pub topology: String,
    /// Folder of the compiler's dump, where it was kept.
    pub dump: Option<String>,
}

/// Bounds of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Interval {
    /// At least.
    pub low_bytes: u64,
    /// At most.
    pub high_bytes: u64,
}

/// A what-if that the compiler answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MeasuredWhatIf {
    /// Version of this form.
    pub schema_version: u32,
    /// The module's name.
    pub module: String,
    /// The memory space.
    pub space: SpaceName,
    /// What each edit did, in the order given.
    pub edits: Vec<DoneEdit>,
    /// The program as it is, by the same compiler.
    pub before: Outcome,
    /// The program with the edits.
    pub after: Outcome,
    /// `measured`.
    pub confidence: Confidence,
    /// Of `after.allocated_bytes`: a point.
    pub interval: Interval,
    /// Whether the compiler says that it fits.
    pub fits: bool,
    /// Its words where it does not.
    pub message: Option<String>,
    /// How.
    pub measured: Measurement,
    /// What is to be known of it.
    pub caveats: Vec<String>,
}

impl MeasuredWhatIf {
    /// Reads a compiled change beside the program as it is: compiled again, or as the dump has it.
    ///
    /// # Errors
    /// What the compiler wrote cannot be read.
    pub fn new(
        prepared: &Prepared,
        space: MemorySpace,
        edits: Vec<DoneEdit>,
        before: &Program<'_>,
        after: &Compiled,
        dump: Option<String>,
    ) -> Result<MeasuredWhatIf> {
        let program = program_of(after)?;
        let before = outcome_as_compiled(&Base::new(before, space)?);
        let outcome = outcome_as_compiled(&Base::new(&program, space)?);
        let message = match &after.verdict {
            Verdict::Fits => None,
            Verdict::OutOfMemory { message } => Some(message.clone()),
        };
        Ok(MeasuredWhatIf {
            schema_version: SCHEMA_VERSION,
            module: prepared.source.name.clone(),
            space: SpaceName {
                color: space.0,
                name: space.name(),
            },
            edits,
            before,
            confidence: Confidence::Measured,
            interval: Interval {
                low_bytes: outcome.allocated_bytes,
                high_bytes: outcome.allocated_bytes,
            },
            after: outcome,
            fits: message.is_none(),
            message,
            measured: Measurement {
                seconds: after.seconds,
                cached: after.cached,
                compiler: after.compiler.clone(),
                topology: after.topology.clone(),
                dump,
            },
            caveats: prepared.notes.clone(),
        })
    }
}

impl DoneEdit {
    /// An edit and what it did.
    pub fn new(edit: &Edit, note: impl Into<String>) -> DoneEdit {
        DoneEdit {
            edit: edit.to_string(),
            note: note.into(),
        }
    }
}

/// The program that a compiler wrote.
///
/// # Errors
/// It cannot be read.
pub fn program_of(compiled: &Compiled) -> Result<Program<'_>> {
    decode_program(&compiled.hlo, HloContainer::Proto).map_err(|e| {
        let cause = format!("{}: {e}", compiled.file_name);
        Error::from(CompileError::NoDump { cause })
    })
}

/// The best of several answers: what fits first, then the smaller total. Its place, or the first
/// error where there is no answer.
///
/// # Errors
/// Every one failed; or one was interrupted, or what was written cannot be read.
pub fn best(
    answers: Vec<Result<Compiled, CompileError>>,
    space: MemorySpace,
) -> Result<Result<(usize, Compiled), CompileError>> {
    let mut best: Option<((bool, u64), usize, Compiled)> = None;
    let mut failed = None;
    for (at, answer) in answers.into_iter().enumerate() {
        match answer {
            Err(CompileError::Interrupted) => return Ok(Err(CompileError::Interrupted)),
            Err(e) => failed = failed.or(Some(e)),
            Ok(compiled) => {
                let program = program_of(&compiled)?;
                let totals = super::report::Totals::of(&program, space);
                let total = totals.map_or(u64::MAX, |t| t.allocated_bytes);
                let rank = (compiled.verdict != Verdict::Fits, total);
                if best.as_ref().is_none_or(|b| rank < b.0) {
                    best = Some((rank, at, compiled));
                }
            }
        }
    }
    Ok(match (best, failed) {
        (Some((_, at, compiled)), _) => Ok((at, compiled)),
        (None, failed) => Err(failed.unwrap_or(CompileError::Interrupted)),
    })
}

/// Whether the dump's own figures are of the compiler and the devices that a change was compiled
/// with: then the program as it is need not be compiled again.
pub fn is_comparable(prepared: &Prepared, compiled: &Compiled) -> bool {
    let same_devices = prepared.topology.as_ref() == Some(&compiled.topology);
    let same_compiler = prepared.build.is_some() && prepared.build == compiled.build;
    same_devices && same_compiler
}

//! What a compile says, in figures: the JSON of `compile`, `fits` and `flags`.
//!
//! In: [`Compiled`], the program as it was. Out: structs to serialise.

use serde::Serialize;

use super::compile::Compiled;
use super::error::CompileError;
use super::job::Verdict;
use super::prepare::Prepared;
use crate::chips::capacity_of;
use crate::error::{Error, Result};
use crate::hlo::decode::{damaged, decode_program};
use crate::hlo::{HloContainer, MemorySpace, Program};
use crate::memory::space_usage;
use crate::oom::limit_in;
use crate::whatif::SpaceName;

/// Version of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// Memory of one compiled program in one space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// What must fit: the sum of all allocations.
    pub allocated_bytes: u64,
    /// The most that is live at one point.
    pub peak_bytes: u64,
    /// What the difference is.
    pub fragmentation_bytes: u64,
    /// Arguments that no output takes over.
    pub parameter_bytes: u64,
    /// Outputs that take over no argument.
    pub output_bytes: u64,
    /// Arguments whose memory an output takes over.
    pub donated_bytes: u64,
    /// Constants.
    pub constant_bytes: u64,
    /// The largest heap of temporaries.
    pub heap_peak_bytes: u64,
    /// Instructions of the optimised module.
    pub instruction_count: usize,
}

impl Totals {
    /// Of a program; `None` without buffer assignment.
    pub fn of(program: &Program<'_>, space: MemorySpace) -> Option<Totals> {
        let usage = space_usage(program.assignment.as_ref()?, space);
        Some(Totals {
            allocated_bytes: usage.allocated_bytes,
            peak_bytes: usage.peak_bytes(),
            fragmentation_bytes: usage.fragmentation_bytes(),
            parameter_bytes: usage.parameter_bytes,
            output_bytes: usage.output_bytes,
            donated_bytes: usage.donated_bytes,
            constant_bytes: usage.constant_bytes,
            heap_peak_bytes: usage.heap_peak_bytes,
            instruction_count: program.module.instructions.len(),
        })
    }
}

/// One compile's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CompileResult {
    /// Devices it was compiled for.
    pub topology: String,
    /// Their name, `TPU v6 lite`.
    pub device_kind: String,
    /// Memory of a device as the compiler counts it, where known.
    pub limit_bytes: Option<u64>,
    /// Whether the compiler says that it fits.
    pub fits: bool,
    /// The compiler's words where it does not.
    pub message: Option<String>,
    /// Memory.
    pub after: Totals,
    /// What the compile took until buffers were assigned.
    pub seconds: f64,
    /// Whether it was made before and kept.
    pub cached: bool,
    /// The compiler.
    pub compiler: String,
    /// Its build.
    pub compiler_build: Option<String>,
}

impl CompileResult {
    /// Reads a compiled program.
    ///
    /// # Errors
    /// The compiler wrote what cannot be read.
    pub fn new(compiled: &Compiled, space: MemorySpace) -> Result<CompileResult> {
        let path = std::path::Path::new(&compiled.file_name);
        let program = decode_program(&compiled.hlo, HloContainer::Proto)
            .map_err(|e| damaged(path, &compiled.hlo, &e))?;
        let after = Totals::of(&program, space).ok_or_else(|| {
            let cause = "it has none".to_owned();
            Error::from(CompileError::NoDump { cause })
        })?;
        let message = match &compiled.verdict {
            Verdict::Fits => None,
            Verdict::OutOfMemory { message } => Some(message.clone()),
        };
        let said = message.as_deref().and_then(limit_in);
        Ok(CompileResult {
            topology: compiled.topology.clone(),
            device_kind: compiled.device_kind.clone(),
            limit_bytes: said.or_else(|| capacity_of(&compiled.device_kind)),
            fits: message.is_none(),
            message,
            after,
            seconds: compiled.seconds,
            cached: compiled.cached,
            compiler: compiled.compiler.clone(),
            compiler_build: compiled.build.clone(),
        })
    }
}

#[cfg(test)]
impl CompileResult {
    /// One that fits an unknown device.
    pub(crate) fn of_totals(after: Totals) -> CompileResult {
        CompileResult {
            topology: "v6e:1x1".to_owned(),
            device_kind: String::new(),
            limit_bytes: None,
            fits: true,
            message: None,
            after,
            seconds: 1.0,
            cached: false,
            compiler: String::new(),
            compiler_build: None,
        }
    }
}

/// Result of `xpeak compile`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CompileReport {
    /// Version of this form.
    pub schema_version: u32,
    /// The module's name.
    pub module: String,
    /// The memory space.
    pub space: SpaceName,
    /// Flags that were set.
    pub flags: Vec<FlagSetting>,
    /// The program as the dump has it; `null` where it has no buffer assignment.
    pub before: Option<Totals>,
    /// The program as compiled now.
    #[serde(flatten)]
    pub result: CompileResult,
    /// `after.allocated_bytes` less the dump's.
    pub difference_bytes: Option<i64>,
    /// Why the two may differ.
    pub notes: Vec<String>,
}

impl CompileReport {
    /// Puts a result beside the program as it was.
    pub fn new(
        prepared: &Prepared,
        space: MemorySpace,
        before: Option<Totals>,
        result: CompileResult,
        flags: Vec<FlagSetting>,
    ) -> CompileReport {
        let mut notes = prepared.notes.clone();
        match (&prepared.build, &result.compiler_build) {
            (Some(then), Some(now)) if then != now => notes.push(format!(
                "another compiler than the dump's: build {now}, not {then}"
            )),
            (None, Some(_)) if before.is_some() => {
                notes.push("the dump does not name its compiler: it may be another".to_owned());
            }
            _ => {}
        }
        let other = |t: &String| *t != result.topology;
        if let Some(then) = prepared.topology.as_ref().filter(|t| other(t)) {
            notes.push(format!("other devices than the dump's, {then}"));
        }
        let difference_bytes = before
            .as_ref()
            .map(|b| difference(result.after.allocated_bytes, b.allocated_bytes));
        CompileReport {
            schema_version: SCHEMA_VERSION,
            module: prepared.source.name.clone(),
            space: SpaceName {
                color: space.0,
                name: space.name(),
            },
            flags,
            before,
            result,
            difference_bytes,
            notes,
        }
    }
}

/// A flag that was set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct FlagSetting {
    /// Its name.
    pub name: String,
    /// Its value, as written.
    pub value: String,
}

impl FlagSetting {
    /// A flag and its value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> FlagSetting {
        FlagSetting {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// A total less another.
pub(crate) fn difference(after: u64, before: u64) -> i64 {
    let wide = i128::from(after) - i128::from(before);
    i64::try_from(wide).unwrap_or(i64::MAX)
}

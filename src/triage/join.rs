//! An out-of-memory text joined with the dump it is about: the same module, the same total, and
//! what the text does not say (newest compilers list nothing).

use serde::Serialize;
use strum::{Display, EnumIter, IntoEnumIterator};

use super::failure::Failure;
use super::join_flags::{flags_in_force, FlagInForce};
use super::join_steps::{advice, explained};
use super::steps::Step;
use crate::findings::Finding;
use crate::hlo::AllocationKind;
use crate::oom::size::prints_as;
use crate::oom::{OomReport, Scenario};
use crate::report::Loaded;
use crate::report::LoadedModule;
use crate::report::Options;
use crate::report::{GroupEntry, SpaceReport};

/// A text's failure with what a dump adds.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Joined {
    /// File of the dump.
    pub path: String,
    /// Its module.
    pub module: String,
    /// Whether the text names the same module; null where it names none.
    pub same_module: Option<bool>,
    /// The text's total against the dump's.
    pub total: Reconciliation,
    /// Peak of the dump's HBM.
    pub peak_bytes: u64,
    /// What must fit.
    pub allocated_bytes: u64,
    /// Largest groups at the peak.
    pub groups: Vec<JoinedGroup>,
    /// What is wasted or could be changed.
    pub findings: Vec<Finding>,
    /// Flags of the advice catalogue with their values in force.
    pub flags: Vec<FlagInForce>,
    /// Scenario, where the text alone left it open.
    pub scenario: Option<Scenario>,
    /// What to do next, now that the program is known.
    pub advice: Vec<Step>,
}

/// A group of buffers with its place in the code.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct JoinedGroup {
    /// The group.
    #[serde(flatten)]
    pub group: GroupEntry,
    /// Different copies among `devices`, of the largest member; null where unknown.
    pub distinct_copies: Option<u64>,
    /// Devices.
    pub devices: u64,
}

/// The text's total against the dump's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reconciliation {
    /// What the text says; null if it says nothing.
    pub text_bytes: Option<u64>,
    /// The dump's figure that it was compared with.
    pub dump_bytes: u64,
    /// What that figure is.
    pub dump_figure: DumpFigure,
    /// Whether they are the same to the last digit that the text prints.
    pub agrees: bool,
}

/// What of a program a text's total may count; compilers differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, Serialize)]
#[non_exhaustive]
pub enum DumpFigure {
    /// Everything.
    #[strum(to_string = "every allocation of HBM")]
    #[serde(rename = "every allocation of HBM")]
    Allocated,
    /// Temporaries alone.
    #[strum(to_string = "the arena of temporaries")]
    #[serde(rename = "the arena of temporaries")]
    Arenas,
    /// Temporaries and arguments.
    #[strum(to_string = "temporaries and arguments")]
    #[serde(rename = "temporaries and arguments")]
    ArenasAndArguments,
}

/// Groups that a joined report lists.
const GROUPS: usize = 8;

/// Joins `report` with the module of `loaded` that it is about: the one it names, else the one
/// whose total it prints, else the largest. `None` if no module has buffer assignment.
pub fn join(report: &OomReport, loaded: &Loaded<'_>, options: &Options) -> Option<Joined> {
    let candidates: Vec<&LoadedModule<'_>> = loaded
        .modules
        .iter()
        .filter(|m| m.analysis.is_some())
        .collect();
    let named = report.module.as_deref().or(report.program.as_deref());
    let module = candidates
        .iter()
        .find(|m| named.is_some_and(|n| n == m.program.module.name))
        .or_else(|| candidates.iter().find(|m| reconcile(report, m).agrees))
        .or_else(|| candidates.first())?;
    let full = loaded.report(options);
    let at = loaded
        .modules
        .iter()
        .position(|m| std::ptr::eq(m, *module))?;
    let space = full
        .modules
        .get(at)?
        .memory_spaces
        .iter()
        .find(|s| s.color == options.space.0)?;
    let failure = Failure::of_program(report, space, explained(space));
    let flags = module
        .source
        .flagfile
        .map(flags_in_force)
        .unwrap_or_default();
    Some(Joined {
        path: module.source.label.path.clone(),
        module: module.program.module.name.to_owned(),
        same_module: named.map(|n| n == module.program.module.name),
        total: reconcile(report, module),
        peak_bytes: space.peak_bytes,
        allocated_bytes: space.allocated_bytes,
        groups: groups(space),
        findings: space.findings.clone(),
        scenario: failure.scenario,
        advice: advice(&failure, space, &flags),
        flags,
    })
}

/// The dump's figure that the text's total stands for. What it counts differs by compiler: all
/// allocations; the arena alone; or the arena and the arguments.
fn reconcile(report: &OomReport, module: &LoadedModule<'_>) -> Reconciliation {
    let allocated = module
        .analysis
        .as_ref()
        .map_or(0, |a| a.usage.allocated_bytes);
    let arenas: u64 = module
        .program
        .assignment
        .iter()
        .flat_map(|a| &a.allocations)
        .filter(|a| a.kind == AllocationKind::Temporary && a.space == crate::hlo::MemorySpace::HBM)
        .fold(0, |s, a| s.saturating_add(a.size_bytes));
    let arguments = module.analysis.as_ref().map_or(0, |a| {
        a.usage
            .parameter_bytes
            .saturating_add(a.usage.donated_bytes)
    });
    let bytes_of = |figure| match figure {
        DumpFigure::Allocated => allocated,
        DumpFigure::Arenas => arenas,
        DumpFigure::ArenasAndArguments => arenas.saturating_add(arguments),
    };
    let text_bytes = report.used_bytes.or(report.total_bytes);
    let fit = text_bytes.and_then(|t| DumpFigure::iter().find(|&f| prints_as(bytes_of(f), t)));
    let dump_figure = fit.unwrap_or(DumpFigure::Allocated);
    Reconciliation {
        text_bytes,
        dump_bytes: bytes_of(dump_figure),
        dump_figure,
        agrees: fit.is_some(),
    }
}

fn groups(space: &SpaceReport) -> Vec<JoinedGroup> {
    space
        .groups
        .iter()
        .take(GROUPS)
        .map(|g| {
            let largest = space.buffers.iter().find(|b| {
                b.logical_buffer_id.is_some()
                    && b.logical_buffer_id == g.buffer_ids.first().copied()
            });
            JoinedGroup {
                group: g.clone(),
                distinct_copies: largest.and_then(|b| b.distinct_copies),
                devices: largest.map_or(1, |b| b.devices),
            }
        })
        .collect()
}

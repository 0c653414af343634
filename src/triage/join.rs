//! An out-of-memory text joined with the dump it is about: the same module, the same total, and
//! what the text does not say (newest compilers list nothing).

use serde::Serialize;

use super::join_flags::{flags_in_force, FlagInForce};
use super::join_steps::advice;
use super::steps::Step;
use crate::findings::Finding;
use crate::hlo::AllocationKind;
use crate::oom::size::prints_as;
use crate::oom::{Allocation, OomReport, Scenario};
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
    pub dump_figure: &'static str,
    /// Whether they are the same to the last digit that the text prints.
    pub agrees: bool,
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
    let enriched = enrich(report, space);
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
        scenario: enriched.scenario,
        advice: advice(&enriched, space, &flags),
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
    let figures = [
        (allocated, "every allocation of HBM"),
        (arenas, "the arena of temporaries"),
        (
            arenas.saturating_add(arguments),
            "temporaries and arguments",
        ),
    ];
    let text_bytes = report.used_bytes.or(report.total_bytes);
    let fit = figures
        .iter()
        .find(|(bytes, _)| text_bytes.is_some_and(|t| close(*bytes, t)));
    let (dump_bytes, dump_figure) = fit.copied().unwrap_or(figures[0]);
    Reconciliation {
        text_bytes,
        dump_bytes,
        dump_figure,
        agrees: fit.is_some(),
    }
}

/// Whether the two are the same but for the rounding of what was printed. Sums of printed parts
/// can be off by one more unit of the last digit.
fn close(exact: u64, printed: u64) -> bool {
    let unit = match printed {
        p if p >= 1 << 40 => (1u64 << 40) / 100,
        p if p >= 1 << 30 => (1 << 30) / 100,
        _ => (1 << 20) / 100,
    };
    prints_as(exact, printed) || exact.abs_diff(printed) <= unit
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

/// The report with what the dump knows in place of what the text leaves open.
fn enrich(report: &OomReport, space: &SpaceReport) -> OomReport {
    let mut out = report.clone();
    if out.allocations.is_empty() {
        out.allocations = space
            .buffers
            .iter()
            .take(64)
            .map(|b| Allocation {
                size_bytes: b.size_bytes,
                exact_bytes: Some(b.size_bytes),
                shape: Some(b.shape.clone()),
                unpadded_bytes: Some(b.unpadded_bytes),
                padding_bytes: Some(b.padding_bytes),
                op_name: Some(b.label.clone()),
                source: b.source.as_ref().map(|s| crate::oom::report::SourceLine {
                    file: s.file.clone(),
                    line: Some(u64::from(s.line)),
                }),
                label: Some(b.instruction.clone()),
                ..Allocation::default()
            })
            .collect();
    }
    if out.scenario == Some(Scenario::Undetermined) {
        let largest = space.buffers.first().map_or(0, |b| b.size_bytes);
        let limit = out.limit_bytes.unwrap_or(space.allocated_bytes);
        out.scenario = Some(if u128::from(largest) * 2 > u128::from(limit) {
            Scenario::LargeAllocation
        } else {
            Scenario::Aggregate
        });
    }
    out.parameter_bytes = out.parameter_bytes.or(Some(
        space
            .breakdown
            .parameter_bytes
            .saturating_add(space.breakdown.donated_bytes),
    ));
    out.output_bytes = out.output_bytes.or(Some(space.breakdown.output_bytes));
    out.temp_bytes = out.temp_bytes.or(Some(space.breakdown.temporary_bytes));
    out
}

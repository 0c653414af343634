//! Sources → decoded programs with their analyses → the report. The one place that knows the
//! whole way.

use rustc_hash::FxHashSet;

use super::build::{shapes_only, space_report, space_totals};
use super::enrich::enrich;
use super::loaded::LoadedModule;
use super::loaded::SpaceAnalysis;
use super::schema::{DeviceEntry, ModuleReport, Report, Tool, SCHEMA_VERSION};
use crate::chips::capacity_of;
use crate::error::{Diagnostic, Error, Result, Severity};
use crate::hlo::decode::{damaged, decode_program};
use crate::hlo::MemorySpace;
use crate::memory::space_usage;
use crate::oom::{limit_in, looks_like_oom};
use crate::source::{Select, SourceKind, Sources};

/// What to analyse and how much of it to report.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Runs and hosts.
    pub select: Select,
    /// Name, part of a name, or program id of the module wanted; `None` = all.
    pub module: Option<String>,
    /// Memory space to rank and to draw. Default HBM.
    pub space: MemorySpace,
    /// Device memory in bytes, where the user gives it.
    pub capacity_bytes: Option<u64>,
    /// Whether the report carries memory at every program point.
    pub timeline: bool,
    /// How much of the modules that text formats only list is worked out.
    pub detail: Detail,
}

/// How much of a report is worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// Every module and every space in full.
    Full,
    /// The first module's chosen space in full; of the rest the totals alone.
    FirstModule,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            select: Select::default(),
            module: None,
            space: MemorySpace::HBM,
            capacity_bytes: None,
            timeline: false,
            detail: Detail::Full,
        }
    }
}

/// Programs of some sources, the largest peak first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded<'s> {
    /// The programs.
    pub modules: Vec<LoadedModule<'s>>,
    /// The device.
    pub device: DeviceEntry,
    /// What was wrong with the input.
    pub diagnostics: Vec<Diagnostic>,
}

/// Decodes and analyses the programs that `options` mean.
///
/// # Errors
/// No program in the sources; a module, run or host that does not exist; or a damaged file when it
/// is the only one.
// Long: the steps of loading, in order, each with what may be said to go wrong.
pub fn load<'s>(sources: &'s Sources, options: &Options) -> Result<Loaded<'s>> {
    let mut diagnostics = sources.diagnostics.clone();
    let found = sources.programs(&options.select, &mut diagnostics)?;
    if found.is_empty() {
        return Err(nothing_found(sources, &diagnostics));
    }
    for f in sources.files.iter().filter(|f| f.named) {
        if !f.kind.may_hold_programs() {
            let what = format!("no program in this {}", f.kind.describe());
            diagnostics.push(Diagnostic::warning("no_program", what).with_path(&f.path));
        }
    }
    let mut modules = Vec::new();
    let mut failures = Vec::new();
    for source in found {
        match decode_program(source.hlo, source.container) {
            Ok(mut program) => {
                let path = source.path;
                let noticed = program.diagnostics.drain(..).map(|d| d.with_path(path));
                diagnostics.extend(noticed);
                if program.module.instructions.is_empty() {
                    continue;
                }
                modules.push(LoadedModule {
                    meshes: std::sync::OnceLock::new(),
                    source,
                    program,
                    analysis: None,
                });
            }
            Err(e) => failures.push(damaged(source.path, source.file, &e)),
        }
    }
    if modules.is_empty() {
        return Err(failures
            .pop()
            .unwrap_or_else(|| nothing_found(sources, &diagnostics)));
    }
    diagnostics.extend(
        failures
            .iter()
            .map(|e| Diagnostic::new(Severity::Error, "damaged_program", e.to_string())),
    );
    if let Some(wanted) = &options.module {
        modules = only_module(modules, wanted)?;
    }
    for m in &mut modules {
        m.analysis = SpaceAnalysis::new(&m.program, options.space);
        if let Some(a) = &mut m.analysis {
            let noticed = std::mem::take(&mut a.usage.diagnostics);
            diagnostics.extend(noticed.into_iter().map(|d| d.with_path(m.source.path)));
        }
    }
    if modules.iter().all(|m| m.analysis.is_none()) {
        explain_missing_space(&modules, options.space)?;
    }
    modules.sort_by(|a, b| {
        (
            b.peak_bytes(),
            &a.program.module.name,
            a.source.program_id,
            &a.source.label,
        )
            .cmp(&(
                a.peak_bytes(),
                &b.program.module.name,
                b.source.program_id,
                &b.source.label,
            ))
    });
    let device = device_of(&modules, sources, options);
    Ok(Loaded {
        modules,
        device,
        diagnostics,
    })
}

fn device_of(modules: &[LoadedModule<'_>], sources: &Sources, options: &Options) -> DeviceEntry {
    let kind = modules.iter().find_map(|m| m.source.device_kind.clone());
    let by_kind = || {
        kind.as_deref()
            .and_then(capacity_of)
            .map(|n| (n, "device_kind"))
    };
    let by_text = || limit_beside(modules, sources).map(|n| (n, "dump"));
    let given = options.capacity_bytes.map(|n| (n, "flag"));
    let (hbm_capacity_bytes, capacity_from) = given.or_else(by_kind).or_else(by_text).unzip();
    DeviceEntry {
        kind,
        hbm_capacity_bytes,
        capacity_from,
    }
}

/// What a failed compile had to fit into: the limit in the first text about it beside a dump.
fn limit_beside(modules: &[LoadedModule<'_>], sources: &Sources) -> Option<u64> {
    let profile = |k: SourceKind| matches!(k, SourceKind::Xplane | SourceKind::Logdir);
    let dumps = modules.iter().filter(|m| !profile(m.source.label.kind));
    let mut folders: Vec<_> = dumps.map(|m| m.source.path.parent()).collect();
    let mut seen = FxHashSet::default();
    folders.retain(|f| seen.insert(*f));
    folders.into_iter().find_map(|folder| {
        let text = sources
            .texts_in(folder)
            .find(|f| looks_like_oom(&f.bytes))?;
        limit_in(&String::from_utf8_lossy(&text.bytes))
    })
}

/// Keeps the modules that `wanted` names: by program id, by whole name, else by part of a name.
fn only_module<'s>(modules: Vec<LoadedModule<'s>>, wanted: &str) -> Result<Vec<LoadedModule<'s>>> {
    let full = |m: &LoadedModule<'_>| match m.source.program_id {
        Some(id) => format!("{}({id})", m.program.module.name),
        None => m.program.module.name.to_owned(),
    };
    let by_id = |m: &LoadedModule<'_>| {
        m.source
            .program_id
            .is_some_and(|id| id.to_string() == wanted)
            || full(m) == wanted
    };
    let by_name = |m: &LoadedModule<'_>| m.program.module.name == wanted;
    let by_part = |m: &LoadedModule<'_>| full(m).contains(wanted) || m.source.name.contains(wanted);
    let tests: [&dyn Fn(&LoadedModule<'_>) -> bool; 3] = [&by_id, &by_name, &by_part];
    for test in tests {
        if modules.iter().any(test) {
            return Ok(modules.into_iter().filter(|m| test(m)).collect());
        }
    }
    let mut names: Vec<String> = modules.iter().map(full).collect();
    names.sort();
    names.dedup();
    Err(Error::usage(
        format!("--module {wanted}: no module has that name or id"),
        format!("the modules are {}", names.join(", ")),
    ))
}

/// The chosen space is in no program that has buffer assignment.
fn explain_missing_space(modules: &[LoadedModule<'_>], space: MemorySpace) -> Result<()> {
    let mut there: Vec<MemorySpace> = modules
        .iter()
        .filter_map(|m| m.program.assignment.as_ref())
        .flat_map(|a| a.spaces())
        .collect();
    there.sort_unstable();
    there.dedup();
    if there.is_empty() || space == MemorySpace::HBM {
        return Ok(());
    }
    let names: Vec<String> = there
        .iter()
        .map(|s| format!("{} ({})", s.name(), s.0))
        .collect();
    Err(Error::usage(
        format!(
            "--space {}: no program uses memory space {}",
            space.name(),
            space.0
        ),
        format!("the spaces are {}", names.join(", ")),
    ))
}

fn nothing_found(sources: &Sources, diagnostics: &[Diagnostic]) -> Error {
    super::inventory::nothing_found(sources, diagnostics)
}

impl Loaded<'_> {
    /// The report of everything loaded, all memory spaces included. Findings and replication are
    /// added to the chosen space.
    pub fn report(&self, options: &Options) -> Report {
        let mut sources = Vec::new();
        let mut modules = Vec::new();
        let mut diagnostics = self.diagnostics.clone();
        for m in &self.modules {
            let source_index = sources
                .iter()
                .position(|s| *s == m.source.label)
                .unwrap_or_else(|| {
                    sources.push(m.source.label.clone());
                    sources.len() - 1
                });
            let first = modules.is_empty();
            modules.push(self.module_report(m, source_index, first, options, &mut diagnostics));
        }
        Report {
            schema_version: SCHEMA_VERSION,
            tool: Tool {
                name: "xpeak",
                version: env!("CARGO_PKG_VERSION"),
            },
            sources,
            device: self.device.clone(),
            diagnostics,
            modules,
        }
    }

    fn module_report(
        &self,
        m: &LoadedModule<'_>,
        source_index: usize,
        first: bool,
        options: &Options,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> ModuleReport {
        let program = &m.program;
        let spaces = program
            .assignment
            .as_ref()
            .map(|a| a.spaces())
            .unwrap_or_default();
        let full = options.detail == Detail::Full || first;
        let capacity = self.device.hbm_capacity_bytes;
        let memory_spaces = spaces
            .into_iter()
            .filter_map(|space| {
                if let Some(a) = m
                    .analysis
                    .as_ref()
                    .filter(|a| a.usage.space == space && full)
                {
                    let mut report = space_report(program, a, options.timeline)?;
                    let capacity = capacity.filter(|_| space == MemorySpace::HBM);
                    enrich(&mut report, m, a, capacity, diagnostics);
                    return Some(report);
                }
                if options.detail == Detail::FirstModule {
                    let usage = space_usage(program.assignment.as_ref()?, space);
                    return Some(space_totals(&usage));
                }
                space_report(
                    program,
                    &SpaceAnalysis::new(program, space)?,
                    options.timeline,
                )
            })
            .collect();
        let module = &program.module;
        ModuleReport {
            name: module.name.to_owned(),
            program_id: m.source.program_id,
            entry_computation: module
                .entry
                .map_or_else(String::new, |e| module.computation(e).name.to_owned()),
            instruction_count: module.instructions.len(),
            num_partitions: module.num_partitions,
            replica_count: module.replica_count,
            source_index,
            hosts: m.source.hosts.clone(),
            memory_spaces,
            shapes_only: program.assignment.is_none().then(|| {
                let path = m.source.path.to_string_lossy();
                shapes_only(program, path.contains("before_optimizations"))
            }),
        }
    }
}

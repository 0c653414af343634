//! What is in a path, file by file: what each can answer, what it cannot, and what to capture
//! instead (`xpeak ls`).

use serde::Serialize;

use super::loaded::SpaceAnalysis;
use crate::error::{Diagnostic, Error};
use crate::hlo::decode::{decode_program, HloContainer};
use crate::hlo::MemorySpace;
use crate::source::{decode_xspace, FileKind, XSpace};
use crate::source::{SourceFile, Sources};

/// Everything in some paths.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Inventory {
    /// Version of this structure.
    pub schema_version: u32,
    /// Files, in order of the paths given, then by path.
    pub files: Vec<FileEntry>,
    /// What went wrong on the way.
    pub diagnostics: Vec<Diagnostic>,
}

/// One file.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FileEntry {
    /// Where it is.
    pub path: String,
    /// Its size when decompressed.
    pub size_bytes: u64,
    /// What it is.
    pub kind: &'static str,
    /// Run, for profiles in log directories.
    pub run: Option<String>,
    /// Host, for profiles.
    pub host: Option<String>,
    /// Device kind and number of device planes, for profiles.
    pub devices: Option<String>,
    /// Programs in it.
    pub modules: Vec<ModuleEntry>,
    /// What the file can answer.
    pub answers: Vec<String>,
    /// What it cannot answer, why, and what to capture instead.
    pub cannot: Vec<String>,
}

/// One program.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ModuleEntry {
    /// Module name.
    pub name: String,
    /// Program id, in profiles.
    pub program_id: Option<u64>,
    /// Instructions.
    pub instruction_count: usize,
    /// Whether it has buffer assignment.
    pub has_buffer_assignment: bool,
    /// Peak of HBM, with buffer assignment.
    pub peak_bytes: Option<u64>,
    /// What must fit in HBM, with buffer assignment.
    pub allocated_bytes: Option<u64>,
    /// Why it could not be read, if so.
    pub error: Option<String>,
}

const CAPTURE_PROFILE: &str =
    "capture with jax.profiler.start_trace(LOGDIR) … stop_trace() around a few steps";
const CAPTURE_DUMP: &str = "compile with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_proto\" \
                            and give xpeak DIR";

/// Looks at every file.
pub fn inventory(sources: &Sources) -> Inventory {
    Inventory {
        schema_version: super::schema::SCHEMA_VERSION,
        files: sources
            .files
            .iter()
            .map(|f| file_entry(f, sources))
            .collect(),
        diagnostics: sources.diagnostics.clone(),
    }
}

fn file_entry(f: &SourceFile, sources: &Sources) -> FileEntry {
    let mut out = FileEntry {
        path: f.path.display().to_string(),
        size_bytes: f.bytes.len() as u64,
        kind: f.kind.describe(),
        run: None,
        host: None,
        devices: None,
        modules: Vec::new(),
        answers: Vec::new(),
        cannot: Vec::new(),
    };
    match f.kind {
        FileKind::XSpace => profile(f, &mut out),
        FileKind::HloProto => program(f, HloContainer::Proto, sources, &mut out),
        FileKind::HloModule => program(f, HloContainer::Module, sources, &mut out),
        FileKind::HloSnapshot => program(f, HloContainer::Snapshot, sources, &mut out),
        other => about_other(other, f, &mut out),
    }
    if let Some(why) = &f.bytes.cut_short {
        out.cannot.push(format!(
            "the compressed data ends early ({why}): copy the file again"
        ));
    }
    out
}

fn about_other(kind: FileKind, f: &SourceFile, out: &mut FileEntry) {
    let name = f.file_name();
    match kind {
        FileKind::Pprof => {
            out.answers
                .push("live arrays on the device by Python stack".to_owned());
            out.cannot.push(format!(
                "temporaries inside XLA programs are never in a device memory profile: \
                 {CAPTURE_PROFILE}"
            ));
        }
        FileKind::Empty => out.cannot.push(format!(
            "the file is empty: the capture was interrupted or the disk was full; \
             {CAPTURE_PROFILE}"
        )),
        FileKind::LfsPointer => out
            .cannot
            .push("only a Git LFS pointer: fetch the file itself with `git lfs pull`".to_owned()),
        FileKind::CorruptedAsText => out.cannot.push(
            "bytes were replaced when the file was copied as text, and are lost: copy it again \
             in binary mode"
                .to_owned(),
        ),
        FileKind::Zip => out.cannot.push("unpack the archive first".to_owned()),
        FileKind::Text if name.ends_with(".flagfile") || name.ends_with("debug_options") => {
            out.answers
                .push("flags that the compiler ran with".to_owned());
        }
        FileKind::Text
            if !name.ends_with(".json")
                && crate::oom::looks_like_oom(
                    f.bytes
                        .get(..f.bytes.len().min(1 << 20))
                        .unwrap_or_default(),
                ) =>
        {
            out.answers
                .push(format!("an out-of-memory error: xpeak triage {}", out.path));
        }
        FileKind::Text => out
            .cannot
            .push("not a file that says anything about memory".to_owned()),
        _ if name.ends_with(".pb") || name.ends_with(".txtpb") => {
            out.cannot.push(
                "not a file that xpeak reads, or a part of a dump that says nothing about buffers"
                    .to_owned(),
            );
        }
        _ => out.cannot.push("not a file that xpeak reads".to_owned()),
    }
}

fn profile(f: &SourceFile, out: &mut FileEntry) {
    out.run = Some(f.folder_name());
    out.host = Some(crate::source::host_name(f));
    let space = match decode_xspace(&f.bytes) {
        Ok(space) => space,
        Err(e) => {
            let error = crate::hlo::decode::damaged(&f.path, &f.bytes, &e);
            out.cannot.push(format!("{error}; {CAPTURE_PROFILE}"));
            return;
        }
    };
    describe_devices(&space, out);
    out.modules = space
        .programs
        .iter()
        .map(|p| module_entry(p.hlo, HloContainer::Proto, Some(p)))
        .collect();
    if out.modules.iter().any(|m| m.has_buffer_assignment) {
        out.answers
            .push("what fills memory at the peak of each program".to_owned());
    }
    if space.has_allocator_events {
        out.answers.push("allocations over time".to_owned());
    }
    if space.truncated_at.is_some() {
        out.cannot.push(
            "the file ends early (interrupted write or copy): programs after the cut are missing; \
             copy it again"
                .to_owned(),
        );
    }
    if !space.has_metadata_plane {
        out.cannot.push(format!(
            "what fills memory: there is no /host:metadata plane with programs (written since \
             2021, and by runs that compile or execute a program while tracing); {CAPTURE_PROFILE}"
        ));
    } else if space.programs.is_empty() {
        out.cannot.push(format!(
            "what fills memory: no program ran while tracing, or programs were left out by the \
             profiler's options (enable_hlo_proto); {CAPTURE_PROFILE}"
        ));
    } else if !out.modules.iter().any(|m| m.has_buffer_assignment) {
        out.cannot.push(format!(
            "what fills memory: its programs carry no buffer assignment; {CAPTURE_DUMP}"
        ));
    }
}

fn describe_devices(space: &XSpace<'_>, out: &mut FileEntry) {
    out.devices = match (space.device_kind(), space.device_count()) {
        (Some(kind), n) => Some(format!("{n} × {kind}")),
        (None, 0) => None,
        (None, n) => Some(format!("{n} devices")),
    };
}

fn program(f: &SourceFile, container: HloContainer, sources: &Sources, out: &mut FileEntry) {
    out.modules = vec![module_entry(&f.bytes, container, None)];
    let Some(m) = out.modules.first() else { return };
    if m.error.is_some() {
        out.cannot
            .push(format!("the file is damaged: {CAPTURE_DUMP}"));
        return;
    }
    if m.has_buffer_assignment {
        out.answers.push("what fills memory at the peak".to_owned());
        return;
    }
    out.answers
        .push("parameters, outputs, their shapes and padding".to_owned());
    if f.file_name().contains("before_optimizations") {
        out.answers
            .push("global shapes before partitioning".to_owned());
    }
    let better = sources.files.iter().any(|x| {
        x.path.parent() == f.path.parent() && x.file_name().contains("after_optimizations.hlo")
    });
    out.cannot.push(if better {
        "what fills memory: no buffer assignment here; the after_optimizations file beside it has \
         it"
        .to_owned()
    } else {
        format!(
            "what fills memory: no buffer assignment; use the *after_optimizations.hlo.pb of the \
             dump ({CAPTURE_DUMP})"
        )
    });
}

fn module_entry(
    hlo: &[u8],
    container: HloContainer,
    named: Option<&crate::source::XProgram<'_>>,
) -> ModuleEntry {
    let mut out = ModuleEntry {
        name: named.map_or_else(String::new, |p| p.name.to_owned()),
        program_id: named.map(|p| p.program_id),
        instruction_count: 0,
        has_buffer_assignment: false,
        peak_bytes: None,
        allocated_bytes: None,
        error: None,
    };
    match decode_program(hlo, container) {
        Ok(program) => {
            if out.name.is_empty() {
                out.name = program.module.name.to_owned();
            }
            out.instruction_count = program.module.instructions.len();
            out.has_buffer_assignment = program.assignment.is_some();
            out.error = program
                .diagnostics
                .iter()
                .find(|d| d.severity == crate::error::Severity::Error)
                .map(|d| d.message.clone());
            let analysis = SpaceAnalysis::new(&program, MemorySpace::HBM);
            out.peak_bytes = analysis.as_ref().map(|a| a.usage.peak_bytes());
            out.allocated_bytes = analysis.as_ref().map(|a| a.usage.allocated_bytes);
        }
        Err(e) => {
            out.error = Some(format!(
                "damaged at byte {} in {}: {}",
                e.offset_in(hlo),
                e.field(),
                e.cause()
            ));
        }
    }
    out
}

/// The error for sources without a single program: what was found, and what to do.
pub(crate) fn nothing_found(sources: &Sources, diagnostics: &[Diagnostic]) -> Error {
    let inventory = inventory(sources);
    let mut what = match inventory.files.as_slice() {
        [] => "no files here".to_owned(),
        [one] => format!("{}: no program in this {}", one.path, one.kind),
        many => format!("no program in any of {} files", many.len()),
    };
    let mut reasons: Vec<String> = Vec::new();
    for f in &inventory.files {
        for c in &f.cannot {
            if !reasons.contains(c) {
                reasons.push(c.clone());
            }
        }
    }
    if let Some(d) = diagnostics
        .iter()
        .find(|d| d.severity == crate::error::Severity::Error)
    {
        what = format!("{what} ({})", d.message);
    }
    let hint = match reasons.as_slice() {
        [] if inventory
            .files
            .iter()
            .any(|f| f.kind == FileKind::Text.describe()) =>
        {
            "for an error text or a log: xpeak triage FILE".to_owned()
        }
        [] => format!("{CAPTURE_PROFILE}; or {CAPTURE_DUMP}"),
        _ => reasons
            .into_iter()
            .take(3)
            .collect::<Vec<_>>()
            .join("\n      "),
    };
    Error::missing(what, hint)
}

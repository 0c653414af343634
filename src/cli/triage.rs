//! `xpeak triage` and `xpeak explain`.

use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{terminal_width, TriageArgs, TriageFormat};
use super::{output, sink};
use crate::error::{Error, Result};
use crate::oom::{self, Kind, OomReport, OomText};
use crate::render::{render_joined, render_joined_markdown};
use crate::render::{triage_markdown, triage_text};
use crate::report::{load, Options};
use crate::source::FileKind;
use crate::source::Sources;
use crate::triage::{
    self, join, join_shapes, render_shapes, render_shapes_markdown, Joined, JoinedShapes, StepId,
    TriageReport,
};

/// Text files beside a dump that are larger than this are not looked into.
const MAX_TEXT_BESIDE: usize = 64 << 20;

#[derive(Serialize)]
struct Output<'o> {
    schema_version: u32,
    reports: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined: Option<&'o Joined>,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_shapes: Option<&'o JoinedShapes>,
}

pub(crate) fn run(args: TriageArgs) -> Result<u8> {
    let mut with = args.with.clone();
    let report = triage::triage(read(&args.file, &mut with)?);
    let mut reports = report.reports.iter();
    let dump = match reports.position(|t| is_compile_time(&t.report)) {
        Some(at) if !with.is_empty() => joined(&report, at, &with, &args)?,
        _ if with.is_empty() => Dump::None,
        _ => {
            let first = report.reports.first();
            let scoped = first.is_some_and(|t| t.report.kind == Kind::TpuScopedVmem);
            sink::complain(if scoped {
                "note: a dump says nothing more about scoped VMEM"
            } else {
                "warning: the text has no compile-time failure to join with the dump"
            });
            Dump::None
        }
    };
    let text = match args.format {
        Some(TriageFormat::Json) => as_json(&report, &dump)?,
        Some(TriageFormat::Md) => {
            let more = match &dump {
                Dump::Joined(_, joined) => render_joined_markdown(joined),
                Dump::Shapes(_, shapes) => render_shapes_markdown(shapes),
                Dump::None => String::new(),
            };
            format!("{}{more}", triage_markdown::render(&beside(&report, &dump)))
        }
        _ => as_text(&report, &dump, &args),
    };
    sink::print(text.as_bytes())?;
    Ok(if report.reports.is_empty() { 3 } else { 0 })
}

/// What the dump adds to the report at an index.
enum Dump {
    None,
    Joined(usize, Box<Joined>),
    Shapes(usize, Box<JoinedShapes>),
}

/// The text's report without what the dump says better, or with what it adds in front.
fn beside(report: &TriageReport, dump: &Dump) -> TriageReport {
    let mut out = report.clone();
    match dump {
        Dump::Joined(at, joined) => {
            if let Some(t) = out.reports.get_mut(*at) {
                t.advice.clear();
                if joined.scenario.is_some() {
                    t.report.scenario = None;
                }
                if joined.total.agrees && joined.same_module != Some(false) {
                    t.report.groups.clear();
                }
            }
        }
        Dump::Shapes(at, shapes) => {
            if let Some(r) = out.reports.get_mut(*at) {
                // Without arguments there is nothing to donate.
                let donate = shapes.parameter_bytes > 0;
                r.advice.retain(|s| donate || s.id != StepId::Donation);
                r.advice.splice(0..0, shapes.advice.iter().cloned());
                r.advice.truncate(triage::MAX_STEPS);
            }
        }
        Dump::None => {}
    }
    out
}

fn as_text(report: &TriageReport, dump: &Dump, args: &TriageArgs) -> String {
    let text = triage_text::render(&beside(report, dump));
    let (width, style) = (terminal_width(), args.color.style());
    match dump {
        Dump::None => text,
        Dump::Joined(_, joined) => format!("{text}\n{}", render_joined(joined, width, style)),
        Dump::Shapes(_, shapes) => format!("{text}\n{}", render_shapes(shapes, width, style)),
    }
}

fn as_json(report: &TriageReport, dump: &Dump) -> Result<String> {
    let mut reports = Vec::new();
    for r in &report.reports {
        let value = serde_json::to_value(r);
        reports.push(value.map_err(|e| Error::output(Path::new("<json>"), e.into()))?);
    }
    if reports.is_empty() {
        // Programs that read the JSON find one report in any case.
        reports.push(serde_json::json!({"kind": "none", "oom": false, "scenario": null}));
    }
    output::json(&Output {
        schema_version: report.schema_version,
        reports,
        joined: match dump {
            Dump::Joined(_, joined) => Some(joined),
            _ => None,
        },
        joined_shapes: match dump {
            Dump::Shapes(_, shapes) => Some(shapes),
            _ => None,
        },
    })
}

/// Whether a failure is of a program's compilation, so that a dump can say more.
fn is_compile_time(r: &OomReport) -> bool {
    matches!(
        r.kind,
        Kind::TpuCompileHbm
            | Kind::TpuFastExit
            | Kind::TpuSingleAllocation
            | Kind::TpuTcSc
            | Kind::GpuBufferAssignment
            | Kind::GpuAllocation
            | Kind::GpuBfc
            | Kind::TpuProgramLoad
    )
}

fn joined(report: &TriageReport, at: usize, with: &[PathBuf], args: &TriageArgs) -> Result<Dump> {
    let Some(r) = report.reports.get(at).map(|t| &t.report) else {
        return Ok(Dump::None);
    };
    let options = Options {
        capacity_bytes: r.limit_bytes,
        ..Options::default()
    };
    let sources = Sources::open(with)?;
    let loaded = load(&sources, &options)?;
    sink::warn(&loaded.diagnostics, args.quiet);
    if let Some(found) = join(r, &loaded, &options) {
        return Ok(Dump::Joined(at, Box::new(found)));
    }
    if let Some(shapes) = join_shapes(r, &loaded, &options) {
        return Ok(Dump::Shapes(at, Box::new(shapes)));
    }
    sink::complain("warning: no module of the dump has buffer assignment; nothing to join");
    Ok(Dump::None)
}

/// Reads the text; a folder is searched for one, and then is the dump to join with.
fn read(file: &Path, with: &mut Vec<PathBuf>) -> Result<OomText> {
    if file == Path::new("-") {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            sink::complain("reading standard input; end it with Ctrl-D");
        }
        return oom::read(stdin.lock()).map_err(|e| Error::io("<stdin>", e));
    }
    if file.is_dir() {
        with.push(file.to_path_buf());
        return text_beside(file);
    }
    let opened = File::open(file).map_err(|e| Error::io(file, e))?;
    let mut reader = BufReader::with_capacity(1 << 20, opened);
    let compressed = {
        use std::io::BufRead;
        reader
            .fill_buf()
            .map_err(|e| Error::io(file, e))?
            .starts_with(&[0x1f, 0x8b])
    };
    let result = if compressed {
        let unpacked = flate2::bufread::MultiGzDecoder::new(reader);
        oom::read(BufReader::with_capacity(1 << 20, unpacked))
    } else {
        oom::read(reader)
    };
    result.map_err(|e| Error::io(file, e))
}

/// The first text of a folder that shows a failure.
fn text_beside(folder: &Path) -> Result<OomText> {
    let sources = Sources::open(&[folder.to_path_buf()])?;
    let texts = sources.files.iter().filter(|f| {
        f.kind == FileKind::Text
            && f.bytes.len() <= MAX_TEXT_BESIDE
            && !f.file_name().ends_with(".flagfile")
            && !f.file_name().ends_with(".json")
    });
    for f in texts {
        let text = oom::read(&f.bytes[..]).map_err(|e| Error::io(&f.path, e))?;
        if text.has_oom() {
            return Ok(text);
        }
    }
    Err(Error::missing(
        format!(
            "{}: no text with an out-of-memory failure in this folder",
            folder.display()
        ),
        "give the log: xpeak triage LOG --with DIR; or rank the dump itself: xpeak DIR",
    ))
}

pub(crate) fn explain(topic: Option<&str>) -> Result<u8> {
    match triage::explain(topic) {
        Some(text) => {
            sink::print(text.as_bytes())?;
            Ok(0)
        }
        None => Err(Error::usage(
            format!("explain {}: no such topic", topic.unwrap_or_default()),
            match triage::suggest(topic.unwrap_or_default()).join(", ") {
                near if near.is_empty() => "`xpeak explain` lists the topics".to_owned(),
                near => format!("close to it: {near}; `xpeak explain` lists all topics"),
            },
        )),
    }
}

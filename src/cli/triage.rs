//! `xpeak triage` and `xpeak explain`.

use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{terminal_width, ColorChoice, TriageArgs};
use super::{output, sink};
use crate::error::{Error, Result};
use crate::oom::{self, Kind, OomText};
use crate::render::{documents, render_terminal};
use crate::report::{load, Options};
use crate::source::FileKind;
use crate::source::Sources;
use crate::triage::{self, FromDump, Joined, JoinedShapes, Topic, TriageReport};

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
    let dump = match with.is_empty() {
        true => None,
        false => from_dump(&report, &with, &args)?,
    };
    let beside = dump.as_ref().map(|(at, dump)| dump.beside(&report, *at));
    let shown = beside.as_ref().unwrap_or(&report);
    output::answer(
        &args.answer,
        || as_json(&report, dump.as_ref()),
        || documents::triage(shown, dump.as_ref().map(|d| &d.1)),
        || documents::groups(&report),
    )?;
    Ok(if report.reports.is_empty() { 3 } else { 0 })
}

/// What the dump adds, and to which report.
type Found = (usize, FromDump);

fn as_json(report: &TriageReport, dump: Option<&Found>) -> Result<String> {
    let mut reports = Vec::new();
    for r in &report.reports {
        let value = serde_json::to_value(r);
        reports.push(value.map_err(|e| Error::output(Path::new("<json>"), e.into()))?);
    }
    if reports.is_empty() {
        // Programs that read the JSON find one report in any case.
        reports.push(serde_json::json!({"kind": "none", "oom": false, "scenario": null}));
    }
    let (joined, joined_shapes) = match dump {
        Some((_, FromDump::Joined(joined))) => (Some(&**joined), None),
        Some((_, FromDump::Shapes(shapes))) => (None, Some(&**shapes)),
        None => (None, None),
    };
    output::json(&Output {
        schema_version: report.schema_version,
        reports,
        joined,
        joined_shapes,
    })
}

fn from_dump(report: &TriageReport, with: &[PathBuf], args: &TriageArgs) -> Result<Option<Found>> {
    let Some(at) = triage::compile_failure(report) else {
        let first = report.reports.first();
        let scoped = first.is_some_and(|t| t.report.kind == Kind::TpuScopedVmem);
        sink::complain(if scoped {
            "note: a dump says nothing more about scoped VMEM"
        } else {
            "warning: the text has no compile-time failure to join with the dump"
        });
        return Ok(None);
    };
    let failure = &report.reports[at].report;
    let options = Options {
        capacity_bytes: failure.limit_bytes,
        ..Options::default()
    };
    let sources = Sources::open(with)?;
    let loaded = load(&sources, &options)?;
    sink::warn(&loaded.diagnostics, args.answer.quiet);
    let found = FromDump::of(failure, &loaded, &options);
    if found.is_none() {
        sink::complain("warning: no module of the dump has buffer assignment; nothing to join");
    }
    Ok(found.map(|dump| (at, dump)))
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
    let document = match topic {
        None => documents::topic_list(),
        Some(topic) => documents::explanation(&explained(topic)?),
    };
    let text = render_terminal(&document, terminal_width(), ColorChoice::Auto.style());
    sink::print(text.as_bytes())?;
    Ok(0)
}

fn explained(topic: &str) -> Result<Vec<Topic>> {
    match triage::explain(topic) {
        found if !found.is_empty() => Ok(found),
        _ => Err(Error::usage(
            format!("explain {topic}: no such topic"),
            match triage::suggest(topic).join(", ") {
                near if near.is_empty() => "`xpeak explain` lists the topics".to_owned(),
                near => format!("close to it: {near}; `xpeak explain` lists all topics"),
            },
        )),
    }
}

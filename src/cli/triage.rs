//! `xpeak triage` and `xpeak explain`.

use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{terminal_width, TriageArgs, TriageFormat};
use super::{output, sink};
use crate::decode::FileKind;
use crate::error::{Error, Result};
use crate::oom::{self, OomReport, TriageReport};
use crate::report::{join, load, render_joined, render_joined_markdown, Joined, Options};
use crate::source::Sources;

/// Text files beside a dump that are larger than this are not looked into.
const MAX_TEXT_BESIDE: usize = 64 << 20;

#[derive(Serialize)]
struct Output<'o> {
    schema_version: u32,
    reports: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined: Option<&'o Joined>,
}

pub(super) fn triage(args: TriageArgs) -> Result<u8> {
    let mut with = args.with.clone();
    let report = read(&args.file, &mut with)?;
    let joined = match report.reports.iter().find(|r| is_compile_time(r)) {
        Some(r) if !with.is_empty() => joined(r, &with, &args)?,
        _ if with.is_empty() => None,
        _ => {
            sink::complain("warning: the text has no compile-time failure to join with the dump");
            None
        }
    };
    let text = match args.format {
        Some(TriageFormat::Json) => as_json(&report, joined.as_ref())?,
        Some(TriageFormat::Md) => {
            let more = joined
                .as_ref()
                .map(render_joined_markdown)
                .unwrap_or_default();
            format!("{}{more}", oom::markdown::render(&report))
        }
        _ => as_text(&report, joined.as_ref(), &args),
    };
    sink::print(text.as_bytes())?;
    Ok(if report.reports.is_empty() { 3 } else { 0 })
}

fn as_text(report: &TriageReport, joined: Option<&Joined>, args: &TriageArgs) -> String {
    let Some(joined) = joined else {
        return oom::text::render(report);
    };
    // The dump's steps replace those that the text alone suggests.
    let mut bare = report.clone();
    if let Some(r) = bare.reports.first_mut() {
        r.advice.clear();
        r.scenario = r.scenario.filter(|s| *s != oom::Scenario::Undetermined);
    }
    let text = oom::text::render(&bare);
    format!(
        "{text}\n{}",
        render_joined(joined, terminal_width(), args.color.style())
    )
}

fn as_json(report: &TriageReport, joined: Option<&Joined>) -> Result<String> {
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
        joined,
    })
}

/// Whether a failure is of a program's compilation, so that a dump can say more.
fn is_compile_time(r: &OomReport) -> bool {
    use crate::oom::Kind;
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

fn joined(r: &OomReport, with: &[PathBuf], args: &TriageArgs) -> Result<Option<Joined>> {
    let options = Options {
        capacity_bytes: r.limit_bytes,
        ..Options::default()
    };
    let sources = Sources::open(with)?;
    let loaded = load(&sources, &options)?;
    super::run::warn(&loaded.diagnostics, args.quiet);
    let found = join(r, &loaded, &options);
    if found.is_none() {
        sink::complain("warning: no module of the dump has buffer assignment; nothing to join");
    }
    Ok(found)
}

/// Reads the text; a folder is searched for one, and then is the dump to join with.
fn read(file: &Path, with: &mut Vec<PathBuf>) -> Result<TriageReport> {
    if file == Path::new("-") {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            sink::complain("reading standard input; end it with Ctrl-D");
        }
        return oom::triage_reader(stdin.lock()).map_err(|e| Error::io("<stdin>", e));
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
        oom::triage_reader(BufReader::with_capacity(1 << 20, unpacked))
    } else {
        oom::triage_reader(reader)
    };
    result.map_err(|e| Error::io(file, e))
}

/// The first text of a folder that shows a failure.
fn text_beside(folder: &Path) -> Result<TriageReport> {
    let sources = Sources::open(&[folder.to_path_buf()])?;
    let texts = sources.files.iter().filter(|f| {
        f.kind == FileKind::Text
            && f.bytes.len() <= MAX_TEXT_BESIDE
            && !f.file_name().ends_with(".flagfile")
            && !f.file_name().ends_with(".json")
    });
    for f in texts {
        let report = oom::triage_reader(&f.bytes[..]).map_err(|e| Error::io(&f.path, e))?;
        if report.has_oom() {
            return Ok(report);
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

pub(super) fn explain(topic: Option<&str>) -> Result<u8> {
    match crate::advise::explain(topic) {
        Some(text) => {
            sink::print(text.as_bytes())?;
            Ok(0)
        }
        None => Err(Error::usage(
            format!("explain {}: no such topic", topic.unwrap_or_default()),
            "`xpeak explain` lists the topics",
        )),
    }
}

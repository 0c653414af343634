//! How answers are printed, and the `report` command: which files, in which formats.

use std::path::Path;

use super::args::{terminal_width, AnswerArgs, Format, ReportArgs};
use super::sink;
use super::sink::{warn, Target};
use crate::error::{Error, Result};
use crate::render::documents::{self, Audience, ReportDocument};
use crate::render::{render_csv, render_html, render_markdown, render_terminal, Style};
use crate::render::{Block, Document, Table};
use crate::report::{load, Loaded, Options, Report};
use crate::source::Sources;

/// Prints an answer in the format asked for.
pub(crate) fn answer(
    args: &AnswerArgs,
    json: impl FnOnce() -> Result<String>,
    document: impl FnOnce() -> Document,
    table: impl FnOnce() -> Table,
) -> Result<()> {
    let bytes = match args.format {
        Format::Json => json()?.into_bytes(),
        Format::Csv => render_csv(&table()),
        Format::Md => render_markdown(&document()).into_bytes(),
        Format::Html => render_html(&document()).into_bytes(),
        Format::Text => {
            render_terminal(&document(), terminal_width(), args.color.style()).into_bytes()
        }
    };
    sink::print(&bytes)
}

pub(crate) fn report(args: ReportArgs) -> Result<u8> {
    let mut options = args.input.options()?;
    options.timeline = args.timeline;
    match args.format {
        Some(format) => one_format(&args, &options, format),
        None => folder(&args, &options),
    }
}

fn one_format(args: &ReportArgs, options: &Options, format: Format) -> Result<u8> {
    let to_stdout = args.output == Path::new("-");
    let target = if to_stdout {
        None
    } else {
        Some(Target::new(&args.output, args.force)?)
    };
    let sources = Sources::open(&args.input.paths)?;
    let loaded = load(&sources, options)?;
    let report = loaded.report(options);
    warn(&report.diagnostics, args.print.quiet);
    let bytes = render(args, options, &loaded, &report, format, &[])?;
    match target {
        None => sink::print(&bytes)?,
        Some(target) => {
            target.write(&bytes)?;
            wrote(&target, args.print.quiet);
        }
    }
    Ok(0)
}

fn wrote(target: &Target, quiet: bool) {
    if !quiet {
        sink::complain(&format!("Wrote {}", target.path().display()));
    }
}

fn render(
    args: &ReportArgs,
    options: &Options,
    loaded: &Loaded<'_>,
    report: &Report,
    format: Format,
    pictures: &[(String, String)],
) -> Result<Vec<u8>> {
    let document = |pictures: Vec<Block>| {
        documents::report(
            report,
            &ReportDocument {
                audience: Audience::Ticket,
                top: args.print.top,
                color: options.space.0,
                timeline: Vec::new(),
                pictures,
                command: command_line(args),
            },
        )
    };
    let files = || {
        let block = |(file, caption): &(String, String)| Block::Picture {
            file: file.clone(),
            caption: caption.clone(),
        };
        pictures.iter().map(block).collect()
    };
    Ok(match format {
        Format::Json => json(report)?.into_bytes(),
        Format::Csv => render_csv(&documents::buffers(report)),
        Format::Md => render_markdown(&document(files())).into_bytes(),
        Format::Text => render_terminal(&document(Vec::new()), 80, Style::default()).into_bytes(),
        Format::Html => {
            let drawn = svgs(loaded, options, report)?.into_iter();
            let drawings = drawn.map(|(caption, svg)| Block::Drawing { svg, caption });
            render_html(&document(drawings.collect())).into_bytes()
        }
    })
}

/// What a reader types to get the same report; only the file names of paths, which may be private.
fn command_line(args: &ReportArgs) -> String {
    let name = |p: &std::path::PathBuf| {
        p.file_name().map_or_else(
            || p.display().to_string(),
            |n| n.to_string_lossy().into_owned(),
        )
    };
    let paths: Vec<String> = args.input.paths.iter().map(name).collect();
    let mut out = format!("xpeak report {}", paths.join(" "));
    if let Some(m) = &args.input.module {
        out.push_str(&format!(" --module {m}"));
    }
    if args.input.space != "HBM" {
        out.push_str(&format!(" --space {}", args.input.space));
    }
    if let Some(hbm) = &args.input.hbm {
        out.push_str(&format!(" --hbm {hbm}"));
    }
    out
}

/// Pretty JSON with a newline at its end.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::output(Path::new("<json>"), e.into()))?;
    text.push('\n');
    Ok(text)
}

fn folder(args: &ReportArgs, options: &Options) -> Result<u8> {
    if args.output == Path::new("-") {
        return Err(Error::usage(
            "-o -: a folder of files cannot go to standard output",
            "add --format json, md, html or csv",
        ));
    }
    let place = |name: &str| Target::new(&args.output.join(name), args.force);
    let text_targets = [
        (Format::Md, place("report.md")?),
        (Format::Json, place("report.json")?),
        (Format::Html, place("report.html")?),
        (Format::Csv, place("report.csv")?),
    ];
    let sources = Sources::open(&args.input.paths)?;
    let loaded = load(&sources, options)?;
    let report = loaded.report(options);
    warn(&report.diagnostics, args.print.quiet);
    let pictures = pictures(args, options, &loaded, &report)?;
    let shown: Vec<(String, String)> = pictures
        .iter()
        .filter(|(name, _, _)| name == "report.png")
        .map(|(name, caption, _)| (name.clone(), caption.clone()))
        .collect();
    let mut targets = Vec::new();
    for (name, _, bytes) in pictures {
        targets.push((place(&name)?, bytes));
    }
    for (format, target) in text_targets {
        targets.push((
            target,
            render(args, options, &loaded, &report, format, &shown)?,
        ));
    }
    for (target, bytes) in targets {
        target.write(&bytes)?;
        wrote(&target, args.print.quiet);
    }
    Ok(0)
}

#[cfg(feature = "charts")]
use super::pictures::{pictures, svgs};

#[cfg(not(feature = "charts"))]
fn pictures(
    _: &ReportArgs,
    _: &Options,
    _: &Loaded<'_>,
    _: &Report,
) -> Result<Vec<(String, String, Vec<u8>)>> {
    Ok(Vec::new())
}

#[cfg(not(feature = "charts"))]
fn svgs(_: &Loaded<'_>, _: &Options, _: &Report) -> Result<Vec<(String, String)>> {
    Ok(Vec::new())
}

//! The `report` command: which files, in which formats; and the listing of `ls`.

use std::path::Path;

use super::args::{Format, ReportArgs};
use super::sink;
use super::sink::{warn, Target};
use crate::error::{Error, Result};
use crate::render::terminal::{wrap, Style};
use crate::render::{clean, elide, render_csv, render_html, render_markdown, MarkdownOptions};
use crate::report::{load, Inventory, Loaded, Options, Report};
use crate::source::Sources;
use crate::units;

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
    let color = options.space.0;
    Ok(match format {
        Format::Json => json(report)?.into_bytes(),
        Format::Csv => render_csv(report),
        Format::Md => render_markdown(
            report,
            &MarkdownOptions {
                top: args.print.top,
                color,
                command: command_line(args),
                pictures: pictures.to_vec(),
            },
        )
        .into_bytes(),
        Format::Html => render_html(
            report,
            color,
            args.print.top,
            &svgs(loaded, options, report)?,
        )
        .into_bytes(),
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

/// The listing of `ls`.
pub(crate) fn ls_text(found: &Inventory, width: usize, style: Style) -> String {
    let mut out = String::new();
    let mut silent = 0usize;
    for f in &found.files {
        // A dump folder holds many small files that say nothing about memory.
        let dull = f.modules.is_empty()
            && f.answers.is_empty()
            && f.cannot
                .iter()
                .all(|c| c.starts_with("a part of a dump") || c.starts_with("not a"));
        if dull && found.files.len() > 1 {
            silent += 1;
            continue;
        }
        out.push_str(&style.bold(&clean(&f.path)));
        out.push('\n');
        let mut facts = vec![f.kind.to_owned(), units::bytes(f.size_bytes)];
        facts.extend(f.run.as_ref().map(|r| format!("run {}", clean(r))));
        facts.extend(f.host.as_ref().map(|h| format!("host {}", clean(h))));
        facts.extend(f.devices.as_ref().map(|d| clean(d)));
        for line in wrap(&facts.join(" · "), width.saturating_sub(2)) {
            out.push_str(&format!("  {}\n", style.dim(&line)));
        }
        let mut modules: Vec<_> = f.modules.iter().collect();
        modules.sort_by(|a, b| (b.peak_bytes, &a.name).cmp(&(a.peak_bytes, &b.name)));
        for m in modules {
            let peak = match (m.peak_bytes, &m.error) {
                (_, Some(_)) => "damaged".to_owned(),
                (Some(p), _) => format!("peak {}", units::bytes(p)),
                (None, _) => "no assignment".to_owned(),
            };
            let count = format!("{} instructions", units::count(m.instruction_count as u64));
            let name = match m.program_id {
                Some(id) => format!("{}({id})", m.name),
                None => m.name.clone(),
            };
            let room = width.saturating_sub(42).max(12);
            out.push_str(&format!(
                "  {peak:>16} {count:>21}  {}\n",
                elide(&clean(&name), room)
            ));
            if let Some(e) = &m.error {
                for line in wrap(&clean(e), width.saturating_sub(6)) {
                    out.push_str(&format!("      {}\n", style.yellow(&line)));
                }
            }
        }
        for (mark, texts) in [("+", &f.answers), ("-", &f.cannot)] {
            for text in texts {
                for (i, line) in wrap(&clean(text), width.saturating_sub(4))
                    .iter()
                    .enumerate()
                {
                    let lead = if i == 0 { mark } else { " " };
                    let line = format!("  {lead} {line}\n");
                    out.push_str(&if mark == "+" {
                        style.green(&line)
                    } else {
                        style.yellow(&line)
                    });
                }
            }
        }
    }
    if silent > 0 {
        out.push_str(&style.dim(&format!("{silent} other files say nothing about memory\n")));
    }
    out
}

//! One short function per subcommand.

use super::args::{terminal_width, Cli, Command, LsArgs, SummaryArgs};
use super::{output, sink};
use crate::error::{Error, Result};
use crate::render::documents::{self, Audience, ReportDocument};
use crate::render::render_terminal;
use crate::report::{inventory, load, Detail};
use crate::source::Sources;

/// Runs a command; the process's exit code.
pub(crate) fn run(cli: Cli) -> Result<u8> {
    match cli.command {
        None => summary(cli.summary),
        Some(Command::Summary(args)) => summary(args),
        Some(Command::Report(args)) => output::report(args),
        Some(Command::Ls(args)) => ls(args),
        Some(Command::Triage(args)) => super::triage::run(args),
        Some(Command::Whatif(args)) => super::whatif::whatif(args),
        Some(Command::Plan(args)) => super::whatif::plan(args),
        Some(Command::Compile(args)) => super::compile::run(args),
        Some(Command::Fits(args)) => super::compile_many::fits(args),
        Some(Command::Flags(args)) => super::compile_many::flags(args),
        Some(Command::Explain { topic }) => super::triage::explain(topic.as_deref()),
        Some(Command::Completions(args)) => completions(args.shell),
        Some(Command::Man) => man(),
    }
}

fn summary(args: SummaryArgs) -> Result<u8> {
    let mut options = args.input.options()?;
    options.detail = Detail::FirstModule;
    let sources = Sources::open(&args.input.paths)?;
    let loaded = load(&sources, &options)?;
    let report = loaded.report(&options);
    sink::warn(&report.diagnostics, args.print.quiet);
    let first = loaded.modules.first().and_then(|m| m.analysis.as_ref());
    let timeline = first.map(|a| a.usage.timeline()).unwrap_or_default();
    let document = documents::report(
        &report,
        &ReportDocument {
            audience: Audience::Screen,
            top: args.print.top,
            color: options.space.0,
            timeline,
            pictures: Vec::new(),
            command: String::new(),
        },
    );
    let text = render_terminal(&document, terminal_width(), args.print.color.style());
    sink::print(text.as_bytes())?;
    Ok(0)
}

fn ls(args: LsArgs) -> Result<u8> {
    let sources = Sources::open(&args.paths)?;
    let found = inventory(&sources);
    output::answer(
        &args.answer,
        || output::json(&found),
        || documents::inventory(&found),
        || documents::modules_of_files(&found),
    )?;
    let usable = found.files.iter().any(|f| !f.answers.is_empty());
    if usable {
        Ok(0)
    } else {
        Err(Error::missing("nothing here that xpeak can read", ""))
    }
}

fn completions(shell: clap_complete::Shell) -> Result<u8> {
    let mut out = Vec::new();
    let mut command = <Cli as clap::CommandFactory>::command();
    clap_complete::generate(shell, &mut command, "xpeak", &mut out);
    sink::print(&out)?;
    Ok(0)
}

fn man() -> Result<u8> {
    let mut out = Vec::new();
    let command = <Cli as clap::CommandFactory>::command();
    clap_mangen::Man::new(command)
        .render(&mut out)
        .map_err(|e| Error::output(std::path::Path::new("<stdout>"), e))?;
    sink::print(&out)?;
    Ok(0)
}

//! Arguments, and what library options they mean.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::edit_args::EditArgs;

use crate::error::{Error, Result};
use crate::hlo::MemorySpace;
use crate::render::Style;
use crate::report::Options;
use crate::source::Select;
use crate::units;

/// What fills TPU and GPU memory at the peak of a JAX/XLA program, why, and what to change.
#[derive(Debug, Parser)]
#[command(name = "xpeak", version, args_conflicts_with_subcommands = true)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// What to do; without it, `summary`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Arguments of `summary`.
    #[command(flatten)]
    pub summary: SummaryArgs,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ranked report of the peak on the terminal
    Summary(SummaryArgs),
    /// Pictures, Markdown, JSON, CSV and a page to attach to a ticket
    Report(ReportArgs),
    /// What is in a path: runs, hosts, modules, and what each file can and cannot answer
    Ls(LsArgs),
    /// Read out-of-memory text: what ran out, what is largest, what to do next
    Triage(TriageArgs),
    /// What a change would save: the schedule replayed and packed again with the edit
    Whatif(WhatIfArgs),
    /// The least risky set of changes that fits
    Plan(PlanArgs),
    /// The program compiled again from its dump by your own compiler, without a device
    Compile(CompileArgs),
    /// Whether the program fits other chips: compiled for each
    Fits(FitsArgs),
    /// What each memory flag of the compiler does to this program: compiled with each
    Flags(FlagsArgs),
    /// Terms, findings, interventions and flags, offline
    Explain {
        /// What to explain [default: list the topics]
        topic: Option<String>,
    },
    /// Shell completions
    Completions(CompletionsArgs),
    /// The manual page, in roff
    Man,
}

/// What to read.
#[derive(Debug, Args, Clone)]
pub struct InputArgs {
    /// Log directories, XPlane files, HLO protos, XLA dump directories; also gzip-compressed
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Run of a log directory [default: the newest]
    #[arg(long)]
    pub run: Option<String>,
    /// Host of the run [default: all]
    #[arg(long)]
    pub host: Option<String>,
    /// Module, by name, part of it, or program id [default: the one with the largest peak]
    #[arg(long)]
    pub module: Option<String>,
    /// Memory space, by name or colour
    #[arg(long, default_value = "HBM", value_name = "SPACE")]
    pub space: String,
    /// Memory of the device, such as 15.75GiB [default: by the device in the profile]
    #[arg(long, value_name = "SIZE")]
    pub hbm: Option<String>,
}

/// How to print.
#[derive(Debug, Args, Clone)]
pub struct PrintArgs {
    /// Rows of each ranking
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub top: usize,
    /// Colours
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// No warnings and no progress on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Arguments of `summary`.
#[derive(Debug, Args, Clone)]
pub struct SummaryArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// How to print.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// The documented schema, for machines.
    Json,
    /// GitHub-flavoured Markdown, for a ticket.
    Md,
    /// One page that loads nothing.
    Html,
    /// Rows for a spreadsheet; sizes in bytes.
    Csv,
}

/// How to print an answer.
#[derive(Debug, Args, Clone)]
pub struct AnswerArgs {
    /// How to show the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Colours
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// No warnings on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args, Clone)]
pub struct ReportArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// How to print.
    #[command(flatten)]
    pub print: PrintArgs,
    /// Folder to write to; with --format, the file, or - for standard output
    #[arg(long, short, value_name = "DIR|FILE")]
    pub output: PathBuf,
    /// One format instead of a folder of everything
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Also every chart as SVG
    #[arg(long)]
    pub svg: bool,
    /// Memory at every program point in the JSON
    #[arg(long)]
    pub timeline: bool,
    /// Overwrite files that exist
    #[arg(long, short)]
    pub force: bool,
}

/// Arguments of `ls`.
#[derive(Debug, Args, Clone)]
pub struct LsArgs {
    /// Files and folders
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Arguments of `triage`.
#[derive(Debug, Args, Clone)]
pub struct TriageArgs {
    /// The text: a file, - for standard input, or a dump folder that holds it
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Dump or profile of the same program
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Arguments of `whatif`. SELECTOR is `all`, an argument's name, part of an operation path, an
/// opcode, a shape, a source line, or a finding (`donation:1`).
#[derive(Debug, Args, Clone)]
pub struct WhatIfArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// What to change.
    #[command(flatten)]
    pub edits: EditArgs,
    /// Whether to ask the compiler.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Folder for whatif.png, the two timelines
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long, short)]
    pub force: bool,
    /// How to print.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Arguments of `plan`.
#[derive(Debug, Args, Clone)]
pub struct PlanArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Memory to fit into [default: the device's]
    #[arg(long, value_name = "SIZE")]
    pub fit: Option<String>,
    /// Memory to leave free [default: a hundredth to a tenth, by how sure the figures are]
    #[arg(long, value_name = "SIZE")]
    pub reserve: Option<String>,
    /// How to print.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Which compiler, and within what.
#[derive(Debug, Args, Clone)]
pub struct CompilerArgs {
    /// The compiler: libtpu.so, or a Python environment that has it
    /// [default: XPEAK_COMPILER, else the active Python environment's]
    #[arg(long, value_name = "PATH")]
    pub compiler: Option<PathBuf>,
    /// Compile again what was compiled before
    #[arg(long)]
    pub no_cache: bool,
    /// Seconds that one compile may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Memory of this machine that one compile may take [default: nine tenths of what is free]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Compiles at once [default: by processors and memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

/// Arguments of `compile`.
#[derive(Debug, Args, Clone)]
pub struct CompileArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// The compiler.
    #[command(flatten)]
    pub compiler: CompilerArgs,
    /// Chip and shape, v6e:2x2, or the chip alone [default: the dump's]
    #[arg(long, value_name = "TOPOLOGY")]
    pub topology: Option<String>,
    /// A compiler flag and its value, as often as wanted
    #[arg(long, value_name = "NAME=VALUE")]
    pub flag: Vec<String>,
    /// Folder to keep the compiler's whole dump in
    #[arg(long, value_name = "DIR")]
    pub keep_dump: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Arguments of `fits`.
#[derive(Debug, Args, Clone)]
pub struct FitsArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Chips and shapes to compile for
    #[arg(
        long,
        value_name = "TOPOLOGY,...",
        required = true,
        value_delimiter = ','
    )]
    pub on: Vec<String>,
    /// The compiler.
    #[command(flatten)]
    pub compiler: CompilerArgs,
    /// How to print.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Arguments of `flags`.
#[derive(Debug, Args, Clone)]
pub struct FlagsArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// The compiler.
    #[command(flatten)]
    pub compiler: CompilerArgs,
    /// Chip and shape, v6e:2x2, or the chip alone [default: the dump's]
    #[arg(long, value_name = "TOPOLOGY")]
    pub topology: Option<String>,
    /// How to print.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// Whether and how the compiler is asked.
#[derive(Debug, Args, Clone)]
pub struct MeasureArgs {
    /// Make the changes in the dump's unoptimised module and compile it: a measured figure
    #[arg(long)]
    pub compile: bool,
    /// With --compile: chip and shape, v6e:2x2, or the chip alone [default: the dump's]
    #[arg(long, value_name = "TOPOLOGY", requires = "compile")]
    pub topology: Option<String>,
    /// With --compile: a compiler flag and its value
    #[arg(long, value_name = "NAME=VALUE", requires = "compile")]
    pub flag: Vec<String>,
    /// With --compile: folder to keep the compiler's whole dump in
    #[arg(long, value_name = "DIR", requires = "compile")]
    pub keep_dump: Option<PathBuf>,
    /// The compiler.
    #[command(flatten)]
    pub compiler: CompilerArgs,
}

/// Arguments of `completions`.
#[derive(Debug, Args, Clone)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

impl InputArgs {
    /// The library's options.
    pub fn options(&self) -> Result<Options> {
        let space = MemorySpace::parse(&self.space).ok_or_else(|| {
            Error::usage(
                format!("--space {}: not a memory space", self.space),
                "HBM, VMEM, SMEM, SFLAG, CMEM, host, or a colour number",
            )
        })?;
        let mut options = Options {
            select: Select {
                run: self.run.clone(),
                host: self.host.clone(),
            },
            module: self.module.clone(),
            space,
            ..Options::default()
        };
        if let Some(text) = &self.hbm {
            options.capacity_bytes = Some(size("--hbm", text)?);
        }
        Ok(options)
    }
}

/// Reads a size given to a flag.
pub fn size(flag: &str, text: &str) -> Result<u64> {
    units::parse_size(text).filter(|&n| n > 0).ok_or_else(|| {
        Error::usage(
            format!("{flag} {text}: not a size"),
            "sizes look like 15.75GiB, 512MiB, 16G",
        )
    })
}

impl ColorChoice {
    /// Whether standard output gets escape sequences.
    pub fn style(self) -> Style {
        let color = match self {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
                    && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            }
        };
        Style { color }
    }
}

/// Columns of the terminal: its own width, or COLUMNS, or 80; at least 40.
pub fn terminal_width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let real = terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
    asked.or(real).unwrap_or(80).clamp(40, 240)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_bare_path_means_summary() {
        let cli = Cli::try_parse_from(["xpeak", "some/dir", "--top", "3"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(
            (cli.summary.input.paths.len(), cli.summary.print.top),
            (1, 3)
        );
    }

    #[test]
    fn defaults_are_the_librarys() {
        let cli = Cli::try_parse_from(["xpeak", "x"]).unwrap();
        let options = cli.summary.input.options().unwrap();
        let default = Options::default();
        assert_eq!(options.space, default.space);
        assert_eq!(options.capacity_bytes, default.capacity_bytes);
        assert_eq!(options.timeline, default.timeline);
    }

    #[test]
    fn bad_sizes_name_the_flag() {
        let e = size("--hbm", "lots").unwrap_err();
        assert_eq!(e.exit_code(), 2);
        assert!(e.to_string().contains("--hbm lots"));
    }
}

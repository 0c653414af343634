//! The command line: the only part that prints, writes files and ends the process.
//!
//! In: arguments. Out: bytes and an exit code. May use: every room.

mod args;
mod compile;
mod compile_many;
mod compile_whatif;
mod edit_args;
mod output;
#[cfg(feature = "charts")]
mod pictures;
mod run;
mod sink;
mod triage;
mod whatif;

use std::process::ExitCode;

use clap::Parser;

use crate::error::Error;

use args::Cli;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    if let Some(code) = crate::compiler::child_main() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are asked for; anything else is a usage error.
            let code = if e.use_stderr() { 2 } else { 0 };
            return match e.print() {
                Err(e) if code == 0 && e.kind() != std::io::ErrorKind::BrokenPipe => {
                    let e = Error::output(std::path::Path::new("<stdout>"), e);
                    sink::complain(&format!("error: {e}"));
                    ExitCode::from(e.exit_code())
                }
                _ => ExitCode::from(code),
            };
        }
    };
    match run::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            let code = e.exit_code();
            if !e.is_closed_pipe() {
                sink::complain(&format!("error: {e}"));
                if let Some(hint) = e.hint() {
                    sink::complain(&format!("hint: {hint}"));
                }
                return ExitCode::from(code);
            }
            ExitCode::SUCCESS
        }
    }
}

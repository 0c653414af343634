//! The child process: loads the compiler, compiles one job, writes the answer beside it.
//!
//! In: a job's folder. Out: files in it. It ends when its parent does: standard input is a pipe
//! that the parent holds open, and on Linux the system ends it too.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::job::{file, read_json, write_json, Answer, Job, TopologyAnswer};
use super::pjrt::{Compiler, LoadError};

/// First argument of the child.
pub(crate) const COMMAND: &str = "__compile";

/// Runs the process as a compiler's child if its arguments say that it is one. A program that uses
/// [`compile`](super::compile()) calls this before anything else; `None` means to go on as usual.
pub fn child_main() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != *COMMAND {
        return None;
    }
    let folder = PathBuf::from(args.next()?);
    end_with_the_parent();
    Some(match run(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn end_with_the_parent() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    std::thread::spawn(|| {
        // Nothing is ever written to it; its end means that the parent is gone.
        let mut nothing = [0u8; 64];
        while matches!(std::io::stdin().read(&mut nothing), Ok(n) if n > 0) {}
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    });
}

fn run(folder: &Path) -> std::io::Result<()> {
    let at = |name: &str| folder.join(name);
    let job: Job = read_json(&at(file::JOB)).ok_or(std::io::ErrorKind::NotFound)?;
    let module = std::fs::read(at(file::MODULE))?;
    let options = std::fs::read(at(file::OPTIONS))?;
    let answer = answer(folder, &job, &module, &options);
    write_json(&at(file::ANSWER), &answer)
}

fn answer(folder: &Path, job: &Job, module: &[u8], options: &[u8]) -> Answer {
    let compiler = match Compiler::load(&job.library) {
        Ok(compiler) => compiler,
        Err(LoadError::NotALibrary(cause)) => return Answer::NotACompiler { cause },
        Err(LoadError::NotACompiler) => {
            let cause = "it has no GetPjrtApi".to_owned();
            return Answer::NotACompiler { cause };
        }
        Err(LoadError::Version { major, minor }) => return Answer::Version { major, minor },
        Err(LoadError::Initialize(e)) => {
            let cause = format!("it does not start: {}", e.message);
            return Answer::NotACompiler { cause };
        }
    };
    let topology = match compiler.topology(&job.topology) {
        Ok(topology) => topology,
        Err(e) => return Answer::Topology { message: e.message },
    };
    if topology.devices < job.devices {
        return Answer::DeviceCount {
            devices: topology.devices,
        };
    }
    let known = TopologyAnswer {
        device_kind: topology.device_kind.clone(),
        platform_version: topology.platform_version.clone(),
        interface: compiler.version,
    };
    if let Err(e) = write_json(&folder.join(file::TOPOLOGY), &known) {
        let message = format!("its folder cannot be written: {e}");
        return Answer::Refused { code: 13, message };
    }
    match compiler.compile(&topology, module, options) {
        Ok(()) => Answer::Compiled,
        Err(e) => Answer::Refused {
            code: e.code,
            message: e.message,
        },
    }
}

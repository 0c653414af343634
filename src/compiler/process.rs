//! The child from outside: started, watched, ended. Whatever happens, no process is left.
//!
//! In: a job's folder. Out: what came of it. The child is ended as soon as the dump says what there
//! is to know: code generation, the long part, comes after.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::child::COMMAND;
use super::dump::look;
use super::error::CompileError;
use super::job::{file, read_json, Answer, Verdict};

/// How often the dump is looked at.
const TICK: Duration = Duration::from_millis(10);
/// How long after a whole dump the compiler may still say that it does not fit.
const GRACE: Duration = Duration::from_secs(5);
/// Code of an error that says "out of memory".
const RESOURCE_EXHAUSTED: i32 = 8;
/// What the compiler wrote last, in an error.
const LAST_WORDS: usize = 600;

/// What may be spent on one compile, and who may stop it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits<'c> {
    pub(crate) time: Duration,
    pub(crate) memory_bytes: u64,
    pub(crate) cancel: &'c AtomicBool,
}

/// What came of a job.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) verdict: Verdict,
    /// The file in the dump.
    pub(crate) assigned: PathBuf,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Until it was whole.
    pub(crate) took: Duration,
}

/// A child that ends with its owner.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Its group too, should the compiler have started anything.
        if let Some(pid) = i32::try_from(self.0.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `program` on a job's folder. `module` is the name of the job's program.
pub(crate) fn run(
    program: &Path,
    folder: &Path,
    module: &str,
    limits: &Limits<'_>,
) -> Result<Finished, CompileError> {
    let started = Instant::now();
    let mut child = start(program, folder)?;
    let dump = folder.join(file::DUMP);
    let mut whole: Option<(PathBuf, Vec<u8>, Duration)> = None;
    loop {
        // In this order: what the child wrote before it ended is there once it has ended.
        let ended = child.0.try_wait().map_err(|e| files("watch", program, e))?;
        let state = look(&dump, module);
        if let Some((path, bytes)) = state.assigned.filter(|_| whole.is_none()) {
            whole = Some((path, bytes, started.elapsed()));
        }
        if let Some(status) = ended {
            return finished(folder, status, whole);
        }
        let waited = whole.as_ref().map(|w| started.elapsed() - w.2);
        if state.went_on || waited.is_some_and(|w| w > GRACE) {
            if let Some((assigned, bytes, took)) = whole.take() {
                return Ok(Finished {
                    verdict: Verdict::Fits,
                    assigned,
                    bytes,
                    took,
                });
            }
        }
        if limits.cancel.load(Ordering::Relaxed) {
            return Err(CompileError::Interrupted);
        }
        if started.elapsed() > limits.time {
            return Err(CompileError::TimedOut { after: limits.time });
        }
        let used_bytes = resident_bytes(child.0.id());
        if used_bytes > limits.memory_bytes {
            return Err(CompileError::HostMemory {
                used_bytes,
                limit_bytes: limits.memory_bytes,
            });
        }
        std::thread::sleep(TICK);
    }
}

fn start(program: &Path, folder: &Path) -> Result<Guard, CompileError> {
    let log = folder.join(file::LOG);
    let create = || File::create(&log).and_then(|f| Ok((f.try_clone()?, f)));
    let (out, err) = create().map_err(|e| files("write", &log, e))?;
    let mut command = Command::new(program);
    command
        .arg(COMMAND)
        .arg(folder)
        // Held open, and never written to: see the child.
        .stdin(Stdio::piped())
        .stdout(out)
        .stderr(err)
        .current_dir(folder)
        // A terminal's Ctrl-C is for us, who then end the child.
        .process_group(0);
    // No device, no metadata server, no lock on devices, no log files, and the same flags for all.
    for (name, value) in [
        ("TPU_SKIP_MDS_QUERY", "1"),
        ("TPU_WORKER_HOSTNAMES", "localhost"),
        ("TPU_WORKER_ID", "0"),
        ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),
        ("TPU_LOG_DIR", "disabled"),
    ] {
        command.env(name, value);
    }
    for name in ["XLA_FLAGS", "LIBTPU_INIT_ARGS", "TF_XLA_FLAGS"] {
        command.env_remove(name);
    }
    let child = command.spawn().map_err(|e| files("start", program, e))?;
    Ok(Guard(child))
}

fn finished(
    folder: &Path,
    status: ExitStatus,
    whole: Option<(PathBuf, Vec<u8>, Duration)>,
) -> Result<Finished, CompileError> {
    let verdict = match read_json::<Answer>(&folder.join(file::ANSWER)) {
        Some(Answer::Compiled) => Verdict::Fits,
        Some(Answer::Refused { code, message })
            if code == RESOURCE_EXHAUSTED && whole.is_some() =>
        {
            Verdict::OutOfMemory { message }
        }
        Some(answer) => return Err(refusal(answer, folder)),
        None => return Err(crash(status, folder)),
    };
    let Some((assigned, bytes, took)) = whole else {
        let cause = "no after_optimizations file with a buffer assignment".to_owned();
        return Err(CompileError::NoDump { cause });
    };
    Ok(Finished {
        verdict,
        assigned,
        bytes,
        took,
    })
}

fn refusal(answer: Answer, folder: &Path) -> CompileError {
    let job = read_json::<super::job::Job>(&folder.join(file::JOB));
    let (path, name, wanted) = match job {
        Some(job) => (job.library, job.topology, job.devices),
        None => Default::default(),
    };
    match answer {
        Answer::NotACompiler { cause } => CompileError::NotACompiler { path, cause },
        Answer::Version { major, minor } => CompileError::Version { path, major, minor },
        Answer::Topology { message } => CompileError::Topology { name, message },
        Answer::DeviceCount { devices } => CompileError::DeviceCount {
            name,
            devices,
            wanted,
        },
        Answer::Compiled => CompileError::NoDump {
            cause: "it says that it compiled".to_owned(),
        },
        Answer::Refused { message, .. } => CompileError::Refused {
            flag: is_about_a_flag(&message),
            message: message.trim().to_owned(),
        },
    }
}

/// Whether a refusal is of an option's name or value.
fn is_about_a_flag(message: &str) -> bool {
    let signs = [
        "No such compile option",
        "nrecognized flag",
        "flag option",
        "Failed to set option",
    ];
    signs.iter().any(|s| message.contains(s))
}

fn crash(status: ExitStatus, folder: &Path) -> CompileError {
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (_, Some(code)) => format!("exit code {code}"),
        _ => "unknown end".to_owned(),
    };
    CompileError::Crashed {
        how,
        last_words: last_words(&folder.join(file::LOG)),
    }
}

/// The end of the log, without control characters and what libtpu always says.
fn last_words(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let usual = |l: &&str| {
        let l = l.trim();
        !l.is_empty() && !l.contains("TPU_ACCELERATOR_TYPE") && !l.contains("absl::InitializeLog")
    };
    let lines: Vec<&str> = text.lines().filter(usual).collect();
    let clean: String = lines
        .join(" | ")
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    let from = clean.len().saturating_sub(LAST_WORDS);
    let from = (from..=clean.len()).find(|&i| clean.is_char_boundary(i));
    clean[from.unwrap_or(clean.len())..].to_owned()
}

/// Memory that a process has; 0 where the system does not tell.
fn resident_bytes(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Memory of this machine that is free for use; `None` where the system does not tell.
pub(crate) fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

fn files(what: &'static str, path: &Path, source: std::io::Error) -> CompileError {
    CompileError::Files {
        what,
        path: path.to_path_buf(),
        source,
    }
}

//! Why a compile gave no buffer assignment. Running out of device memory is none of these: it is an
//! answer.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;
use crate::units;

/// Each names what a user can do something about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// No compiler is installed where it was looked for.
    #[error("no TPU compiler (libtpu.so) found in {}", list(.looked_in))]
    NotFound {
        /// The places.
        looked_in: Vec<String>,
    },
    /// The file is no compiler.
    #[error("{}: not a compiler with the PJRT interface: {cause}", path.display())]
    NotACompiler {
        /// The library.
        path: PathBuf,
        /// The system's words, or ours.
        cause: String,
    },
    /// The compiler speaks a version of PJRT that xpeak does not.
    #[error("{}: speaks PJRT {major}.{minor}, and xpeak 0.54 or a later 0.x", path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// Its version.
        major: i32,
        /// And the part after the point.
        minor: i32,
    },
    /// The compiler knows no such devices.
    #[error("topology {name}: the compiler knows none of that name: {message}")]
    Topology {
        /// As asked for.
        name: String,
        /// The compiler's words.
        message: String,
    },
    /// The program needs more devices.
    #[error("topology {name} has {devices} devices, and the program is for {wanted}")]
    DeviceCount {
        /// As asked for.
        name: String,
        /// Devices it has.
        devices: usize,
        /// Devices the program is for.
        wanted: usize,
    },
    /// The compiler does not take the program or a flag.
    #[error("the compiler refuses: {message}")]
    Refused {
        /// The compiler's words.
        message: String,
        /// Whether it is a flag that it does not take.
        flag: bool,
    },
    /// The compiler's process came to a bad end.
    #[error("the compiler crashed ({how}){}", said(.last_words))]
    Crashed {
        /// The signal or exit code.
        how: String,
        /// The end of what it wrote.
        last_words: String,
    },
    /// It took too long.
    #[error("the compiler had assigned no memory after {} s", after.as_secs())]
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// It took too much of this machine's memory.
    #[error("the compiler took {} of this machine's memory, over the limit of {}",
        units::bytes(*used_bytes), units::bytes(*limit_bytes))]
    HostMemory {
        /// What it had when it was ended.
        used_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// It ended well and wrote no dump, or one that cannot be read.
    #[error("the compiler left no buffer assignment that xpeak can read: {cause}")]
    NoDump {
        /// What is there instead.
        cause: String,
    },
    /// A file of ours could not be written or read, or the process not started.
    #[error("cannot {what} {}: {source}", path.display())]
    Files {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

fn list(places: &[String]) -> String {
    places.join(", ")
}

fn said(last_words: &str) -> String {
    match last_words.is_empty() {
        true => String::new(),
        false => format!(": {last_words}"),
    }
}

impl CompileError {
    /// What to do about it; may be empty.
    pub fn hint(&self) -> &'static str {
        match self {
            CompileError::NotFound { .. } => {
                "pip install libtpu (any machine will do), or give one: --compiler PATH/libtpu.so"
            }
            CompileError::NotACompiler { .. } => {
                "give libtpu.so of the Python package libtpu: --compiler PATH/libtpu.so"
            }
            CompileError::Version { .. } => "pip install -U libtpu",
            CompileError::Topology { .. } => {
                "topologies look like v5e:2x2, v6e:2x4, v5p:2x2x1, v4:2x2x1, tpu7x:2x2x1"
            }
            CompileError::DeviceCount { .. } => {
                "give a topology with at least as many devices as the program's mesh has"
            }
            CompileError::TimedOut { .. } => "give it longer: --timeout SECONDS",
            CompileError::HostMemory { .. } => "give it more: --memory SIZE",
            CompileError::Crashed { .. } => "see what it wrote: --keep-dump DIR keeps its log",
            _ => "",
        }
    }
}

impl From<CompileError> for Error {
    fn from(e: CompileError) -> Error {
        let hint = e.hint();
        match e {
            CompileError::TimedOut { after } => Error::Limit {
                what: "seconds until the compiler had assigned memory".to_owned(),
                limit: after.as_secs(),
                got: after.as_secs() + 1,
            },
            CompileError::Topology { .. } | CompileError::DeviceCount { .. } => {
                Error::usage(e.to_string(), hint)
            }
            CompileError::Refused { flag: true, .. } => Error::usage(e.to_string(), hint),
            _ => Error::missing(e.to_string(), hint),
        }
    }
}

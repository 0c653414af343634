//! What parent and child tell each other: files in a folder, since a compiler writes to the standard
//! streams whatever it likes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// File names in a job's folder.
pub(crate) mod file {
    pub(crate) const JOB: &str = "job.json";
    pub(crate) const MODULE: &str = "module.pb";
    pub(crate) const OPTIONS: &str = "options.pb";
    pub(crate) const TOPOLOGY: &str = "topology.json";
    pub(crate) const ANSWER: &str = "answer.json";
    pub(crate) const LOG: &str = "log";
    pub(crate) const DUMP: &str = "dump";
}

/// What the child is to do. The program and its options stand beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) library: PathBuf,
    pub(crate) topology: String,
    /// Devices the program is for.
    pub(crate) devices: usize,
}

/// What the compiler says of the devices and itself, as soon as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TopologyAnswer {
    pub(crate) device_kind: String,
    pub(crate) platform_version: String,
    pub(crate) interface: (i32, i32),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Compiled,
    NotACompiler { cause: String },
    Version { major: i32, minor: i32 },
    Topology { message: String },
    DeviceCount { devices: usize },
    Refused { code: i32, message: String },
}

/// What the compiler says of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It fits the device.
    Fits,
    /// It does not.
    OutOfMemory {
        /// The compiler's words.
        message: String,
    },
}

/// Writes a file that is either not there or whole.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = path.with_extension("part");
    std::fs::write(&beside, bytes)?;
    std::fs::rename(&beside, path)
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> std::io::Result<()> {
    write_whole(path, &serde_json::to_vec(value)?)
}

/// `None` while it is not there.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

//! The library's error type, and [`Diagnostic`]s: what was wrong with input that could be used
//! all the same.

use std::fmt;
use std::path::{Path, PathBuf};

/// What went wrong; each variant names what a user can do something about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is of no kind that xpeak reads.
    #[error("{}: not a file xpeak reads: {saw}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What its bytes look like instead.
        saw: String,
    },
    /// A file is damaged.
    #[error("{}: damaged at byte {offset} in {field}: {cause}", path.display())]
    Decode {
        /// The file (and the program inside it, where there are several).
        path: PathBuf,
        /// Path of the field, outermost first.
        field: String,
        /// Byte offset within the (decompressed) file.
        offset: u64,
        /// What is wrong there.
        cause: String,
    },
    /// An input is larger than xpeak is willing to handle.
    #[error("{what}: {got} is over the limit of {limit}")]
    Limit {
        /// What was counted.
        what: String,
        /// The most that is accepted.
        limit: u64,
        /// What the input asks for.
        got: u64,
    },
    /// Nothing in the input answers the question.
    #[error("{what}")]
    Missing {
        /// What is not there, with the path.
        what: String,
        /// What to do about it; may be empty.
        hint: String,
    },
    /// An option names something that does not exist or makes no sense.
    #[error("{what}")]
    Usage {
        /// The option and value, and why it does not fit.
        what: String,
        /// What would fit; may be empty.
        hint: String,
    },
    /// Output could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// Result of the library's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A reading error of `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io {
            path: path.as_ref().to_path_buf(),
            source,
        }
    }

    /// A writing error of `path`.
    pub fn output(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Output {
            path: path.as_ref().to_path_buf(),
            source,
        }
    }

    /// Something absent, and what to do.
    pub fn missing(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Missing {
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// A bad option or argument.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Usage {
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// The hint that goes with the error, if any.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Missing { hint, .. } | Error::Usage { hint, .. } if !hint.is_empty() => {
                Some(hint)
            }
            _ => None,
        }
    }

    /// The process exit code the error maps to (2 usage, 3 input, 4 output).
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage { .. } => 2,
            Error::Output { .. } => 4,
            _ => 3,
        }
    }
}

/// How much a [`Diagnostic`] matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Part of the input is lost; what is shown is incomplete.
    Error,
    /// A figure may be affected.
    Warning,
    /// Worth knowing; nothing is affected.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// Something noticed about the input that did not stop the work.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// Stable short name, such as `unknown_buffer`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// The file it is about.
    pub path: Option<String>,
}

impl Diagnostic {
    /// A diagnostic that is not yet tied to a file.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            severity,
            code,
            message: message.into(),
            path: None,
        }
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// A note.
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message)
    }

    /// The same, about `path`.
    pub fn with_path(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().display().to_string());
        self
    }
}

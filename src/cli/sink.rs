//! Where output goes: standard output, a file, a folder. Files are written beside their place and
//! moved there, so that a failed run leaves nothing half-written; nothing is overwritten unasked.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Writes the report to standard output. A closed pipe is reported as such.
pub(super) fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|e| Error::output(Path::new("<stdout>"), e))
}

/// One line to standard error; a closed one is nobody's concern.
pub(super) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A file to be written; checked before the work starts.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
}

impl Target {
    /// Checks that `path` can be written: its folder exists (or is made), and no file is there
    /// unless `force` is given.
    pub(super) fn new(path: &Path, force: bool) -> Result<Target> {
        if path.is_dir() {
            return Err(Error::output(path, std::io::Error::other("it is a folder")));
        }
        if path.exists() && !force {
            return Err(Error::output(
                path,
                std::io::Error::new(ErrorKind::AlreadyExists, "it exists; --force overwrites it"),
            ));
        }
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(|e| Error::output(parent, e))?;
        }
        Ok(Target {
            path: path.to_path_buf(),
        })
    }

    /// Writes the file whole or not at all.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(format!(".{}.part", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let result = std::fs::write(&temporary, bytes)
            .and_then(|()| std::fs::rename(&temporary, &self.path));
        result.map_err(|e| {
            let _ = std::fs::remove_file(&temporary);
            Error::output(&self.path, e)
        })
    }

    /// Where it goes.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Error {
    /// Whether it says that nobody reads the output any more.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output { source, .. } if source.kind() == ErrorKind::BrokenPipe)
    }
}

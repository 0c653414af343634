//! Where output goes: standard output, a file, a folder. Files are written beside their place and
//! moved there, so that a failed run leaves nothing half-written; nothing is overwritten unasked.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Diagnostic, Error, Result, Severity};
use crate::render::clean;

/// Writes the report to standard output. A closed pipe is reported as such.
pub(crate) fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|e| Error::output(Path::new("<stdout>"), e))
}

/// One line to standard error; a closed one is nobody's concern.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", clean(line));
}

/// A place to write to; checked before the work starts.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A regular file at this path (links followed), to be put there whole.
    File(PathBuf),
    /// A pipe or a character device such as `/dev/stdout`: written to, never replaced.
    Stream,
}

impl Target {
    /// Checks that `path` can be written: its folder exists (or is made), and no file is there
    /// unless `force` is given.
    pub(crate) fn new(path: &Path, force: bool) -> Result<Target> {
        let refuse = |why| Err(Error::output(path, why));
        let place = match std::fs::metadata(path) {
            Ok(m) if m.is_dir() => return refuse(std::io::Error::other("it is a folder")),
            Ok(m) if is_stream(m.file_type()) => Place::Stream,
            Ok(m) if !m.is_file() => {
                return refuse(std::io::Error::other("it is not a regular file"));
            }
            Ok(_) if !force => {
                return refuse(std::io::Error::new(
                    ErrorKind::AlreadyExists,
                    "it exists; --force overwrites it",
                ));
            }
            // What a link leads to is overwritten, not the link.
            Ok(_) => Place::File(path.canonicalize().map_err(|e| Error::output(path, e))?),
            Err(_) if path.is_symlink() => {
                return refuse(std::io::Error::other("it is a link that leads nowhere"));
            }
            Err(_) => Place::File(path.to_path_buf()),
        };
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(|e| Error::output(parent, e))?;
        }
        Ok(Target {
            path: path.to_path_buf(),
            place,
        })
    }

    /// Writes the file whole or not at all.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        let result = match &self.place {
            Place::File(path) => replace(path, bytes),
            Place::Stream => std::fs::OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|mut stream| stream.write_all(bytes)),
        };
        result.map_err(|e| Error::output(&self.path, e))
    }

    /// Where it goes.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes beside `path` and moves the whole file there.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.to_path_buf().into_os_string();
    temporary.push(format!(".{}.part", std::process::id()));
    let temporary = PathBuf::from(temporary);
    std::fs::write(&temporary, bytes)
        .and_then(|()| std::fs::rename(&temporary, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })
}

#[cfg(unix)]
fn is_stream(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_char_device()
}

#[cfg(not(unix))]
fn is_stream(_: std::fs::FileType) -> bool {
    false
}

impl Error {
    /// Whether it says that nobody reads the output any more.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output { source, .. } if source.kind() == ErrorKind::BrokenPipe)
    }
}

/// Diagnostics go to standard error; notes stay in the JSON.
pub(crate) fn warn(diagnostics: &[Diagnostic], quiet: bool) {
    if quiet {
        return;
    }
    const SHOWN: usize = 20;
    let worth: Vec<&Diagnostic> = diagnostics
        .iter()
        .filter(|d| d.severity != Severity::Note)
        .collect();
    for d in worth.iter().take(SHOWN) {
        let path = d
            .path
            .as_ref()
            .map_or_else(String::new, |p| format!("{p}: "));
        complain(&format!("{}: {path}{}", d.severity, d.message));
    }
    if worth.len() > SHOWN {
        complain(&format!("... and {} more warnings", worth.len() - SHOWN));
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_written_to_and_stays_a_device() {
        // Reached through a link, so that a mistake replaces the link and not the device.
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        let target = Target::new(&link, true).unwrap();
        assert!(matches!(target.place, Place::Stream));
        target.write(b"text").unwrap();
        assert!(link.is_symlink());
        assert!(!std::fs::metadata(&link).unwrap().is_file());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_kept_and_its_file_overwritten_when_forced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert!(Target::new(&link, false).is_err());
        Target::new(&link, true).unwrap().write(b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        std::fs::remove_file(&file).unwrap();
        assert!(Target::new(&link, true).is_err(), "a link to nothing");
    }
}

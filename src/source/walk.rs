//! Which files a path leads to, and what each is by its content.

use std::path::{Path, PathBuf};

use super::bytes::{FileBytes, MAX_DECOMPRESSED_BYTES};
use super::sniff;
use super::sniff::FileKind;
use crate::error::{Diagnostic, Error, Result, Severity};

/// Folders deeper than this under a path are not looked into.
const MAX_DEPTH: usize = 12;
/// Files of one folder tree that are looked at.
const MAX_FILES: usize = 100_000;

/// Most that the compressed files of one folder tree may unpack to together.
const MAX_UNPACKED_BYTES: u64 = 4 * MAX_DECOMPRESSED_BYTES;

/// A file that has been opened and recognised.
#[derive(Debug)]
#[non_exhaustive]
pub struct SourceFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// Its content, decompressed.
    pub bytes: FileBytes,
    /// Position of the path on the command line that led here.
    pub root: usize,
    /// Whether the user named this file itself rather than a folder.
    pub named: bool,
}

impl SourceFile {
    /// Opens and recognises one file.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn open(path: &Path, root: usize, named: bool) -> Result<SourceFile> {
        Ok(Self::new(path, root, named, FileBytes::open(path)?))
    }

    fn new(path: &Path, root: usize, named: bool, bytes: FileBytes) -> SourceFile {
        let kind = sniff(&bytes);
        let is_program = matches!(
            kind,
            FileKind::HloProto | FileKind::HloModule | FileKind::HloSnapshot
        );
        // A program is read whole; of a profile most is stepped over.
        if is_program && named {
            bytes.read_ahead();
        }
        SourceFile {
            path: path.to_path_buf(),
            kind,
            bytes,
            root,
            named,
        }
    }

    /// File name without its folder.
    pub fn file_name(&self) -> String {
        self.path
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Name of the folder it is in: a profile's run.
    pub fn folder_name(&self) -> String {
        self.path
            .parent()
            .and_then(Path::file_name)
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}

/// Opens `path`, or every file below it, in order of their paths. Unreadable files below a folder
/// become diagnostics.
///
/// # Errors
/// The path itself does not exist or can't be read.
pub fn open_path(
    path: &Path,
    root: usize,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Vec<SourceFile>> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if !metadata.is_dir() {
        return Ok(vec![SourceFile::open(path, root, true)?]);
    }
    let mut out = Vec::new();
    let mut pending = vec![(path.to_path_buf(), 0usize)];
    let mut seen = 0;
    let mut room = MAX_UNPACKED_BYTES;
    while let Some((folder, depth)) = pending.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if depth == 0 => return Err(Error::io(&folder, e)),
            Err(e) => {
                diagnostics.push(unreadable(&folder, &e.to_string()));
                continue;
            }
        };
        for entry in entries.filter_map(std::result::Result::ok) {
            let at = entry.path();
            // Folders reached through links are left out: links can form a circle.
            match entry.file_type() {
                Ok(t) if t.is_dir() && depth < MAX_DEPTH => pending.push((at, depth + 1)),
                Ok(t) if t.is_file() || (t.is_symlink() && at.is_file()) => {
                    seen += 1;
                    if seen > MAX_FILES {
                        diagnostics.push(
                            Diagnostic::warning(
                                "too_many_files",
                                format!("only the first {MAX_FILES} files were looked at"),
                            )
                            .with_path(path),
                        );
                        pending.clear();
                        break;
                    }
                    match FileBytes::open_within(&at, room) {
                        Ok(bytes) => {
                            if bytes.compressed {
                                room = room.saturating_sub(bytes.len() as u64);
                            }
                            out.push(SourceFile::new(&at, root, false, bytes));
                        }
                        Err(e) => diagnostics.push(unreadable(&at, &e.to_string())),
                    }
                }
                _ => {}
            }
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

fn unreadable(path: &Path, cause: &str) -> Diagnostic {
    Diagnostic::new(Severity::Warning, "unreadable", cause).with_path(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn pipes_links_in_circles_and_links_to_nothing_stop_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::os::unix::fs::symlink(".", at("circle")).unwrap();
        std::os::unix::fs::symlink("nothing", at("dangling")).unwrap();
        std::fs::write(at("text"), "hello").unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        let mut diagnostics = Vec::new();
        let files = open_path(dir.path(), 0, &mut diagnostics).unwrap();
        assert_eq!(files.len(), 1);
        assert!(diagnostics.is_empty());
        if made.is_ok_and(|s| s.success()) {
            // Nobody writes to it: an attempt to open it would wait forever.
            let e = open_path(&at("pipe"), 0, &mut diagnostics).unwrap_err();
            assert_eq!(e.exit_code(), 3);
            assert!(e.to_string().contains("not a regular file"), "{e}");
        }
    }
}

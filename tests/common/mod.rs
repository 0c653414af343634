//! Reading the sample programs, for tests.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::Read;
use std::path::{Path, PathBuf};

/// Folders of one compiled program each, by name: the project's samples, and the wider corpus
/// beside the repository where it exists.
pub fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut out: Vec<PathBuf> = ["samples", "../shared/corpus/programs"]
        .iter()
        .filter_map(|f| std::fs::read_dir(root.join(f)).ok())
        .flatten()
        .map(|e| e.unwrap().path())
        .filter(|p| dump_of(p).is_some())
        .collect();
    out.sort();
    out
}

/// Name of a folder.
pub fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().into_owned()
}

/// The compiled program in a folder.
pub fn dump_of(folder: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .map(|e| e.unwrap().path())
        .filter(|p| {
            let name = p.to_string_lossy();
            let name = name.strip_suffix(".gz").unwrap_or(&name);
            name.ends_with("after_optimizations.hlo.pb")
        })
        .collect();
    found.sort();
    found.pop()
}

/// A program's bytes, unpacked; `None` if there is no such folder here.
pub fn read(name: &str) -> Option<Vec<u8>> {
    folders()
        .into_iter()
        .find(|f| name_of(f) == name)
        .map(|f| bytes_of(&f))
}

/// The bytes of the program in a folder, unpacked.
pub fn bytes_of(folder: &Path) -> Vec<u8> {
    let path = dump_of(folder).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    if path.extension().is_some_and(|e| e == "gz") {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut out)
            .unwrap();
        return out;
    }
    bytes
}

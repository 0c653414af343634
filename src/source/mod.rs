//! From paths to programs: opens files, recognises them by content, picks the run, the hosts and
//! the module files that the user means. Says which texts stand beside, does not read them.
//!
//! In: paths. Out: [`Sources`] and the programs' bytes in them. May use: `hlo` for the wire format.

pub(crate) mod bytes;
pub(crate) mod file_name;
pub(crate) mod programs;
pub(crate) mod schema;
pub(crate) mod sniff;
pub(crate) mod walk;
pub(crate) mod xspace;

pub use bytes::{FileBytes, MAX_DECOMPRESSED_BYTES};
pub use file_name::host_name;
pub use programs::{ProgramSource, Select, SourceKind, SourceLabel};
pub use sniff::{sniff, FileKind};
pub use walk::{open_path, SourceFile};
pub use xspace::{decode_xspace, XPlaneInfo, XProgram, XSpace};

use std::path::PathBuf;

use crate::error::{Diagnostic, Result, Severity};

/// Every file that some paths lead to, opened and recognised.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sources {
    /// The files, by command-line order of the path, then by path.
    pub files: Vec<SourceFile>,
    /// What went wrong on the way.
    pub diagnostics: Vec<Diagnostic>,
}

impl Sources {
    /// Opens everything that `paths` lead to.
    ///
    /// # Errors
    /// A path that does not exist or can't be read.
    pub fn open(paths: &[PathBuf]) -> Result<Sources> {
        let mut out = Sources::default();
        for (root, path) in paths.iter().enumerate() {
            out.files
                .extend(open_path(path, root, &mut out.diagnostics)?);
        }
        for f in &out.files {
            if let Some(why) = &f.bytes.cut_short {
                out.diagnostics.push(
                    Diagnostic::new(
                        Severity::Error,
                        "truncated",
                        format!("the compressed data ends early ({why}); what came before is used"),
                    )
                    .with_path(&f.path),
                );
            }
        }
        Ok(out)
    }
}

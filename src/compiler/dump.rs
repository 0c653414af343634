//! The dump that a compiler is writing: which file has the buffer assignment, whether it is whole,
//! and whether the compiler went on after it.

use std::path::{Path, PathBuf};

use crate::hlo::decode::schema::hlo;
use crate::hlo::decode::wire::fields;

/// What stands in a dump's folder so far.
#[derive(Debug, Default)]
pub(crate) struct DumpState {
    /// The optimised module with its buffer assignment, once it is whole.
    pub(crate) assigned: Option<(PathBuf, Vec<u8>)>,
    /// Whether a file is there that is written only after everything fitted.
    pub(crate) went_on: bool,
}

/// Looks at the folder. `module` is the program's name: a compiler may compile helpers beside it.
pub(crate) fn look(folder: &Path, module: &str) -> DumpState {
    let mut state = DumpState::default();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return state;
    };
    let mut candidates = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_it = name.contains(&format!(".{}.", file_name_of(module)));
        if name.contains("after_buffer_assignment") || name.contains("after_codegen") {
            state.went_on |= of_it;
        } else if name.ends_with("after_optimizations.hlo.pb") && of_it {
            candidates.push(entry.path());
        }
    }
    candidates.sort();
    for path in candidates {
        if let Some(bytes) = std::fs::read(&path).ok().filter(|b| is_whole(b)) {
            state.assigned = Some((path, bytes));
        }
    }
    state
}

/// A module's name as XLA writes it into file names.
fn file_name_of(module: &str) -> String {
    let odd = |c: char| matches!(c, '/' | '\\' | '[' | ']' | ' ' | '<' | '>');
    module.replace(odd, "_")
}

/// Whether an HloProto is all there: it ends with its buffer assignment.
fn is_whole(bytes: &[u8]) -> bool {
    let mut assigned = false;
    for field in fields(bytes) {
        match field {
            Ok((hlo::BUFFER_ASSIGNMENT, _)) => assigned = true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::wire_out::Message;

    #[test]
    fn a_dump_counts_once_it_is_whole() {
        let mut proto = Message::default();
        proto.bytes(1, b"\x0a\x01m").bytes(3, &[0x0a, 0]);
        assert!(is_whole(&proto.0));
        for cut in 0..proto.0.len() {
            assert!(!is_whole(&proto.0[..cut]), "{cut}");
        }
    }

    #[test]
    fn only_files_of_the_program_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut proto = Message::default();
        proto.bytes(1, b"").bytes(3, &[0x0a, 0]);
        let write = |name: &str| std::fs::write(dir.path().join(name), &proto.0).unwrap();
        write("module_0000.jit_other.cl_1.after_optimizations.hlo.pb");
        write("module_0000.jit_other.cl_1.after_codegen.hlo.pb");
        let state = look(dir.path(), "jit_step");
        assert!(state.assigned.is_none() && !state.went_on);
        write("module_0001.jit_step.cl_1.after_optimizations.hlo.pb");
        write("module_0001.jit_step.cl_1.after_optimizations_after_buffer_assignment.hlo.pb");
        let state = look(dir.path(), "jit_step");
        assert!(state.assigned.is_some() && state.went_on);
    }
}

//! What names of files say: the host of a profile, the module and stage of a dump's file.

use std::path::Path;

use super::walk::SourceFile;

/// Host of a profile: its file name up to `.xplane.pb`.
pub fn host_name(f: &SourceFile) -> String {
    let name = f.file_name();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.strip_suffix(".xplane.pb")
        .or(name.strip_suffix(".pb"))
        .unwrap_or(name)
        .to_owned()
}

/// Whether a profile lies where a log directory has it: `…/profile/RUN/HOST.xplane.pb`.
pub(super) fn in_log_directory(path: &Path) -> bool {
    let run = path.parent().and_then(Path::parent);
    run.and_then(Path::file_name)
        .is_some_and(|n| n == "profile")
}

/// What tells the files of one module in a dump folder: `module_0012.jit_step`, or the file's own
/// name where it is not named so.
pub(super) fn module_key(file_name: &str) -> String {
    let mut parts = file_name.split('.');
    match (parts.next(), parts.next()) {
        (Some(first), Some(second))
            if first
                .strip_prefix("module_")
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) =>
        {
            format!("{first}.{second}")
        }
        _ => file_name.to_owned(),
    }
}

/// Among files of one module that say as much about memory, the latest stage first.
pub(super) fn stage_rank(file_name: &str) -> u8 {
    const STAGES: [&str; 6] = [
        "after_optimizations.hlo",
        "oom_intermediate_module",
        "after_codegen",
        "after_buffer_assignment",
        "after_optimizations",
        "before_optimizations",
    ];
    STAGES
        .iter()
        .position(|s| file_name.contains(s))
        .unwrap_or(STAGES.len()) as u8
}

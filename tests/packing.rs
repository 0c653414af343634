//! The simulator's packing against the compiler's own arenas.

use std::path::{Path, PathBuf};

use xpeak::decode::{decode_program, HloContainer};
use xpeak::model::MemorySpace;
use xpeak::simulate::Base;

fn programs() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = ["samples", "../shared/corpus/programs"]
        .iter()
        .filter_map(|f| std::fs::read_dir(root.join(f)).ok())
        .flatten()
        .map(|e| e.unwrap().path())
        .collect();
    if let Ok(more) = std::env::var("XPEAK_PROGRAMS") {
        folders.extend(std::fs::read_dir(more).unwrap().map(|e| e.unwrap().path()));
    }
    folders.sort();
    let mut out = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        let mut files: Vec<PathBuf> = entries
            .map(|e| e.unwrap().path())
            .filter(|p| p.to_string_lossy().ends_with("after_optimizations.hlo.pb"))
            .collect();
        files.sort();
        if let Some(f) = files.pop() {
            out.push((
                folder.file_name().unwrap().to_string_lossy().into_owned(),
                f,
            ));
        }
    }
    out
}

/// Half of all arenas come out within half a per cent of the compiler's. `--nocapture` prints the
/// table.
#[test]
fn packing_reproduces_the_compilers_arenas() {
    let mut errors = Vec::new();
    let mut table = String::new();
    for (name, file) in programs() {
        let bytes = std::fs::read(&file).unwrap();
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let Ok(base) = Base::new(&program, MemorySpace::HBM) else {
            continue;
        };
        let (compiled, packed, live) = base.packing_check();
        if compiled < 1 << 20 {
            continue;
        }
        let error = (packed as f64 - compiled as f64) / compiled as f64;
        errors.push(error.abs());
        table += &format!(
            "{name:36} {:10.2} {:10.2} {:10.2} {:+7.2} %\n",
            live as f64 / 1048576.0,
            compiled as f64 / 1048576.0,
            packed as f64 / 1048576.0,
            error * 100.0
        );
    }
    if errors.is_empty() {
        return;
    }
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    println!(
        "program, MiB alive at the peak, arena, ours, error\n{table}median {:.3} %",
        median * 100.0
    );
    assert!(median < 0.005, "{table}median {median}");
}

//! Our figures against XProf's Memory Viewer and the compiler's own, to the byte.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use serde_json::Value;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::hlo::{MemorySpace, Program};
use xpeak::memory::space_usage;
use xpeak::peak::peak_snapshot;
use xpeak::source::decode_xspace;
use xpeak::source::FileBytes;

const MIB: f64 = 1048576.0;

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["samples", "samples/programs"]
        .iter()
        .flat_map(|f| std::fs::read_dir(root.join(f)).unwrap())
        .map(|e| e.unwrap().path())
        .filter(|p| p.join("xprof.json").is_file())
        .collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn dump_of(folder: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_string_lossy().contains("after_optimizations.hlo.pb"))
        .collect();
    found.sort();
    found.pop()
}

fn to_bytes(mib: &Value) -> u64 {
    (mib.as_f64().unwrap_or(0.0) * MIB).round() as u64
}

fn check(name: &str, program: &Program<'_>, spaces: &Value, errors: &mut Vec<String>) -> usize {
    let assignment = program.assignment.as_ref().unwrap();
    let mut checked = 0;
    for (color, expected) in spaces.as_object().unwrap() {
        // XProf has no figure for spaces without a trace.
        if to_bytes(&expected["peakHeapMib"]) == 0 {
            continue;
        }
        // XProf sums overlapping addresses of on-chip memory: documented difference.
        let usage = space_usage(assignment, MemorySpace(color.parse().unwrap()));
        if usage.arenas.iter().any(|a| a.is_union) {
            continue;
        }
        let snapshot = peak_snapshot(program, &usage);
        let mut want = |what: &str, ours: u64, theirs: u64| {
            checked += 1;
            if ours != theirs {
                errors.push(format!(
                    "{name} space {color} {what}: {ours}, XProf {theirs}"
                ));
            }
        };
        want(
            "peak",
            usage.peak_bytes(),
            to_bytes(&expected["peakHeapMib"]),
        );
        want(
            "allocated",
            usage.allocated_bytes,
            to_bytes(&expected["totalBufferAllocationMib"]),
        );
        want(
            "indefinite",
            usage.indefinite_bytes,
            to_bytes(&expected["indefiniteBufferAllocationMib"]),
        );
        let sum: u64 = snapshot.buffers.iter().map(|b| b.counted_bytes).sum();
        want("sum of buffers", sum, usage.peak_bytes());
        let mut theirs: Vec<(u64, u64)> = Vec::new();
        if let Some(buffers) = expected["buffers"].as_array() {
            for b in buffers {
                let size = to_bytes(&b["mib"]);
                // Of a part of a nested tuple XProf shows the tuple: its data is then unknown.
                let whole = !b["shape"].as_str().unwrap_or("").starts_with('(');
                if whole && size >= 16384 && b["id"].as_i64().unwrap_or(-1) >= 0 {
                    theirs.push((size, to_bytes(&b["unpadded_mib"])));
                }
            }
        }
        let mut ours: Vec<(u64, u64)> = snapshot
            .buffers
            .iter()
            .filter(|b| b.size_bytes >= 16384)
            .filter(|b| {
                b.buffer
                    .is_some_and(|id| assignment.shape_index(id).len() < 2)
            })
            .map(|b| (b.size_bytes, b.unpadded_bytes))
            .collect();
        // XProf lists nothing of spaces without a heap.
        if theirs.is_empty() {
            continue;
        }
        theirs.sort_unstable();
        ours.sort_unstable();
        if ours != theirs {
            let extra: Vec<_> = ours
                .iter()
                .filter(|x| !theirs.contains(x))
                .take(5)
                .collect();
            let lost: Vec<_> = theirs
                .iter()
                .filter(|x| !ours.contains(x))
                .take(5)
                .collect();
            errors.push(format!(
                "{name} space {color}: {} buffers, XProf {}; only ours {extra:?}, only XProf {lost:?}",
                ours.len(),
                theirs.len()
            ));
        }
    }
    checked
}

/// Programs whose `peak_memory_in_bytes` is not a figure of HBM: see docs/accuracy.md.
const NOT_HBM: [&str; 2] = ["host_offload_v5e", "many_small_v5e"];

/// `memory_analysis().peak_memory_in_bytes`, on TPU.
fn compilers_own(folder: &Path) -> Option<u64> {
    let info = json(&folder.join("info.json"));
    (info["platform"] == "tpu")
        .then(|| info["memory_analysis"]["peak_memory_in_bytes"].as_u64())
        .flatten()
        .filter(|&n| n > 0)
}

#[test]
fn every_figure_equals_xprofs() {
    let mut errors = Vec::new();
    let mut checked = 0;
    for folder in folders() {
        let Some(dump) = dump_of(&folder) else {
            continue;
        };
        let bytes = FileBytes::open(&dump).unwrap();
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(theirs) = compilers_own(&folder) {
            let usage = space_usage(program.assignment.as_ref().unwrap(), MemorySpace::HBM);
            checked += 1;
            if usage.peak_bytes() != theirs && !NOT_HBM.contains(&name.as_str()) {
                errors.push(format!(
                    "{name}: peak {}, compiler {theirs}",
                    usage.peak_bytes()
                ));
            }
        }
        checked += check(
            &name,
            &program,
            &json(&folder.join("xprof.json")),
            &mut errors,
        );
    }
    assert!(
        errors.is_empty(),
        "{}\n{} errors",
        errors.join("\n"),
        errors.len()
    );
    assert!(checked > 0, "nothing was checked");
}

#[test]
fn programs_in_profiles_equal_xprofs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let logdirs: Vec<PathBuf> = std::fs::read_dir(root.join("samples"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.join("plugins").is_dir() && p.join("xprof.json").is_file())
        .collect();
    let (mut errors, mut programs) = (Vec::new(), 0);
    for folder in logdirs {
        for (file, expected) in json(&folder.join("xprof.json")).as_object().unwrap() {
            let bytes = FileBytes::open(&folder.join(file)).unwrap();
            let space = decode_xspace(&bytes).unwrap();
            let modules = expected["modules"].as_object().unwrap();
            let mut seen = 0;
            for p in &space.programs {
                let name = format!("{}({})", p.name, p.program_id);
                let Some(figures) = modules.get(&name) else {
                    continue;
                };
                let program = decode_program(p.hlo, HloContainer::Proto).unwrap();
                seen += 1;
                check(&format!("{file} {name}"), &program, figures, &mut errors);
            }
            programs += seen;
            if seen != modules.len() {
                errors.push(format!(
                    "{file}: {} modules in XProf, {seen} here",
                    modules.len()
                ));
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(programs > 0, "no profile was checked");
}

//! `xpeak triage` and `explain`: a text alone, and joined with the dump it is about.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xpeak"))
        .args(args)
        .output()
        .unwrap()
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(run(args).stdout).unwrap()
}

fn sample(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/oom_text");
    dir.join(name).to_str().unwrap().to_owned()
}

/// A program that only tests have.
fn program(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("samples/programs")
        .join(name);
    path.to_str().unwrap().to_owned()
}

/// Text on one line, so that a search does not depend on where lines break.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines that start a step.
fn titles(text: &str) -> Vec<String> {
    let numbered = |l: &&str| {
        let l = l.trim_start();
        l.split_once(". ")
            .is_some_and(|(n, _)| n.parse::<u8>().is_ok())
    };
    text.lines().filter(numbered).map(str::to_owned).collect()
}

/// Commands that advice names exist.
#[test]
fn advice_names_commands_that_exist() {
    let known = [
        "summary",
        "report",
        "ls",
        "triage",
        "whatif",
        "plan",
        "explain",
        "completions",
        "man",
    ];
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/oom_text");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let text = flat(&stdout(&[
            "triage",
            path.to_str().unwrap(),
            "--format",
            "json",
        ]));
        for (at, _) in text.match_indices("xpeak ") {
            let word = text[at..].split([' ', '"', '.', ':', ';']).nth(1).unwrap();
            if word.chars().all(|c| c.is_ascii_lowercase()) && !word.is_empty() {
                assert!(known.contains(&word), "{}: xpeak {word}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 5);
}

#[test]
fn gpu_memory_that_is_full_comes_before_its_pieces() {
    let text = stdout(&["triage", &sample("gpu_bfc.txt")]);
    let titles = titles(&text);
    assert!(titles[0].contains("Memory is full by 18.23 GiB"), "{text}");
    assert!(titles[2].contains("cuda_malloc_async"), "{text}");
}

#[test]
fn kernels_are_told_from_other_instructions() {
    let kernel = stdout(&["triage", &sample("tpu_e1001_scoped_vmem.txt")]);
    assert!(
        titles(&kernel)[0].contains("A Pallas kernel: smaller blocks"),
        "{kernel}"
    );
    assert!(!kernel.contains("Not a kernel"), "{kernel}");
    let dir = program("scoped_vmem_oom_v5e");
    let out = run(&["triage", &dir]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(titles(&text)[0].contains("Raise the limit"), "{text}");
    assert!(titles(&text)[1].contains("XLA's own slice"), "{text}");
    assert!(!text.contains("smaller blocks"), "{text}");
    let notes = String::from_utf8(out.stderr).unwrap();
    assert!(
        notes.contains("a dump says nothing more about scoped VMEM"),
        "{notes}"
    );
}

#[test]
fn allocations_without_shape_or_name_are_shown() {
    let text = stdout(&["triage", &sample("tpu_vmem_report.txt")]);
    assert!(
        text.contains("40.0 MiB  register allocator spill slots"),
        "{text}"
    );
    let text = stdout(&["triage", &sample("gpu_buffer_assignment.txt")]);
    assert!(
        flat(&text).contains("f32[11,5120,23936] entry parameter"),
        "{text}"
    );
    let text = stdout(&["triage", &sample("tpu_full_aggregate.txt")]);
    assert!(!text.contains("gener\n"), "{text}");
}

#[test]
fn unknown_topics_are_pointed_to_close_ones() {
    let out = run(&["explain", "shard"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && said.contains("sharding"), "{said}");
}

#[test]
fn joined_steps_do_not_repeat_or_contradict_the_dump() {
    let dir = program("mlp_oom_v5e");
    let text = stdout(&["triage", &dir]);
    let donating = titles(&text)
        .iter()
        .filter(|t| t.to_lowercase().contains("donat"))
        .count();
    assert_eq!(donating, 1, "{text}");
    assert!(
        flat(&text).contains("saves up to 6.00 GiB) Cost: None; using a donated array"),
        "{text}"
    );
    assert!(!text.contains("jax.debug.print"), "{text}");
    // Flags: those that helped, a whole line each.
    assert!(
        text.contains("xla_tpu_enable_latency_hiding_scheduler=false: 7.438 to 7.406 GiB"),
        "{text}"
    );
    assert!(
        !text.contains("kBrkga") && !text.contains("PEAK_PRIORITY"),
        "{text}"
    );
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");

    let md = stdout(&["triage", &dir, "--format", "md"]);
    assert_eq!(md.matches("## Next steps").count(), 1, "{md}");
    assert!(
        !md.contains("undetermined") && !md.contains("with a dump"),
        "{md}"
    );
    assert!(
        md.contains("Cost: None; using") && md.contains("`aggregate`"),
        "{md}"
    );

    let json = stdout(&["triage", &dir, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["reports"][0]["scenario"], "undetermined");
    assert_eq!(json["joined"]["scenario"], "aggregate");
    assert!(json["joined"]["flags"].as_array().unwrap().len() > 5);
}

#[test]
fn what_a_finding_explains_is_no_configuration() {
    let dir = program("old_transformer_oom_v5e");
    let text = stdout(&["triage", &dir]);
    assert!(
        !text.contains("lack of capacity") && !text.contains("debug.print"),
        "{text}"
    );
    assert!(!text.contains("custom-call"), "{text}");
    let one = program("one_huge_oom_v5e");
    let text = stdout(&["triage", &one]);
    assert!(!text.contains("Shard over more mesh axes"), "{text}");
    assert!(
        flat(&text).contains("Split it over several devices"),
        "{text}"
    );
}

#[test]
fn a_dump_of_shapes_alone_is_used() {
    let dir = program("old_one_huge_v5e");
    let out = run(&["triage", &dir]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(
        out.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(
        flat(&text).contains("200.00 GiB 0 B output bf16[327680,327680] output"),
        "{text}"
    );
    assert!(
        titles(&text)[0].contains("The output alone does not fit"),
        "{text}"
    );
    assert!(!text.contains("donate"), "{text}");
    let json = stdout(&["triage", &dir, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["joined_shapes"]["output_bytes"], 214_748_364_800u64);
}

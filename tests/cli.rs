//! The whole program through its binary: exit codes, messages, files.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

fn xpeak(args: &[&str]) -> Output {
    Command::cargo_bin("xpeak")
        .unwrap()
        .env_remove("NO_COLOR")
        .env("COLUMNS", "80")
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sample(name: &str) -> String {
    common::samples().join(name).display().to_string()
}

fn code(o: &Output) -> i32 {
    o.status.code().unwrap()
}

#[test]
fn a_path_alone_gives_the_summary() {
    let bare = xpeak(&[&sample("lm_v6e")]);
    let named = xpeak(&["summary", &sample("lm_v6e")]);
    assert_eq!(code(&bare), 0);
    assert_eq!(bare.stdout, named.stdout);
    let out = text(&bare.stdout);
    assert!(
        out.contains("HBM peak") && out.contains("jit_train_step"),
        "{out}"
    );
    assert!(!out.contains('\x1b'), "no colours into a pipe");
    for line in out.lines().filter(|l| !l.contains("samples/")) {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line}");
    }
}

#[test]
fn usage_errors_are_2_and_name_the_value() {
    for args in [
        &["summary", "--nonsense"][..],
        &["report", "x"][..],
        &["--hbm", "lots", "x"][..],
        &["--space", "moon", "x"][..],
    ] {
        let o = xpeak(args);
        assert_eq!(code(&o), 2, "{args:?}: {}", text(&o.stderr));
        assert!(o.stdout.is_empty());
    }
    let o = xpeak(&[&sample("lm_v6e"), "--module", "nope"]);
    assert_eq!(code(&o), 2);
    assert!(
        text(&o.stderr).contains("--module nope") && text(&o.stderr).contains("jit_train_step")
    );
    let o = xpeak(&[&sample("logdir_two_hosts"), "--run", "1999"]);
    assert_eq!(code(&o), 2);
    assert!(text(&o.stderr).contains("2026_11_01_10_00_00"));
}

#[test]
fn missing_and_unknown_input_is_3_with_a_way_on() {
    let o = xpeak(&["/nonexistent/path"]);
    assert_eq!(code(&o), 3);
    assert!(text(&o.stderr).contains("/nonexistent/path"));
    let dir = tempfile::tempdir().unwrap();
    for (name, content, says) in [
        ("empty.xplane.pb", &b""[..], "empty"),
        ("noise.pb", &[0xff; 64][..], "not a file that xpeak reads"),
        (
            "lfs.pb",
            b"version https://git-lfs.github.com/spec/v1\noid\n",
            "git lfs pull",
        ),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        let o = xpeak(&[path.to_str().unwrap()]);
        assert_eq!(code(&o), 3, "{name}");
        assert!(
            text(&o.stderr).contains(says),
            "{name}: {}",
            text(&o.stderr)
        );
        assert!(o.stdout.is_empty());
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.json");
    std::fs::write(&file, "precious").unwrap();
    let path = file.to_str().unwrap();
    let input = sample("mlp_scan_v4");
    let o = xpeak(&["report", &input, "--format", "json", "-o", path]);
    assert_eq!(code(&o), 4);
    assert!(text(&o.stderr).contains("--force"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    let o = xpeak(&["report", &input, "--format", "json", "-o", path, "--force"]);
    assert_eq!(code(&o), 0, "{}", text(&o.stderr));
    assert!(text(&o.stderr).contains("Wrote"));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["schema_version"], 1);
}

#[test]
fn the_json_keeps_the_contract() {
    let o = xpeak(&[
        "report",
        &sample("lm_v6e_donated"),
        "--format",
        "json",
        "-o",
        "-",
        "--timeline",
    ]);
    assert_eq!(code(&o), 0);
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let module = &json["modules"][0];
    assert_eq!(module["name"], "jit_train_step");
    assert_eq!(module["num_partitions"], 4);
    let hbm = &module["memory_spaces"][0];
    assert_eq!(
        (hbm["color"].as_i64(), hbm["name"].as_str()),
        (Some(0), Some("HBM"))
    );
    let n = |v: &serde_json::Value, k: &str| v[k].as_u64().unwrap_or_else(|| panic!("{k}"));
    assert_eq!(
        n(hbm, "peak_bytes"),
        n(hbm, "indefinite_bytes") + n(hbm, "heap_peak_bytes")
    );
    assert_eq!(
        n(hbm, "padding_bytes"),
        n(hbm, "peak_bytes") - n(hbm, "peak_unpadded_bytes")
    );
    assert_eq!(
        n(hbm, "fragmentation_bytes"),
        n(hbm, "allocated_bytes") - n(hbm, "peak_bytes")
    );
    let b = &hbm["breakdown"];
    let parts: u64 = ["parameter", "output", "donated", "constant", "temporary"]
        .iter()
        .map(|k| n(b, &format!("{k}_bytes")))
        .sum();
    assert_eq!(parts, n(hbm, "peak_bytes"));
    let buffers = hbm["buffers"].as_array().unwrap();
    let sum: u64 = buffers.iter().map(|b| n(b, "size_bytes")).sum();
    assert_eq!(sum, n(hbm, "peak_bytes"));
    let sizes: Vec<u64> = buffers.iter().map(|b| n(b, "size_bytes")).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b));
    let points = n(hbm, "point_count") as usize;
    for list in ["heap_bytes", "unpadded_bytes", "instruction", "total_bytes"] {
        assert_eq!(hbm["timeline"][list].as_array().unwrap().len(), points);
    }
    let at_peak = &hbm["timeline"]["total_bytes"][n(hbm, "peak_point") as usize];
    assert_eq!(at_peak.as_u64(), hbm["peak_bytes"].as_u64());
}

#[test]
fn hosts_that_agree_are_shown_once() {
    let o = xpeak(&[&sample("logdir_two_hosts")]);
    assert_eq!(code(&o), 0);
    let out = text(&o.stdout);
    assert!(out.contains("the same on 2 hosts"), "{out}");
    let one = text(&xpeak(&[&sample("logdir_two_hosts"), "--host", "host-1"]).stdout);
    assert!(
        one.contains("host host-1") && !one.contains("2 hosts"),
        "{one}"
    );
}

#[test]
fn any_folder_above_and_any_file_will_do() {
    let root = Path::new(&sample("logdir_two_hosts")).to_path_buf();
    let run = root.join("plugins/profile/2026_11_01_10_00_00");
    let file = run.join("host-0.xplane.pb");
    let name = |o: Output| {
        text(&o.stdout)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let whole = name(xpeak(&[root.to_str().unwrap()]));
    assert!(!whole.is_empty());
    for p in [root.join("plugins"), run, file] {
        assert_eq!(
            name(xpeak(&[p.to_str().unwrap()])),
            whole,
            "{}",
            p.display()
        );
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_xpeak"))
        .args(["report", &sample("lm_v6e"), "--format", "json", "-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let o = child.wait_with_output().unwrap();
    assert_eq!(o.status.code(), Some(0), "{}", text(&o.stderr));
}

#[test]
fn modules_without_assignment_say_what_they_can() {
    let before = common::sample_files("before_optimizations")
        .into_iter()
        .find(|p| p.to_string_lossy().contains("lm_v6e/"))
        .unwrap();
    let o = xpeak(&[before.to_str().unwrap()]);
    assert_eq!(code(&o), 0);
    let out = text(&o.stdout);
    assert!(out.contains("No buffer assignment") && out.contains("Parameters and outputs"));
}

#[test]
fn ls_says_what_each_file_can_answer() {
    let o = xpeak(&["ls", &sample("lm_v6e")]);
    assert_eq!(code(&o), 0);
    let out = text(&o.stdout);
    assert!(out.contains("what fills memory at the peak"), "{out}");
    let o = xpeak(&["ls", &sample("logdir_two_hosts"), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let files = json["files"].as_array().unwrap();
    assert!(files.iter().any(|f| f["modules"][0]["peak_bytes"].is_u64()));
}

#[test]
fn a_folder_of_everything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("r");
    let o = xpeak(&[
        "report",
        &sample("mlp_scan_v4"),
        "-o",
        out.to_str().unwrap(),
    ]);
    assert_eq!(code(&o), 0, "{}", text(&o.stderr));
    for name in ["report.md", "report.json", "report.html", "report.csv"] {
        assert!(out.join(name).metadata().unwrap().len() > 100, "{name}");
    }
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!html.contains("src=\"http") && !html.contains("@import"));
    let md = std::fs::read_to_string(out.join("report.md")).unwrap();
    let before = md.split("<details>").next().unwrap().lines().count();
    assert!(before < 60, "{before} lines before the details");
}

#[test]
fn completions_and_manual_are_printed() {
    assert!(text(&xpeak(&["completions", "bash"]).stdout).contains("xpeak"));
    assert!(text(&xpeak(&["man"]).stdout).contains(".TH xpeak"));
}

#[test]
fn triage_reads_text_and_tells_its_absence() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("job.log");
    std::fs::write(&log, "INFO all is well\nstep 3 took 0.2 s\n").unwrap();
    let o = xpeak(&["triage", log.to_str().unwrap(), "--format", "json"]);
    assert_eq!(code(&o), 3);
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(
        (
            json["reports"][0]["kind"].as_str(),
            json["reports"][0]["oom"].as_bool()
        ),
        (Some("none"), Some(false))
    );
    let texts = common::sample_files(".txt");
    let short = texts
        .iter()
        .find(|p| p.ends_with("tpu_e1000_short.txt"))
        .unwrap();
    let o = xpeak(&["triage", short.to_str().unwrap(), "--format", "json"]);
    assert_eq!(code(&o), 0);
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(json["reports"][0]["scenario"], "undetermined");
    assert_eq!(json["reports"][0]["limit_bytes"], 16_911_433_728u64);
}

#[test]
fn triage_joins_a_text_with_its_dump() {
    let o = xpeak(&["triage", &sample("lm_v5e_oom"), "--format", "json"]);
    assert_eq!(code(&o), 0, "{}", text(&o.stderr));
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let joined = &json["joined"];
    assert_eq!(joined["total"]["agrees"], true, "{joined}");
    assert_eq!(joined["same_module"], true);
    assert!(joined["groups"][0]["source"]["file"]
        .as_str()
        .unwrap()
        .ends_with("train.py"));
    assert!(joined["advice"].as_array().unwrap().len() <= 7);
    let flags = joined["flags"].as_array().unwrap();
    assert!(flags
        .iter()
        .any(|f| f["name"] == "xla_tpu_rwb_fusion" && f["value"] == "true"));
    let out = text(&xpeak(&["triage", &sample("lm_v5e_oom")]).stdout);
    assert!(out.contains("every allocation of HBM"), "{out}");
    for line in out.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line}");
    }
}

#[test]
fn explain_knows_every_finding() {
    for kind in xpeak::findings::FindingKind::all() {
        let o = xpeak(&["explain", kind.name()]);
        assert_eq!(code(&o), 0, "{}", kind.name());
        assert!(o.stdout.len() > 60, "{}", kind.name());
    }
    assert_eq!(code(&xpeak(&["explain"])), 0);
    assert_eq!(code(&xpeak(&["explain", "moon"])), 2);
}

#[test]
fn whatif_predicts_what_the_compiler_does_with_donation() {
    let o = xpeak(&[
        "whatif",
        &sample("lm_v6e"),
        "--donate",
        "all",
        "--format",
        "json",
    ]);
    assert_eq!(code(&o), 0, "{}", text(&o.stderr));
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    for side in ["before", "after"] {
        for key in [
            "peak_bytes",
            "allocated_bytes",
            "fragmentation_bytes",
            "heap_peak_bytes",
            "indefinite_bytes",
            "peak_point",
        ] {
            assert!(json[side][key].is_u64(), "{side}.{key}");
        }
    }
    assert_eq!(json["edits"][0]["edit"], "--donate all");
    assert!(json["edits"][0]["matched"].as_u64().unwrap() > 0);
    // The same program compiled with its state donated is a sample too.
    let o = xpeak(&[
        "report",
        &sample("lm_v6e_donated"),
        "--format",
        "json",
        "-o",
        "-",
        "-q",
    ]);
    let donated: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let truth = donated["modules"][0]["memory_spaces"][0]["allocated_bytes"]
        .as_u64()
        .unwrap();
    let predicted = json["after"]["allocated_bytes"].as_u64().unwrap();
    assert!(predicted.abs_diff(truth) < 1 << 20, "{predicted} {truth}");
}

#[test]
fn whatif_without_an_edit_or_with_nonsense_is_a_usage_error() {
    let input = sample("lm_v6e");
    for args in [
        &["whatif", &input][..],
        &["whatif", &input, "--batch", "x"][..],
        &["whatif", &input, "--shard", "all=0"][..],
        &["whatif", &input, "--donate", "no_such_argument"][..],
        &["plan", &input][..],
        &["plan", &input, "--fit", "lots"][..],
    ] {
        let o = xpeak(args);
        assert_eq!(code(&o), 2, "{args:?}: {}", text(&o.stderr));
        assert!(o.stdout.is_empty());
    }
}

#[test]
fn a_plan_keeps_the_contract() {
    let o = xpeak(&[
        "plan",
        &sample("lm_v5e_oom"),
        "--fit",
        "15.75GiB",
        "--format",
        "json",
    ]);
    assert_eq!(code(&o), 0, "{}", text(&o.stderr));
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(json["capacity_bytes"], 16_911_433_728u64);
    assert!(json["reserve_bytes"].is_u64() && json["floor_bytes"].is_u64());
    assert!(json["before"]["allocated_bytes"].as_u64().unwrap() > 16_911_433_728);
    let steps = json["steps"].as_array().unwrap();
    assert!(!steps.is_empty());
    for s in steps {
        for key in ["edit", "safety", "jax", "verify"] {
            assert!(s[key].is_string(), "{key}");
        }
        assert!(s["saving_bytes"].is_u64() || s["saving_bytes"].is_i64());
    }
    if json["fits"].as_bool().unwrap() {
        let last = steps.last().unwrap()["after"]["allocated_bytes"]
            .as_u64()
            .unwrap();
        assert!(last <= 16_911_433_728);
    }
}

#[test]
fn a_named_file_without_a_program_is_pointed_out() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("note.txt").display().to_string();
    std::fs::write(&note, "hello").unwrap();
    let o = xpeak(&[&sample("mlp_cpu"), &note]);
    assert_eq!(code(&o), 0);
    assert_eq!(
        text(&o.stderr),
        format!("warning: {note}: no program in this text\n")
    );
}

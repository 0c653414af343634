//! Sample texts with the values that stand beside them, and ways in which logs wrap text.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde_json::{json, Value};
use xpeak::oom::OomText;

/// Path, text and wanted values of each sample, in order of their names.
pub fn samples() -> Vec<(PathBuf, String, Value)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/oom_text");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 20);
    let read = |p: &Path| std::fs::read_to_string(p).unwrap();
    paths
        .into_iter()
        .map(|p| {
            let want = serde_json::from_str(&read(&p.with_extension("json"))).unwrap();
            (p.clone(), read(&p), want)
        })
        .collect()
}

/// What the report says under a key of the sample's JSON.
fn found(key: &str, report: &Value) -> Value {
    let list = report["allocations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let largest = list.iter().max_by_key(|a| a["size_bytes"].as_u64());
    let of_largest = |field: &str| largest.map_or(Value::Null, |a| a[field].clone());
    match key {
        "allocations" => json!(list.len()),
        "largest_bytes" => of_largest("size_bytes"),
        "largest_shape" => of_largest("shape"),
        "largest_padding_bytes" => of_largest("padding_bytes"),
        "groups" => {
            let groups = report["groups"].as_array().cloned().unwrap_or_default();
            groups
                .iter()
                .map(|g| json!({"count": g["count"], "bytes": g["bytes"]}))
                .collect()
        }
        "warnings" => {
            let warnings = report["warnings"].as_array().cloned().unwrap_or_default();
            warnings.iter().map(|w| w["kind"].clone()).collect()
        }
        _ => report[key].clone(),
    }
}

/// The first difference between what is wanted and what was read.
pub fn difference(report: &OomText, want: &Value) -> Option<String> {
    if want["kind"] == "none" {
        return (!report.reports.is_empty()).then(|| format!("invented {:?}", report.reports));
    }
    let all = serde_json::to_value(report).unwrap();
    if want["oom"].is_null() && all["reports"][0]["oom"] != true {
        return Some(format!("no failure found: {all}"));
    }
    want.as_object().unwrap().iter().find_map(|(key, value)| {
        let got = found(key, &all["reports"][0]);
        (got != *value).then(|| format!("{key}: {got} instead of {value}"))
    })
}

/// Each line as `f` writes it.
fn each_line(text: &str, f: impl Fn(usize, &str) -> String) -> String {
    text.lines()
        .enumerate()
        .map(|(n, l)| f(n, l) + "\n")
        .collect()
}

/// Hard-wraps lines at a column, in the middle of words.
fn hard_wrap(text: &str, column: usize) -> String {
    each_line(text, |_, line| {
        let chars: Vec<char> = line.chars().collect();
        let pieces: Vec<String> = chars.chunks(column).map(|c| c.iter().collect()).collect();
        pieces.join("\n")
    })
}

/// Ways in which logs and pastes wrap text; what needs whole lines is not wrapped hard.
pub fn wrapped(way: usize, text: &str) -> String {
    let by_line = text.contains("bfc_allocator") || text.contains("UserWarning");
    let prefixed = text.contains("] ");
    match way {
        0 => text.replace('\n', "\r\n"),
        1 => each_line(text, |_, l| format!("> {l}")),
        2 => each_line(text, |n, l| {
            format!(
                "I0320 03:59:{:02}.777634     888 train.cc:2167] {l}",
                n % 60
            )
        }),
        3 => each_line(text, |_, l| {
            format!("\u{1b}[36m(Worker pid=4, ip=10.0.0.1)\u{1b}[0m {l}")
        }),
        4 => each_line(text, |_, l| {
            format!("(EngineCore_DP0 pid=10) ERROR 06-03 07:41:11 [core.py:1184] {l}")
        }),
        5 => each_line(text, |_, l| format!("2024-05-06T07:08:09.123456Z {l}")),
        6 => each_line(text, |_, l| format!("worker-0  | {l}")),
        7 if !by_line => hard_wrap(text, 200),
        8 if !by_line && !prefixed => hard_wrap(text, 61),
        9 => text
            .replace(". Size:", "\\. Size:")
            .replace("Used ", "**Used** "),
        10 if !by_line => each_line(text, |_, l| l.trim().to_string()),
        11 => format!(
            "{}{text}{}",
            "step 7 loss 2.1\n".repeat(3000),
            "done 1\n".repeat(500)
        ),
        12 => format!("{text}\n{text}"),
        13 => each_line(text, |_, l| format!("    {l}   ")),
        14 => each_line(text, |_, l| {
            format!("2025-08-02 23:46:25.965629: E external/xla/a.cc:34] {l}")
        }),
        15 => text
            .replace("\"", "&quot;")
            .replace("<no-hlo", "&lt;no-hlo"),
        _ => text.to_string(),
    }
}

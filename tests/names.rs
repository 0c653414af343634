//! One buffer has one name: in the list of the peak, in the ranking of what is held longest and
//! on the map.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use serde_json::Value;

fn report(sample: &str) -> Value {
    let out = assert_cmd::Command::cargo_bin("xpeak")
        .unwrap()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["report", sample, "--format", "json", "-o", "-", "-q"])
        .output()
        .unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

fn spaces(v: &Value) -> Vec<&Value> {
    let found = |v: &Value| v.get("buffers").is_some() && v.get("rankings").is_some();
    let mut todo = vec![v];
    let mut out = Vec::new();
    while let Some(v) = todo.pop() {
        if found(v) {
            out.push(v);
        }
        match v {
            Value::Array(a) => todo.extend(a),
            Value::Object(o) => todo.extend(o.values()),
            _ => {}
        }
    }
    out
}

#[test]
fn what_a_loop_fills_is_named_by_what_it_writes() {
    let v = report("samples/lm_v5e_oom");
    let spaces = spaces(&v);
    assert!(!spaces.is_empty());
    for space in spaces {
        if space["color"] != 0 {
            continue;
        }
        let peak = space["peak_bytes"].as_u64().unwrap();
        for b in space["buffers"].as_array().unwrap() {
            let label = b["label"].as_str().unwrap();
            if b["size_bytes"].as_u64().unwrap() > peak / 100 {
                assert!(!label.contains("broadcast"), "{label}: {}", b["shape"]);
            }
        }
    }
}

#[test]
fn rankings_use_the_names_and_numbers_of_the_peak() {
    for sample in ["samples/lm_v5e_oom", "samples/lm_v6e", "samples/serve_v6e"] {
        let v = report(sample);
        let mut compared = 0;
        for space in spaces(&v) {
            let buffers = space["buffers"].as_array().unwrap();
            for held in space["rankings"]["long_held"].as_array().unwrap() {
                if held["at_peak"] != Value::Bool(true) || held["size_bytes"] == 0 {
                    continue;
                }
                let same = |b: &&Value| {
                    b["logical_buffer_id"] == held["logical_buffer_id"]
                        && b["live"]["start"] == held["live"]["start"]
                };
                let b = buffers.iter().find(same).expect("of the peak");
                assert_eq!(b["label"], held["label"]);
                assert_eq!(b["shape"], held["shape"]);
                compared += 1;
            }
        }
        assert!(compared > 5, "{sample}: {compared}");
    }
}

#[test]
fn copies_of_buffers_add_up_to_the_summary() {
    let mut compared = 0;
    for sample in ["samples/lm_v5e_oom", "samples/lm_v5p_whole_logits"] {
        let v = report(sample);
        for space in spaces(&v) {
            let Some(total) = space["replication"]["redundant_bytes"].as_u64() else {
                continue;
            };
            let buffers = space["buffers"].as_array().unwrap();
            let sum: u64 = buffers
                .iter()
                .filter_map(|b| b["redundant_bytes"].as_u64())
                .sum();
            assert_eq!(sum, total, "{sample}");
            compared += usize::from(total > 0);
        }
    }
    assert!(compared >= 2);
}

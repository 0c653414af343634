//! What the program prints for every sample, against the text kept beside it. `BLESS=1` rewrites
//! it: read the difference before committing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use assert_cmd::Command;

/// Output of the program in a terminal of 80 columns, run from the repository's root.
fn output(args: &[&str]) -> String {
    let o = Command::cargo_bin("xpeak")
        .unwrap()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("COLUMNS", "80")
        .args(args)
        .output()
        .unwrap();
    assert!(
        o.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&o.stderr)
    );
    String::from_utf8(o.stdout).unwrap()
}

fn compare(golden: &Path, got: &str, wrong: &mut Vec<String>) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(golden, got).unwrap();
        return;
    }
    let Ok(expected) = std::fs::read_to_string(golden) else {
        wrong.push(format!("{} is missing", golden.display()));
        return;
    };
    if expected != got {
        let line = expected
            .lines()
            .zip(got.lines())
            .position(|(a, b)| a != b)
            .unwrap_or(0);
        wrong.push(format!(
            "{} line {}:\n  kept {:?}\n  now  {:?}",
            golden.display(),
            line + 1,
            expected.lines().nth(line),
            got.lines().nth(line)
        ));
    }
}

#[test]
fn reports_of_samples_are_as_kept() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in common::folders() {
        if !folder.starts_with(common::samples()) {
            continue;
        }
        seen += 1;
        let path = format!("samples/{}", common::name_of(&folder));
        compare(
            &folder.join("summary.txt"),
            &output(&[&path, "-q", "--top", "5"]),
            &mut wrong,
        );
        let md = output(&[
            "report", &path, "--format", "md", "-o", "-", "-q", "--top", "5",
        ]);
        compare(&folder.join("report.md"), &md, &mut wrong);
    }
    // Beside the log directory, not in it: `ls` lists what is there.
    let beside = |name: &str| common::samples().join(format!("logdir_two_hosts.{name}"));
    let input = "samples/logdir_two_hosts";
    compare(&beside("summary.txt"), &output(&[input, "-q"]), &mut wrong);
    compare(&beside("ls.txt"), &output(&["ls", input]), &mut wrong);
    assert!(
        wrong.is_empty(),
        "{}\nBLESS=1 cargo test --test golden rewrites them",
        wrong.join("\n")
    );
    assert!(seen >= 6);
}

//! What the program prints for every sample, against the text kept beside it. `BLESS=1` rewrites
//! it: read the difference before committing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// Runs the program in a terminal of 80 columns, from the repository's root.
fn run(args: &[&str]) -> std::process::Output {
    Command::cargo_bin("xpeak")
        .unwrap()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("COLUMNS", "80")
        .args(args)
        .output()
        .unwrap()
}

/// Standard output of a run that must succeed.
fn output(args: &[&str]) -> String {
    let o = run(args);
    assert!(
        o.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&o.stderr)
    );
    String::from_utf8(o.stdout).unwrap()
}

/// Commands one after the other, each with what it prints and how it ends: refusals are answers too.
fn transcript(commands: &[Vec<&str>]) -> String {
    let mut out = String::new();
    for args in commands {
        let o = run(args);
        out += &format!("$ xpeak {}\n", args.join(" "));
        out += &String::from_utf8(o.stdout).unwrap();
        out += &String::from_utf8(o.stderr).unwrap();
        out += &format!("[exit {}]\n\n", o.status.code().unwrap());
    }
    out
}

/// A page without the pictures in it, which have tests of their own.
fn without_pictures(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(";base64,") {
        let end = after.find(['"', ')']).unwrap_or(after.len());
        out += before;
        out += ";base64,...";
        rest = &after[end..];
    }
    out + rest
}

/// Where an expected output is kept that does not belong beside a sample: a dump's folder is itself
/// input, and what stands beside a dump is read.
fn kept(sample: &str, file: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(sample);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(file)
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
        if folder.parent() != Some(&common::samples()) {
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
    assert!(seen >= 6);
    assert_as_kept(&wrong);
}

fn assert_as_kept(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{}\nBLESS=1 cargo test --test golden rewrites them",
        wrong.join("\n")
    );
}

/// Edits that are tried on every sample: one of each kind, and two at once.
const EDITS: [&[&str]; 12] = [
    &["--donate", "all"],
    &["--shard", "all=2"],
    &["--batch", "16:8"],
    &["--microbatch", "2"],
    &["--dtype", "all=bf16"],
    &["--checkpoint", "all"],
    &["--checkpoint", "all:dots"],
    &["--drop", "f32"],
    &["--offload", "all"],
    &["--pad-free"],
    &["--no-debug"],
    &["--donate", "all", "--checkpoint", "all"],
];

#[test]
fn changes_and_plans_are_as_kept() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in common::folders() {
        if folder.parent() != Some(&common::samples()) {
            continue;
        }
        seen += 1;
        let name = common::name_of(&folder);
        let path = format!("samples/{name}");
        let edits = EDITS.map(|e| [&["whatif", &path], e].concat());
        compare(&kept(&name, "whatif.txt"), &transcript(&edits), &mut wrong);
        let plans = [
            vec!["plan", &path, "--fit", "15.75GiB"],
            vec!["plan", &path, "--fit", "1GiB"],
            vec!["plan", &path, "--fit", "100MiB"],
        ];
        compare(&kept(&name, "plan.txt"), &transcript(&plans), &mut wrong);
    }
    assert!(seen >= 6);
    assert_as_kept(&wrong);
}

/// Samples small enough to keep everything that is printed of them.
const SMALL: [&str; 3] = ["padded_v5e", "mlp_cpu", "mlp_h100"];

#[test]
fn every_format_is_as_kept() {
    let mut wrong = Vec::new();
    for name in SMALL {
        let path = format!("samples/{name}");
        let report = |format| output(&["report", &path, "--format", format, "-o", "-", "-q"]);
        compare(&kept(name, "report.json"), &report("json"), &mut wrong);
        compare(&kept(name, "report.csv"), &report("csv"), &mut wrong);
        let page = without_pictures(&report("html"));
        compare(&kept(name, "report.html"), &page, &mut wrong);
        for format in ["json", "md"] {
            let commands = [
                vec!["whatif", &path, "--donate", "all", "--format", format],
                vec!["whatif", &path, "--dtype", "all=bf16", "--format", format],
                vec!["plan", &path, "--fit", "100MiB", "--format", format],
            ];
            let kept = kept(name, &format!("changes.{format}.txt"));
            compare(&kept, &transcript(&commands), &mut wrong);
        }
        compare(&kept(name, "ls.txt"), &output(&["ls", &path]), &mut wrong);
    }
    assert_as_kept(&wrong);
}

#[test]
fn triage_is_as_kept() {
    let mut wrong = Vec::new();
    let topics = [
        vec!["explain"],
        vec!["explain", "padding"],
        vec!["explain", "xla_memory_scheduler"],
    ];
    compare(
        &kept("oom_text", "explain.txt"),
        &transcript(&topics),
        &mut wrong,
    );
    let mut seen = 0;
    let folder = common::samples().join("oom_text");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        seen += 1;
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let path = format!("samples/oom_text/{name}.txt");
        let commands = [
            vec!["triage", &path],
            vec!["triage", &path, "--format", "md"],
            vec!["triage", &path, "--format", "json"],
        ];
        let kept = kept("oom_text", &format!("{name}.txt"));
        compare(&kept, &transcript(&commands), &mut wrong);
    }
    let oom = "samples/lm_v5e_oom/oom.txt";
    let joined = ["text", "md", "json"]
        .map(|f| vec!["triage", oom, "--with", "samples/lm_v5e_oom", "--format", f]);
    let kept = kept("lm_v5e_oom", "triage.txt");
    compare(&kept, &transcript(&joined), &mut wrong);
    assert!(seen >= 20);
    assert_as_kept(&wrong);
}

/// A JSON value that is read only for its keys.
struct Keys;

impl<'de> serde::de::Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Keys)
    }
}

impl<'de> serde::de::Visitor<'de> for Keys {
    type Value = Keys;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut seen = std::collections::BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<Keys>()?;
            if let Some(twice) = seen.replace(key) {
                return Err(serde::de::Error::custom(format!("key {twice:?} twice")));
            }
        }
        Ok(Keys)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Keys, A::Error> {
        while seq.next_element::<Keys>()?.is_some() {}
        Ok(Keys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys)
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys)
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys)
    }
}

#[test]
fn no_json_writes_a_key_twice() {
    serde_json::from_str::<Keys>(r#"[{"a": {"b": 1, "b": 2}}]"#)
        .err()
        .expect("finds one that does");
    let oom = "samples/lm_v5e_oom/oom.txt";
    let dump = "samples/lm_v5e_oom";
    for args in [
        &["report", dump, "--format", "json", "-o", "-", "--timeline"][..],
        &["whatif", dump, "--donate", "all", "--format", "json"],
        &["plan", dump, "--fit", "15GiB", "--format", "json"],
        &["triage", oom, "--format", "json"],
        &["triage", oom, "--with", dump, "--format", "json"],
    ] {
        let json = output(args);
        if let Err(e) = serde_json::from_str::<Keys>(&json) {
            panic!("{args:?}: {e}");
        }
    }
}

/// The catalogue's page is what the catalogue says.
#[test]
fn the_page_of_advice_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/advice.md");
    let page = xpeak::render::render_markdown(&xpeak::render::documents::catalogue());
    let mut wrong = Vec::new();
    compare(&path, &page, &mut wrong);
    assert_as_kept(&wrong);
}

/// The table of kinds in `docs/findings.md` is what the kinds say of themselves.
#[test]
fn the_page_of_findings_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/findings.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let start = page.find("| kind | what it detects |").unwrap();
    let rows = start + page[start..].find("|---|").unwrap();
    let rows = rows + page[rows..].find('\n').unwrap() + 1;
    let end = rows + page[rows..].find("\n\n").unwrap() + 1;
    let current = format!(
        "{}{}{}",
        &page[..rows],
        xpeak::findings::docs_rows(),
        &page[end..]
    );
    let mut wrong = Vec::new();
    compare(&path, &current, &mut wrong);
    assert_as_kept(&wrong);
}

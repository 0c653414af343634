//! What a plan may say, and what a what-if must refuse.
#![allow(clippy::unwrap_used, clippy::field_reassign_with_default)]

mod common;

use xpeak::findings::{FindingKind, Safety};
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::hlo::{MemorySpace, Mesh, MeshAxis};
use xpeak::report::{load, Detail, Options, Report};
use xpeak::source::Sources;
use xpeak::whatif::{
    plan, plan_with, whatif, whatif_with, Base, Confidence, Edit, Outcome, Plan, PlanOptions,
    WhatIfOptions,
};

fn edits(line: &str) -> Vec<Edit> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Edit::parse_words(&words).unwrap()
}

fn options(line: &str) -> WhatIfOptions<'static> {
    WhatIfOptions::new(edits(line))
}

/// The plan of a program for so many bytes.
fn plan_of(name: &str, capacity_bytes: u64) -> Plan {
    let bytes = common::read(name);
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let o = PlanOptions::new(capacity_bytes);
    plan(&program, &o).unwrap()
}

/// What a finding says it saves bounds what the change it asks for saves in the simulation, found
/// the way the command line finds it.
#[test]
fn a_finding_s_sharding_saves_no_more_than_the_finding_says() {
    let wanted = [
        "transformer_v6e_unsharded_embed",
        "transformer_v6e_unsharded_logits",
        "transformer_v6e_base",
        "mlp_train_v5e",
        "moe_v6e",
        "decode_v6e_nodonate",
    ];
    let mut tried = 0;
    let folders = common::folders();
    for folder in &folders {
        let name = common::name_of(folder);
        if !wanted.contains(&name.as_str()) {
            continue;
        }
        let mut o = Options::default();
        o.detail = Detail::FirstModule;
        let sources = Sources::open(std::slice::from_ref(folder)).unwrap();
        let loaded = load(&sources, &o).unwrap();
        let report = loaded.report(&o);
        let module = loaded
            .modules
            .iter()
            .find(|m| m.analysis.is_some())
            .unwrap();
        let space = Report::space(&report.modules[0], 0).unwrap();
        let base = Base::new(&module.program, MemorySpace::HBM).unwrap();
        let check = |edit: &str, before: &Outcome, after: &Outcome| {
            let (kind, n) = edit
                .strip_prefix("--shard ")
                .and_then(|e| e.split_once('='))
                .and_then(|(s, _)| s.split_once(':'))
                .unwrap();
            let mut of_kind = space.findings.iter().filter(|f| f.kind.name() == kind);
            let f = of_kind.nth(n.parse::<usize>().unwrap() - 1).unwrap();
            let lost = before
                .fragmentation_bytes
                .saturating_sub(after.fragmentation_bytes);
            let saved = before.allocated_bytes.saturating_sub(after.allocated_bytes);
            assert!(
                saved <= f.saving_bytes + lost,
                "{name} {edit}: {saved}, the finding says {} and {lost} between buffers",
                f.saving_bytes
            );
        };
        for kind in [FindingKind::UNSHARDED, FindingKind::REDUNDANT_COPIES] {
            let count = space.findings.iter().filter(|f| f.kind == kind).count();
            for n in 1..=count {
                for ways in [2, 4] {
                    let edit = format!("--shard {}:{n}={ways}", kind.name());
                    let mut o = options(&edit);
                    o.findings = &space.findings;
                    if let Ok((w, _)) = whatif_with(&base, &o) {
                        check(&edit, &w.before, &w.after);
                        tried += 1;
                    }
                }
            }
        }
        let mut o = PlanOptions::new(base.usage.allocated_bytes / 5 * 4);
        o.findings = &space.findings;
        let p = plan_with(&base, &o).unwrap();
        let mut before = &p.before;
        for s in &p.steps {
            if s.edit.starts_with("--shard ") && s.edit.contains(':') {
                check(&s.edit, before, &s.after);
            }
            before = &s.after;
        }
    }
    assert!(
        tried > 4
            || folders
                .iter()
                .all(|f| !common::name_of(f).starts_with("moe"))
    );
}

#[test]
fn what_cannot_be_is_refused() {
    for (name, line, says) in [
        ("mlp_train_v5e", "--shard all=1000", "4 devices"),
        ("mlp_train_v5e", "--shard params=5", "4 devices"),
        ("mlp_train_v5e", "--shard params=3", "3 does not divide"),
        ("mlp_train_v5e", "--shard batch=2", "none holds a copy"),
        ("transformer_v6e_base", "--shard tokens=4", "at most 2 ways"),
        ("mlp_train_v5e", "--microbatch 3", "3 does not divide"),
        ("mlp_train_v5e", "--microbatch 32", "does not divide"),
        ("mlp_train_v5e", "--batch 64:7", "7 does not divide"),
        ("mlp_train_v5e", "--batch 63:7", "no data argument"),
        (
            "mlp_train_v5e",
            "--batch 64:32@params:0",
            "no data argument",
        ),
        ("unet_v5e", "--batch 3:4", "no data argument"),
    ] {
        let bytes = common::read(name);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let e = whatif(&program, &options(line)).unwrap_err();
        assert_eq!(e.exit_code(), 2, "{line}: {e}");
        assert!(e.to_string().contains(says), "{line}: {e}");
        assert!(e.hint().is_some());
        let mut all = PlanOptions::new(1 << 30);
        all.reserve_bytes = Some(1 << 30);
        assert_eq!(plan(&program, &all).unwrap_err().exit_code(), 2);
    }
}

/// An axis counts as its size over the tensors that are the same along it.
#[test]
fn axes_are_those_of_the_meshes_given() {
    let bytes = common::read("mlp_train_v5e");
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let meshes = [Mesh {
        axes: vec![MeshAxis {
            name: "data".to_owned(),
            size: 4,
        }],
        ..Mesh::default()
    }];
    let with = |line: &str| {
        let mut o = options(line);
        o.meshes = &meshes;
        whatif(&program, &o)
    };
    let by_axis = with("--shard params=data").unwrap().0;
    assert_eq!(by_axis.after, with("--shard params=4").unwrap().0.after);
    assert!(by_axis.after.allocated_bytes < by_axis.before.allocated_bytes);
    let e = with("--shard params=tp").unwrap_err();
    assert!(e.hint().unwrap().contains("data=4"), "{e}");
}

#[test]
fn donation_stays_before_anything_that_costs() {
    let p = plan_of("mlp_oom_v5e", 16_911_433_728);
    assert_eq!(p.steps[0].edit, "--donate all");
    assert_eq!(p.steps[0].safety, Safety::Safe);
    assert!(p.steps[0].saving_bytes > 5 << 30);
    let pinned = p.steps.iter().find(|s| s.saving_bytes == 0).unwrap();
    assert!(pinned.edit.starts_with("--checkpoint"));
    assert!(pinned.reason.as_ref().unwrap().contains("on its own"));
    let text =
        xpeak::render::render_terminal(&xpeak::render::documents::plan(&p), 80, Default::default());
    assert!(text.contains("Why: the compiler computes"), "{text}");
    let bytes = common::read("mlp_oom_v5e");
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let (w, _) = whatif(&program, &options("--checkpoint all")).unwrap();
    assert_ne!(w.confidence, Confidence::Exact);
    assert!(w
        .after
        .largest
        .iter()
        .any(|b| b.count >= 8 && !b.shape.is_empty()));
}

/// Whatever the limit: steps grow riskier, save something or say why not, cut no weights for a
/// batch, and their code is Python.
#[test]
fn every_plan_is_sound() {
    let mut code: Vec<String> = Vec::new();
    for folder in common::folders() {
        let name = common::name_of(&folder);
        let bytes = common::bytes_of(&folder);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let Ok(base) = Base::new(&program, MemorySpace::HBM) else {
            continue;
        };
        let o = PlanOptions::new(base.usage.allocated_bytes / 3 + 1);
        let p = plan_with(&base, &o).unwrap();
        assert!(
            p.steps.windows(2).all(|s| s[0].safety <= s[1].safety),
            "{name}"
        );
        for s in &p.steps {
            assert!(
                s.saving_bytes > 0 || s.reason.is_some(),
                "{name} {}",
                s.edit
            );
            assert!(!s.verify.contains("xpeak diff"));
            assert!(
                !(s.edit.starts_with("--batch") && s.edit.contains('[')),
                "{}",
                s.edit
            );
            code.push(s.jax.clone());
        }
        let is_gpu = name.contains("h100") || name.contains("cpu");
        let names_tpu = p.otherwise.iter().any(|l| l.contains("TPU"));
        assert!(!(is_gpu && names_tpu), "{name}: {:?}", p.otherwise);
    }
    for c in &code {
        assert!(!c.contains('<'), "{c}");
        let count = |ch: char| c.matches(ch).count();
        assert_eq!(count('('), count(')'), "{c}");
        assert_eq!(count('['), count(']'), "{c}");
    }
    // Where there is a Python, it has the last word.
    let check = "import ast,sys\nfor c in sys.argv[1:]: ast.parse(c)";
    let mut python = std::process::Command::new("python3");
    if let Ok(out) = python.arg("-c").arg(check).args(&code).output() {
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
}

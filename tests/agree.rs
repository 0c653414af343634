//! A finding and the edit that follows from it say the same: walked over every program that is
//! there.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::{Path, PathBuf};

use xpeak::analysis::{FindingKind, SavingKind};
use xpeak::report::{load, Options};
use xpeak::simulate::{whatif_with, Base, Confidence, Edit, WhatIfOptions};
use xpeak::source::Sources;

/// Every folder with a compiled program: samples, pairs, and the wider corpus where that is there.
fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [
        "samples",
        "samples/pairs",
        "../shared/corpus/programs",
        "../shared/corpus/pairs2/programs",
    ];
    let mut out: Vec<PathBuf> = folders
        .iter()
        .filter_map(|f| std::fs::read_dir(root.join(f)).ok())
        .flatten()
        .map(|e| e.unwrap().path())
        .filter(|p| common::dump_of(p).is_some())
        .collect();
    out.sort();
    out
}

/// The argument that a finding's title names: what stands between the first backticks.
fn named(title: &str) -> &str {
    title.split('`').nth(1).unwrap()
}

#[test]
fn donation_is_one_verdict() {
    let (mut exact, mut bounded, mut in_vain) = (0, 0, 0);
    let mut wrong = Vec::new();
    for folder in programs() {
        let sources = Sources::open(std::slice::from_ref(&folder)).unwrap();
        let options = Options::default();
        let loaded = load(&sources, &options).unwrap();
        let report = loaded.report(&options);
        let Some(module) = loaded.modules.iter().find(|m| m.analysis.is_some()) else {
            continue;
        };
        let space = &report.modules[0].memory_spaces[0];
        assert_eq!(space.color, options.space.0);
        let base = Base::new(&module.program, options.space).unwrap();
        for f in &space.findings {
            if f.kind != FindingKind::Donation {
                continue;
            }
            let line = ["--donate", named(&f.title)];
            let edits = Edit::parse_words(&line).unwrap();
            let options = WhatIfOptions {
                space: options.space,
                edits,
                ..WhatIfOptions::default()
            };
            let (w, _) = whatif_with(&base, &options).unwrap();
            let saved = w.before.peak_bytes.saturating_sub(w.after.peak_bytes);
            let agrees = match f.saving {
                SavingKind::Exact => {
                    exact += 1;
                    saved == f.saving_bytes && w.confidence == Confidence::Exact
                }
                _ if f.saving_bytes == 0 => {
                    in_vain += 1;
                    saved == 0 && w.after.allocated_bytes == w.before.allocated_bytes
                }
                _ => {
                    bounded += 1;
                    saved <= f.saving_bytes && w.confidence != Confidence::Exact
                }
            };
            if !agrees {
                wrong.push(format!(
                    "{}: {} (saves {} {:?}); {line:?} saves {saved} {:?}: {}",
                    folder.display(),
                    f.title,
                    f.saving_bytes,
                    f.saving,
                    w.confidence,
                    w.edits[0].note
                ));
            }
        }
    }
    println!("{exact} exact, {bounded} bounded, {in_vain} in vain");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        exact >= 5 && bounded >= 2 && in_vain >= 2,
        "{exact} {bounded} {in_vain}"
    );
}

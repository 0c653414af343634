//! A finding and the edit that follows from it say the same.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;

use xpeak::findings::{FindingKind, SavingKind};
use xpeak::report::{load, Options};
use xpeak::source::Sources;
use xpeak::whatif::{whatif_with, Base, Confidence, Edit, WhatIfOptions};

/// The argument that a finding's title names: what stands between the first backticks.
fn named(title: &str) -> &str {
    title.split('`').nth(1).unwrap()
}

/// How many donations were looked at: said to be exact, to be at most so much, and to be in vain.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    pub exact: usize,
    pub bounded: usize,
    pub in_vain: usize,
}

/// Walks the donation findings of every program: what the finding says, the edit says.
pub fn donations(folders: &[PathBuf]) -> Seen {
    let mut seen = Seen::default();
    let mut wrong = Vec::new();
    for folder in folders {
        let sources = Sources::open(std::slice::from_ref(folder)).unwrap();
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
            if f.kind != FindingKind::DONATION {
                continue;
            }
            let line = ["--donate", named(&f.title)];
            let edits = Edit::parse_words(&line).unwrap();
            let options = WhatIfOptions::new(edits);
            let (w, _) = whatif_with(&base, &options).unwrap();
            let saved = w.before.peak_bytes.saturating_sub(w.after.peak_bytes);
            let agrees = match f.saving {
                SavingKind::Exact => {
                    seen.exact += 1;
                    saved == f.saving_bytes && w.confidence == Confidence::Exact
                }
                _ if f.saving_bytes == 0 => {
                    seen.in_vain += 1;
                    saved == 0 && w.after.allocated_bytes == w.before.allocated_bytes
                }
                _ => {
                    seen.bounded += 1;
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
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    seen
}

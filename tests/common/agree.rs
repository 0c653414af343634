//! A finding and the edit that follows from it say the same.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use xpeak::findings::{Finding, FindingKind, SavingKind};
use xpeak::peak::{padding_rows, Context};
use xpeak::report::{load, Options};
use xpeak::source::Sources;
use xpeak::whatif::{whatif_with, Base, Confidence, Edit, WhatIf, WhatIfOptions};

/// An edit that follows from findings of a kind.
struct Follows {
    kind: FindingKind,
    /// The edit as written, for the `n`th finding of its kind (from 1).
    words: fn(&Finding, n: usize) -> [String; 2],
    /// Whether it is about all findings of the kind together.
    together: bool,
    /// What the verdict behind the findings comes to with all that is too small for a finding; `None`
    /// where an edit is about what findings name alone.
    bound: Option<fn(&Context<'_, '_>) -> u64>,
}

/// What better shapes save of everything that pads at the peak.
fn better_shapes(ctx: &Context<'_, '_>) -> u64 {
    let rows = padding_rows(ctx);
    let better = rows.iter().filter_map(|r| r.better.as_ref());
    better.map(|b| b.saving_bytes).sum()
}

const FOLLOWS: [Follows; 8] = [
    Follows {
        kind: FindingKind::DONATION,
        words: |f, _| ["--donate".into(), named(&f.title).into()],
        together: false,
        bound: None,
    },
    Follows {
        kind: FindingKind::UNSHARDED,
        words: |f, n| ["--shard".into(), format!("unsharded:{n}={}", copies(f))],
        together: false,
        bound: None,
    },
    Follows {
        kind: FindingKind::REDUNDANT_COPIES,
        words: |f, n| {
            [
                "--shard".into(),
                format!("redundant_copies:{n}={}", copies(f)),
            ]
        },
        together: false,
        bound: None,
    },
    Follows {
        kind: FindingKind::FLOAT32,
        words: |_, n| ["--dtype".into(), format!("float32:{n}=bf16")],
        together: false,
        bound: None,
    },
    Follows {
        kind: FindingKind::LONG_LIVED,
        words: |_, n| ["--offload".into(), format!("long_lived:{n}")],
        together: false,
        bound: None,
    },
    Follows {
        kind: FindingKind::PADDING,
        words: |_, _| ["--pad-free".into(), String::new()],
        together: true,
        bound: Some(better_shapes),
    },
    Follows {
        kind: FindingKind::SAVED_ACTIVATIONS,
        words: |_, _| ["--checkpoint".into(), "all".into()],
        together: true,
        bound: None,
    },
    Follows {
        kind: FindingKind::DEBUG_CALLBACK,
        words: |_, _| ["--no-debug".into(), String::new()],
        together: true,
        bound: None,
    },
];

/// What a finding names: what stands between the first backticks of its title.
fn named(title: &str) -> &str {
    title.split('`').nth(1).unwrap()
}

/// How many devices hold each byte that a finding is about, on average: of `c` copies, all but one
/// are saved.
fn copies(f: &Finding) -> u64 {
    let once = f.bytes - f.saving_bytes;
    (f.bytes + once / 2) / once.max(1)
}

/// How often the findings of a kind were compared with the edit.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Exactly what the finding says.
    pub same: usize,
    /// Less than the finding's upper bound.
    pub less: usize,
    /// Nothing, as the finding says.
    pub without_effect: usize,
}

/// Whether findings of every kind that an edit follows from were compared at least `least` times.
pub fn looked_at_all(seen: &BTreeMap<FindingKind, Seen>, least: usize) -> bool {
    let enough = |s: &Seen| s.same + s.less + s.without_effect >= least;
    FOLLOWS
        .iter()
        .all(|f| seen.get(&f.kind).is_some_and(enough))
}

/// Walks the findings of every program: what the finding says, the edit says.
pub fn findings_and_edits(folders: &[PathBuf]) -> BTreeMap<FindingKind, Seen> {
    let mut seen: BTreeMap<FindingKind, Seen> = BTreeMap::new();
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
        let analysis = module.analysis.as_ref().unwrap();
        let ctx = analysis.context(&module.program, None);
        for follows in &FOLLOWS {
            let of_kind = space.findings.iter().filter(|f| f.kind == follows.kind);
            let of_kind: Vec<&Finding> = of_kind.collect();
            let groups: Vec<&[&Finding]> = match follows.together {
                true => of_kind.chunks(of_kind.len().max(1)).collect(),
                false => of_kind.chunks(1).collect(),
            };
            for (at, group) in groups.into_iter().enumerate() {
                let words = (follows.words)(group[0], at + 1);
                let mut line: Vec<&str> = words.iter().map(String::as_str).collect();
                line.retain(|w| !w.is_empty());
                let mut options = WhatIfOptions::new(Edit::parse_words(&line).unwrap());
                options.findings = &space.findings;
                let seen = seen.entry(follows.kind).or_default();
                let agrees = match whatif_with(&base, &options) {
                    Ok((w, _)) => compare(group, said(group, follows, &ctx), &w, seen),
                    Err(e) => Err(e.to_string()),
                };
                if let Err(why) = agrees {
                    let titles: Vec<&str> = group.iter().map(|f| f.title.as_str()).collect();
                    let folder = folder.file_name().unwrap_or_default();
                    wrong.push(format!("{folder:?}: {titles:?}\n    {line:?} {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    seen
}

/// What the findings say that the edit saves: exactly, or at most.
fn said(group: &[&Finding], follows: &Follows, ctx: &Context<'_, '_>) -> u64 {
    let said: u64 = group.iter().map(|f| f.saving_bytes).sum();
    match follows.bound {
        Some(bound) => {
            assert!(bound(ctx) >= said, "findings say more than their verdict");
            bound(ctx)
        }
        None => said,
    }
}

/// Whether an edit does what the findings say, or why not.
fn compare(group: &[&Finding], said: u64, w: &WhatIf, seen: &mut Seen) -> Result<(), String> {
    let saved = w.before.peak_bytes.saturating_sub(w.after.peak_bytes);
    let agrees = if group.iter().all(|f| f.saving == SavingKind::Exact) {
        seen.same += 1;
        saved == said && w.confidence == Confidence::Exact
    } else if said == 0 {
        seen.without_effect += 1;
        saved == 0 && w.after.allocated_bytes == w.before.allocated_bytes
    } else {
        *(if saved == said {
            &mut seen.same
        } else {
            &mut seen.less
        }) += 1;
        saved <= said && w.confidence != Confidence::Exact
    };
    match agrees {
        true => Ok(()),
        false => Err(format!(
            "saves {saved} {:?} where {said} is said: {}",
            w.confidence, w.edits[0].note
        )),
    }
}

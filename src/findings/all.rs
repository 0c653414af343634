//! All findings of one memory space, in one order.
//!
//! In: the facts of a space. Out: its findings, those that others say better left out, with lines on
//! which share buffers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::finding::{Detector, Finding, FindingKind, FindingSeverity};
use crate::facts::Facts;
use crate::hlo::MemorySpace;

/// Every kind of finding; of equals the earlier one comes first. To add one: a file beside this one
/// with its `Detector` (and its `mod` line), and a row here.
static DETECTORS: &[&Detector] = &[
    &super::large_tensor::DETECTOR,
    &super::unsharded::DETECTOR,
    &super::unsharded::COPIES,
    &super::padding::DETECTOR,
    &super::donation::DETECTOR,
    &super::float32::DETECTOR,
    &super::activations::DETECTOR,
    &super::debug::DETECTOR,
    &super::fragmentation::DETECTOR,
    &super::long_lived::DETECTOR,
    &super::capacity::DETECTOR,
];

impl FindingKind {
    /// Every kind.
    pub fn all() -> impl Iterator<Item = FindingKind> {
        DETECTORS.iter().map(|d| FindingKind::new(d))
    }
}

/// Findings of a space: a program that does not fit comes first, then by what they save, by what
/// they are about, by kind and title.
pub fn all_findings(facts: &Facts<'_, '_>) -> Vec<Finding> {
    let is_main = facts.usage.space == MemorySpace::HBM;
    let mut out: Vec<Finding> = Vec::new();
    for d in DETECTORS.iter().filter(|d| is_main || d.every_space) {
        let found = (d.find)(facts, &out);
        out.extend(found);
    }
    let mut buffers: HashMap<FindingKind, HashSet<i64>> = HashMap::new();
    for f in &out {
        let of = buffers.entry(f.kind).or_default();
        of.extend(f.buffer_ids.iter().copied());
    }
    let yields: HashMap<FindingKind, &[FindingKind]> = DETECTORS
        .iter()
        .map(|d| (FindingKind::new(d), d.yields_to))
        .collect();
    out.retain(|f| {
        let to = yields.get(&f.kind).copied().unwrap_or_default();
        let of = |id: &i64| {
            to.iter()
                .any(|k| buffers.get(k).is_some_and(|b| b.contains(id)))
        };
        f.buffer_ids.is_empty() || !f.buffer_ids.iter().all(of)
    });
    let mut out = in_order(out);
    note_overlaps(&mut out);
    out
}

/// The rows of the table of kinds in `docs/findings.md`.
pub fn docs_rows() -> String {
    let row = |d: &&Detector| {
        format!(
            "| `{}` | {} | {} | {} | {} |\n",
            d.name, d.detects, d.how, d.silent, d.saving
        )
    };
    DETECTORS.iter().map(row).collect()
}

/// Other findings named in a line about overlaps at most.
const MAX_OVERLAPS: usize = 3;

/// Says of each finding that would save something with which earlier ones it shares buffers.
fn note_overlaps(findings: &mut [Finding]) {
    let mut by_buffer: HashMap<i64, BTreeSet<usize>> = HashMap::new();
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (at, f) in findings.iter().enumerate() {
        if f.saving_bytes == 0 || f.kind == FindingKind::FRAGMENTATION {
            continue;
        }
        let mut shared: BTreeSet<usize> = BTreeSet::new();
        for id in &f.buffer_ids {
            let here = by_buffer.entry(*id).or_default();
            shared.extend(here.iter().copied());
            // A buffer that many findings name is told of with the first ones.
            if here.len() < MAX_OVERLAPS {
                here.insert(at);
            }
        }
        let names: BTreeSet<&str> = shared
            .iter()
            .filter_map(|&s| findings.get(s))
            .map(|s| s.kind.name())
            .collect();
        if !names.is_empty() {
            let names: Vec<&str> = names.into_iter().take(MAX_OVERLAPS).collect();
            let text = format!(
                "shares buffers with findings above ({}): the savings do not add up",
                names.join(", ")
            );
            lines.push((at, text));
        }
    }
    for (at, text) in lines {
        if let Some(f) = findings.get_mut(at) {
            f.evidence.push(text);
        }
    }
}

/// Sorts findings, each once.
fn in_order(mut findings: Vec<Finding>) -> Vec<Finding> {
    let overflow =
        |f: &Finding| f.kind == FindingKind::CAPACITY && f.severity == FindingSeverity::High;
    findings.sort_by(|a, b| {
        let key = |f: &Finding| {
            (
                Reverse(overflow(f)),
                Reverse(f.saving_bytes),
                Reverse(f.bytes),
                DETECTORS.iter().position(|d| d.name == f.kind.name()),
            )
        };
        key(a)
            .cmp(&key(b))
            .then_with(|| a.title.cmp(&b.title))
            .then_with(|| a.buffer_ids.cmp(&b.buffer_ids))
    });
    findings.dedup();
    findings
}

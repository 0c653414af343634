//! All findings of one memory space, in one order.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::activations::activation_findings;
use super::capacity::capacity_findings;
use super::debug::debug_findings;
use super::donated_in_vain::donated_in_vain;
use super::donation::donation_findings;
use super::finding::{Finding, FindingKind, FindingSeverity};
use super::float32::float32_findings;
use super::fragmentation::fragmentation_findings;
use super::large_tensor::large_tensor_findings;
use super::long_lived::long_lived_findings;
use crate::dataflow::Graph;
use crate::hlo::MemorySpace;
use crate::peak::Context;

/// Findings of a space, with those of other analyses (`extra`): a program that does not fit comes
/// first, then by what they save, by what they are about, by kind and title. On-chip spaces have
/// only what `extra` brings: the compiler fills them to their brim on purpose.
pub fn all_findings(ctx: &Context<'_, '_>, graph: &Graph, extra: Vec<Finding>) -> Vec<Finding> {
    let mut out = extra;
    if ctx.usage.space == MemorySpace::HBM {
        out.extend(capacity_findings(ctx));
        out.extend(donation_findings(ctx, graph));
        out.extend(donated_in_vain(ctx, graph));
        let activations = activation_findings(ctx, graph);
        let reported = ids_of(&activations);
        out.extend(activations);
        out.extend(float32_findings(ctx));
        let debug = debug_findings(ctx, graph);
        // What goes with the debugging code needs no sharding and no other type.
        let removed = ids_of(&debug);
        out.retain(|f| !(concerns_values(f.kind) && covered(f, &removed)));
        out.extend(debug);
        out.extend(fragmentation_findings(ctx));
        // A forward result that waits for the backward pass is said to do so already.
        let skip: BTreeSet<usize> = ctx
            .peak
            .buffers
            .iter()
            .enumerate()
            .filter(|(_, b)| ctx.buffer_id(b).is_some_and(|id| reported.contains(&id)))
            .map(|(at, _)| at)
            .collect();
        out.extend(long_lived_findings(ctx, graph, &skip));
        // The size alone is worth telling only where nothing says more of the block.
        let explained: Vec<Finding> = out.iter().filter(|f| says_why(f.kind)).cloned().collect();
        let explained = ids_of(&explained);
        let mut large = large_tensor_findings(ctx);
        large.retain(|f| !covered(f, &explained));
        out.extend(large);
    }
    let mut out = in_order(out);
    note_overlaps(&mut out);
    out
}

fn ids_of(findings: &[Finding]) -> HashSet<i64> {
    let ids = findings.iter().flat_map(|f| f.buffer_ids.iter().copied());
    ids.collect()
}

/// Whether a finding is about nothing but these buffers.
fn covered(f: &Finding, ids: &HashSet<i64>) -> bool {
    !f.buffer_ids.is_empty() && f.buffer_ids.iter().all(|id| ids.contains(id))
}

fn concerns_values(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::RedundantCopies | FindingKind::Float32 | FindingKind::Padding
    )
}

fn says_why(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::SavedActivations
            | FindingKind::RedundantCopies
            | FindingKind::Unsharded
            | FindingKind::Padding
            | FindingKind::Donation
            | FindingKind::DebugCallback
    )
}

/// Other findings named in a line about overlaps at most.
const MAX_OVERLAPS: usize = 3;

/// Says of each finding that would save something with which earlier ones it shares buffers.
fn note_overlaps(findings: &mut [Finding]) {
    let mut by_buffer: HashMap<i64, BTreeSet<usize>> = HashMap::new();
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (at, f) in findings.iter().enumerate() {
        if f.saving_bytes == 0 || f.kind == FindingKind::Fragmentation {
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
        |f: &Finding| f.kind == FindingKind::Capacity && f.severity == FindingSeverity::High;
    findings.sort_by(|a, b| {
        let key = |f: &Finding| {
            (
                Reverse(overflow(f)),
                Reverse(f.saving_bytes),
                Reverse(f.bytes),
                f.kind,
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

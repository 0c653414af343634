//! All findings of one memory space, in one order.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use super::activations::activation_findings;
use super::capacity::capacity_findings;
use super::debug::debug_findings;
use super::donation_finding::donation_findings;
use super::finding::{Context, Finding, FindingKind, FindingSeverity};
use super::float32::float32_findings;
use super::fragmentation::fragmentation_findings;
use super::graph::Graph;
use super::large_tensor::large_tensor_findings;
use super::long_lived::long_lived_findings;
use crate::model::MemorySpace;

/// Findings of a space, with those of other analyses (`extra`): a program that does not fit comes
/// first, then by what they save, by what they are about, by kind and title. On-chip spaces have
/// only what `extra` brings: the compiler fills them to their brim on purpose.
pub fn all_findings(ctx: &Context<'_, '_>, graph: &Graph, extra: Vec<Finding>) -> Vec<Finding> {
    let mut out = extra;
    if ctx.usage.space == MemorySpace::HBM {
        out.extend(capacity_findings(ctx));
        out.extend(large_tensor_findings(ctx));
        out.extend(donation_findings(ctx, graph));
        let activations = activation_findings(ctx, graph);
        let reported: HashSet<i64> = activations
            .iter()
            .flat_map(|f| f.buffer_ids.iter().copied())
            .collect();
        out.extend(activations);
        out.extend(float32_findings(ctx));
        let debug = debug_findings(ctx, graph);
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
    }
    in_order(out)
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

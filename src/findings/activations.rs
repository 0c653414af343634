//! Findings on forward results that are held for the backward pass: what checkpointing could free.
//!
//! In: saved activations. Out: one finding per loop that stacks them, one for all others.

use rustc_hash::{FxHashMap, FxHashSet};

use super::evidence::{buffer_ids, counted, matters, place, shortened};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::dataflow::Graph;
use crate::hlo::op_name::operation;
use crate::hlo::InstructionId;
use crate::peak::{Context, PeakBuffer};
use crate::text::stars;
use crate::training::checkpoint_policy::{compiler_recomputes, product_bytes};
use crate::training::forward::{ForwardPass, Waiting};
use crate::training::SavedActivation;
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "saved_activations",
    intervention: Some("checkpoint"),
    brief: "forward results kept for the backward pass",
    text: "Values of the forward pass are kept for the backward pass. jax.checkpoint recomputes them instead; micro-batching makes them smaller.",
    detects: "Results of the forward pass held for the backward pass; of a scan with the number of iterations and the size of one.",
    how: "A block at the peak whose producer's name has `jvp` without `transpose`, and which an operation with `transpose` reads after the peak, directly or through copies. The producer is found through copies, in-place updates of stacked arrays and fusions. Trip counts are the back end's, a counter compared with a constant, or the first dimension that all stacks share. What `jax.checkpoint_policies.dots_saveable` would keep is the body's products times the iterations, held today or not.",
    silent: "The names are missing (a file stripped of metadata, a framework other than JAX). Under `jax.checkpoint` only results of products that its policy saves are reported: a block's inputs have to stay. Of layers without a loop, results that repeat and that all later ones are computed from are inputs, too.",
    saving: "`upper_bound`: all of them. What is recomputed block by block comes back for a short time.",
    every_space: false,
    find: |facts, _| activation_findings(facts, facts.graph(), facts.saved_activations()),
    yields_to: &[],
};

impl FindingKind {
    /// Forward results held for the backward pass.
    pub const SAVED_ACTIVATIONS: FindingKind = FindingKind::new(&DETECTOR);
}

/// One finding per loop whose results are stacked, and one for all others.
pub fn activation_findings(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    saved: &[SavedActivation],
) -> Vec<Finding> {
    // What a checkpointed block keeps besides products are its inputs: those it needs.
    let freeable = |s: &&SavedActivation| !s.checkpointed || s.is_product;
    let mut loops: Vec<InstructionId> = saved.iter().filter_map(|s| s.stacked_by).collect();
    loops.sort_unstable();
    loops.dedup();
    let mut out = Vec::new();
    for w in loops {
        let of_loop = saved.iter().filter(|s| s.stacked_by == Some(w));
        let group: Vec<&SavedActivation> = of_loop.filter(freeable).collect();
        out.extend(loop_finding(ctx, &group));
    }
    let rest = saved.iter().filter(|s| s.stacked_by.is_none());
    let (mut inputs, mut rest) = split_inputs(ctx, graph, rest.collect());
    inputs.retain(freeable);
    rest.retain(freeable);
    out.extend(straight_finding(ctx, &rest, total(&inputs)));
    out
}

/// Layers written out one after another: results that everything later is computed from, and that
/// repeat, are where blocks begin. A block keeps its input, so those stay; the others may go.
fn split_inputs<'s>(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    group: Vec<&'s SavedActivation>,
) -> (Vec<&'s SavedActivation>, Vec<&'s SavedActivation>) {
    if !matters(ctx, total(&group)) {
        return (Vec::new(), group);
    }
    let waiting = |s: &&SavedActivation| {
        let block = ctx.peak.buffers.get(s.peak_index);
        let shape = block.and_then(|b| b.shape.as_ref());
        Waiting {
            producer: s.producer,
            dimensions: shape.map_or_else(Vec::new, |s| s.dimensions.clone()),
            bytes: s.bytes,
        }
    };
    let waiting: Vec<Waiting> = group.iter().map(waiting).collect();
    let blocks = ForwardPass::new(ctx, graph).blocks(ctx, graph, &waiting);
    let mut inputs = blocks.is_input.into_iter();
    group.into_iter().partition(|_| inputs.next() == Some(true))
}

fn total<'s>(group: impl IntoIterator<Item = &'s &'s SavedActivation>) -> u64 {
    group.into_iter().fold(0, |s, a| s.saturating_add(a.bytes))
}

fn line(ctx: &Context<'_, '_>, s: &SavedActivation) -> (u64, String) {
    let i = ctx.program.module.instruction(s.producer);
    let mut text = format!("{}: {}", operation(i.op_name), units::bytes(s.bytes));
    if let Some(n) = s.trip_count.filter(|&n| n > 1) {
        text += &format!(" = {n} x {}", units::bytes(s.bytes_per_iteration));
    }
    if let Some(shape) = ctx
        .peak
        .buffers
        .get(s.peak_index)
        .and_then(|b| b.shape.as_ref())
    {
        text += &format!(", {shape}");
    }
    text += &format!(", {}{}", i.op_name, place(ctx, s.producer));
    (s.bytes, text)
}

fn ids(ctx: &Context<'_, '_>, group: &[&SavedActivation]) -> Vec<i64> {
    let buffers = group
        .iter()
        .filter_map(|s| ctx.peak.buffers.get(s.peak_index));
    buffer_ids(ctx, buffers.collect::<Vec<&PeakBuffer>>())
}

const LINKS: [&str; 2] = [
    "https://docs.jax.dev/en/latest/gradient-checkpointing.html",
    "https://openxla.org/xla/errors/error_1000",
];

fn finding(
    ctx: &Context<'_, '_>,
    group: &[&SavedActivation],
    title: String,
    evidence: Vec<String>,
    action: String,
) -> Finding {
    let bytes = total(group);
    Finding {
        kind: FindingKind::SAVED_ACTIVATIONS,
        severity: FindingSeverity::of_share(bytes, ctx.usage.peak_bytes()),
        title,
        bytes,
        // All of it at most: what is recomputed one block at a time need not fall on the peak.
        saving_bytes: bytes,
        saving: SavingKind::UpperBound,
        safety: Safety::ChangesSpeed,
        evidence,
        action,
        buffer_ids: ids(ctx, group),
        links: LINKS.map(str::to_owned).to_vec(),
    }
}

fn loop_finding(ctx: &Context<'_, '_>, group: &[&SavedActivation]) -> Option<Finding> {
    let bytes = total(group);
    let first = group.first().filter(|_| matters(ctx, bytes))?;
    let trips = first.trip_count;
    let checkpointed = group.iter().any(|s| s.checkpointed);
    let over = match trips {
        Some(n) => format!("a loop of {n} iterations"),
        None => "a loop".to_owned(),
    };
    let title = if checkpointed {
        format!(
            "{} that a checkpoint policy saves in {over} are held for the backward pass",
            units::bytes(bytes)
        )
    } else {
        format!(
            "{} of forward results of {over} are held for the backward pass",
            units::bytes(bytes)
        )
    };
    let mut evidence = shortened(group.iter().map(|s| line(ctx, s)).collect());
    if let Some(w) = first.stacked_by {
        let w_name = ctx.program.module.instruction(w);
        evidence.push(format!("stacked by {} ({})", w_name.name, w_name.op_name));
    }
    evidence.extend(recomputes_already(ctx));
    let action = if checkpointed {
        "Drop the policy of jax.checkpoint around the loop's body, or take one that saves less \
         (jax.checkpoint_policies.nothing_saveable): what it saves is recomputed instead."
            .to_owned()
    } else {
        let mut text = "Put jax.checkpoint around the loop's body: jax.lax.scan(jax.checkpoint(\
                        body), carry, layers); each iteration then keeps its input alone."
            .to_owned();
        // What the policy saves need not be what is stacked today.
        let kept = first
            .stacked_by
            .zip(trips)
            .and_then(|(w, n)| product_bytes(ctx, w, n));
        match kept {
            Some(kept) if kept > 0 && matters(ctx, bytes.saturating_sub(kept)) => {
                text += &format!(
                    " Less to recompute: jax.checkpoint(body, \
                     policy=jax.checkpoint_policies.dots_saveable) keeps the body's matrix \
                     products as well (up to {}, those that are not held today included) and \
                     frees about {}.",
                    units::bytes(kept),
                    units::bytes(bytes.saturating_sub(kept))
                );
            }
            Some(kept) if kept > 0 => {
                text += &format!(
                    " A policy that keeps the body's matrix products \
                     (jax.checkpoint_policies.dots_saveable) would not help: they may take {}.",
                    units::bytes(kept)
                );
            }
            _ => {}
        }
        text
    };
    Some(finding(ctx, group, title, evidence, action))
}

/// Whether the compiler has to compute things again already, as a line of evidence.
fn recomputes_already(ctx: &Context<'_, '_>) -> Option<String> {
    compiler_recomputes(ctx).then(|| {
        "the compiler computes forward results again already to make the program smaller (.remat \
         in names): the saving is at most what is still held"
            .to_owned()
    })
}

fn straight_finding(
    ctx: &Context<'_, '_>,
    group: &[&SavedActivation],
    input_bytes: u64,
) -> Option<Finding> {
    let bytes = total(group);
    if !matters(ctx, bytes) {
        return None;
    }
    // By scope, layers' numbers aside.
    let mut scopes: FxHashMap<String, (u64, FxHashSet<&str>)> = FxHashMap::default();
    for s in group {
        let entry = scopes.entry(stars(&s.scope)).or_default();
        entry.0 = entry.0.saturating_add(s.bytes);
        entry.1.insert(&s.scope);
    }
    let mut by_scope: Vec<(u64, String, usize)> = scopes
        .into_iter()
        .map(|(pattern, (sum, each))| (sum, pattern, each.len()))
        .collect();
    by_scope.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let repeated = by_scope.iter().find(|s| s.2 > 1 && !s.1.is_empty());
    let mut evidence = shortened(group.iter().map(|s| line(ctx, s)).collect());
    for (sum, pattern, n) in by_scope.iter().filter(|s| !s.1.is_empty()).take(4) {
        evidence.push(format!(
            "scope {pattern} ({}): {}",
            counted(*n, "place", "places"),
            units::bytes(*sum)
        ));
    }
    if input_bytes > 0 {
        evidence.push(format!(
            "{} more are what the following layers are computed from: a checkpointed block keeps \
             its input",
            units::bytes(input_bytes)
        ));
    }
    evidence.extend(recomputes_already(ctx));
    let title = format!(
        "{} of forward results ({}) are held for the backward pass",
        units::bytes(bytes),
        counted(group.len(), "buffer", "buffers")
    );
    let target = match repeated {
        Some(r) => format!("each block of scope {}", r.1),
        None => "the function of each layer, or of the loss,".to_owned(),
    };
    let products = total(group.iter().filter(|s| s.is_product));
    let mut action = if group.iter().all(|s| s.checkpointed) {
        "Take a policy of jax.checkpoint that saves less \
         (jax.checkpoint_policies.nothing_saveable)."
            .to_owned()
    } else {
        format!("Wrap {target} in jax.checkpoint, so that it keeps its inputs alone.")
    };
    if products > 0 && products < bytes {
        action += &format!(
            " With policy=jax.checkpoint_policies.dots_saveable at least the matrix products among \
             them ({}) stay.",
            units::bytes(products)
        );
    }
    Some(finding(ctx, group, title, evidence, action))
}

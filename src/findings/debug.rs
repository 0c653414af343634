//! Debugging code that materialises tensors or keeps them alive: callbacks, prints, transfers to
//! and from the host.
//!
//! In: the program and a space's peak. Out: one finding per line of the user's code that sends
//! large data to the host, with the buffers at the peak that nothing but that needs. Host offload
//! (copies to host memory) is none of it.

use rustc_hash::FxHashSet;

use super::bound::peak_without;
use super::evidence::{buffer_ids, buffer_line, matters, place, shortened};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::dataflow::Graph;
use crate::hlo::{MemorySpace, Opcode};
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::training::debugging::{debug_sites, DebugSite, OnlyFor};
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "debug_callback",
    intervention: Some("remove_debug_print"),
    brief: "debugging code keeps a whole tensor alive",
    text: "A jax.debug.print or another callback keeps a whole tensor alive to send it to the host, and breaks fusions. Remove it, or print a reduction.",
    detects: "`jax.debug.print`, callbacks, outfeeds, transfers to the host. One finding per source line, with what is sent.",
    how: "`send`, `outfeed`, custom calls of callbacks; then all that nothing else needs, also inside fusions that a collective passes through.",
    silent: "What is sent is small. Copies to host memory (offload) are not debugging.",
    saving: "`upper_bound`: the blocks at the peak that only the callback needs; 0 if there are none. `simulated`: what the peak falls by without them, where that is less. Other findings on the same blocks are left out.",
    every_space: false,
    find: |facts, _| debug_findings(facts, facts.graph()),
    yields_to: &[],
};

impl FindingKind {
    /// Debugging code that materialises tensors.
    pub const DEBUG_CALLBACK: FindingKind = FindingKind::new(&DETECTOR);
}

/// One finding per place in the user's code that sends large data to the host.
pub fn debug_findings(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<Finding> {
    if ctx.usage.space != MemorySpace::HBM {
        return Vec::new();
    }
    debug_sites(ctx, graph)
        .iter()
        .filter_map(|s| finding(ctx, graph, s))
        .collect()
}

fn finding(ctx: &Context<'_, '_>, graph: &Graph, site: &DebugSite) -> Option<Finding> {
    let module = &ctx.program.module;
    let (sent_bytes, sent) = site.largest?;
    let &first = site.instructions.first()?;
    // Where in the user's code, or the operation's name.
    let mut at = place(ctx, first);
    if at.is_empty() {
        at = format!(" {}", module.instruction(first).op_name);
    }
    let gone = OnlyFor::new(ctx, graph, &site.instructions).ranges();
    let ranges: FxHashSet<_> = gone.iter().map(|h| (h.buffer, (h.start, h.end))).collect();
    let is_gone = |b: &&PeakBuffer| {
        let range = b.canonical.zip(b.live);
        range.is_some_and(|r| ranges.contains(&r))
    };
    let at_peak: Vec<&PeakBuffer> = ctx.peak.buffers.iter().filter(is_gone).collect();
    let held = at_peak
        .iter()
        .fold(0u64, |s, b| s.saturating_add(b.counted_bytes));
    // Without it, the peak is where the rest is largest.
    let gone: Vec<_> = gone
        .iter()
        .map(|h| (h.start, h.end, h.size_bytes))
        .collect();
    let freed = held.min(
        ctx.usage
            .peak_bytes()
            .saturating_sub(peak_without(ctx.usage, &gone, 0)),
    );
    let saving = if freed < held {
        SavingKind::Simulated
    } else {
        SavingKind::UpperBound
    };
    let bytes = held.max(sent_bytes);
    if !matters(ctx, bytes) {
        return None;
    }
    let mut evidence: Vec<String> = site
        .instructions
        .iter()
        .filter(|&&i| {
            !matches!(
                module.instruction(i).opcode,
                Opcode::Recv | Opcode::RecvDone
            )
        })
        .take(4)
        .map(|&i| {
            let x = module.instruction(i);
            format!("{} {}: {}{}", x.opcode, x.name, x.op_name, place(ctx, i))
        })
        .collect();
    evidence.push(format!(
        "sends {}: {}, {}",
        module.instruction(sent).name,
        units::bytes(sent_bytes),
        module.shape(sent)
    ));
    evidence.extend(shortened(
        at_peak
            .iter()
            .map(|b| {
                let line = format!("at the peak for this alone: {}", buffer_line(ctx, b));
                (b.counted_bytes, line)
            })
            .collect(),
    ));
    if freed < held {
        evidence.push(format!(
            "without these {} the peak is at another point, {} lower",
            units::bytes(held),
            units::bytes(freed)
        ));
    }
    Some(Finding {
        kind: FindingKind::DEBUG_CALLBACK,
        severity: FindingSeverity::of_share(bytes, ctx.usage.peak_bytes()),
        title: format!(
            "{}{} brings {} together to send it to the host",
            site.what,
            at,
            units::bytes(sent_bytes)
        ),
        bytes,
        saving_bytes: freed,
        saving,
        safety: Safety::Safe,
        evidence,
        action: format!(
            "Remove it{} for real runs, or send a summary computed on the device \
             (jax.debug.print(\"{{m}}\", m=jnp.abs(x).max())): a whole tensor has to be \
             materialised, gathered from all devices and kept from being fused.",
            at
        ),
        buffer_ids: buffer_ids(ctx, at_peak),
        links: vec![
            "https://openxla.org/xla/errors/error_1000".to_owned(),
            "https://docs.jax.dev/en/latest/debugging/print_breakpoint.html".to_owned(),
        ],
    })
}

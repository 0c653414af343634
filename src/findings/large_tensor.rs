//! One buffer that takes a large part of the device, or of the peak: almost never a lack of
//! capacity, usually a configuration to correct.

use super::evidence::{buffer_line, file_name, matters};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::hlo::AllocationKind;
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::peak::{buffer_label, producer_of};
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "large_tensor",
    intervention: None,
    brief: "one buffer takes a large part of the limit",
    text: "One buffer takes a large part of the limit. That is almost never a lack of capacity: look for a left-over jax.debug.print, a wrong mesh shape, a missing sharding annotation.",
    detects: "One block over half of the device; over 30 % of the peak where the capacity is unknown.",
    how: "Size.",
    silent: "A finding on activations, copies, sharding, padding, donation or debugging is about the block.",
    saving: "0: what to do depends on why it is there.",
    every_space: false,
    find: |facts, _| large_tensor_findings(facts),
    yields_to: &[
        FindingKind::SAVED_ACTIVATIONS,
        FindingKind::REDUNDANT_COPIES,
        FindingKind::UNSHARDED,
        FindingKind::PADDING,
        FindingKind::DONATION,
        FindingKind::DEBUG_CALLBACK,
    ],
};

impl FindingKind {
    /// One buffer is a large part of the peak.
    pub const LARGE_TENSOR: FindingKind = FindingKind::new(&DETECTOR);
}

/// Buffers over half of the capacity; where that is unknown, over 30 % of the peak.
pub fn large_tensor_findings(ctx: &Context<'_, '_>) -> Vec<Finding> {
    let peak = ctx.usage.peak_bytes();
    let limit = match ctx.capacity_bytes.filter(|&c| c > 0) {
        Some(capacity) => capacity / 2,
        None => peak / 10 * 3,
    };
    ctx.peak
        .buffers
        .iter()
        .filter(|b| b.buffer.is_some() && b.counted_bytes > limit && matters(ctx, b.counted_bytes))
        .map(|b| finding(ctx, b, peak))
        .collect()
}

fn finding(ctx: &Context<'_, '_>, b: &PeakBuffer, peak: u64) -> Finding {
    let bytes = b.counted_bytes;
    let share = match ctx.capacity_bytes.filter(|&c| c > 0) {
        Some(c) => format!("{} of the device", units::percent(bytes, c)),
        None => format!("{} of the peak", units::percent(bytes, peak)),
    };
    let shape = b.shape.as_ref().map_or(String::new(), |s| format!(" {s}"));
    let mut evidence = vec![buffer_line(ctx, b)];
    if b.padding_bytes() > 0 {
        evidence.push(format!(
            "{} of it is tile padding",
            units::bytes(b.padding_bytes())
        ));
    }
    if let Some((start, end)) = b.live {
        evidence.push(format!(
            "alive at points {start} to {} of {}",
            end.saturating_sub(1),
            ctx.usage.point_count()
        ));
    }
    if let Some(i) = producer_of(ctx, b) {
        let i = ctx.program.module.instruction(i);
        evidence.push(format!("computed by {} ({})", i.name, i.opcode));
    }
    Finding {
        kind: FindingKind::LARGE_TENSOR,
        severity: FindingSeverity::of_share(bytes, peak),
        title: format!(
            "One buffer{shape} takes {}, {share}: {}",
            units::bytes(bytes),
            buffer_label(ctx, b)
        ),
        bytes,
        saving_bytes: 0,
        saving: SavingKind::UpperBound,
        safety: Safety::Safe,
        evidence,
        action: action(ctx, b),
        buffer_ids: ctx.buffer_id(b).into_iter().collect(),
        links: vec!["https://openxla.org/xla/errors/error_1000".to_owned()],
    }
}

/// What can be done about a block of its kind, in a program of so many devices.
fn action(ctx: &Context<'_, '_>, b: &PeakBuffer) -> String {
    let module = &ctx.program.module;
    let source = producer_of(ctx, b).and_then(|i| module.source_of(i));
    let at = match source {
        Some(s) if s.line > 0 => format!(" at {}:{}", file_name(&s.file), s.line),
        _ => String::new(),
    };
    let mut out = match b.kind {
        AllocationKind::Parameter | AllocationKind::Donated => {
            "It is an argument, there from start to end: pass a smaller type, or pass it in parts."
                .to_owned()
        }
        _ => format!(
            "See whether it has to exist whole where it is computed{at}: work on slices with \
             jax.lax.map or jax.lax.scan, or a kernel that fuses what follows."
        ),
    };
    if module.device_count() > 1 {
        out += " Over several devices: jax.lax.with_sharding_constraint splits it.";
    }
    out
}

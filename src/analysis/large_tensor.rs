//! One buffer that takes a large part of the device, or of the peak: almost never a lack of
//! capacity, usually a configuration to correct.

use super::evidence::{buffer_line, matters, name, place};
use super::finding::{Context, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use super::peak::PeakBuffer;
use crate::units;

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
    let source = b.instruction.map_or(String::new(), |i| place(ctx, i));
    Finding {
        kind: FindingKind::LargeTensor,
        severity: FindingSeverity::of_share(bytes, peak),
        title: format!(
            "One buffer{shape} takes {}, {share}: {}",
            units::bytes(bytes),
            name(ctx, b)
        ),
        bytes,
        saving_bytes: 0,
        saving: SavingKind::UpperBound,
        safety: Safety::Safe,
        evidence,
        action: format!(
            "Look at where it is made{source}: is it sharded as you mean it to be \
             (jax.lax.with_sharding_constraint), over a mesh of the right shape? Is a \
             jax.debug.print left in? Does it have to exist whole (slices in jax.lax.map, a fused \
             kernel)?"
        ),
        buffer_ids: ctx.buffer_id(b).into_iter().collect(),
        links: vec!["https://openxla.org/xla/errors/error_1000".to_owned()],
    }
}

//! Whether the program fits its device: what must fit against the memory there is.

use super::finding::{Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::hlo::MemorySpace;
use crate::peak::Context;
use crate::units;

/// One finding where the capacity is known; nothing for on-chip spaces.
pub fn capacity_findings(ctx: &Context<'_, '_>) -> Vec<Finding> {
    let Some(capacity) = ctx
        .capacity_bytes
        .filter(|&c| c > 0 && ctx.usage.space == MemorySpace::HBM)
    else {
        return Vec::new();
    };
    let total = ctx.usage.allocated_bytes;
    let peak = ctx.usage.peak_bytes();
    let over = total.saturating_sub(capacity);
    let headroom = capacity.saturating_sub(total);
    let (severity, title, action) = if over > 0 {
        (
            FindingSeverity::High,
            format!(
                "Does not fit: {} must fit into {}, {} too much",
                units::bytes(total),
                units::bytes(capacity),
                units::bytes(over)
            ),
            format!(
                "Free at least {} on each device: the findings below say what would, the largest \
                 saving first.",
                units::bytes(over)
            ),
        )
    } else {
        let tight = u128::from(total) * 10 > u128::from(capacity) * 9;
        (
            if tight {
                FindingSeverity::Medium
            } else {
                FindingSeverity::Low
            },
            format!(
                "Fits: {} of {}, {} left",
                units::bytes(total),
                units::bytes(capacity),
                units::bytes(headroom)
            ),
            "Nothing; compare what is left with the program's code, what the runtime reserves and \
             other programs on the device."
                .to_owned(),
        )
    };
    let evidence = vec![
        format!("peak {}", units::bytes(peak)),
        format!(
            "total that must fit {} ({} of capacity), {} of it lost between buffers",
            units::bytes(total),
            units::percent(total, capacity),
            units::bytes(ctx.usage.fragmentation_bytes())
        ),
        format!("capacity {}", units::bytes(capacity)),
        "program code and reserved memory come on top; the file does not have them".to_owned(),
    ];
    vec![Finding {
        kind: FindingKind::Capacity,
        severity,
        title,
        bytes: total,
        saving_bytes: 0,
        saving: SavingKind::UpperBound,
        safety: Safety::Safe,
        evidence,
        action,
        buffer_ids: Vec::new(),
        links: vec!["https://openxla.org/xla/errors/error_1000".to_owned()],
    }]
}

//! Whether the program fits its device: what must fit against the memory there is.

use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::hlo::MemorySpace;
use crate::peak::Context;
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "capacity",
    intervention: None,
    brief: "needed against what the device has; HBM of every TPU",
    text: "Nothing is wrong: the program needs more than the device has. HBM as the compiler counts it, a device: v2 7.48G, v3 15.48G, v4 15.25G a core (30.75G megacore), v5e 15.75G, v5p 95.73G, v6e 31.24G, v7x 94.74G (G = GiB).",
    detects: "Peak, total, what is left or missing.",
    how: "The total (not the peak) against the device's memory: high when it does not fit, medium above 90 %.",
    silent: "The capacity is unknown.",
    saving: "0: it says how much, not how.",
    every_space: false,
    find: |facts, _| capacity_findings(facts),
    yields_to: &[],
};

impl FindingKind {
    /// Whether the program fits its device.
    pub const CAPACITY: FindingKind = FindingKind::new(&DETECTOR);
}

/// One finding where the capacity is known; nothing for on-chip spaces.
// Long: one finding's words from title to links.
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
        kind: FindingKind::CAPACITY,
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

//! `xpeak whatif`: one set of edits, before and after.
//!
//! In: a program and edits. Out: [`WhatIf`], as in the JSON contract, and what a chart needs.

use serde::Serialize;

use super::apply::{apply, EditNote};
use super::base::Base;
use super::confidence::Confidence;
use super::edit::Edit;
use super::predict::{measure, outcome_as_compiled, timeline, Outcome};
use crate::error::Result;
use crate::findings::Finding;
use crate::hlo::{MemorySpace, Mesh, Program};

/// Version of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// What to simulate.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WhatIfOptions<'f> {
    /// Memory space.
    pub space: MemorySpace,
    /// The changes, in any order.
    pub edits: Vec<Edit>,
    /// Findings that selectors such as `donation:1` refer to, in the order reported.
    pub findings: &'f [Finding],
    /// Meshes of another dump of the program, for the names of axes.
    pub meshes: &'f [Mesh],
    /// Device memory in bytes, for the chart.
    pub capacity_bytes: Option<u64>,
}

impl WhatIfOptions<'_> {
    /// These changes, to HBM.
    pub fn new(edits: Vec<Edit>) -> Self {
        WhatIfOptions {
            edits,
            ..WhatIfOptions::default()
        }
    }
}

/// A memory space in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpaceName {
    /// The compiler's number.
    pub color: i64,
    /// Its name.
    pub name: String,
}

/// The effect of a set of edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WhatIf {
    /// Version of this form.
    pub schema_version: u32,
    /// Module name.
    pub module: String,
    /// Memory space.
    pub space: SpaceName,
    /// What each edit touched, in the order given.
    pub edits: Vec<EditNote>,
    /// The program as compiled.
    pub before: Outcome,
    /// The program after the edits.
    pub after: Outcome,
    /// How sure `after` is.
    pub confidence: Confidence,
    /// What the compiler may do differently.
    pub caveats: Vec<String>,
}

/// Two timelines to draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WhatIfChart {
    /// Module name.
    pub module: String,
    /// The edits as written.
    pub edits: Vec<String>,
    /// Live bytes at each program point as compiled.
    pub before: Vec<u64>,
    /// And after the edits; the same points.
    pub after: Vec<u64>,
    /// Point and bytes of the peak before.
    pub before_peak: (u32, u64),
    /// And after.
    pub after_peak: (u32, u64),
    /// Bytes that must fit, before and after.
    pub allocated: (u64, u64),
    /// Device memory in bytes, where known.
    pub capacity_bytes: Option<u64>,
}

/// Simulates `options.edits` on a program.
///
/// # Errors
/// No buffer assignment; an edit that matches nothing.
pub fn whatif(program: &Program<'_>, options: &WhatIfOptions<'_>) -> Result<(WhatIf, WhatIfChart)> {
    whatif_with(
        &Base::with_meshes(program, options.space, options.meshes)?,
        options,
    )
}

/// As [`whatif`], on a base made before: hundreds of edits are tried on one base.
///
/// # Errors
/// As [`whatif`].
pub fn whatif_with(
    base: &Base<'_, '_>,
    options: &WhatIfOptions<'_>,
) -> Result<(WhatIf, WhatIfChart)> {
    let applied = apply(base, options.findings, &options.edits)?;
    let before = outcome_as_compiled(base);
    let after = measure(base, &applied.scenario);
    let mut scenario = applied.scenario;
    if after.allocated_bytes.saturating_sub(after.indefinite_bytes)
        != before
            .allocated_bytes
            .saturating_sub(before.indefinite_bytes)
    {
        packing_caveat(base, &mut scenario);
    }
    if base.usage.arenas.iter().any(|a| a.is_union) {
        scenario.caveat(
            Confidence::UpperBound,
            "this space is assigned by the compiler with prefetching: an edit may be offset by what it moves in",
        );
    }
    let chart = WhatIfChart {
        module: base.program.module.name.to_owned(),
        edits: options.edits.iter().map(Edit::to_string).collect(),
        before: base.usage.timeline(),
        after: timeline(base, &scenario),
        before_peak: (before.peak_point, before.peak_bytes),
        after_peak: (after.peak_point, after.peak_bytes),
        allocated: (before.allocated_bytes, after.allocated_bytes),
        capacity_bytes: options.capacity_bytes,
    };
    let space = base.usage.space;
    let out = WhatIf {
        schema_version: SCHEMA_VERSION,
        module: base.program.module.name.to_owned(),
        space: SpaceName {
            color: space.0,
            name: space.name(),
        },
        edits: applied.notes,
        before,
        after,
        confidence: scenario.confidence,
        caveats: scenario.caveats,
    };
    Ok((out, chart))
}

/// Says so where the compiler packed the base far worse than needed: it may do so again.
fn packing_caveat(base: &Base<'_, '_>, scenario: &mut super::scenario::Scenario) {
    let (compiled, packed, _) = base.packing_check();
    if packed > 0 && compiled > packed + packed / 50 {
        scenario.caveat(
            Confidence::Simulated,
            &format!(
                "the compiler packed this program's temporaries into {}, best fit needs {}: it may do so again",
                crate::units::bytes(compiled),
                crate::units::bytes(packed)
            ),
        );
    }
    let unpacked = base.arenas.iter().any(|a| a.unsearched > 0);
    if unpacked {
        scenario.caveat(
            Confidence::Simulated,
            "too many live ranges to search every gap: the total is an upper bound",
        );
    }
}

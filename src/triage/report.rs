//! In: what a text says. Out: the same with what to do, as it is written to JSON.

use serde::Serialize;

use super::plan::next_steps;
use super::steps::Step;
use crate::oom::{OomReport, OomText};

/// Version of the JSON.
const SCHEMA_VERSION: u32 = 1;

/// What a text says about memory, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TriageReport {
    /// Version of this structure; grows when a field changes its meaning.
    pub schema_version: u32,
    /// Failures in the order of the text, then what is no failure (usage lines, warnings).
    pub reports: Vec<Triage>,
}

/// One failure (or one thing worth knowing) with what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Triage {
    /// What the text says.
    #[serde(flatten)]
    pub report: OomReport,
    /// What to do next, in order.
    pub advice: Vec<Step>,
}

/// Advice on all that a text says.
pub fn triage(text: OomText) -> TriageReport {
    let with_advice = |report: OomReport| Triage {
        advice: next_steps(&report),
        report,
    };
    TriageReport {
        schema_version: SCHEMA_VERSION,
        reports: text.reports.into_iter().map(with_advice).collect(),
    }
}

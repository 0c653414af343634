//! How sure a figure is.

use serde::Serialize;

/// How sure a prediction is, surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Only sizes and aliases change.
    Exact,
    /// Live ranges were edited, replayed and packed again.
    Simulated,
    /// The most the change can save.
    UpperBound,
}

impl Confidence {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Exact => "exact",
            Confidence::Simulated => "simulated",
            Confidence::UpperBound => "upper_bound",
        }
    }
}

//! How sure a figure is.

use serde::Serialize;

/// How sure a prediction is, surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The changed program was compiled.
    Measured,
    /// Only sizes and aliases change.
    Exact,
    /// Live ranges were edited, replayed and packed again.
    Simulated,
    /// The most the change can save.
    UpperBound,
}

impl Confidence {
    /// Memory to leave free for what a figure of this kind does not see, as a part of `capacity`
    /// bytes: exact figures were off by up to a thousandth when they were compiled, simulated ones
    /// by a twentieth where nothing unusual happened.
    pub fn reserve(self, capacity: u64) -> u64 {
        match self {
            // The compiler's own figure is what its check compares with the device.
            Confidence::Measured => 0,
            Confidence::Exact => capacity / 100,
            Confidence::Simulated => capacity / 20,
            Confidence::UpperBound => capacity / 10,
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Measured => "measured",
            Confidence::Exact => "exact",
            Confidence::Simulated => "simulated",
            Confidence::UpperBound => "upper_bound",
        }
    }
}

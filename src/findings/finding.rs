//! A finding: one thing that is wasted or could be changed, with its evidence. Analyses make
//! them; `findings` puts them in order; formats print them.

use serde::Serialize;

/// One finding, as in the JSON contract. All sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: FindingSeverity,
    /// One line, with names and sizes.
    pub title: String,
    /// Bytes it is about, at the peak.
    pub bytes: u64,
    /// Bytes that the action would save of the total that must fit; 0 where unknown.
    pub saving_bytes: u64,
    /// What kind of figure `saving_bytes` is.
    pub saving: SavingKind,
    /// What the action may change besides memory.
    pub safety: Safety,
    /// Facts that the finding rests on, one a line: names, sizes, source lines.
    pub evidence: Vec<String>,
    /// What to do, concretely.
    pub action: String,
    /// Logical buffers concerned, by the compiler's number, largest first.
    pub buffer_ids: Vec<i64>,
    /// Public documentation.
    pub links: Vec<String>,
}

/// Kinds of findings; `xpeak explain KIND` tells more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// One buffer is a large part of the peak.
    LargeTensor,
    /// A parameter or output that is not sharded over any device.
    Unsharded,
    /// Data at the peak that several devices hold identically.
    RedundantCopies,
    /// Tile padding.
    Padding,
    /// An argument that could give its memory to an output.
    Donation,
    /// Large float32 data.
    Float32,
    /// Forward results held for the backward pass.
    SavedActivations,
    /// Debugging code that materialises tensors.
    DebugCallback,
    /// Memory lost between buffers.
    Fragmentation,
    /// Large buffers idle for most of their life.
    LongLived,
    /// Whether the program fits its device.
    Capacity,
}

impl FindingKind {
    /// All kinds, in the order of their names' declaration.
    pub const ALL: [FindingKind; 11] = [
        FindingKind::LargeTensor,
        FindingKind::Unsharded,
        FindingKind::RedundantCopies,
        FindingKind::Padding,
        FindingKind::Donation,
        FindingKind::Float32,
        FindingKind::SavedActivations,
        FindingKind::DebugCallback,
        FindingKind::Fragmentation,
        FindingKind::LongLived,
        FindingKind::Capacity,
    ];

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::LargeTensor => "large_tensor",
            FindingKind::Unsharded => "unsharded",
            FindingKind::RedundantCopies => "redundant_copies",
            FindingKind::Padding => "padding",
            FindingKind::Donation => "donation",
            FindingKind::Float32 => "float32",
            FindingKind::SavedActivations => "saved_activations",
            FindingKind::DebugCallback => "debug_callback",
            FindingKind::Fragmentation => "fragmentation",
            FindingKind::LongLived => "long_lived",
            FindingKind::Capacity => "capacity",
        }
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// Over a tenth of the peak, or the program does not fit.
    High,
    /// Over a fiftieth of the peak.
    Medium,
    /// Worth knowing.
    Low,
}

impl FindingSeverity {
    /// By the share of the peak: over 10 % high, over 2 % medium, else low.
    pub fn of_share(bytes: u64, peak_bytes: u64) -> Self {
        let (bytes, peak) = (u128::from(bytes), u128::from(peak_bytes));
        if bytes * 10 > peak {
            FindingSeverity::High
        } else if bytes * 50 > peak {
            FindingSeverity::Medium
        } else {
            FindingSeverity::Low
        }
    }
}

/// How sure a saving is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SavingKind {
    /// Only sizes and aliases change: the compiler does the same.
    Exact,
    /// The schedule was replayed with the change.
    Simulated,
    /// The most it can save.
    UpperBound,
}

/// What an action may change besides memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Safety {
    /// Nothing.
    Safe,
    /// The time of a step.
    ChangesSpeed,
    /// Rounding of results.
    ChangesNumerics,
    /// How training goes.
    ChangesTraining,
    /// The model itself.
    ChangesModel,
}

impl Safety {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Safety::Safe => "results stay the same",
            Safety::ChangesSpeed => "results stay the same, speed changes",
            Safety::ChangesNumerics => "may change numerics",
            Safety::ChangesTraining => "changes training dynamics",
            Safety::ChangesModel => "changes the model",
        }
    }
}

//! A finding: one thing that is wasted or could be changed, with its evidence. Analyses make
//! them; `findings` puts them in order; formats print them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::facts::Facts;

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

/// What a finding is about; `xpeak explain KIND` tells more. Each kind is a constant in the file
/// that finds it; [`FindingKind::all`] lists them.
#[derive(Clone, Copy)]
pub struct FindingKind(&'static Detector);

/// A kind of finding: how it is found, and what is said about it.
pub(crate) struct Detector {
    /// In JSON and on the command line.
    pub(crate) name: &'static str,
    /// The intervention of the catalogue that its action is, by name.
    pub(crate) intervention: Option<&'static str>,
    /// For a list of topics.
    pub(crate) brief: &'static str,
    /// For `xpeak explain`.
    pub(crate) text: &'static str,
    /// For the table in `docs/findings.md`: what it detects, how, when it is silent, and what its
    /// saving means.
    pub(crate) detects: &'static str,
    pub(crate) how: &'static str,
    pub(crate) silent: &'static str,
    pub(crate) saving: &'static str,
    /// Whether it speaks of on-chip spaces too, which the compiler fills to their brim on purpose.
    pub(crate) every_space: bool,
    /// Finds them. The second argument is what the kinds before it in the table found.
    pub(crate) find: fn(&Facts<'_, '_>, &[Finding]) -> Vec<Finding>,
    /// A finding all of whose buffers findings of these kinds are about is left out: they say more.
    pub(crate) yields_to: &'static [FindingKind],
}

impl FindingKind {
    pub(crate) const fn new(detector: &'static Detector) -> Self {
        FindingKind(detector)
    }

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The intervention of the catalogue that its action is, by name.
    pub fn intervention(self) -> Option<&'static str> {
        self.0.intervention
    }

    /// What it is about, in a few words.
    pub fn brief(self) -> &'static str {
        self.0.brief
    }

    /// What it means and what can be done, in a few sentences.
    pub fn text(self) -> &'static str {
        self.0.text
    }
}

impl fmt::Debug for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for FindingKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for FindingKind {}

impl Hash for FindingKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PartialOrd for FindingKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FindingKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
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
    /// What it may change, in a word or two.
    pub fn changes(self) -> &'static str {
        match self {
            Safety::Safe => "nothing",
            Safety::ChangesSpeed => "speed",
            Safety::ChangesNumerics => "numerics",
            Safety::ChangesTraining => "training",
            Safety::ChangesModel => "the model",
        }
    }

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

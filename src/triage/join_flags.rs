//! Flags of the advice catalogue with the values that a dump's flag file gives them.

use serde::Serialize;

use super::catalogue::{Outcome, FLAGS};

/// A flag of the catalogue and its value in the dump's flag file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FlagInForce {
    /// Name, without dashes.
    pub name: &'static str,
    /// Value in force.
    pub value: String,
    /// Documented suggestion.
    pub suggested: &'static str,
    /// What was measured on a 4-layer transformer; empty when nothing was.
    pub measured: &'static str,
    /// Whether the suggestion made that peak smaller, and is not in force already.
    pub worth_trying: bool,
}

/// Values of the catalogue's flags in a dump's flag file, in the catalogue's order.
pub fn flags_in_force(flagfile: &[u8]) -> Vec<FlagInForce> {
    let text = String::from_utf8_lossy(flagfile);
    let values: std::collections::BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|l| l.trim().trim_start_matches('-').split_once('='))
        .collect();
    FLAGS
        .iter()
        .filter_map(|f| {
            let value = *values.get(f.name)?;
            Some(FlagInForce {
                name: f.name,
                worth_trying: f.outcome == Outcome::Saved && value != f.suggested,
                value: value.to_owned(),
                suggested: f.suggested,
                measured: f.measured,
            })
        })
        .collect()
}

//! Which edits a plan may try, the least risky first.
//!
//! In: a base. Out: groups of alternatives; within a group each one saves more and costs more.

use super::base::Base;
use super::edit::Edit;
use super::edits::KINDS;
use crate::findings::{Finding, Safety};

/// Alternatives of which a plan takes at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) safety: Safety,
    pub(crate) alternatives: Vec<Edit>,
}

/// Candidates for `base`, in the order in which a plan tries them.
pub(crate) fn candidates(base: &Base<'_, '_>, findings: &[Finding]) -> Vec<Candidate> {
    let mut out = Vec::new();
    for kind in KINDS {
        let groups = (kind.candidates)(base, findings).into_iter();
        out.extend(
            groups
                .filter(|g| !g.is_empty())
                .map(|alternatives| Candidate {
                    safety: kind.safety,
                    alternatives,
                }),
        );
    }
    out.sort_by_key(|c| c.safety);
    out
}

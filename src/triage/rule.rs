//! In: a list of rules, and a failure. Out: the steps that something in it speaks for, in the
//! list's order.

use super::actions::{ARGUMENTS_EXCEED_LIMIT, DONATION_REFUSED, SPMD_REMATERIALIZATION};
use super::failure::Failure;
use super::steps::{Step, MAX_STEPS};
use crate::oom::report::{Warning, WarningKind};

/// A place in a list of steps.
#[derive(Debug)]
pub(crate) enum Rule {
    /// A step, when something speaks for it.
    Step(fn(&Failure<'_>) -> Option<Step>),
    /// Steps that are only worth giving when there is room for all of them.
    IfRoom(&'static [fn(&Failure<'_>) -> Option<Step>]),
    /// What warnings beside the failure speak for.
    Warnings,
}

/// The steps that rules give for a failure, at most [`MAX_STEPS`].
pub(crate) fn applied(rules: &[Rule], f: &Failure<'_>) -> Vec<Step> {
    let mut out = Vec::new();
    for rule in rules {
        match rule {
            Rule::Step(step) => out.extend(step(f)),
            Rule::Warnings => out.extend(warning_steps(f)),
            Rule::IfRoom(steps) if out.len() + steps.len() <= MAX_STEPS => {
                out.extend(steps.iter().filter_map(|step| step(f)));
            }
            Rule::IfRoom(_) => {}
        }
    }
    out.truncate(MAX_STEPS);
    out
}

/// Steps that warnings beside a failure speak for: one for each kind.
fn warning_steps(f: &Failure<'_>) -> Vec<Step> {
    let mut seen: Vec<WarningKind> = Vec::new();
    let mut first = |w: &&Warning| {
        let new = !seen.contains(&w.kind);
        seen.push(w.kind);
        new
    };
    let warnings = f.text.warnings.iter().filter(|w| first(w));
    let steps = warnings.filter_map(|w| {
        let said = &w.message;
        Some(match w.kind {
            WarningKind::Donation => DONATION_REFUSED.because(format!(
                "{said}: no output has their shape, type and layout."
            )),
            WarningKind::SpmdRematerialization => SPMD_REMATERIALIZATION.because(said),
            WarningKind::ArgumentsExceedLimit => ARGUMENTS_EXCEED_LIMIT
                .because(format!("{said}: no change to temporaries can help.")),
            WarningKind::Rematerialization | WarningKind::AllocatorRetry => return None,
        })
    });
    steps.collect()
}

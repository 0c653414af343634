//! A step: one thing to do about a failure, and how it is made from the catalogue and from the
//! actions of its own kind.

use serde::Serialize;

use super::catalogue::{FLAGS, INTERVENTIONS};
use super::step_id::StepId;
use crate::findings::Safety;

/// Most steps given.
pub const MAX_STEPS: usize = 7;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// What it is.
    pub id: StepId,
    /// What to do, in a line.
    pub title: String,
    /// Why here: names, bytes, source lines; and how.
    pub detail: String,
    /// What it costs.
    pub trade_off: String,
    /// What it does to results.
    pub safety: Safety,
    /// How to see that it worked.
    pub verify: String,
}

/// A step as far as it is the same wherever it is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Action {
    pub id: StepId,
    pub title: &'static str,
    /// How to do it.
    pub how: &'static str,
    pub trade_off: &'static str,
    pub safety: Safety,
    pub verify: &'static str,
}

impl Action {
    /// What only looks, or costs nothing.
    pub const fn new(id: StepId, title: &'static str, how: &'static str) -> Action {
        Action {
            id,
            title,
            how,
            trade_off: "",
            safety: Safety::Safe,
            verify: "",
        }
    }

    /// The same with how to see that it worked.
    pub const fn verified_by(self, verify: &'static str) -> Action {
        Action { verify, ..self }
    }

    /// The same, at a price in speed.
    pub const fn slower(self, trade_off: &'static str) -> Action {
        let safety = Safety::ChangesSpeed;
        Action {
            trade_off,
            safety,
            ..self
        }
    }

    /// The intervention of the catalogue.
    pub fn intervention(id: StepId) -> Option<Action> {
        let i = INTERVENTIONS.iter().find(|i| i.id == id)?;
        Some(Action {
            id,
            title: i.name,
            how: i.how,
            trade_off: i.trade_off,
            safety: i.safety,
            verify: i.verify,
        })
    }

    /// The step, with why it is given here.
    pub fn because(&self, why: impl AsRef<str>) -> Step {
        self.titled(self.title, why)
    }

    /// The same under a title of its own.
    pub fn titled(&self, title: impl Into<String>, why: impl AsRef<str>) -> Step {
        Step {
            id: self.id,
            title: title.into(),
            detail: format!("{} {}", why.as_ref(), self.how).trim().to_string(),
            trade_off: self.trade_off.to_string(),
            safety: self.safety,
            verify: self.verify.to_string(),
        }
    }
}

/// An intervention of the catalogue, with why it fits here.
pub(crate) fn intervention(id: StepId, why: impl AsRef<str>) -> Option<Step> {
    Some(Action::intervention(id)?.because(why))
}

/// A flag of the catalogue, with the value to write and why.
pub(crate) fn flag(name: &str, value: &str, why: impl AsRef<str>) -> Option<Step> {
    let f = FLAGS.iter().find(|f| f.name == name)?;
    let measured = match f.measured {
        "" => "not measured".to_string(),
        m => format!("on a 4-layer transformer here, {m}"),
    };
    Some(Step {
        id: StepId::Flag(f.name),
        title: format!("Last resort: {name}={value}"),
        detail: format!(
            "{} {} ({measured}). Pass it as compile(compiler_options={{\"{name}\": \"{value}\"}}) or in LIBTPU_INIT_ARGS.",
            why.as_ref(),
            f.what
        ),
        trade_off: f.trade_off.to_string(),
        safety: f.safety,
        verify: "Compile again.".to_string(),
    })
}

impl Step {
    /// `Cost: ...`, what it does to results included; `None` where it costs nothing.
    pub fn cost(&self) -> Option<String> {
        let results = match self.safety > Safety::ChangesSpeed {
            true => self.safety.words(),
            false => "",
        };
        match (self.trade_off.as_str(), results) {
            ("", "") => None,
            ("", words) => Some(format!("Cost: {words}")),
            (cost, "") => Some(format!("Cost: {cost}")),
            (cost, words) => Some(format!("Cost: {cost} ({words})")),
        }
    }
}

/// The end of a long name says more than its start.
pub(crate) fn shorten(name: &str, max: usize) -> String {
    let count = name.chars().count();
    if count <= max {
        return name.to_string();
    }
    let tail: String = name
        .chars()
        .skip(count.saturating_sub(max).saturating_add(3))
        .collect();
    // From a scope's start on, if that does not lose much.
    let scope = tail.find('/').filter(|&at| at <= tail.len() / 2);
    let tail = scope.and_then(|at| tail.get(at..)).unwrap_or(&tail);
    format!("...{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::FindingKind;

    #[test]
    fn findings_have_interventions_of_the_catalogue() {
        for id in FindingKind::all().filter_map(StepId::of_finding) {
            assert!(Action::intervention(id).is_some(), "{id:?}");
        }
    }
}

//! One change to simulate, whatever it does: its kind, its value, and what it asks of the program.
//!
//! In: a kind of the table in [`super::edits`] and a value. Out: [`Edit`], which prints itself back
//! as the command line writes it.

use std::fmt;
use std::sync::Arc;

use super::applying::Applying;
use super::base::Base;
use crate::error::Result;
use crate::findings::{Finding, Safety};

/// One change to simulate. Two are equal when they read the same.
#[derive(Debug, Clone)]
pub struct Edit(Arc<dyn Change>);

/// What every edit of a kind has in common.
#[derive(Debug)]
pub struct EditKind {
    /// Option, without dashes.
    pub name: &'static str,
    /// What its value is called; `None` for an option without a value.
    pub value: Option<&'static str>,
    /// One line of help.
    pub help: &'static str,
    /// How it is written, for a hint.
    pub usage: &'static str,
    /// What it may change besides memory.
    pub safety: Safety,
    /// How to see that it worked, once it is done in the program.
    pub verify: &'static str,
    /// Whether it makes explicit what a compiler may do on its own under pressure.
    pub pins: bool,
    /// Reads a value; `None` where it makes no sense. (Of an option without a value, empty.)
    pub(crate) parse: fn(&str) -> Option<Edit>,
    /// Edits that a plan may try, in groups of which it takes one at most; within a group each one
    /// saves more and costs more.
    pub(crate) candidates: fn(&Base<'_, '_>, &[Finding]) -> Vec<Vec<Edit>>,
}

/// What one edit does to a program. All edits take their first phase before any takes its second,
/// and sizes follow from shapes in between; the order in which they were given never matters.
pub(crate) trait Change: fmt::Debug + Send + Sync {
    /// Its kind.
    fn kind(&self) -> &'static EditKind;

    /// Its value, as it is read.
    fn value(&self) -> String;

    /// First phase: what disappears, and what changes shape.
    fn shapes(&self, _: &mut Applying<'_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// Second phase: live ranges, and what shares memory.
    fn ranges(&self, _: &mut Applying<'_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// The JAX code for it, as lines of Python to adapt. Findings as for selectors.
    fn jax(&self, base: &Base<'_, '_>, findings: &[Finding]) -> String;
}

impl Edit {
    pub(crate) fn new(change: impl Change + 'static) -> Edit {
        Edit(Arc::new(change))
    }

    pub(crate) fn change(&self) -> &dyn Change {
        &*self.0
    }

    /// Its kind.
    pub fn kind(&self) -> &'static EditKind {
        self.0.kind()
    }

    /// The JAX code for it, as lines of Python to adapt; `findings` as for selectors.
    pub fn jax(&self, base: &Base<'_, '_>, findings: &[Finding]) -> String {
        self.0.jax(base, findings)
    }
}

impl PartialEq for Edit {
    fn eq(&self, other: &Edit) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Edit {}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match kind.value {
            Some(_) => write!(f, "--{} {}", kind.name, self.0.value()),
            None => write!(f, "--{}", kind.name),
        }
    }
}

/// `selector=value`, cut at the last `=`.
pub(crate) fn assignment(text: &str) -> Option<(&str, &str)> {
    let (selector, value) = text.rsplit_once('=')?;
    let (selector, value) = (selector.trim(), value.trim());
    (!selector.is_empty() && !value.is_empty()).then_some((selector, value))
}

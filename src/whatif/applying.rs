//! A program while edits are applied to it: what they ask, and where they leave what they did.
//!
//! In: a base, findings for selectors. Out: a [`Scenario`], [`Effects`] on shapes, a note an edit.

use rustc_hash::FxHashSet;

use super::base::Base;
use super::effects::Effects;
use super::scenario::Scenario;
use super::selector::{plain_shape, select, Selection};
use crate::dataflow::dimensions::NodeId;
use crate::error::{Error, Result};
use crate::findings::Finding;
use crate::hlo::{BufferId, Opcode};

/// A program while edits are applied to it.
pub(crate) struct Applying<'r, 'p, 'a> {
    pub(crate) base: &'r Base<'p, 'a>,
    pub(crate) findings: &'r [Finding],
    pub(crate) scenario: Scenario,
    pub(crate) effects: Effects,
    /// Whether outputs may have come to fit arguments offered for donation.
    pub(crate) retry_donation: bool,
    /// The edit whose turn it is, as written.
    pub(crate) edit: String,
    /// What it touched so far, and in words.
    pub(crate) note: Option<(u64, String)>,
}

impl Applying<'_, '_, '_> {
    /// Says what the edit touched.
    pub(crate) fn note(&mut self, matched: usize, note: String) {
        self.note = Some((matched as u64, note));
    }

    /// Why the edit cannot be applied, and what would.
    pub(crate) fn refuse(&self, why: impl std::fmt::Display, hint: impl Into<String>) -> Error {
        Error::usage(format!("{}: {why}", self.edit), hint)
    }

    /// What a selector means.
    ///
    /// # Errors
    /// Nothing.
    pub(crate) fn select(&self, text: &str) -> Result<Selection> {
        let s = select(self.base.program, self.findings, text);
        if s.instructions.is_empty() {
            return Err(self.refuse(
                format!(
                    "nothing in {} matches {text}",
                    self.base.program.module.name
                ),
                "an argument name, operation path, opcode, shape, source line, finding id, or all",
            ));
        }
        Ok(s)
    }

    /// Whether a selection means the memory that goes by these names.
    pub(crate) fn means(&self, s: &Selection, names: &[BufferId]) -> bool {
        let defined_by = |b: BufferId| self.base.assignment.buffer(b).instruction;
        names.iter().any(|b| match &s.buffers {
            Some(buffers) => buffers.contains(b),
            None => defined_by(*b).is_some_and(|i| s.instructions.binary_search(&i).is_ok()),
        })
    }

    /// Nodes that a selection means: of a finding, everything that its buffers and what shares their
    /// memory hold.
    pub(crate) fn nodes(&self, s: &Selection) -> Vec<NodeId> {
        let base = self.base;
        if s.buffers.is_some() {
            let slots = base.arenas.iter().flat_map(|a| &a.slots).map(|s| &s.names);
            let all = slots.chain(base.blocks.iter().map(|b| &b.names));
            let held = all.filter(|names| self.means(s, names)).flatten();
            let mut out: Vec<NodeId> = held.filter_map(|&b| Some(base.content(b)?.0)).collect();
            out.sort_unstable();
            out.dedup();
            return out;
        }
        let module = &base.program.module;
        let mut out = Vec::new();
        for &i in &s.instructions {
            let nodes = base.values.nodes(i);
            match &s.shape {
                None => out.extend(nodes),
                Some(wanted) => {
                    let mut n = nodes.start;
                    module.shape(i).for_each_leaf(&mut |_, leaf| {
                        if plain_shape(leaf) == *wanted {
                            out.push(n);
                        }
                        n += 1;
                    });
                }
            }
        }
        out
    }

    /// Numbers of the entry parameters that a selection means.
    pub(crate) fn parameters(&self, s: &Selection) -> FxHashSet<u32> {
        let module = &self.base.program.module;
        s.instructions
            .iter()
            .map(|&i| module.instruction(i))
            .filter(|i| i.opcode == Opcode::Parameter && Some(i.computation) == module.entry)
            .map(|i| i.parameter_number)
            .collect()
    }
}

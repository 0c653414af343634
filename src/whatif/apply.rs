//! Applies edits to a base. They take effect in phases (what disappears and what changes shape, then
//! sizes, then live ranges and what shares memory), each in the order of the table of kinds, so the
//! order they are given in does not matter.
//!
//! In: base, edits, findings for selectors. Out: a [`Scenario`] and a note per edit.

use rustc_hash::FxHashSet;
use serde::Serialize;

use super::applying::Applying;
use super::base::Base;
use super::confidence::Confidence;
use super::edit::{Change, Edit};
use super::edits::donate::donate_offered;
use super::edits::position;
use super::effects::Effects;
use super::resize::resize;
use super::scenario::Scenario;
use super::split;
use crate::error::Result;
use crate::findings::Finding;

/// What an edit touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EditNote {
    /// The edit as written.
    pub edit: String,
    /// How many buffers, arguments or arrays it touched.
    pub matched: u64,
    /// In words.
    pub note: String,
}

/// An edited program and what each edit did, in the order given.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Applied {
    /// The program after all edits.
    pub scenario: Scenario,
    /// One note per edit.
    pub notes: Vec<EditNote>,
}

/// Applies `edits`.
///
/// # Errors
/// An edit matches nothing, or names a mesh axis that the program does not have.
// Long: the phases of applying edits, in order.
pub fn apply(base: &Base<'_, '_>, findings: &[Finding], edits: &[Edit]) -> Result<Applied> {
    let texts: Vec<String> = edits.iter().map(Edit::to_string).collect();
    let mut order: Vec<(usize, &String, usize)> = edits
        .iter()
        .zip(&texts)
        .enumerate()
        .map(|(i, (e, text))| (position(e.kind()), text, i))
        .collect();
    order.sort_unstable();
    let mut run = Applying {
        base,
        findings,
        scenario: Scenario::new(base),
        effects: Effects::default(),
        retry_donation: false,
        edit: String::new(),
        note: None,
    };
    let mut notes: Vec<Option<(u64, String)>> = vec![None; edits.len()];
    let mut phase = |run: &mut Applying<'_, '_, '_>, each: Phase| -> Result<()> {
        for &(_, text, i) in &order {
            let (Some(edit), Some(note)) = (edits.get(i), notes.get_mut(i)) else {
                continue;
            };
            run.edit.clone_from(text);
            run.note = note.take();
            each(edit.change(), run)?;
            *note = run.note.take();
        }
        Ok(())
    };
    phase(&mut run, |edit, run| edit.shapes(run))?;
    let resized = resize(base, &run.effects, &mut run.scenario);
    phase(&mut run, |edit, run| edit.ranges(run))?;
    if !run.effects.split.is_empty() {
        split::transients(base, &run.effects, &mut run.scenario);
        if run.retry_donation && resized {
            // Arguments that were offered and fitted no output may fit one now.
            let donors = base.program.module.buffer_donors.iter();
            let offered: FxHashSet<u32> = donors.map(|d| d.parameter_number).collect();
            if !offered.is_empty() {
                donate_offered(base, &mut run.scenario, &|n| offered.contains(&n));
            }
        }
    }
    let pinned = edits.iter().any(|e| e.kind().pins);
    if base.rematerialized > 0 && !edits.is_empty() && !pinned {
        run.scenario.caveat(
            Confidence::Simulated,
            "the compiler rematerialises on its own to fit this program: it may do so less, or otherwise, once the rest changes; add --checkpoint to keep it",
        );
    }
    let notes = texts.into_iter().zip(notes).map(|(edit, note)| {
        let (matched, note) = note.unwrap_or_default();
        EditNote {
            edit,
            matched,
            note,
        }
    });
    Ok(Applied {
        notes: notes.collect(),
        scenario: run.scenario,
    })
}

type Phase = fn(&dyn Change, &mut Applying<'_, '_, '_>) -> Result<()>;

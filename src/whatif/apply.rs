//! Applies edits to a base. They are sorted first and take effect in phases (what disappears, what
//! changes shape, what changes its live range, what shares memory), so the order they are given in
//! does not matter.
//!
//! In: base, edits, findings for selectors. Out: a [`Scenario`] and a note per edit.

use crate::hlo::Opcode;
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::base::Base;
use super::batch;
use super::confidence::Confidence;
use super::edit::{Edit, Ways};
use super::effects::{BatchScale, Effects};
use super::resize::resize;
use super::scenario::Scenario;
use super::selector::{finding_named, plain_shape, select, MatchedBy, Selection};
use super::split;
use crate::dataflow::dimensions::propagate::Marks;
use crate::dataflow::dimensions::NodeId;
use crate::error::{Error, Result};
use crate::findings::Finding;
use crate::units;
use crate::whatif::edits::checkpoint;
use crate::whatif::edits::dead;
use crate::whatif::edits::donate::{donate, donate_offered};
use crate::whatif::edits::microbatch;
use crate::whatif::edits::offload::offload;
use crate::whatif::edits::shard;

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
pub fn apply(base: &Base<'_, '_>, findings: &[Finding], edits: &[Edit]) -> Result<Applied> {
    let mut order: Vec<usize> = (0..edits.len()).collect();
    order.sort_by_key(|&i| (edits[i].rank(), edits[i].to_string(), i));
    let mut run = Run {
        base,
        findings,
        scenario: Scenario::new(base),
        effects: Effects::default(),
        resized: false,
        retry_donation: false,
        notes: vec![None; edits.len()],
    };
    for &i in &order {
        run.shapes(i, &edits[i])?;
    }
    run.resized = resize(base, &run.effects, &mut run.scenario);
    for &i in &order {
        run.ranges(i, &edits[i])?;
    }
    if !run.effects.split.is_empty() {
        split::transients(base, &run.effects, &mut run.scenario);
        if run.retry_donation {
            run.donate_declared();
        }
    }
    let pinned = edits.iter().any(|e| matches!(e, Edit::Checkpoint { .. }));
    if base.rematerialized > 0 && !edits.is_empty() && !pinned {
        run.scenario.caveat(
            Confidence::Simulated,
            "the compiler rematerialises on its own to fit this program: it may do so less, or otherwise, once the rest changes; add --checkpoint to keep it",
        );
    }
    let notes = edits.iter().zip(run.notes).map(|(edit, note)| {
        let (matched, note) = note.unwrap_or_default();
        EditNote {
            edit: edit.to_string(),
            matched,
            note,
        }
    });
    Ok(Applied {
        notes: notes.collect(),
        scenario: run.scenario,
    })
}

struct Run<'r, 'p, 'a> {
    base: &'r Base<'p, 'a>,
    findings: &'r [Finding],
    scenario: Scenario,
    effects: Effects,
    resized: bool,
    /// Whether outputs may have come to fit arguments offered for donation.
    retry_donation: bool,
    notes: Vec<Option<(u64, String)>>,
}

impl Run<'_, '_, '_> {
    fn note(&mut self, at: usize, matched: usize, note: String) {
        if let Some(n) = self.notes.get_mut(at) {
            *n = Some((matched as u64, note));
        }
    }

    fn select(&self, edit: &Edit, text: &str) -> Result<Selection> {
        let s = select(self.base.program, self.findings, text);
        if s.instructions.is_empty() {
            return Err(Error::usage(
                format!(
                    "{edit}: nothing in {} matches {text}",
                    self.base.program.module.name
                ),
                "an argument name, operation path, opcode, shape, source line, finding id, or all",
            ));
        }
        Ok(s)
    }

    /// Nodes that a selection means.
    fn nodes(&self, s: &Selection) -> Vec<NodeId> {
        let module = &self.base.program.module;
        let mut out = Vec::new();
        for &i in &s.instructions {
            let nodes = self.base.values.nodes(i);
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

    /// First phase: what disappears, and what changes shape.
    fn shapes(&mut self, at: usize, edit: &Edit) -> Result<()> {
        match edit {
            Edit::NoDebug => {
                let gone = dead::without_debug(self.base, &mut self.scenario);
                if gone.callbacks == 0 {
                    return Err(Error::usage(
                        format!(
                            "{edit}: {} has no debugging callback",
                            self.base.program.module.name
                        ),
                        "what is looked for: jax.debug.print, jax.debug.callback",
                    ));
                }
                let text = format!(
                    "{} debugging instructions and {} buffers that only they need",
                    gone.callbacks, gone.buffers
                );
                self.note(at, gone.buffers, text);
                self.scenario.caveat(
                    Confidence::Simulated,
                    "without the callback the compiler may fuse what it had to keep apart",
                );
            }
            Edit::Drop { selector } => {
                let s = self.select(edit, selector)?;
                let gone = dead::without(self.base, &mut self.scenario, &s.instructions);
                self.note(
                    at,
                    gone.buffers,
                    format!("{} buffers, by {}", gone.buffers, s.by.name()),
                );
                self.scenario.caveat(
                    Confidence::UpperBound,
                    "what replaces a dropped tensor is not known",
                );
            }
            Edit::PadFree => {
                self.effects.pad_free = true;
                self.scenario.caveat(
                    Confidence::UpperBound,
                    "the compiler chooses layouts by speed too: padding may stay",
                );
            }
            Edit::Dtype { selector, to } => {
                let s = self.select(edit, selector)?;
                let mut classes = FxHashSet::default();
                for n in self.nodes(&s) {
                    let now = crate::hlo::ElementType(self.base.values.element_type(n));
                    let counts = self.base.values.dimensions(n).iter().any(|&d| d > 1);
                    if now.is_float() && now != *to && counts {
                        classes.insert(self.base.values.type_class(n));
                    }
                }
                for &c in &classes {
                    self.effects.types.insert(c, *to);
                }
                self.note(
                    at,
                    classes.len(),
                    format!(
                        "{} tensors by {}, with what takes its type from them",
                        classes.len(),
                        s.by.name()
                    ),
                );
                self.scenario.caveat(
                    Confidence::Simulated,
                    "conversions that a new type adds or saves are not seen",
                );
            }
            Edit::Batch { old, new, seed } => self.batch(at, edit, (*old, *new), seed.as_ref())?,
            Edit::Shard { selector, ways } => self.shard(at, edit, selector, ways)?,
            Edit::Microbatch { count } => {
                let seeds = batch::find(self.base, None, None);
                if seeds.seeds.is_empty() {
                    return Err(no_batch(self.base, edit));
                }
                check_batch(self.base, edit, &seeds)?;
                let marks = Marks::flood(&self.base.values, &seeds.seeds);
                self.note(
                    at,
                    marks.len(),
                    format!(
                        "batch: {}; {} arrays carry it",
                        seeds.found.join(", "),
                        marks.len()
                    ),
                );
                self.effects.batches.push(BatchScale {
                    marks,
                    old: *count,
                    new: 1,
                    temporaries_only: true,
                });
                self.scenario.caveat(
                    Confidence::Simulated,
                    "the loop over slices is scheduled anew",
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn batch(
        &mut self,
        at: usize,
        edit: &Edit,
        (old, new): (u64, u64),
        seed: Option<&(String, Option<u8>)>,
    ) -> Result<()> {
        let seeds = match seed {
            None => batch::find(self.base, Some(old), None),
            Some((text, dimension)) => {
                let s = self.select(edit, text)?;
                batch::find(self.base, Some(old), Some((&s.instructions, *dimension)))
            }
        };
        if seeds.seeds.is_empty() {
            return Err(no_batch(self.base, edit));
        }
        check_batch(self.base, edit, &seeds)?;
        let marks = Marks::flood(&self.base.values, &seeds.seeds);
        self.note(
            at,
            marks.len(),
            format!(
                "batch: {}; {} arrays carry it",
                seeds.found.join(", "),
                marks.len()
            ),
        );
        self.effects.batches.push(BatchScale {
            marks,
            old,
            new,
            temporaries_only: false,
        });
        self.scenario.caveat(
            Confidence::Simulated,
            "other sizes can lead to other layouts, fusions and schedules",
        );
        Ok(())
    }

    fn shard(&mut self, at: usize, edit: &Edit, selector: &str, ways: &Ways) -> Result<()> {
        let s = self.select(edit, selector)?;
        let nodes = self.nodes(&s);
        let arguments = self.parameters(&s);
        let done = shard::shard(
            self.base,
            &mut self.effects,
            edit,
            &shard::Chosen {
                nodes: &nodes,
                arguments: &arguments,
                ways,
                finding: finding_named(self.findings, selector),
            },
        )?;
        self.retry_donation |= done.follows;
        self.note(at, done.split, format!("by {}, {}", s.by.name(), done.note));
        self.scenario.caveat(
            Confidence::Simulated,
            "the partitioner decides where split tensors are gathered again",
        );
        Ok(())
    }

    /// Second phase: live ranges and sharing.
    fn ranges(&mut self, at: usize, edit: &Edit) -> Result<()> {
        match edit {
            Edit::Checkpoint { scope, dots } => {
                let c = checkpoint::checkpoint(
                    self.base,
                    &self.effects,
                    &mut self.scenario,
                    scope,
                    *dots,
                );
                if c.dropped == 0 && self.base.rematerialized > 0 && scope == "all" {
                    let n = self.base.rematerialized;
                    let text = format!(
                        "saves nothing more: the compiler already computes {n} instructions twice to save memory; jax.checkpoint keeps it so when the rest changes"
                    );
                    self.note(at, n, text);
                    self.scenario.caveat(
                        Confidence::Simulated,
                        "what the compiler rematerialises on its own is its choice: a checkpoint may lead to another",
                    );
                    return Ok(());
                }
                if c.dropped == 0 {
                    return Err(Error::usage(
                        format!("{edit}: no saved activation of that scope"),
                        "the program may be checkpointed already, or have no backward pass",
                    ));
                }
                self.note(
                    at,
                    c.dropped,
                    format!(
                        "{} saved activations ({}) dropped, {} kept",
                        c.dropped,
                        units::bytes(c.dropped_bytes),
                        c.kept,
                    ),
                );
                self.scenario.caveat(
                    Confidence::Simulated,
                    "the compiler may fuse and schedule recomputation in other ways",
                );
            }
            Edit::Microbatch { count } => {
                let added =
                    microbatch::accumulators(self.base, &self.effects, &mut self.scenario, *count);
                if let Some(Some((_, note))) = self.notes.get_mut(at) {
                    note.push_str(&format!(
                        "; {} gradient accumulators, {}",
                        added.0,
                        units::bytes(added.1)
                    ));
                }
            }
            Edit::Offload { selector } => {
                let s = self.select(edit, selector)?;
                let moved = offload(self.base, &mut self.scenario, &s.instructions);
                self.note(at, moved, format!("{moved} buffers, by {}", s.by.name()));
                self.scenario.caveat(
                    Confidence::UpperBound,
                    "transfers may keep more on the device at once than assumed",
                );
            }
            Edit::PadFree => {
                let changed = self.scenario.arenas.iter().zip(&self.base.arenas);
                let changed = changed.flat_map(|(e, b)| e.items.iter().zip(&b.slots));
                let n = changed
                    .filter(|(e, s)| e.size_bytes < s.item.size_bytes)
                    .count();
                self.note(
                    at,
                    n,
                    format!("{n} temporaries would pad less in another layout"),
                );
            }
            Edit::Donate { selector } => {
                let chosen = self.select(edit, selector)?;
                let numbers = self.parameters(&chosen);
                let d = donate(self.base, &mut self.scenario, &|n| numbers.contains(&n));
                let mut text = format!(
                    "{} arguments take over outputs of {}",
                    d.pairs,
                    units::bytes(d.bytes)
                );
                if d.copied > 0 {
                    text.push_str(&format!(
                        "; {} are still read while their output is written, and must be copied",
                        d.copied
                    ));
                }
                if let Some(why) = &d.why {
                    text.push_str(&format!("; {} would save nothing: {why}", d.in_vain));
                }
                if d.unusable > 0 && chosen.by != MatchedBy::Everything {
                    text.push_str(&format!("; {} fit no output", d.unusable));
                }
                self.note(at, d.pairs, text);
            }
            _ => {}
        }
        Ok(())
    }

    fn parameters(&self, s: &Selection) -> FxHashSet<u32> {
        let module = &self.base.program.module;
        s.instructions
            .iter()
            .map(|&i| module.instruction(i))
            .filter(|i| i.opcode == Opcode::Parameter && Some(i.computation) == module.entry)
            .map(|i| i.parameter_number)
            .collect()
    }

    /// Arguments that were offered and fitted no output may fit one now.
    fn donate_declared(&mut self) {
        let offered: FxHashSet<u32> = self
            .base
            .program
            .module
            .buffer_donors
            .iter()
            .map(|d| d.parameter_number)
            .collect();
        if self.resized && !offered.is_empty() {
            donate_offered(self.base, &mut self.scenario, &|n| offered.contains(&n));
        }
    }
}

fn no_batch(base: &Base<'_, '_>, edit: &Edit) -> Error {
    let choices = batch::choices(base);
    let known = match choices.is_empty() {
        true => "no argument looks like data".to_owned(),
        false => format!("arguments that look like data: {}", choices.join(", ")),
    };
    let what = match edit {
        Edit::Batch { old, .. } => {
            format!("{edit}: no data argument has a dimension of size {old}")
        }
        _ => format!("{edit}: it is not clear which argument is the batch"),
    };
    Error::usage(
        what,
        format!("say which with --batch OLD:NEW@ARG:DIM, OLD the size over all devices; {known}"),
    )
}

/// Refuses sizes that do not go with how the batch is split.
fn check_batch(base: &Base<'_, '_>, edit: &Edit, seeds: &batch::Seeds) -> Result<()> {
    for &(node, d) in &seeds.seeds {
        let local = base.values.dimensions(node).get(usize::from(d)).copied();
        let local = local.unwrap_or(1);
        let tiles = batch::tiles(base, base.values.instruction_of(node));
        let tile = tiles.get(usize::from(d)).copied().unwrap_or(1).max(1);
        match edit {
            Edit::Microbatch { count } if !local.is_multiple_of(*count) => {
                return Err(Error::usage(
                    format!("{edit}: {count} does not divide the batch of {local} on each device"),
                    "N is a divisor of the batch on one device",
                ));
            }
            // A size on one device need not divide; one over all devices must.
            Edit::Batch { old, new, .. } if *old != local && !new.is_multiple_of(tile) => {
                return Err(Error::usage(
                    format!("{edit}: {new} does not divide over {tile} devices"),
                    "NEW, like OLD, is the size over all devices",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

//! `--no-debug`: debugging callbacks disappear, with what only they need.
//!
//! In: a base. Out: buffers emptied in the scenario.

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::InstructionId;
use crate::training::debugging::{debug_sites, OnlyFor};
use crate::whatif::applying::Applying;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::Base;

pub(crate) static KIND: EditKind = EditKind {
    name: "no-debug",
    value: None,
    help: "Remove debugging callbacks",
    usage: "--no-debug takes no value",
    safety: Safety::Safe,
    verify: "compile again: `xpeak summary NEW_DUMP` shows the new total",
    pins: false,
    parse: |value| value.is_empty().then(|| Edit::new(NoDebug)),
    candidates: |_, _| vec![vec![Edit::new(NoDebug)]],
};

#[derive(Debug)]
struct NoDebug;

impl Change for NoDebug {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        String::new()
    }

    fn shapes(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let base = run.base;
        let ctx = base.context();
        let sites = debug_sites(&ctx, &base.graph);
        let callbacks: Vec<InstructionId> =
            sites.into_iter().flat_map(|s| s.instructions).collect();
        if callbacks.is_empty() {
            return Err(run.refuse(
                format!("{} has no debugging callback", base.program.module.name),
                "what is looked for: jax.debug.print, jax.debug.callback, callbacks, outfeeds, sends to the host",
            ));
        }
        let gone = OnlyFor::new(&ctx, &base.graph, &callbacks).ranges();
        let gone: FxHashSet<_> = gone.iter().map(|h| (h.buffer, (h.start, h.end))).collect();
        for (arena, edited) in base.arenas.iter().zip(&mut run.scenario.arenas) {
            for (slot, item) in arena.slots.iter().zip(&mut edited.items) {
                if let Some(&canonical) = slot.names.first() {
                    item.ranges.retain(|r| !gone.contains(&(canonical, *r)));
                }
            }
        }
        let text = format!(
            "{} debugging instructions and {} buffers that only they need",
            callbacks.len(),
            gone.len()
        );
        run.note(gone.len(), text);
        run.scenario.caveat(
            Confidence::Simulated,
            "without the callback the compiler may fuse what it had to keep apart",
        );
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        "# remove jax.debug.print and jax.debug.callback from the step".to_owned()
    }
}

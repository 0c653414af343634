//! `--no-debug`: debugging callbacks disappear, with what only they need.
//!
//! In: a base. Out: buffers emptied in the scenario.

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::whatif::applying::Applying;
use crate::whatif::confidence::Confidence;
use crate::whatif::dead;
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
        let gone = dead::without_debug(run.base, &mut run.scenario);
        if gone.callbacks == 0 {
            return Err(run.refuse(
                format!("{} has no debugging callback", run.base.program.module.name),
                "what is looked for: jax.debug.print, jax.debug.callback",
            ));
        }
        let text = format!(
            "{} debugging instructions and {} buffers that only they need",
            gone.callbacks, gone.buffers
        );
        run.note(gone.buffers, text);
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

//! `--drop`: tensors disappear, with what only they need.
//!
//! In: a selector. Out: buffers emptied in the scenario.

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::whatif::applying::Applying;
use crate::whatif::confidence::Confidence;
use crate::whatif::dead;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::python::comment;
use crate::whatif::Base;

pub(crate) static KIND: EditKind = EditKind {
    name: "drop",
    value: Some("SELECTOR"),
    help: "Leave tensors out",
    usage: "--drop SELECTOR",
    safety: Safety::ChangesModel,
    verify: "compile again, then check training metrics: the model changes",
    pins: false,
    parse: |value| {
        Some(Edit::new(Drop {
            selector: value.to_owned(),
        }))
    },
    // What can be left out is for the user to know.
    candidates: |_, _| Vec::new(),
};

#[derive(Debug)]
struct Drop {
    selector: String,
}

impl Change for Drop {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        self.selector.clone()
    }

    fn shapes(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let s = run.select(&self.selector)?;
        let gone = dead::without(run.base, &mut run.scenario, &s.instructions);
        let text = format!("{} buffers, by {}", gone, s.by.name());
        run.note(gone, text);
        run.scenario.caveat(
            Confidence::UpperBound,
            "what replaces a dropped tensor is not known",
        );
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        comment(&format!("remove what computes {}", self.selector))
    }
}

//! `--pad-free`: tile padding disappears where a better shape exists.
//!
//! In: a base. Out: smaller buffers.

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::peak::padding::Convolutions;
use crate::whatif::applying::Applying;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::Base;

pub(crate) static KIND: EditKind = EditKind {
    name: "pad-free",
    value: None,
    help: "Remove tile padding where a better shape exists",
    usage: "--pad-free takes no value",
    safety: Safety::ChangesModel,
    verify: "compile again, then check training metrics: the model changes",
    pins: false,
    parse: |value| value.is_empty().then(|| Edit::new(PadFree)),
    candidates: |_, _| vec![vec![Edit::new(PadFree)]],
};

#[derive(Debug)]
struct PadFree;

impl Change for PadFree {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        String::new()
    }

    fn shapes(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        run.effects.pad_free = Some(Convolutions::new(run.base.program));
        run.scenario.caveat(
            Confidence::UpperBound,
            "the compiler chooses layouts by speed too: padding may stay",
        );
        Ok(())
    }

    fn ranges(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let changed = run.scenario.arenas.iter().zip(&run.base.arenas);
        let changed = changed.flat_map(|(e, b)| e.items.iter().zip(&b.slots));
        let n = changed
            .filter(|(e, s)| e.size_bytes < s.item.size_bytes)
            .count();
        run.note(
            n,
            format!("{n} temporaries would pad less in another shape"),
        );
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        "# make the last two dimensions multiples of the tile (8 x 128), or merge small ones"
            .to_owned()
    }
}

//! `--batch`: the batch changes its size.
//!
//! In: two sizes, and the argument that carries the batch if it is not clear. Out: scaled dimensions.

use crate::dataflow::dimensions::batch_dimensions::BatchDimensions;
use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::whatif::applying::Applying;
use crate::whatif::batch;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::effects::BatchScale;
use crate::whatif::Base;

pub(crate) static KIND: EditKind = EditKind {
    name: "batch",
    value: Some("OLD:NEW"),
    help: "Change the batch size",
    usage: "--batch OLD:NEW, or --batch OLD:NEW@ARG or @ARG:DIMENSION to say what carries it",
    safety: Safety::ChangesTraining,
    verify: "compile again, then check training metrics: the learning rate may need to follow",
    pins: false,
    parse,
    candidates,
};

#[derive(Debug)]
struct Batch {
    old: u64,
    new: u64,
    /// Argument and dimension that carry it; found if not given.
    seed: Option<(String, Option<u8>)>,
}

fn parse(text: &str) -> Option<Edit> {
    let (sizes, seed) = match text.split_once('@') {
        Some((sizes, seed)) => (sizes, Some(seed.trim())),
        None => (text, None),
    };
    let (old, new) = sizes.split_once(':')?;
    let (old, new) = (old.trim().parse().ok()?, new.trim().parse().ok()?);
    let seed = match seed {
        None => None,
        Some("") => return None,
        Some(s) => Some(match s.rsplit_once(':') {
            Some((argument, d)) if !argument.is_empty() && d.parse::<u8>().is_ok() => {
                (argument.to_owned(), d.parse().ok())
            }
            _ => (s.to_owned(), None),
        }),
    };
    (old > 0 && new > 0).then(|| Edit::new(Batch { old, new, seed }))
}

fn candidates(base: &Base<'_, '_>, _: &[Finding]) -> Vec<Vec<Edit>> {
    let Some((argument, dimension, old)) = batch::carrier(base) else {
        return Vec::new();
    };
    let smaller = batch::slices(base).into_iter().map(|n| {
        Edit::new(Batch {
            old,
            new: old / n,
            seed: Some((argument.clone(), Some(dimension))),
        })
    });
    vec![smaller.collect()]
}

impl Change for Batch {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        let sizes = format!("{}:{}", self.old, self.new);
        match &self.seed {
            None => sizes,
            Some((argument, None)) => format!("{sizes}@{argument}"),
            Some((argument, Some(d))) => format!("{sizes}@{argument}:{d}"),
        }
    }

    fn shapes(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let given = match &self.seed {
            None => None,
            Some((text, dimension)) => Some((run.select(text)?, *dimension)),
        };
        let given = given.as_ref().map(|(s, d)| (&s.instructions[..], *d));
        let seeds = batch::find(run.base, Some(self.old), given);
        if seeds.seeds.is_empty() {
            let what = format!("no data argument has a dimension of size {}", self.old);
            return Err(run.refuse(what, batch::hint(run.base)));
        }
        for (local, tile) in seeds.sizes(run.base) {
            // A size on one device need not divide; one over all devices must.
            if self.old != local && !self.new.is_multiple_of(tile) {
                return Err(run.refuse(
                    format!("{} does not divide over {tile} devices", self.new),
                    "NEW, like OLD, is the size over all devices",
                ));
            }
        }
        let batch_dimensions = BatchDimensions::follow(&run.base.values, &seeds.seeds);
        run.note(batch_dimensions.len(), seeds.note(&batch_dimensions));
        run.effects.batches.push(BatchScale {
            batch_dimensions,
            old: self.old,
            new: self.new,
            temporaries_only: false,
        });
        run.scenario.caveat(
            Confidence::Simulated,
            "other sizes can lead to other layouts, fusions and schedules",
        );
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        format!("batch_size = {}  # was {}", self.new, self.old)
    }
}

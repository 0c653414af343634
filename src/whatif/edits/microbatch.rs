//! `--microbatch`: the batch is worked off in slices, and gradients are summed up. While slices are
//! worked off, the sum of the gradients so far is kept beside the gradients of the slice.
//!
//! In: how many slices. Out: scaled temporaries, an accumulator per trained parameter.

use crate::dataflow::dimensions::batch_dimensions::BatchDimensions;
use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::AllocationKind;
use crate::training::weights::weights;
use crate::units;
use crate::whatif::applying::Applying;
use crate::whatif::batch;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::effects::BatchScale;
use crate::whatif::Base;
use crate::whatif::Scenario;

pub(crate) static KIND: EditKind = EditKind {
    name: "microbatch",
    value: Some("N"),
    help: "Work off the batch in N slices",
    usage: "--microbatch N, N at least 1",
    safety: Safety::ChangesSpeed,
    verify: "compile again; the loss of one step must agree with that of the whole batch",
    pins: false,
    parse: |value| {
        let count = value.parse().ok().filter(|&n| n > 0)?;
        Some(Edit::new(Microbatch { count }))
    },
    candidates,
};

#[derive(Debug)]
struct Microbatch {
    count: u64,
}

/// Gradients can be summed up over slices; programs without them only have a smaller batch.
fn candidates(base: &Base<'_, '_>, _: &[Finding]) -> Vec<Vec<Edit>> {
    if !base.context().has_backward_pass() {
        return Vec::new();
    }
    let slices = batch::slices(base).into_iter();
    vec![slices
        .map(|count| Edit::new(Microbatch { count }))
        .collect()]
}

impl Change for Microbatch {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        self.count.to_string()
    }

    fn shapes(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let seeds = batch::find(run.base, None, None);
        if seeds.seeds.is_empty() {
            let what = "it is not clear which argument is the batch";
            return Err(run.refuse(what, batch::hint(run.base)));
        }
        for (local, _) in seeds.sizes(run.base) {
            if !local.is_multiple_of(self.count) {
                return Err(run.refuse(
                    format!(
                        "{} does not divide the batch of {local} on each device",
                        self.count
                    ),
                    "N is a divisor of the batch on one device",
                ));
            }
        }
        let batch_dimensions = BatchDimensions::follow(&run.base.values, &seeds.seeds);
        run.note(batch_dimensions.len(), seeds.note(&batch_dimensions));
        run.effects.batches.push(BatchScale {
            batch_dimensions,
            old: self.count,
            new: 1,
            temporaries_only: true,
        });
        run.scenario.caveat(
            Confidence::Simulated,
            "the loop over slices is scheduled anew",
        );
        Ok(())
    }

    fn ranges(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let added = accumulators(run.base, &mut run.scenario, self.count);
        if let Some((_, note)) = &mut run.note {
            note.push_str(&format!(
                "; {} gradient accumulators, {}",
                added.0,
                units::bytes(added.1)
            ));
        }
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        let count = self.count;
        format!(
            "def accumulate(carry, part):\n    value, grads = jax.value_and_grad(loss)(params, part)\n    return jax.tree.map(jnp.add, carry, (value, grads)), None\nparts = batch.reshape({count}, batch.shape[0] // {count}, *batch.shape[1:])\nzeros = jax.tree.map(jnp.zeros_like, params)\n(value, grads), _ = jax.lax.scan(accumulate, (jnp.zeros(()), zeros), parts)\n# divide value and grads by {count}; keep each part sharded as the batch was"
        )
    }
}

/// Adds an accumulator for each parameter that is trained (the verdict that labels go by); returns how
/// many and their bytes.
fn accumulators(base: &Base<'_, '_>, scenario: &mut Scenario, count: u64) -> (usize, u64) {
    if count < 2 {
        return (0, 0);
    }
    let module = &base.program.module;
    let trained = weights(&base.context(), &base.graph).parameters;
    let is_trained = |number: u32| {
        let argument = module.entry_parameter(number);
        argument.is_some_and(|i| trained.contains(&i))
    };
    let mut out = (0, 0u64);
    let end = base.points.point_count();
    for (b, block) in base.blocks.iter().enumerate() {
        let is_argument = matches!(
            block.kind,
            AllocationKind::Parameter | AllocationKind::Donated
        );
        let number = block.parameter.filter(|&n| is_argument && is_trained(n));
        let size = scenario.blocks.get(b).copied().unwrap_or(0);
        let Some(number) = number.filter(|_| size > 0) else {
            continue;
        };
        scenario.add(format!("gradient sum of argument {number}"), size, 0, end);
        out.0 += 1;
        out.1 = out.1.saturating_add(size);
    }
    out
}

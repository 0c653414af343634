//! `--microbatch`: the batch is worked off in slices, and gradients are summed up. While slices are
//! worked off, the sum of the gradients so far is kept beside the gradients of the slice.
//!
//! In: how many slices. Out: scaled temporaries, an accumulator per trained parameter.

use rustc_hash::FxHashSet;

use crate::dataflow::dimensions::batch_dimensions::BatchDimensions;
use crate::dataflow::dimensions::NodeId;
use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::{AllocationKind, InstructionId, Opcode};
use crate::units;
use crate::whatif::applying::Applying;
use crate::whatif::batch;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::effects::{BatchScale, Effects};
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
    let mut order = base.graph.program_order().iter();
    if !order.any(|&i| base.is_backward(i)) {
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
        let added = accumulators(run.base, &run.effects, &mut run.scenario, self.count);
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

/// Adds accumulators; returns how many and their bytes.
fn accumulators(
    base: &Base<'_, '_>,
    effects: &Effects,
    scenario: &mut Scenario,
    count: u64,
) -> (usize, u64) {
    if count < 2 {
        return (0, 0);
    }
    let mut out = (0, 0u64);
    let end = base.points.point_count();
    for (b, block) in base.blocks.iter().enumerate() {
        if !matches!(
            block.kind,
            AllocationKind::Parameter | AllocationKind::Donated
        ) {
            continue;
        }
        let size = scenario.blocks.get(b).copied().unwrap_or(0);
        if size > 0 && is_trained(base, effects, block) {
            let label = format!("gradient sum of argument {}", block.parameter.unwrap_or(0));
            scenario.add(label, size, 0, end);
            out.0 += 1;
            out.1 = out.1.saturating_add(size);
        }
    }
    out
}

/// Whether an argument is a parameter of the model that training changes: an output has its shape,
/// and it meets data that carries the batch.
fn is_trained(base: &Base<'_, '_>, effects: &Effects, block: &crate::whatif::Block) -> bool {
    let module = &base.program.module;
    let Some(number) = block.parameter else {
        return false;
    };
    let Some(argument) = base.program.module.entry_parameter(number) else {
        return false;
    };
    let returned =
        block.kind == AllocationKind::Donated || base.boundary.returns(&module.shape(argument));
    returned && meets_batch(base, effects, argument)
}

/// Follows an argument forward until something that carries the batch is computed from it.
fn meets_batch(base: &Base<'_, '_>, effects: &Effects, argument: InstructionId) -> bool {
    let carries = |n: NodeId| {
        effects
            .batches
            .iter()
            .any(|b| !b.batch_dimensions.of(n).is_empty())
    };
    let Some(start) = base.values.nodes(argument).next() else {
        return false;
    };
    let mut queue = vec![start];
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let module = &base.program.module;
    while let Some(node) = queue.pop() {
        if !seen.insert(node) || seen.len() > 20_000 {
            continue;
        }
        // The same data in other computations, later tuples, loop bodies.
        for (l, _) in base.values.neighbours(node) {
            if l.a == node && l.elementwise && passes(base, l.b) {
                queue.push(l.b);
            }
        }
        let i = base.values.instruction_of(node);
        for u in base.graph.uses(i) {
            let opcode = module.instruction(u.user).opcode;
            if base.values.element_count(u.user) > 0 || base.values.element_count(i) > 0 {
                continue;
            }
            for out in base.values.nodes(u.user) {
                if carries(out)
                    && !matches!(
                        opcode,
                        Opcode::Fusion | Opcode::Call | Opcode::While | Opcode::Conditional
                    )
                {
                    return true;
                }
            }
            if matches!(
                opcode,
                Opcode::Broadcast
                    | Opcode::AllGather
                    | Opcode::Slice
                    | Opcode::DynamicSlice
                    | Opcode::Reduce
            ) {
                queue.extend(base.values.nodes(u.user));
            }
        }
    }
    false
}

/// Whether data flows on unchanged in substance: results of arithmetic on two arrays are something
/// else.
fn passes(base: &Base<'_, '_>, node: u32) -> bool {
    let i = base.values.instruction_of(node);
    matches!(
        base.program.module.instruction(i).opcode,
        Opcode::Parameter
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::While
            | Opcode::Fusion
            | Opcode::Call
            | Opcode::Convert
            | Opcode::Copy
            | Opcode::CopyStart
            | Opcode::CopyDone
            | Opcode::Bitcast
            | Opcode::Reshape
            | Opcode::Transpose
            | Opcode::DynamicSlice
            | Opcode::Slice
            | Opcode::AllGather
            | Opcode::AllGatherStart
            | Opcode::AllGatherDone
            | Opcode::AsyncStart
            | Opcode::AsyncDone
            | Opcode::AsyncUpdate
            | Opcode::OptBarrier
            | Opcode::Broadcast
    )
}

//! Donated arguments whose memory helps nothing: the program needs the old and the new value at
//! once.
//!
//! In: the peak and who reads the donated arguments. Out: a finding per top-level argument that is
//! donated, that a loop reads slice by slice, and beside which the loop fills a second array of
//! the same shape that is returned in its place.

use super::evidence::{buffer_line, matters, shortened};
use super::finding::{Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::dataflow::{names_of, reads_of, Graph, Through};
use crate::hlo::{AllocationKind, InstructionId, Opcode};
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::peak::{argument_name, top_level};
use crate::units;

/// A donated argument, what stands beside it, and the loop that needs both.
type Pair<'c> = (&'c PeakBuffer, &'c PeakBuffer, InstructionId);

/// Arguments that are donated while a copy as large is alive beside them.
pub fn donation_without_effect(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<Finding> {
    let module = &ctx.program.module;
    let mut budget = 100_000 + 10 * module.instructions.len();
    let mut taken: Vec<usize> = Vec::new();
    let mut groups: Vec<(&str, Vec<Pair<'_>>)> = Vec::new();
    let donated = ctx.peak.buffers.iter().filter(|b| {
        b.kind == AllocationKind::Donated && b.shape.is_some() && matters(ctx, b.counted_bytes)
    });
    for old in donated {
        let Some(parameter) = old.instruction else {
            continue;
        };
        if module.instruction(parameter).opcode != Opcode::Parameter {
            continue;
        }
        let Some(looping) = read_in_loop(ctx, graph, old, &mut budget) else {
            continue;
        };
        let fits = |(at, b): &(usize, &PeakBuffer)| {
            b.kind == AllocationKind::Temporary
                && same_array(b, old)
                && b.size_bytes == old.size_bytes
                && !taken.contains(at)
                && carried_by(ctx, b, looping)
        };
        let Some((at, new)) = ctx.peak.buffers.iter().enumerate().find(fits) else {
            continue;
        };
        taken.push(at);
        let top = top_level(argument_name(ctx.program, parameter));
        match groups.iter_mut().find(|g| g.0 == top) {
            Some(g) => g.1.push((old, new, looping)),
            None => groups.push((top, vec![(old, new, looping)])),
        }
    }
    groups
        .iter()
        .filter_map(|(top, group)| finding(ctx, top, group))
        .collect()
}

/// Whether two blocks hold arrays of one type and shape; a dimension of size 1 may lie anywhere.
fn same_array(a: &PeakBuffer, b: &PeakBuffer) -> bool {
    a.shape
        .as_ref()
        .zip(b.shape.as_ref())
        .is_some_and(|(a, b)| a.element_type == b.element_type && a.dimensions == b.dimensions)
}

/// The loop in every iteration of which a donated argument is read.
fn read_in_loop(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    b: &PeakBuffer,
    budget: &mut usize,
) -> Option<InstructionId> {
    let module = &ctx.program.module;
    let value = ctx.program.assignment.as_ref()?.value(b.buffer?)?;
    let reads = reads_of(ctx.program, graph, &value, Through::Names, budget);
    reads.reads.iter().find_map(|r| {
        let computation = module.instruction(r.reader).computation;
        let caller = module.caller_of(computation)?;
        // What reads it whole (to copy it over) is no slice by slice.
        let writes = module.instruction(r.reader).opcode == Opcode::DynamicUpdateSlice;
        (module.instruction(caller).opcode == Opcode::While && !writes).then_some(caller)
    })
}

/// Whether a block is one of the arrays that a loop carries.
fn carried_by(ctx: &Context<'_, '_>, b: &PeakBuffer, looping: InstructionId) -> bool {
    let module = &ctx.program.module;
    let Some(assignment) = &ctx.program.assignment else {
        return false;
    };
    let buffers = [b.buffer, b.canonical].into_iter().flatten();
    let mut values = buffers.filter_map(|buffer| assignment.value(buffer));
    values.any(|value| {
        let i = module.instruction(value.0);
        let in_body =
            module.caller_of(i.computation) == Some(looping) && i.opcode == Opcode::Parameter;
        let mut names = names_of(ctx.program, &value, Through::Names, 8).into_iter();
        in_body || names.any(|n| n.0 == looping)
    })
}

fn finding(ctx: &Context<'_, '_>, top: &str, group: &[Pair<'_>]) -> Option<Finding> {
    let bytes = group
        .iter()
        .fold(0u64, |s, g| s.saturating_add(g.1.counted_bytes));
    let &(_, _, looping) = group.first()?;
    if !matters(ctx, bytes) {
        return None;
    }
    let lines = group.iter().map(|(old, new, _)| {
        let text = format!(
            "{}; beside it {}",
            buffer_line(ctx, old),
            buffer_line(ctx, new)
        );
        (new.counted_bytes, text)
    });
    let mut evidence = shortened(lines.collect());
    let name = ctx.program.module.instruction(looping);
    evidence.push(format!(
        "{} ({}) reads the old and fills the new in the same iterations",
        name.name, name.op_name
    ));
    let mut buffer_ids: Vec<i64> = group.iter().filter_map(|g| ctx.buffer_id(g.1)).collect();
    buffer_ids.dedup();
    Some(Finding {
        kind: FindingKind::DONATION,
        severity: FindingSeverity::Medium,
        title: format!(
            "`{top}` is donated, but {} of new values stand beside it: a loop needs old and new",
            units::bytes(bytes)
        ),
        bytes,
        saving_bytes: 0,
        saving: SavingKind::UpperBound,
        safety: Safety::Safe,
        evidence,
        action: format!(
            "Donating alone does not help here. Carry `{top}` through the loop and update it in \
             place (jax.lax.fori_loop or jax.lax.scan with it in the carry, .at[i].set or \
             jax.lax.dynamic_update_slice on the carried array) instead of reading it as xs and \
             stacking new values as ys."
        ),
        buffer_ids,
        links: vec![
            "https://docs.jax.dev/en/latest/buffer_donation.html".to_owned(),
            "https://openxla.org/xla/aliasing".to_owned(),
        ],
    })
}

//! What people call a buffer: the operation that computes what it holds.

use super::context::Context;
use super::snapshot::PeakBuffer;
use crate::dataflow::producer::is_telling;
use crate::dataflow::{producer_of_buffer, Producer};
use crate::hlo::op_name::base_name;
use crate::hlo::{InstructionId, Program};

/// HLO opcode of what defines a buffer.
pub fn opcode<'a>(ctx: &Context<'_, 'a>, b: &PeakBuffer) -> &'a str {
    b.instruction
        .map_or("", |i| ctx.program.module.instruction(i).opcode_name())
}

/// What people call a buffer: the framework's operation path of what computes it (see
/// [`producer_of_block`]), else that instruction's name without its number, else that nothing
/// accounts for it.
pub fn buffer_label(ctx: &Context<'_, '_>, b: &PeakBuffer) -> String {
    label_of(ctx.program, producer_of(ctx, b))
}

/// The instruction that computes what a block at the peak holds.
pub fn producer_of(ctx: &Context<'_, '_>, b: &PeakBuffer) -> Option<InstructionId> {
    producer_of_block(ctx.program, b).map(|m| m.instruction)
}

pub(crate) fn label_of(program: &Program<'_>, producer: Option<InstructionId>) -> String {
    let Some(i) = producer else {
        return "[unattributed]".to_owned();
    };
    let i = program.module.instruction(i);
    let name = if i.op_name.is_empty() {
        base_name(i.name)
    } else {
        i.op_name
    };
    let short = |at: usize| name.floor_char_boundary(at);
    if name.len() <= LONGEST_LABEL {
        return name.to_owned();
    }
    // Names of megabytes do not come from people; both ends tell such ones apart well enough.
    let (head, tail) = (
        short(LONGEST_LABEL / 2),
        short(name.len() - LONGEST_LABEL / 2),
    );
    format!("{}…{}", &name[..head], &name[tail..])
}

/// Labels longer than this are shortened in their middle.
const LONGEST_LABEL: usize = 4096;

/// Finds what computed a block at the peak. Memory that a loop fills is still zeros, or goes by
/// the loop's own parameter, while the loop runs: then it is named by what is written into it.
/// `None` for memory that nothing in the file accounts for.
pub fn producer_of_block(program: &Program<'_>, b: &PeakBuffer) -> Option<Producer> {
    let module = &program.module;
    let tells = |m: &Producer| is_telling(module.instruction(m.instruction).op_name);
    let first = producer_of_buffer(program, b.buffer?)?;
    if tells(&first) {
        return Some(first);
    }
    let filled = b.becomes.and_then(|id| producer_of_buffer(program, id));
    if let Some(m) = filled.filter(tells) {
        return Some(m);
    }
    if !module.instruction(first.instruction).op_name.is_empty() {
        return Some(first);
    }
    let before = b.canonical.and_then(|id| producer_of_buffer(program, id));
    before
        .filter(|m| !module.instruction(m.instruction).op_name.is_empty())
        .or(Some(first))
}

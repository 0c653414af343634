//! Folds repeats: buffers of the same shape, opcode and operation path but for layer numbers and
//! the suffixes of copies (`.remat`, `.clone`) become one group, "48 × 128 MiB".

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::context::Context;
use super::maker::{maker_of_block, maker_of_buffer};
use super::peak::PeakBuffer;
use super::rank::HeldRow;
use super::text::stars;
use crate::model::op_name::base_name;
use crate::model::{AllocationKind, BufferId, InstructionId, Program};

/// Buffers that are repeats of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferGroup {
    /// Operation path with `*` for numbers that vary, or the instruction's name where the framework
    /// gave none.
    pub label: String,
    /// Shape with layout; empty for unattributed memory.
    pub shape: String,
    /// HLO opcode.
    pub opcode: String,
    /// What the memory is for.
    pub kind: AllocationKind,
    /// Bytes of all members that count towards the peak.
    pub size_bytes: u64,
    /// Their tile padding.
    pub padding_bytes: u64,
    /// Positions in the snapshot's buffers, largest first.
    pub members: Vec<usize>,
}

/// Groups of everything at the peak, largest first, then by label and shape. Sizes add up to the
/// peak.
pub fn buffer_groups(ctx: &Context<'_, '_>) -> Vec<BufferGroup> {
    type Key = (AllocationKind, String, String, String);
    let mut groups: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    let labels: Vec<String> = ctx
        .peak
        .buffers
        .iter()
        .map(|b| buffer_label(ctx, b))
        .collect();
    for (i, b) in ctx.peak.buffers.iter().enumerate() {
        let shape = b
            .shape
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let path = stars(base_name(&labels[i]));
        groups
            .entry((b.kind, shape, opcode(ctx, b).to_owned(), path))
            .or_default()
            .push(i);
    }
    let mut out: Vec<BufferGroup> = groups
        .into_iter()
        .map(|((kind, shape, opcode, stars), members)| {
            let sum = |f: &dyn Fn(&PeakBuffer) -> u64| {
                members
                    .iter()
                    .fold(0u64, |s, &i| s.saturating_add(f(&ctx.peak.buffers[i])))
            };
            let mut names = members.iter().filter_map(|&i| labels.get(i));
            let first = names.next().cloned().unwrap_or_default();
            let same = names.all(|l| *l == first);
            BufferGroup {
                label: if same { first } else { stars },
                shape,
                opcode,
                kind,
                size_bytes: sum(&|b| b.counted_bytes),
                padding_bytes: sum(&PeakBuffer::padding_bytes),
                members,
            }
        })
        .collect();
    out.sort_by(|a, b| {
        (b.size_bytes, &a.label, &a.shape, a.kind).cmp(&(a.size_bytes, &b.label, &b.shape, b.kind))
    });
    out
}

/// HLO opcode of what defines a buffer.
pub fn opcode<'a>(ctx: &Context<'_, 'a>, b: &PeakBuffer) -> &'a str {
    b.instruction
        .map_or("", |i| ctx.program.module.instruction(i).opcode_name())
}

/// What people call a buffer: the framework's operation path of what computes it (see
/// [`maker_of_block`]), else that instruction's name without its number, else that nothing
/// accounts for it.
pub fn buffer_label(ctx: &Context<'_, '_>, b: &PeakBuffer) -> String {
    label_of(ctx.program, producer_of(ctx, b))
}

/// The instruction that computes what a block at the peak holds.
pub fn producer_of(ctx: &Context<'_, '_>, b: &PeakBuffer) -> Option<InstructionId> {
    maker_of_block(ctx.program, b).map(|m| m.instruction)
}

fn label_of(program: &Program<'_>, producer: Option<InstructionId>) -> String {
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

/// Names of live ranges: of what is alive at the peak the names that it has there.
#[derive(Debug, Clone, Default)]
pub struct RangeLabels {
    at_peak: FxHashMap<(BufferId, u32), usize>,
}

impl RangeLabels {
    /// Looks up the peak's blocks by canonical buffer and first point.
    pub fn new(ctx: &Context<'_, '_>) -> Self {
        let blocks = ctx.peak.buffers.iter().enumerate();
        RangeLabels {
            at_peak: blocks
                .filter_map(|(i, b)| Some(((b.canonical?, b.live?.0), i)))
                .collect(),
        }
    }

    /// The buffer that stands for a range: at the peak the snapshot's, else the canonical one.
    pub fn buffer(&self, ctx: &Context<'_, '_>, range: &HeldRow) -> BufferId {
        let b = self.block(ctx, range).and_then(|b| b.buffer);
        b.unwrap_or(range.buffer)
    }

    /// What people call a range's data (see [`buffer_label`]).
    pub fn label(&self, ctx: &Context<'_, '_>, range: &HeldRow) -> String {
        if let Some(b) = self.block(ctx, range) {
            return buffer_label(ctx, b);
        }
        let made = maker_of_buffer(ctx.program, range.name).map(|m| m.instruction);
        label_of(ctx.program, made)
    }

    fn block<'c>(&self, ctx: &Context<'c, '_>, range: &HeldRow) -> Option<&'c PeakBuffer> {
        let &i = self.at_peak.get(&(range.buffer, range.start))?;
        ctx.peak.buffers.get(i)
    }
}

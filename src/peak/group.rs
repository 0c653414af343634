//! Folds repeats: buffers of the same shape, opcode and operation path but for layer numbers and
//! the suffixes of copies (`.remat`, `.clone`) become one group, "48 × 128 MiB".

use std::collections::BTreeMap;

use super::context::Context;
use super::labels::{buffer_label, opcode};
use super::snapshot::PeakBuffer;
use crate::hlo::op_name::base_name;
use crate::hlo::AllocationKind;
use crate::text::stars;

/// Buffers that are repeats of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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

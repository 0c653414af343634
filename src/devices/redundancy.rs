//! The peak seen as copies: which of its bytes several devices hold identically, grouped by
//! tensor. In: the blocks at the peak and who holds the same data; out: rows for a table or a
//! chart, and their sum.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::provenance::gathered_argument;
use crate::devices::replication::{DeviceClassesId, Replication};
use crate::hlo::{AllocationKind, InstructionId, Opcode, Sharding};
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::peak::{buffer_label, producer_of};
use crate::text::{merged, stars};

/// How much of the peak is copies. All sizes are of one device, in bytes.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReplicationSummary {
    /// Devices of the program; with 1 there is nothing to tell.
    pub devices: u64,
    /// The peak.
    pub peak_bytes: u64,
    /// What of it would go away if every tensor were stored once, spread over the devices: the
    /// sum over all blocks at the peak.
    pub redundant_bytes: u64,
    /// The part of that in data that no argument goes into: masks, zeros and the like are no
    /// copies of anything that could be sharded, and have no row.
    pub unshardable_bytes: u64,
    /// Bytes at the peak of such data, the same on several devices.
    pub constant_bytes: u64,
    /// Tensors with copies, the most redundant first.
    pub rows: Vec<RedundantRow>,
    /// Arguments of a partitioned program that carry no annotation: nothing is assumed of them.
    pub unannotated: Vec<RedundantRow>,
}

/// Buffers at the peak with the same name, size and replication.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RedundantRow {
    /// Argument name or op name; numbers that differ within the group read `*`.
    pub label: String,
    /// `f32[16,2048,32000]`, of the first one.
    pub shape: String,
    /// Dimensions of that shape, per device.
    pub dimensions: Vec<u64>,
    /// Dimensions of the operation that computes it, where they are the last ones of
    /// `dimensions`: in a loop that stacks its results, those have one more in front. Else
    /// `dimensions`.
    pub made_dimensions: Vec<u64>,
    /// Where in the user's code: `model.py:42`; empty if the file does not say.
    pub where_: String,
    /// What their allocations are for.
    pub kind: AllocationKind,
    /// How many buffers.
    pub count: usize,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Different contents among the devices.
    pub distinct_copies: u64,
    /// Devices.
    pub devices: u64,
    /// What of `bytes` would go away if each content were stored once.
    pub redundant_bytes: u64,
    /// What they are replicated over, in words.
    pub axes: Option<String>,
    /// The annotation, of an argument or a result, as XLA prints it.
    pub sharding: Option<String>,
    /// Whether they are sharded arguments, gathered for use.
    pub gathered: bool,
    /// Whether an annotation says that they are not sharded at all.
    pub annotated_whole: bool,
    /// Their partition of the devices.
    pub classes: DeviceClassesId,
    /// What computes the first of them.
    pub instruction: Option<InstructionId>,
    /// Logical buffers, by the compiler's number, largest first.
    pub buffer_ids: Vec<i64>,
}

/// Takes stock of the copies at a space's peak.
pub fn replication_summary(ctx: &Context<'_, '_>, r: &Replication) -> ReplicationSummary {
    let mut out = ReplicationSummary {
        devices: r.devices(),
        peak_bytes: ctx.usage.peak_bytes(),
        ..ReplicationSummary::default()
    };
    if r.devices() <= 1 {
        return out;
    }
    let outputs = output_numbers(ctx);
    // Keyed so that equal groups meet; the order of rows is set at the end.
    let mut groups: BTreeMap<Key, RedundantRow> = BTreeMap::new();
    for b in &ctx.peak.buffers {
        let Some(classes) = r.buffer_classes(ctx, b) else {
            continue;
        };
        let redundant = r.redundant_bytes(b.counted_bytes, classes);
        let annotation = annotation(ctx, r, b, &outputs);
        let bare_argument = annotation.is_none() && is_argument(b) && r.num_partitions() > 1;
        if redundant == 0 && !bare_argument {
            continue;
        }
        out.redundant_bytes = out.redundant_bytes.saturating_add(redundant);
        if !bare_argument && !r.buffer_depends_on_data(ctx, b) {
            out.constant_bytes = out.constant_bytes.saturating_add(b.counted_bytes);
            out.unshardable_bytes = out.unshardable_bytes.saturating_add(redundant);
            continue;
        }
        let gathered = gathered_from(ctx, b);
        let label = match gathered {
            Some(p) => ctx.program.module.instruction(p).op_name.to_owned(),
            None => buffer_label(ctx, b),
        };
        let made_by = producer_of(ctx, b);
        let is_named =
            made_by.is_some_and(|i| !ctx.program.module.instruction(i).op_name.is_empty());
        let bitcasts_meet = b.kind == AllocationKind::Temporary && is_named;
        let whole = annotation.is_some_and(|s| s.is_fully_replicated(r.num_partitions()));
        let key = Key {
            bare_argument,
            label: stars(&label),
            kind: b.kind,
            classes,
            whole,
            element: b.shape.as_ref().map_or(0, |s| s.element_type.0),
            size_bytes: b.size_bytes,
            gathered: gathered.is_some(),
            dimensions: match &b.shape {
                Some(s) if !bitcasts_meet => s.dimensions.clone(),
                _ => Vec::new(),
            },
        };
        let row = groups.entry(key).or_insert_with(|| RedundantRow {
            label: label.clone(),
            shape: plain_shape(b),
            dimensions: b
                .shape
                .as_ref()
                .map_or(Vec::new(), |s| s.dimensions.clone()),
            made_dimensions: made_dimensions(ctx, b, made_by),
            where_: place(ctx, made_by),
            kind: b.kind,
            count: 0,
            bytes: 0,
            distinct_copies: r.classes().count(classes).into(),
            devices: r.devices(),
            redundant_bytes: 0,
            axes: None,
            sharding: annotation.map(Sharding::to_string),
            gathered: gathered.is_some(),
            annotated_whole: whole,
            classes,
            instruction: made_by,
            buffer_ids: Vec::new(),
        });
        row.label = merged(&row.label, &label);
        // Of shapes that differ by a bitcast, the one with the fewest dimensions reads best.
        if let Some(s) = &b.shape {
            if s.dimensions.len() < row.dimensions.len() {
                row.shape = plain_shape(b);
                row.dimensions.clone_from(&s.dimensions);
                row.made_dimensions = made_dimensions(ctx, b, made_by);
            }
        }
        row.count += 1;
        row.bytes = row.bytes.saturating_add(b.counted_bytes);
        row.redundant_bytes = row.redundant_bytes.saturating_add(redundant);
        row.buffer_ids.extend(ctx.buffer_id(b));
    }
    let mut words: FxHashMap<DeviceClassesId, Option<String>> = FxHashMap::default();
    for (key, mut row) in groups {
        let axes = words
            .entry(row.classes)
            .or_insert_with(|| r.axes(row.classes));
        row.axes.clone_from(axes);
        if key.bare_argument {
            out.unannotated.push(row);
        } else {
            out.rows.push(row);
        }
    }
    let order = |x: &RedundantRow| {
        (
            Reverse(x.redundant_bytes),
            Reverse(x.bytes),
            x.label.clone(),
            x.buffer_ids.first().copied(),
        )
    };
    out.rows.sort_by_cached_key(order);
    out.unannotated.sort_by_cached_key(order);
    out
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    bare_argument: bool,
    label: String,
    kind: AllocationKind,
    classes: DeviceClassesId,
    whole: bool,
    element: u32,
    size_bytes: u64,
    gathered: bool,
    dimensions: Vec<u64>,
}

/// The argument that a temporary is a gathered copy of.
fn gathered_from(ctx: &Context<'_, '_>, b: &PeakBuffer) -> Option<InstructionId> {
    let assignment = ctx.program.assignment.as_ref()?;
    if b.kind != AllocationKind::Temporary {
        return None;
    }
    gathered_argument(&ctx.program.module, assignment.value(b.buffer?)?)
}

fn is_argument(b: &PeakBuffer) -> bool {
    matches!(b.kind, AllocationKind::Parameter | AllocationKind::Donated)
}

/// Number of the result's array that a part of an instruction becomes.
fn output_numbers(ctx: &Context<'_, '_>) -> FxHashMap<(InstructionId, Vec<i64>), usize> {
    let module = &ctx.program.module;
    let mut out = FxHashMap::default();
    let Some(root) = module.entry_root() else {
        return out;
    };
    if module.instruction(root).opcode != Opcode::Tuple {
        out.insert((root, Vec::new()), 0);
        return out;
    }
    for (n, &o) in module.operands(root).iter().enumerate() {
        let i = module.instruction(o);
        let key = match (i.opcode, module.operands(o)) {
            (Opcode::GetTupleElement, [from]) => (*from, vec![i64::from(i.tuple_index)]),
            _ => (o, Vec::new()),
        };
        out.entry(key).or_insert(n);
    }
    out
}

/// What the program says of an argument's or a result's sharding.
fn annotation<'r>(
    ctx: &Context<'_, '_>,
    r: &'r Replication,
    b: &PeakBuffer,
    outputs: &FxHashMap<(InstructionId, Vec<i64>), usize>,
) -> Option<&'r Sharding> {
    let assignment = ctx.program.assignment.as_ref()?;
    let index = assignment.shape_index(b.buffer?);
    match b.kind {
        AllocationKind::Parameter | AllocationKind::Donated => {
            let allocation = assignment.allocation(b.allocation?);
            let sharding = r.parameter_sharding(allocation.parameter_number?)?;
            match sharding {
                Sharding::Tuple(_) => match index {
                    [leaf] => sharding.leaf(usize::try_from(*leaf).ok()?),
                    _ => None,
                },
                s => Some(s),
            }
        }
        AllocationKind::Output => {
            let n = *outputs.get(&(b.instruction?, index.to_vec()))?;
            r.output_shardings().get(n)
        }
        _ => None,
    }
}

fn plain_shape(b: &PeakBuffer) -> String {
    b.shape.as_ref().map_or_else(String::new, |s| {
        let mut bare = s.clone();
        bare.layout = None;
        bare.to_string()
    })
}

fn made_dimensions(
    ctx: &Context<'_, '_>,
    b: &PeakBuffer,
    made_by: Option<InstructionId>,
) -> Vec<u64> {
    let Some(held) = &b.shape else {
        return Vec::new();
    };
    let made = made_by.map(|i| ctx.program.module.shape(i));
    let made = made.filter(|m| !m.is_tuple()).map(|m| m.dimensions);
    let stripped = made.map(|m| match m.split_first() {
        Some((1, rest)) if m.len() == held.dimensions.len() => rest.to_vec(),
        _ => m,
    });
    stripped
        .filter(|m| !m.is_empty() && held.dimensions.ends_with(m))
        .unwrap_or_else(|| held.dimensions.clone())
}

fn place(ctx: &Context<'_, '_>, made_by: Option<InstructionId>) -> String {
    made_by
        .and_then(|i| ctx.program.module.source_of(i))
        .map_or_else(String::new, |s| {
            let file = s.file.rsplit('/').next().unwrap_or_default();
            format!("{file}:{}", s.line)
        })
}

//! Which dimension of which argument is the batch.
//!
//! In: a size the user gave, or none. Out: the dimensions to follow, and words about them.

use super::base::Base;
use super::values::NodeId;
use crate::decode::decode_sharding;
use crate::model::{AllocationKind, InstructionId, Sharding};

/// The dimensions that carry the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seeds {
    /// Node and dimension.
    pub(super) seeds: Vec<(NodeId, u8)>,
    /// For the note: `tokens dimension 0 (8 per device)`.
    pub(super) found: Vec<String>,
}

/// Finds the batch. With `given`, that argument (and dimension) is taken.
pub(super) fn find(
    base: &Base<'_, '_>,
    old: Option<u64>,
    given: Option<(&[InstructionId], Option<u8>)>,
) -> Seeds {
    let mut out = Seeds::default();
    if let Some((arguments, dimension)) = given {
        for &i in arguments {
            take(base, i, dimension.unwrap_or(0), &mut out);
        }
        return out;
    }
    // Data looks like data: whole numbers (tokens) before other arrays of a plain name, before
    // parts of trees (weights). Only a size that the user gave can speak for the last, or for
    // state.
    let ranks = if old.is_some() { 5 } else { 3 };
    for rank in 0..ranks {
        for i in base.program.module.entry_parameters() {
            if rank_of(base, i) != rank {
                continue;
            }
            if let Some(d) = batch_dimension(base, i, old) {
                take(base, i, d, &mut out);
            }
        }
        if !out.seeds.is_empty() {
            break;
        }
    }
    companions(base, &mut out);
    out
}

/// Other data of the same batch: plain arguments whose first dimension has the size of the first
/// one's found, over all devices.
fn companions(base: &Base<'_, '_>, out: &mut Seeds) {
    let Some(&(node, dimension)) = out.seeds.first() else {
        return;
    };
    let size_of = |i: InstructionId, node: NodeId, d: u8| {
        let d = usize::from(d);
        let local = base.values.dimensions(node).get(d).copied()?;
        let tile = tiles(base, i).get(d).copied().unwrap_or(1);
        Some(local.saturating_mul(tile))
    };
    let wanted = size_of(base.values.instruction_of(node), node, dimension);
    for i in base.program.module.entry_parameters() {
        let Some(n) = base.values.nodes(i).next() else {
            continue;
        };
        let known = out.seeds.iter().any(|s| s.0 == n);
        if !known && rank_of(base, i) <= 1 && wanted.is_some() && size_of(i, n, 0) == wanted {
            take(base, i, 0, out);
        }
    }
}

/// How likely an argument is data: 0 most, 4 (state) least. Whole numbers of the shape of a result
/// may be tokens that go in and come out.
fn rank_of(base: &Base<'_, '_>, i: InstructionId) -> u32 {
    let module = &base.program.module;
    let element = module.shape(i).element_type;
    let whole_numbers = !element.is_float() && matches!(element.0, 2..=9);
    let plain = !module.instruction(i).op_name.contains(['[', '.']);
    match (is_state(base, i), whole_numbers, plain) {
        (false, true, _) => 0,
        (false, false, true) => 1,
        (true, true, true) if !is_donated(base, i) => 2,
        (false, false, false) => 3,
        (true, ..) => 4,
    }
}

fn take(base: &Base<'_, '_>, i: InstructionId, dimension: u8, out: &mut Seeds) {
    let Some(node) = base.values.nodes(i).next() else {
        return;
    };
    let Some(size) = base.values.dimensions(node).get(usize::from(dimension)) else {
        return;
    };
    let at = base.program.module.instruction(i);
    let name = if at.op_name.is_empty() {
        at.name
    } else {
        at.op_name
    };
    out.found
        .push(format!("{name} dimension {dimension} ({size} per device)"));
    out.seeds.push((node, dimension));
}

fn is_donated(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let number = base.program.module.instruction(i).parameter_number;
    let of = |b: &&super::base::Block| b.parameter == Some(number);
    let mut blocks = base.blocks.iter().filter(of);
    blocks.any(|b| b.kind == AllocationKind::Donated)
}

/// Whether an argument is state rather than data: its memory goes to an output, or an output has
/// the same shape and layout.
pub(super) fn is_state(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let module = &base.program.module;
    if is_donated(base, i) {
        return true;
    }
    let shape = module.shape(i);
    if shape.element_count() <= 1 {
        return true;
    }
    let Some(root) = module.entry_root() else {
        return false;
    };
    let mut same = false;
    module
        .shape(root)
        .for_each_leaf(&mut |_, leaf| same |= *leaf == shape);
    same
}

/// The dimension of an argument whose global size is `old`; without `old`, the first dimension.
fn batch_dimension(base: &Base<'_, '_>, i: InstructionId, old: Option<u64>) -> Option<u8> {
    let node = base.values.nodes(i).next()?;
    let local = base.values.dimensions(node);
    let tiles = tiles(base, i);
    let Some(old) = old else {
        return (*local.first()? > 1).then_some(0);
    };
    let with_size = |wanted: &dyn Fn(usize, u64) -> bool| {
        (0..local.len()).find(|&d| wanted(d, local.get(d).copied().unwrap_or(0)))
    };
    let global = |d: usize, n: u64| n.saturating_mul(tiles.get(d).copied().unwrap_or(1));
    with_size(&|d, n| global(d, n) == old)
        .or_else(|| with_size(&|_, n| n == old))
        .or_else(|| {
            // Rounded up, or split in a way the file does not say.
            with_size(&|d, n| d == 0 && tiles.is_empty() && n > 1 && old % n == 0)
        })
        .and_then(|d| u8::try_from(d).ok())
}

/// How often each dimension of an argument is split, as its sharding says; empty if it does not.
pub(super) fn tiles(base: &Base<'_, '_>, i: InstructionId) -> Vec<u64> {
    let rank = base.program.module.shape(i).dimensions.len();
    let sharding = sharding_of(base, i);
    sharding
        .and_then(|s| s.tiles_per_dimension(rank))
        .unwrap_or_default()
}

/// The sharding of an entry argument, where the file has one that can be read.
pub(super) fn sharding_of(base: &Base<'_, '_>, i: InstructionId) -> Option<Sharding> {
    let module = &base.program.module;
    let at = module.instruction(i);
    let bytes = module
        .parameter_shardings
        .get(at.parameter_number as usize)
        .copied()
        .or_else(|| at.sharding())?;
    decode_sharding(bytes).ok()
}

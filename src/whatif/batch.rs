//! Which dimension of which argument is the batch.
//!
//! In: a size the user gave, or none. Out: the dimensions to follow, and words about them.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::base::Base;
use crate::dataflow::dimensions::batch_dimensions::BatchDimensions;
use crate::dataflow::dimensions::NodeId;
use crate::hlo::decode::decode_sharding;
use crate::hlo::{InstructionId, Opcode, Sharding};
use crate::peak::{argument_name, top_level};

/// The dimensions that carry the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seeds {
    /// Node and dimension.
    pub(crate) seeds: Vec<(NodeId, u8)>,
    /// For the note: `tokens dimension 0 (8 per device)`.
    pub(crate) found: Vec<String>,
}

/// Finds the batch. With `given`, that argument (and dimension) is taken if it has that size.
///
/// Data looks like data: whole numbers (tokens) before other arrays, and these only where nothing
/// speaks for weights (see [`rank_of`]). Where it is not clear, nothing is found: a plan without a
/// batch is better than one that cuts a weight.
pub(crate) fn find(
    base: &Base<'_, '_>,
    old: Option<u64>,
    given: Option<(&[InstructionId], Option<u8>)>,
) -> Seeds {
    let mut out = Seeds::default();
    if let Some((arguments, dimension)) = given {
        for &i in arguments {
            let d = dimension.unwrap_or(0);
            if old.is_none_or(|old| has_size(base, i, d, old)) {
                take(base, i, d, &mut out);
            }
        }
        return out;
    }
    let trees = Trees::new(base);
    for rank in 0..3 {
        let of_rank = base.program.module.entry_parameters().iter().copied();
        let mut found: Vec<(InstructionId, u8)> = of_rank
            .filter(|&i| rank_of(base, &trees, i) == Some(rank))
            .filter_map(|i| Some((i, batch_dimension(base, i, old)?)))
            .collect();
        if rank == 1 && old.is_none() {
            found = clear(base, found);
        }
        for (i, d) in found {
            take(base, i, d, &mut out);
        }
        if !out.seeds.is_empty() {
            break;
        }
    }
    companions(base, &trees, &mut out);
    out
}

/// Of arrays that may be data or weights, those that are split over devices; else all, if they
/// agree on the size; else none.
fn clear(base: &Base<'_, '_>, found: Vec<(InstructionId, u8)>) -> Vec<(InstructionId, u8)> {
    let is_split = |&(i, d): &(InstructionId, u8)| {
        let tile = tiles(base, i).get(usize::from(d)).copied();
        tile.is_some_and(|t| t > 1)
    };
    if found.iter().any(is_split) {
        return found.into_iter().filter(is_split).collect();
    }
    let mut sizes = found.iter().map(|&(i, d)| global_size(base, i, d));
    let first = sizes.next().flatten();
    if first.is_some() && sizes.all(|s| s == first) {
        found
    } else {
        Vec::new()
    }
}

/// Size of a dimension over all devices.
fn global_size(base: &Base<'_, '_>, i: InstructionId, d: u8) -> Option<u64> {
    let node = base.values.nodes(i).next()?;
    let local = *base.values.dimensions(node).get(usize::from(d))?;
    let tile = tiles(base, i).get(usize::from(d)).copied().unwrap_or(1);
    Some(local.saturating_mul(tile))
}

fn has_size(base: &Base<'_, '_>, i: InstructionId, d: u8, size: u64) -> bool {
    let node = base.values.nodes(i).next();
    let local = node.and_then(|n| base.values.dimensions(n).get(usize::from(d)).copied());
    local == Some(size) || global_size(base, i, d) == Some(size)
}

impl Seeds {
    /// Size of each on one device, and over how many devices it is split.
    pub(crate) fn sizes<'s>(
        &'s self,
        base: &'s Base<'_, '_>,
    ) -> impl Iterator<Item = (u64, u64)> + 's {
        self.seeds.iter().map(|&(node, d)| {
            let d = usize::from(d);
            let local = base.values.dimensions(node).get(d).copied().unwrap_or(1);
            let tiles = tiles(base, base.values.instruction_of(node));
            (local, tiles.get(d).copied().unwrap_or(1).max(1))
        })
    }

    /// What was found, and how much carries it, in words.
    pub(crate) fn note(&self, batch_dimensions: &BatchDimensions) -> String {
        format!(
            "batch: {}; {} arrays carry it",
            self.found.join(", "),
            batch_dimensions.len()
        )
    }
}

/// Powers of two that divide the batch on one device.
pub(crate) fn slices(base: &Base<'_, '_>) -> Vec<u64> {
    let seeds = find(base, None, None);
    let local = seeds.sizes(base).map(|s| s.0).min().unwrap_or(0);
    (1..7)
        .map(|k| 1u64 << k)
        .filter(|&n| local >= n && local.is_multiple_of(n))
        .collect()
}

/// Name, dimension and size over all devices of the first argument that carries the batch.
pub(crate) fn carrier(base: &Base<'_, '_>) -> Option<(String, u8, u64)> {
    let seeds = find(base, None, None);
    let &(node, dimension) = seeds.seeds.first()?;
    let (local, tile) = seeds.sizes(base).next()?;
    let name = argument_name(base.program, base.values.instruction_of(node));
    Some((name.to_owned(), dimension, local.saturating_mul(tile)))
}

/// How to say what the batch is, where it is not clear.
pub(crate) fn hint(base: &Base<'_, '_>) -> String {
    let choices = choices(base);
    let known = match choices.is_empty() {
        true => "no argument looks like data".to_owned(),
        false => format!("arguments that look like data: {}", choices.join(", ")),
    };
    format!("say which with --batch OLD:NEW@ARG:DIM, OLD the size over all devices; {known}")
}

/// What could be given as the batch, `tokens:0 (16)`, for a message.
fn choices(base: &Base<'_, '_>) -> Vec<String> {
    let trees = Trees::new(base);
    let parameters = base.program.module.entry_parameters().iter().copied();
    let data = parameters.filter(|&i| rank_of(base, &trees, i).is_some());
    data.filter_map(|i| {
        let size = global_size(base, i, 0)?;
        Some(format!("{}:0 ({size})", argument_name(base.program, i)))
    })
    .take(4)
    .collect()
}

/// Top-level arguments that are trees of arrays, and whether each holds data: no state in it, and
/// the first dimension of all its arrays is of one size and split over devices.
struct Trees(BTreeMap<String, bool>);

impl Trees {
    fn new(base: &Base<'_, '_>) -> Trees {
        let module = &base.program.module;
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        let mut out: BTreeMap<String, bool> = BTreeMap::new();
        for &i in module.entry_parameters() {
            let name = top_level(module.instruction(i).op_name).to_owned();
            let first = global_size(base, i, 0).unwrap_or(0);
            let is_split = tiles(base, i).first().is_some_and(|&t| t > 1);
            let known = *sizes.entry(name.clone()).or_insert(first);
            let fits = first > 1 && first == known && is_split && !is_state(base, i);
            let all = out.entry(name).or_insert(true);
            *all &= fits;
        }
        Trees(out)
    }

    fn holds_data(&self, name: &str) -> bool {
        self.0.get(top_level(name)).copied().unwrap_or(false)
    }
}

/// Other data of the same batch: plain arguments whose first dimension has the size of the first
/// one's found, over all devices.
fn companions(base: &Base<'_, '_>, trees: &Trees, out: &mut Seeds) {
    let Some(&(node, dimension)) = out.seeds.first() else {
        return;
    };
    let wanted = global_size(base, base.values.instruction_of(node), dimension);
    let found: FxHashSet<NodeId> = out.seeds.iter().map(|s| s.0).collect();
    for &i in base.program.module.entry_parameters() {
        let Some(n) = base.values.nodes(i).next() else {
            continue;
        };
        let known = found.contains(&n);
        let is_data = rank_of(base, trees, i).is_some_and(|r| r <= 1);
        if !known && is_data && wanted.is_some() && global_size(base, i, 0) == wanted {
            take(base, i, 0, out);
        }
    }
}

/// How likely an argument is data: 0 (whole numbers) most, 2 (whole numbers of the shape of a
/// result: tokens that go in and come out) least; `None` for state and weights. Bytes are no
/// tokens: weights are quantised to them.
fn rank_of(base: &Base<'_, '_>, trees: &Trees, i: InstructionId) -> Option<u32> {
    let module = &base.program.module;
    let element = module.shape(i).element_type;
    let name = module.instruction(i).op_name;
    let plain = !name.contains(['[', '.']);
    let whole_numbers = matches!(element.0, 3..=5 | 7..=9);
    if is_random_key(base, i) {
        return None;
    }
    match (is_state(base, i), whole_numbers) {
        (false, true) => Some(0),
        (false, false) if plain || trees.holds_data(name) => Some(1),
        (true, true) if plain && !is_donated(base, i) => Some(2),
        _ => None,
    }
}

/// Element type u32, of which random keys are.
const U32: u32 = 8;

/// Uses that are looked at to tell a random key.
const MAX_KEY_USES: usize = 1000;

/// Whether an argument is a key of JAX's random numbers: its raw form is u32 whose last dimension
/// is 2 (threefry) or 4 (the hardware's generator), alone or as a stack of keys that the program
/// makes random bits of.
fn is_random_key(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let module = &base.program.module;
    let shape = module.shape(i);
    let Some((2 | 4, before)) = shape.dimensions.split_last().map(|(l, b)| (*l, b)) else {
        return false;
    };
    if shape.element_type.0 != U32 {
        return false;
    }
    if before.is_empty() {
        return true;
    }
    let says = |name: &str| {
        name.split('/')
            .any(|c| c.starts_with("threefry") || c.starts_with("random_") || c.starts_with("rng_"))
    };
    let (mut todo, mut seen) = (vec![i], FxHashSet::default());
    while let Some(at) = todo.pop() {
        for u in base.graph.uses(at) {
            let user = module.instruction(u.user);
            if matches!(user.opcode, Opcode::Rng | Opcode::RngBitGenerator) || says(user.op_name) {
                return true;
            }
            if seen.len() < MAX_KEY_USES && seen.insert(u.user) {
                todo.push(u.user);
            }
        }
    }
    false
}

fn take(base: &Base<'_, '_>, i: InstructionId, dimension: u8, out: &mut Seeds) {
    let Some(node) = base.values.nodes(i).next() else {
        return;
    };
    let Some(size) = base.values.dimensions(node).get(usize::from(dimension)) else {
        return;
    };
    let name = argument_name(base.program, i);
    out.found
        .push(format!("{name} dimension {dimension} ({size} per device)"));
    out.seeds.push((node, dimension));
}

fn is_donated(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let number = base.program.module.instruction(i).parameter_number;
    base.boundary.is_donated(number)
}

/// Whether an argument is state rather than data: its memory goes to an output, or an output has
/// the same shape and layout.
pub(crate) fn is_state(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let module = &base.program.module;
    if is_donated(base, i) {
        return true;
    }
    let shape = module.shape(i);
    if shape.element_count() <= 1 {
        return true;
    }
    base.boundary.returns(&shape)
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
            let devices = base.program.module.device_count();
            let parts = |n: u64| old % n == 0 && old / n <= devices && devices > 1;
            with_size(&|d, n| d == 0 && tiles.is_empty() && n > 1 && parts(n))
        })
        .and_then(|d| u8::try_from(d).ok())
}

/// How often each dimension of an argument is split, as its sharding says; empty if it does not.
pub(crate) fn tiles(base: &Base<'_, '_>, i: InstructionId) -> Vec<u64> {
    let rank = base.program.module.shape(i).dimensions.len();
    let sharding = sharding_of(base, i);
    sharding
        .and_then(|s| s.tiles_per_dimension(rank))
        .unwrap_or_default()
}

/// The sharding of an entry argument, where the file has one that can be read.
pub(crate) fn sharding_of(base: &Base<'_, '_>, i: InstructionId) -> Option<Sharding> {
    let module = &base.program.module;
    let at = module.instruction(i);
    let bytes = module
        .parameter_shardings
        .get(at.parameter_number as usize)
        .copied()
        .or_else(|| at.sharding())?;
    decode_sharding(bytes).ok()
}

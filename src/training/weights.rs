//! Which arguments are trained, which are updated, and what the vocabulary is: by what the program
//! does with them.
//!
//! In: a program and its graph. Out: [`Weights`].

use rustc_hash::{FxHashMap, FxHashSet};

use super::origin::{by_argument_name, Origin};
use crate::dataflow::{reads_of, Graph, Path, Through, Value};
use crate::hlo::op_name::{phase, Phase};
use crate::hlo::{ElementType, InstructionId, Opcode, Shape};
use crate::peak::{argument_name, Context};

/// A dimension smaller than this is not taken for a vocabulary.
const SMALLEST_VOCABULARY: u64 = 1000;

/// What is known of the arguments.
#[derive(Default)]
pub(crate) struct Weights {
    /// Entry parameters that the differentiated forward pass reads and the program replaces.
    pub(crate) parameters: FxHashSet<InstructionId>,
    /// Entry parameters that the program replaces by something like them.
    pub(crate) updated: FxHashSet<InstructionId>,
    /// Entry parameters that an operation of the forward or backward pass reads.
    pub(crate) differentiated: FxHashSet<InstructionId>,
    /// Dimensions of weights, with one's name.
    pub(crate) dimensions: FxHashMap<Vec<u64>, String>,
    /// Rows of embedding tables that logits are computed with.
    pub(crate) vocabulary: FxHashSet<u64>,
    pub(crate) devices: u64,
}

impl Weights {
    /// Whether a dimension is a vocabulary's, or one device's part of it, or all devices'.
    fn is_vocabulary(&self, d: u64) -> bool {
        let mut known = self.vocabulary.iter();
        d >= SMALLEST_VOCABULARY && known.any(|&v| is_part(d, v, self.devices))
    }

    pub(crate) fn has_vocabulary(&self, shape: &Shape) -> bool {
        shape.dimensions.iter().any(|&d| self.is_vocabulary(d))
    }
}

pub(crate) fn weights(ctx: &Context<'_, '_>, graph: &Graph) -> Weights {
    let module = &ctx.program.module;
    let mut out = Weights {
        vocabulary: vocabulary(ctx),
        devices: module.device_count(),
        ..Weights::default()
    };
    let results = Results::new(ctx);
    let mut budget = 100_000 + 10 * module.instructions.len();
    for &p in module.entry_parameters() {
        let shape = module.shape(p);
        if !shape.element_type.is_float() {
            continue;
        }
        // A weight is updated: the program returns an array like it.
        let updated = results.has_like(&shape);
        let differentiated = is_differentiated(ctx, graph, p, &mut budget);
        if updated {
            out.updated.insert(p);
        }
        if differentiated {
            out.differentiated.insert(p);
        }
        let name = argument_name(ctx.program, p);
        let named = by_argument_name(name) == Some(Origin::Parameters);
        if updated && differentiated || named && !updated {
            if updated {
                out.parameters.insert(p);
            }
            if shape.dimensions.len() > 1 {
                out.dimensions
                    .entry(shape.dimensions.clone())
                    .or_insert_with(|| name.to_owned());
            }
        }
    }
    out
}

/// Rows of tables that a gather reads, as far as a product of the program has as many columns and
/// takes an operand of the table's rows and width, or of a device's part of the width: the table
/// itself, or its like for the logits. (A table of positions is gathered from too, but nothing is
/// multiplied with it.) Where logits are split in another way than their table, its name has to do.
fn vocabulary(ctx: &Context<'_, '_>) -> FxHashSet<u64> {
    let module = &ctx.program.module;
    let devices = module.device_count();
    let two = |shape: &Shape| {
        let mut large = shape.dimensions.iter().copied().filter(|&d| d > 1);
        let pair = (large.next()?, large.next()?);
        large.next().is_none().then_some(pair)
    };
    // Rows and width.
    let mut tables: FxHashSet<(u64, u64)> = FxHashSet::default();
    for i in module
        .ids()
        .filter(|&i| module.instruction(i).opcode == Opcode::Gather)
    {
        let table = module.operands(i).first().map(|&o| module.shape(o));
        let table = table.filter(|t| t.element_type.is_float());
        let width = module.shape(i).dimensions.last().copied();
        match table.as_ref().and_then(two) {
            Some((rows, w)) | Some((w, rows))
                if Some(w) == width && rows >= SMALLEST_VOCABULARY =>
            {
                tables.insert((rows, w));
            }
            _ => {}
        }
    }
    let mut out = FxHashSet::default();
    if tables.is_empty() {
        return out;
    }
    for &p in module.entry_parameters() {
        if by_argument_name(argument_name(ctx.program, p)) == Some(Origin::EmbeddingsLogits) {
            let pair = two(&module.shape(p));
            let tables = pair.iter().filter(|t| tables.contains(t));
            out.extend(tables.map(|t| t.0));
        }
    }
    for i in module
        .ids()
        .filter(|&i| module.instruction(i).opcode.is_product())
    {
        let result = module.shape(i);
        for &o in module.operands(i) {
            let Some((a, b)) = two(&module.shape(o)) else {
                continue;
            };
            for &(rows, width) in &tables {
                let fits = |r: u64, w: u64| r == rows && is_part(w, width, devices);
                if (fits(a, b) || fits(b, a)) && result.dimensions.contains(&rows) {
                    out.insert(rows);
                }
            }
        }
    }
    out
}

/// Whether one size is the other's, or what one of at most `devices` devices has of it.
fn is_part(a: u64, b: u64, devices: u64) -> bool {
    let (large, small) = (a.max(b), a.min(b));
    small > 0 && large.is_multiple_of(small) && large / small <= devices
}

/// Shapes of the program's results, each once.
struct Results {
    shapes: FxHashMap<(ElementType, usize), FxHashSet<Vec<u64>>>,
    devices: u64,
}

/// Shapes of one type and rank that are compared one by one at most.
const MAX_SHAPES: usize = 256;

impl Results {
    fn new(ctx: &Context<'_, '_>) -> Self {
        let module = &ctx.program.module;
        let mut out = Results {
            shapes: FxHashMap::default(),
            devices: module.device_count(),
        };
        if let Some(root) = module.entry_root() {
            module.shape(root).for_each_leaf(&mut |_, s| {
                let of = (s.element_type, s.dimensions.len());
                out.shapes
                    .entry(of)
                    .or_default()
                    .insert(s.dimensions.clone());
            });
        }
        out
    }

    /// Whether a result has the type and dimensions of an argument, or is split over the devices
    /// in another way.
    fn has_like(&self, shape: &Shape) -> bool {
        let of = (shape.element_type, shape.dimensions.len());
        let Some(known) = self.shapes.get(&of) else {
            return false;
        };
        let is_like = |d: &Vec<u64>| {
            let mut pairs = d.iter().zip(&shape.dimensions);
            let ratio = pairs.try_fold(1u64, |all, (&a, &b)| {
                is_part(a, b, self.devices).then(|| all.saturating_mul(a.max(b) / a.min(b).max(1)))
            });
            ratio.is_some_and(|r| r <= self.devices)
        };
        known.contains(&shape.dimensions) || known.len() <= MAX_SHAPES && known.iter().any(is_like)
    }
}

/// Whether an operation of the forward pass reads an argument.
fn is_differentiated(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    parameter: InstructionId,
    budget: &mut usize,
) -> bool {
    let module = &ctx.program.module;
    let mut todo: Vec<Value> = vec![(parameter, Path::new())];
    let mut seen: FxHashSet<InstructionId> = FxHashSet::default();
    while let Some(value) = todo.pop() {
        for r in reads_of(ctx.program, graph, &value, Through::Names, budget).reads {
            let i = module.instruction(r.reader);
            match phase(i.op_name) {
                Phase::Forward | Phase::Backward => return true,
                // Copies and casts without a name of their own.
                Phase::Other
                    if i.op_name.is_empty() && seen.len() < 50 && seen.insert(r.reader) =>
                {
                    todo.push((r.reader, Path::new()));
                    todo.push((r.reader, vec![0]));
                }
                Phase::Other => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_devices() {
        assert!(is_part(65536, 32768, 2) && is_part(32768, 65536, 2) && is_part(7, 7, 1));
        assert!(!is_part(65536, 16384, 2) && !is_part(4000, 4096, 8) && !is_part(0, 4, 8));
    }
}

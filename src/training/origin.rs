//! What a block at the peak is for: a label by best effort, with the rule that gave it.
//!
//! In: what is alive at the peak, dataflow, names of operations and arguments. Out: one label per
//! block, in the order of the peak's list; `Unknown` wherever no rule is sure. Structure goes
//! first: what the forward pass reads and the program returns updated is a parameter; what is
//! returned like a parameter and not read by the forward pass is the optimizer's; a table is what
//! a gather reads rows of, and a vocabulary what a product makes columns of with it. Names are asked
//! last, and the label says so.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::activations::SavedActivation;
use super::donation::DonationPair;
use crate::dataflow::flow::{names_of, reads_of, Path};
use crate::dataflow::Graph;
use crate::hlo::op_name::{is_recomputed, operation, phase, Phase};
use crate::hlo::{AllocationId, AllocationKind, ElementType, InstructionId, Opcode, Shape};
use crate::peak::argument_name;
use crate::peak::maker_of_block;
use crate::peak::Context;
use crate::peak::PeakBuffer;

/// What a block of memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// Weights of the model, and copies of them.
    Parameters,
    /// Moments and other state of the optimizer.
    OptimizerState,
    /// Derivatives with respect to weights.
    Gradients,
    /// Results of layers, forward or backward.
    Activations,
    /// Keys and values of earlier tokens.
    KvCache,
    /// Embedding tables, logits and what the loss makes of them.
    EmbeddingsLogits,
    /// Constants of the program.
    Constants,
    /// Buffers that collectives fill.
    Communication,
    /// None of these for sure.
    Unknown,
}

impl Origin {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Parameters => "parameters",
            Origin::OptimizerState => "optimizer_state",
            Origin::Gradients => "gradients",
            Origin::Activations => "activations",
            Origin::KvCache => "kv_cache",
            Origin::EmbeddingsLogits => "embeddings_logits",
            Origin::Constants => "constants",
            Origin::Communication => "communication",
            Origin::Unknown => "unknown",
        }
    }
}

/// A label and why it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OriginLabel {
    /// The label.
    pub origin: Origin,
    /// What the label rests on.
    pub certainty: Certainty,
    /// The rule that gave it; says what was seen.
    pub rule: String,
}

/// What a label rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// What the program does with the data.
    Structure,
    /// Names of arguments or operations, which people choose.
    Name,
}

impl Certainty {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Structure => "structure",
            Certainty::Name => "name",
        }
    }
}

fn label(origin: Origin, rule: impl Into<String>) -> OriginLabel {
    OriginLabel {
        origin,
        certainty: Certainty::Structure,
        rule: rule.into(),
    }
}

fn by_name(origin: Origin, rule: impl Into<String>) -> OriginLabel {
    OriginLabel {
        certainty: Certainty::Name,
        ..label(origin, rule)
    }
}

/// Labels of all blocks at the peak, in the order of the peak's list.
pub fn origins(
    ctx: &Context<'_, '_>,
    graph: &Graph,
    saved: &[SavedActivation],
    donations: &[DonationPair],
) -> Vec<OriginLabel> {
    let saved: FxHashMap<usize, &SavedActivation> =
        saved.iter().map(|s| (s.peak_index, s)).collect();
    let weights = weights(ctx, graph);
    let replaces: FxHashMap<AllocationId, InstructionId> = donations
        .iter()
        .map(|p| (p.output_allocation, p.parameter))
        .collect();
    let of_output = |b: &PeakBuffer| {
        let p = *replaces.get(&b.allocation?)?;
        let found = of_argument(ctx, p, &weights);
        let name = argument_name(ctx.program, p);
        (found.origin != Origin::Unknown).then(|| OriginLabel {
            rule: format!("output in the place of argument {name}"),
            ..found
        })
    };
    ctx.peak
        .buffers
        .iter()
        .enumerate()
        .map(|(at, b)| match (b.kind, b.instruction) {
            (AllocationKind::Constant, _) => label(Origin::Constants, "allocation of a constant"),
            (AllocationKind::Parameter | AllocationKind::Donated, Some(p)) => {
                of_argument(ctx, p, &weights)
            }
            (AllocationKind::Output, _) => {
                of_output(b).unwrap_or_else(|| computed(ctx, b, saved.get(&at).copied(), &weights))
            }
            _ => computed(ctx, b, saved.get(&at).copied(), &weights),
        })
        .collect()
}

/// A dimension smaller than this is not taken for a vocabulary.
const SMALLEST_VOCABULARY: u64 = 1000;

/// What is known of the arguments.
#[derive(Default)]
struct Weights {
    /// Entry parameters that the differentiated forward pass reads and the program replaces.
    parameters: FxHashSet<InstructionId>,
    /// Entry parameters that the program replaces by something like them.
    updated: FxHashSet<InstructionId>,
    /// Entry parameters that an operation of the forward or backward pass reads.
    differentiated: FxHashSet<InstructionId>,
    /// Dimensions of weights, with one's name.
    dimensions: FxHashMap<Vec<u64>, String>,
    /// Rows of embedding tables that logits are computed with.
    vocabulary: FxHashSet<u64>,
    devices: u64,
}

impl Weights {
    /// Whether a dimension is a vocabulary's, or one device's part of it, or all devices'.
    fn is_vocabulary(&self, d: u64) -> bool {
        let mut known = self.vocabulary.iter();
        d >= SMALLEST_VOCABULARY && known.any(|&v| is_part(d, v, self.devices))
    }

    fn has_vocabulary(&self, shape: &Shape) -> bool {
        shape.dimensions.iter().any(|&d| self.is_vocabulary(d))
    }
}

fn weights(ctx: &Context<'_, '_>, graph: &Graph) -> Weights {
    let module = &ctx.program.module;
    let mut out = Weights {
        vocabulary: vocabulary(ctx),
        devices: module.device_count(),
        ..Weights::default()
    };
    let results = Results::new(ctx);
    let mut budget = 100_000 + 10 * module.instructions.len();
    for p in module.entry_parameters() {
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
    let ids = || (0..module.instructions.len() as u32).map(InstructionId);
    // Rows and width.
    let mut tables: FxHashSet<(u64, u64)> = FxHashSet::default();
    for i in ids().filter(|&i| module.instruction(i).opcode == Opcode::Gather) {
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
    for p in module.entry_parameters() {
        if by_argument_name(argument_name(ctx.program, p)) == Some(Origin::EmbeddingsLogits) {
            let pair = two(&module.shape(p));
            let tables = pair.iter().filter(|t| tables.contains(t));
            out.extend(tables.map(|t| t.0));
        }
    }
    for i in ids().filter(|&i| module.instruction(i).opcode.is_product()) {
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
    let mut todo: Vec<(InstructionId, Path)> = vec![(parameter, Path::new())];
    let mut seen: FxHashSet<InstructionId> = FxHashSet::default();
    while let Some((value, path)) = todo.pop() {
        for r in reads_of(ctx.program, graph, value, &path, budget).reads {
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

/// Words of an argument's name, in lower case.
fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

/// What an argument's name says, for want of structure. The last key that says something decides:
/// `params['kv']['kernel']` is a weight.
fn by_argument_name(name: &str) -> Option<Origin> {
    let words = words(name);
    let any = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    let part = |text: &str| words.iter().any(|w| w.contains(text));
    if any(&[
        "mu",
        "nu",
        "exp_avg",
        "exp_avg_sq",
        "momentum",
        "velocity",
        "ema",
    ]) || part("opt_state")
        || any(&["opt", "optimizer", "adam"])
    {
        return Some(Origin::OptimizerState);
    }
    if any(&["kernel", "bias", "scale"]) {
        return Some(Origin::Parameters);
    }
    let tables = [
        "embed",
        "embedding",
        "embeddings",
        "tok_embed",
        "token_embed",
        "token_embedding",
        "embed_tokens",
        "lm_head",
        "wte",
        "vocab",
        "readout",
    ];
    if any(&tables) {
        return Some(Origin::EmbeddingsLogits);
    }
    if any(&["params", "param", "weights", "weight"]) {
        return Some(Origin::Parameters);
    }
    if part("cache") || any(&["kv", "kv_pages", "past_key_values"]) {
        return Some(Origin::KvCache);
    }
    None
}

fn of_argument(ctx: &Context<'_, '_>, p: InstructionId, weights: &Weights) -> OriginLabel {
    let module = &ctx.program.module;
    let shape = module.shape(p);
    let name = argument_name(ctx.program, p);
    if weights.parameters.contains(&p) {
        let is_table = shape.dimensions.len() == 2;
        if is_table && weights.has_vocabulary(&shape) {
            return label(
                Origin::EmbeddingsLogits,
                "weight with a dimension of the vocabulary",
            );
        }
        if is_table && by_argument_name(name) == Some(Origin::EmbeddingsLogits) {
            return by_name(Origin::EmbeddingsLogits, format!("argument name {name}"));
        }
        return label(
            Origin::Parameters,
            "argument that the forward pass reads and the program returns updated",
        );
    }
    let updated = weights.updated.contains(&p);
    if updated && !weights.differentiated.contains(&p) {
        if let Some(like) = weights.dimensions.get(&shape.dimensions) {
            return label(
                Origin::OptimizerState,
                format!("returned updated, not read by the forward pass, of the shape of {like}"),
            );
        }
    }
    let named = match by_argument_name(name) {
        // State of an optimizer is returned updated; a batch may have an `nu` of its own.
        Some(Origin::OptimizerState) if !updated => None,
        // A table has rows and columns.
        Some(Origin::EmbeddingsLogits) if shape.dimensions.len() != 2 => Some(Origin::Parameters),
        named => named,
    };
    match named {
        Some(origin) => by_name(origin, format!("argument name {name}")),
        None if shape.dimensions.len() == 2 && weights.has_vocabulary(&shape) => label(
            Origin::EmbeddingsLogits,
            "argument with a dimension of the vocabulary",
        ),
        None => label(Origin::Unknown, "argument without a telling name"),
    }
}

/// Outputs and temporaries: by what made them.
fn computed(
    ctx: &Context<'_, '_>,
    b: &PeakBuffer,
    saved: Option<&SavedActivation>,
    weights: &Weights,
) -> OriginLabel {
    let module = &ctx.program.module;
    let made_by = maker_of_block(ctx.program, b);
    let (Some(value), Some(maker)) = (b.instruction, made_by.map(|m| m.instruction)) else {
        return label(Origin::Unknown, "nothing in the file accounts for it");
    };
    let i = module.instruction(maker);
    if module.instruction(maker).opcode == Opcode::Parameter && module.entry == Some(i.computation)
    {
        let of = of_argument(ctx, maker, weights);
        return OriginLabel {
            rule: format!("copy of argument {}", i.op_name),
            ..of
        };
    }
    if is_collective(module.instruction(value).opcode) || is_collective(i.opcode) {
        return label(Origin::Communication, format!("made by {}", i.name));
    }
    let op = operation(i.op_name);
    if i.op_name.contains("log_softmax")
        || i.op_name.contains("take_along_axis")
        || i.op_name.contains("cross_entropy")
        || op == "logits"
    {
        return by_name(Origin::EmbeddingsLogits, format!("operation {}", i.op_name));
    }
    if words(i.op_name).iter().any(|w| w.contains("cache")) {
        return by_name(Origin::KvCache, format!("operation {}", i.op_name));
    }
    let dimensions = b.shape.as_ref().map(|s| &s.dimensions);
    let weight = dimensions.and_then(|d| weights.dimensions.get(d));
    let has_vocabulary = b.shape.as_ref().is_some_and(|s| weights.has_vocabulary(s));
    if weight.is_none() && has_vocabulary {
        return label(
            Origin::EmbeddingsLogits,
            "has a dimension of the size of the vocabulary",
        );
    }
    if let Some(p) = cast_of(ctx, maker, dimensions, weights) {
        let name = argument_name(ctx.program, p);
        return label(
            Origin::Parameters,
            format!("copy or cast of argument {name}"),
        );
    }
    if let Some(s) = saved {
        let kind = if s.checkpointed { "kept" } else { "held" };
        return label(
            Origin::Activations,
            format!("forward result {kind} for the backward pass: {}", i.op_name),
        );
    }
    match (phase(i.op_name), weight) {
        (Phase::Backward, Some(w)) if !is_recomputed(i.op_name) => label(
            Origin::Gradients,
            format!("made by the backward pass with the dimensions of {w}"),
        ),
        (Phase::Forward, Some(w)) if op == "convert_element_type" => label(
            Origin::Parameters,
            format!("cast with the dimensions of {w}"),
        ),
        (Phase::Backward, _) => label(
            Origin::Activations,
            format!("made by the backward pass: {}", i.op_name),
        ),
        (Phase::Forward, _) => label(
            Origin::Activations,
            format!("made by the forward pass: {}", i.op_name),
        ),
        _ if i.op_name.is_empty() => label(
            Origin::Unknown,
            format!("{} has no name of the framework's", i.name),
        ),
        _ => label(Origin::Unknown, format!("operation {}", i.op_name)),
    }
}

/// The weight that an instruction copies or casts: it takes one of the same dimensions and nothing
/// else that large.
fn cast_of(
    ctx: &Context<'_, '_>,
    maker: InstructionId,
    dimensions: Option<&Vec<u64>>,
    weights: &Weights,
) -> Option<InstructionId> {
    let module = &ctx.program.module;
    let i = module.instruction(maker);
    let operands = module.operands(maker);
    if !matches!(i.opcode, Opcode::Fusion | Opcode::Convert | Opcode::Copy) || operands.len() > 8 {
        return None;
    }
    let of_size: Vec<InstructionId> = operands
        .iter()
        .copied()
        .filter(|&o| Some(&module.shape(o).dimensions) == dimensions)
        .collect();
    let &[source] = of_size.as_slice() else {
        return None;
    };
    names_of(ctx.program, source, &[], 4)
        .into_iter()
        .map(|n| n.0)
        .find(|n| weights.parameters.contains(n))
}

fn is_collective(opcode: Opcode) -> bool {
    opcode.is_collective()
        || matches!(
            opcode,
            Opcode::AllGatherDone | Opcode::AllReduceDone | Opcode::CollectivePermuteDone
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_say_as_whole_words() {
        let cases = [
            ("params['attn']['kv']['kernel']", Some(Origin::Parameters)),
            ("params['patch_embed']['kernel']", Some(Origin::Parameters)),
            ("params['pos_embedding']", Some(Origin::Parameters)),
            ("params['embed']", Some(Origin::EmbeddingsLogits)),
            ("state.params['wte']", Some(Origin::EmbeddingsLogits)),
            (
                "opt_state[0].mu['embed']['kernel']",
                Some(Origin::OptimizerState),
            ),
            ("cache['k']", Some(Origin::KvCache)),
            ("kv_pages", Some(Origin::KvCache)),
            ("state['m']", None),
            ("batch['x']", None),
        ];
        for (name, origin) in cases {
            assert_eq!(by_argument_name(name), origin, "{name}");
        }
    }

    #[test]
    fn parts_of_devices() {
        assert!(is_part(65536, 32768, 2) && is_part(32768, 65536, 2) && is_part(7, 7, 1));
        assert!(!is_part(65536, 16384, 2) && !is_part(4000, 4096, 8) && !is_part(0, 4, 8));
    }
}

//! What a block at the peak is for: a label by best effort, with the rule that gave it.
//!
//! In: what is alive at the peak, argument names, names of operations, dataflow. Out: one label
//! per block, in the order of the peak's list; `Unknown` wherever no rule is sure.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::activations::{saved_activations, SavedActivation};
use super::donation::donation_candidates;
use crate::dataflow::flow::{names_of, reads_of, Path};
use crate::dataflow::Graph;
use crate::hlo::op_name::{is_recomputed, operation, phase, Phase};
use crate::hlo::{AllocationId, AllocationKind, InstructionId, Opcode, Shape};
use crate::peak::argument_name;
use crate::peak::maker_of_block;
use crate::peak::Context;
use crate::peak::PeakBuffer;

/// What a block of memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
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
pub struct OriginLabel {
    /// The label.
    pub origin: Origin,
    /// The rule that gave it; says what was seen.
    pub rule: String,
}

fn label(origin: Origin, rule: impl Into<String>) -> OriginLabel {
    OriginLabel {
        origin,
        rule: rule.into(),
    }
}

/// Labels of all blocks at the peak, in the order of the peak's list.
pub fn origins(ctx: &Context<'_, '_>, graph: &Graph) -> Vec<OriginLabel> {
    let saved: FxHashMap<usize, SavedActivation> = saved_activations(ctx, graph)
        .into_iter()
        .map(|s| (s.peak_index, s))
        .collect();
    let weights = weights(ctx, graph);
    let replaces: FxHashMap<AllocationId, InstructionId> = donation_candidates(ctx, graph)
        .into_iter()
        .map(|p| (p.output_allocation, p.parameter))
        .collect();
    let of_output = |b: &PeakBuffer| {
        let p = *replaces.get(&b.allocation?)?;
        let found = of_argument(ctx, p, &weights);
        let name = argument_name(ctx.program, p);
        (found.origin != Origin::Unknown).then(|| {
            label(
                found.origin,
                format!("output in the place of argument {name}"),
            )
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
                of_output(b).unwrap_or_else(|| computed(ctx, b, saved.get(&at), &weights))
            }
            _ => computed(ctx, b, saved.get(&at), &weights),
        })
        .collect()
}

/// A dimension smaller than this is not taken for a vocabulary.
const SMALLEST_VOCABULARY: u64 = 1000;

/// What is known of the weights.
#[derive(Default)]
struct Weights {
    /// Entry parameters that the differentiated forward pass reads and the program replaces.
    parameters: FxHashSet<InstructionId>,
    /// Dimensions of weights, with one's name.
    dimensions: FxHashMap<Vec<u64>, String>,
    /// The larger dimensions of embedding tables: the vocabulary, or one device's part of it.
    vocabulary: FxHashSet<u64>,
}

fn weights(ctx: &Context<'_, '_>, graph: &Graph) -> Weights {
    let module = &ctx.program.module;
    let mut out = Weights::default();
    let mut results: FxHashSet<String> = FxHashSet::default();
    if let Some(root) = module.entry_root() {
        module.shape(root).for_each_leaf(&mut |_, s| {
            results.insert(plain(s));
        });
    }
    let mut budget = 100_000 + 10 * module.instructions.len();
    for p in module.entry_parameters() {
        let shape = module.shape(p);
        let name = argument_name(ctx.program, p);
        let by_name = by_argument_name(name);
        if by_name == Some(Origin::EmbeddingsLogits) && shape.dimensions.len() == 2 {
            let largest = shape.dimensions.iter().copied().max();
            out.vocabulary
                .extend(largest.filter(|&v| v >= SMALLEST_VOCABULARY));
        }
        if by_name == Some(Origin::OptimizerState) || !shape.element_type.is_float() {
            continue;
        }
        // A weight is updated: the program returns an array like it.
        let updated = results.contains(&plain(&shape));
        let trained = updated && is_differentiated(ctx, graph, p, &mut budget);
        if trained || by_name == Some(Origin::Parameters) {
            out.parameters.insert(p);
            if shape.dimensions.len() > 1 {
                out.dimensions
                    .entry(shape.dimensions.clone())
                    .or_insert_with(|| name.to_owned());
            }
        }
    }
    out
}

fn plain(s: &Shape) -> String {
    format!("{}{:?}", s.element_type, s.dimensions)
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
    if part("cache") || any(&["kv", "past_key_values"]) {
        return Some(Origin::KvCache);
    }
    if part("embed") || any(&["lm_head", "wte", "wpe", "vocab", "readout"]) {
        return Some(Origin::EmbeddingsLogits);
    }
    if any(&["params", "param", "weights", "kernel", "weight"]) {
        return Some(Origin::Parameters);
    }
    None
}

fn of_argument(ctx: &Context<'_, '_>, p: InstructionId, weights: &Weights) -> OriginLabel {
    let name = argument_name(ctx.program, p);
    if let Some(origin) = by_argument_name(name) {
        return label(origin, format!("argument name {name}"));
    }
    if weights.parameters.contains(&p) {
        return label(
            Origin::Parameters,
            "argument that the forward pass reads and the program returns updated",
        );
    }
    label(Origin::Unknown, "argument without a telling name")
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
        let named = by_argument_name(argument_name(ctx.program, maker));
        let origin = named.unwrap_or(Origin::Unknown);
        return label(origin, format!("copy of argument {}", i.op_name));
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
        return label(Origin::EmbeddingsLogits, format!("operation {}", i.op_name));
    }
    if words(i.op_name).iter().any(|w| w.contains("cache")) {
        return label(Origin::KvCache, format!("operation {}", i.op_name));
    }
    let dimensions = b.shape.as_ref().map(|s| &s.dimensions);
    let weight = dimensions.and_then(|d| weights.dimensions.get(d));
    let devices = ctx.program.module.device_count();
    let is_vocabulary = |d: &u64| {
        weights
            .vocabulary
            .iter()
            .any(|v| d.is_multiple_of(*v) && d / v <= devices)
    };
    if weight.is_none() && dimensions.is_some_and(|d| d.iter().any(is_vocabulary)) {
        return label(
            Origin::EmbeddingsLogits,
            "has a dimension of the size of an embedding table's rows",
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

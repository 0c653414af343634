//! What a block at the peak is for: a label by best effort, with the rule that gave it.
//!
//! In: what is alive at the peak, dataflow, names of operations and arguments. Out: one label per
//! block, in the order of the peak's list; `Unknown` wherever no rule is sure. Structure goes
//! first: what the forward pass reads and the program returns updated is a parameter; what is
//! returned like a parameter and not read by the forward pass is the optimizer's; a table is what
//! a gather reads rows of, and a vocabulary what a product makes columns of with it. Names are asked
//! last, and the label says so.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::activations::SavedActivation;
use super::donation::DonationPair;
use super::origin::{by_argument_name, words, Origin};
use super::weights::{weights, Weights};
use crate::dataflow::{names_of, Graph, Path, Through};
use crate::hlo::op_name::{is_recomputed, operation, phase, Phase};
use crate::hlo::{AllocationId, AllocationKind, InstructionId, Opcode};
use crate::peak::argument_name;
use crate::peak::producer_of_block;
use crate::peak::Context;
use crate::peak::PeakBuffer;

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
    let made_by = producer_of_block(ctx.program, b);
    let (Some(value), Some(producer)) = (b.instruction, made_by.map(|m| m.instruction)) else {
        return label(Origin::Unknown, "nothing in the file accounts for it");
    };
    let i = module.instruction(producer);
    if module.instruction(producer).opcode == Opcode::Parameter
        && module.entry == Some(i.computation)
    {
        let of = of_argument(ctx, producer, weights);
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
    if let Some(p) = cast_of(ctx, producer, dimensions, weights) {
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
    producer: InstructionId,
    dimensions: Option<&Vec<u64>>,
    weights: &Weights,
) -> Option<InstructionId> {
    let module = &ctx.program.module;
    let i = module.instruction(producer);
    let operands = module.operands(producer);
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
    names_of(ctx.program, &(source, Path::new()), Through::Names, 4)
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

//! Large float32 data at the peak: what could be bfloat16, and what is bfloat16 made larger.

use rustc_hash::FxHashSet;

use super::evidence::{buffer_ids, buffer_line, counted, matters, shortened};
use super::finding::{Detector, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use crate::dataflow::{back, producer_of_value, Through, Value};
use crate::hlo::op_name::{operation, phase, Phase};
use crate::hlo::{AllocationKind, ElementType, InstructionId, Opcode};
use crate::peak::host::runs_on_cpu;
use crate::peak::producer_of;
use crate::peak::producer_of_block;
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::units;

pub(crate) static DETECTOR: Detector = Detector {
    name: "float32",
    intervention: Some("bfloat16"),
    brief: "large buffers are f32",
    text: "Large buffers are f32. bfloat16 halves them, at the price of precision: check the training metrics.",
    detects: "float32 data in three groups: made larger from 16-bit data (logits, softmax, norms); arguments, outputs and gradients; other temporaries.",
    how: "Element type; for upcasts the elementwise operations behind a block, inside its fusion, are followed to a conversion or product of 16-bit values with as many elements.",
    silent: "Half of the group is under a hundredth of the peak; on a CPU, a tenth.",
    saving: "`upper_bound`: half; of arguments also the 16-bit copies of them.",
    every_space: false,
    find: |facts, _| float32_findings(facts),
    yields_to: &[FindingKind::DEBUG_CALLBACK],
};

impl FindingKind {
    /// Large float32 data.
    pub const FLOAT32: FindingKind = FindingKind::new(&DETECTOR);
}

/// Blocks smaller than the peak divided by this are left out.
const SMALLEST_PART: u64 = 500;
/// Instructions looked at behind one block.
const MAX_LOOK: usize = 100;

/// At most three findings: upcasts of bfloat16 or float16 data; arguments, outputs and gradients;
/// and other temporaries. On a CPU, only what is over a tenth of the peak.
pub fn float32_findings(ctx: &Context<'_, '_>) -> Vec<Finding> {
    let smallest = ctx.usage.peak_bytes() / SMALLEST_PART;
    let (mut upcasts, mut state, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let weights = weight_dimensions(ctx);
    let mut has_gradients = false;
    for b in &ctx.peak.buffers {
        let is_f32 = |s: &crate::hlo::Shape| s.element_type == ElementType::F32;
        if !b.shape.as_ref().is_some_and(is_f32) {
            continue;
        }
        if b.kind == AllocationKind::Temporary && b.counted_bytes <= smallest {
            continue;
        }
        match b.kind {
            // A gradient has the type of its weight.
            AllocationKind::Temporary if is_gradient(ctx, b, &weights) => {
                has_gradients = true;
                state.push(b);
            }
            AllocationKind::Temporary if is_upcast(ctx, b) => upcasts.push(b),
            AllocationKind::Temporary => others.push(b),
            AllocationKind::Constant | AllocationKind::ThreadLocal => {}
            _ => state.push(b),
        }
    }
    let upcast_action = "The data comes from 16-bit values. Keep the large array in bfloat16 and \
        let only the reduction run in float32: jnp.sum(x, dtype=jnp.float32), \
        lax.dot_general(..., preferred_element_type=jnp.bfloat16), and cast after the softmax's, \
        norm's or loss's reduction rather than before it. Check the training metrics afterwards.";
    let casts: Vec<&PeakBuffer> = ctx
        .peak
        .buffers
        .iter()
        .filter(|b| is_cast_of_weight(ctx, b, &weights))
        .collect();
    let trains = has_gradients
        || ctx
            .program
            .module
            .instructions
            .iter()
            .any(|i| phase(i.op_name) == Phase::Backward);
    let plain_action = "Pass and return in bfloat16 what tolerates it: x.astype(jnp.bfloat16) \
        before the call, and of what the program returns. Check the results afterwards.";
    let train_action = "Store in bfloat16 what tolerates it: parameters with param_dtype, first \
        moments with optax.adamw(..., mu_dtype=jnp.bfloat16); keep second moments and a master \
        copy in float32 where training needs them. Check the training metrics afterwards.";
    let other_action = "Compute in bfloat16 where the result tolerates it: \
        x.astype(jnp.bfloat16) before the operation, or \
        preferred_element_type=jnp.bfloat16 for products. Check the training metrics afterwards.";
    [
        (
            "float32 copies of 16-bit data",
            upcasts,
            Vec::new(),
            upcast_action,
        ),
        (
            if has_gradients {
                "float32 arguments, outputs and gradients"
            } else {
                "float32 arguments and outputs"
            },
            state,
            casts,
            if trains { train_action } else { plain_action },
        ),
        ("float32 temporaries", others, Vec::new(), other_action),
    ]
    .into_iter()
    .filter_map(|(what, group, casts, action)| finding(ctx, what, &group, &casts, action))
    .collect()
}

fn finding(
    ctx: &Context<'_, '_>,
    what: &str,
    group: &[&PeakBuffer],
    casts: &[&PeakBuffer],
    action: &str,
) -> Option<Finding> {
    let sum = |of: &[&PeakBuffer]| {
        of.iter()
            .fold(0u64, |s, b| s.saturating_add(b.counted_bytes))
    };
    let bytes = sum(group);
    // With half of these, what is a 16-bit copy of them is not needed besides.
    let copies = sum(casts);
    let saving_bytes = (bytes / 2).saturating_add(copies);
    if !matters(ctx, bytes / 2) {
        return None;
    }
    if runs_on_cpu(ctx) && saving_bytes <= ctx.usage.peak_bytes() / 10 {
        return None;
    }
    let lines = group
        .iter()
        .map(|b| (b.counted_bytes, buffer_line(ctx, b)))
        .collect();
    let mut evidence = shortened(lines);
    if copies > 0 {
        evidence.push(format!(
            "16-bit copies of them ({}): {}, not needed then",
            counted(casts.len(), "buffer", "buffers"),
            units::bytes(copies)
        ));
    }
    Some(Finding {
        kind: FindingKind::FLOAT32,
        severity: FindingSeverity::of_share(saving_bytes, ctx.usage.peak_bytes()),
        title: format!(
            "{} of {what} ({}) at the peak",
            units::bytes(bytes),
            counted(group.len(), "buffer", "buffers")
        ),
        bytes: bytes.saturating_add(copies),
        saving_bytes,
        saving: SavingKind::UpperBound,
        safety: Safety::ChangesNumerics,
        evidence,
        action: action.to_owned(),
        buffer_ids: buffer_ids(ctx, group.iter().chain(casts).copied()),
        links: vec![
            "https://docs.jax.dev/en/latest/default_dtypes.html".to_owned(),
            "https://openxla.org/xla/errors/error_1000".to_owned(),
        ],
    })
}

/// Dimensions, in ascending order, of float32 arguments with more than one.
fn weight_dimensions(ctx: &Context<'_, '_>) -> FxHashSet<Vec<u64>> {
    let module = &ctx.program.module;
    let mut out = FxHashSet::default();
    for &p in module.entry_parameters() {
        module.shape(p).for_each_leaf(&mut |_, s| {
            if s.element_type == ElementType::F32 && s.dimensions.len() > 1 {
                out.insert(sorted(&s.dimensions));
            }
        });
    }
    out
}

/// Dimensions in ascending order, without those of size 1: the same for transposed copies.
fn sorted(dimensions: &[u64]) -> Vec<u64> {
    let mut out: Vec<u64> = dimensions.iter().copied().filter(|&d| d != 1).collect();
    out.sort_unstable();
    out
}

fn has_weight_dimensions(b: &PeakBuffer, weights: &FxHashSet<Vec<u64>>) -> bool {
    let dimensions = b.shape.as_ref().map(|s| sorted(&s.dimensions));
    dimensions.is_some_and(|d| weights.contains(&d))
}

/// What computes a block, seen through loops and copies; else what defines it.
fn computed_by(ctx: &Context<'_, '_>, b: &PeakBuffer) -> Vec<InstructionId> {
    let Some(assignment) = &ctx.program.assignment else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for buffer in [b.buffer, b.canonical].into_iter().flatten() {
        if let Some(value) = assignment.value(buffer) {
            out.push(producer_of_value(ctx.program, &value).instruction);
            out.push(value.0);
        }
    }
    out.extend(producer_of(ctx, b));
    out
}

/// Whether the backward pass makes a block of the dimensions of a weight.
fn is_gradient(ctx: &Context<'_, '_>, b: &PeakBuffer, weights: &FxHashSet<Vec<u64>>) -> bool {
    has_weight_dimensions(b, weights)
        && computed_by(ctx, b)
            .into_iter()
            .any(|i| phase(ctx.program.module.instruction(i).op_name) == Phase::Backward)
}

/// Whether a 16-bit temporary is a weight in another type, whole or slice by slice.
fn is_cast_of_weight(ctx: &Context<'_, '_>, b: &PeakBuffer, weights: &FxHashSet<Vec<u64>>) -> bool {
    let half = b.shape.as_ref().is_some_and(|s| is_half(s.element_type));
    b.kind == AllocationKind::Temporary
        && half
        && has_weight_dimensions(b, weights)
        && computed_by(ctx, b).into_iter().any(|i| {
            let i = ctx.program.module.instruction(i);
            let op = operation(i.op_name);
            matches!(op, "convert_element_type" | "dynamic_slice" | "transpose")
                && phase(i.op_name) != Phase::Backward
        })
}

/// Whether a block's elements come, one for one, from a conversion of 16-bit floats.
fn is_upcast(ctx: &Context<'_, '_>, b: &PeakBuffer) -> bool {
    let module = &ctx.program.module;
    let value = ctx.program.assignment.as_ref().zip(b.buffer);
    let value = value.and_then(|(assignment, buffer)| assignment.value(buffer));
    let (Some(value), Some(producer)) = (value, producer_of_block(ctx.program, b)) else {
        return false;
    };
    // Of a fusion with several results, start at the one that is meant.
    let start = match producer.instruction == value.0 {
        true => value,
        false => (producer.instruction, Vec::new()),
    };
    let elements_of = |(i, path): &Value| {
        let shape = module.shape(*i);
        let leaf = shape.leaf(path).filter(|s| !s.is_tuple());
        leaf.map(|s| s.element_count())
    };
    let of_block = || b.shape.as_ref().map(|s| s.element_count());
    let Some(elements) = elements_of(&start).or_else(of_block) else {
        return false;
    };
    let mut seen: FxHashSet<InstructionId> = FxHashSet::default();
    let mut todo: Vec<Value> = vec![start];
    while let Some(value) = todo.pop() {
        let id = value.0;
        if seen.len() >= MAX_LOOK || !seen.insert(id) {
            continue;
        }
        let opcode = module.instruction(id).opcode;
        let is_half_operand = |&o: &InstructionId| is_half(module.shape(o).element_type);
        let mut operands = module.operands(id).iter();
        let from_half = match opcode {
            Opcode::Convert => {
                operands.any(|o| is_half_operand(o) && module.shape(*o).element_count() == elements)
            }
            // A product of 16-bit matrices that comes out as float32.
            _ => opcode.is_product() && operands.all(is_half_operand),
        };
        if from_half {
            return true;
        }
        // What goes into the fusion is another matter.
        if opcode == Opcode::Parameter {
            continue;
        }
        let mut before: Vec<Value> = Vec::new();
        if opcode.is_elementwise() {
            before.extend(module.operands(id).iter().map(|&o| (o, Vec::new())));
        } else {
            back(module, &value, Through::Parts, &mut before);
        }
        let same_count = |v: &Value| elements_of(v) == Some(elements);
        todo.extend(before.into_iter().filter(same_count));
    }
    false
}

fn is_half(t: ElementType) -> bool {
    t == ElementType::BF16 || t.name() == "f16"
}

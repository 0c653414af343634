//! Large float32 data at the peak: what could be bfloat16, and what is bfloat16 made larger.

use rustc_hash::FxHashSet;

use super::evidence::{buffer_ids, buffer_line, counted, matters, shortened};
use super::finding::{Context, Finding, FindingKind, FindingSeverity, Safety, SavingKind};
use super::inplace::is_elementwise;
use super::maker::maker_of_block;
use super::peak::PeakBuffer;
use crate::model::{AllocationKind, ElementType, InstructionId};
use crate::units;

/// Blocks smaller than the peak divided by this are left out.
const SMALLEST_PART: u64 = 500;
/// Instructions looked at behind one block.
const MAX_LOOK: usize = 100;

/// At most three findings: upcasts of bfloat16 or float16 data, arguments and outputs, and other
/// temporaries.
pub fn float32_findings(ctx: &Context<'_, '_>) -> Vec<Finding> {
    let smallest = ctx.usage.peak_bytes() / SMALLEST_PART;
    let (mut upcasts, mut state, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for b in &ctx.peak.buffers {
        let is_f32 = |s: &crate::model::Shape| s.element_type == ElementType::F32;
        if b.counted_bytes <= smallest || !b.shape.as_ref().is_some_and(is_f32) {
            continue;
        }
        match b.kind {
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
    let state_action = "Store in bfloat16 what tolerates it: parameters with param_dtype, first \
        moments with optax.adamw(..., mu_dtype=jnp.bfloat16); keep second moments and a master \
        copy in float32 where training needs them. Check the training metrics afterwards.";
    let other_action = "Compute in bfloat16 where the result tolerates it: \
        x.astype(jnp.bfloat16) before the operation, or \
        preferred_element_type=jnp.bfloat16 for products. Check the training metrics afterwards.";
    [
        ("float32 copies of 16-bit data", upcasts, upcast_action),
        ("float32 arguments and outputs", state, state_action),
        ("float32 temporaries", others, other_action),
    ]
    .into_iter()
    .filter_map(|(what, group, action)| finding(ctx, what, &group, action))
    .collect()
}

fn finding(
    ctx: &Context<'_, '_>,
    what: &str,
    group: &[&PeakBuffer],
    action: &str,
) -> Option<Finding> {
    let bytes = group
        .iter()
        .fold(0u64, |s, b| s.saturating_add(b.counted_bytes));
    if !matters(ctx, bytes / 2) {
        return None;
    }
    let lines = group
        .iter()
        .map(|b| (b.counted_bytes, buffer_line(ctx, b)))
        .collect();
    Some(Finding {
        kind: FindingKind::Float32,
        severity: FindingSeverity::of_share(bytes / 2, ctx.usage.peak_bytes()),
        title: format!(
            "{} of {what} ({}) at the peak",
            units::bytes(bytes),
            counted(group.len(), "buffer", "buffers")
        ),
        bytes,
        saving_bytes: bytes / 2,
        saving: SavingKind::UpperBound,
        safety: Safety::ChangesNumerics,
        evidence: shortened(lines),
        action: action.to_owned(),
        buffer_ids: buffer_ids(ctx, group.iter().copied()),
        links: vec![
            "https://docs.jax.dev/en/latest/default_dtypes.html".to_owned(),
            "https://openxla.org/xla/errors/error_1000".to_owned(),
        ],
    })
}

/// Whether a block's elements come, one for one, from a conversion of 16-bit floats.
fn is_upcast(ctx: &Context<'_, '_>, b: &PeakBuffer) -> bool {
    let (Some(value), Some(buffer), Some(assignment)) =
        (b.instruction, b.buffer, &ctx.program.assignment)
    else {
        return false;
    };
    let path: Vec<u32> = assignment
        .shape_index(buffer)
        .iter()
        .map(|&i| u32::try_from(i).unwrap_or(u32::MAX))
        .collect();
    let module = &ctx.program.module;
    let Some(maker) = maker_of_block(ctx.program, b).map(|m| m.instruction) else {
        return false;
    };
    // Of a fusion with several results, start at the one that is meant.
    let wanted = match (path.as_slice(), maker == value) {
        ([element], true) => Some(*element as usize),
        _ => None,
    };
    let count = module.shape(maker);
    let mut elements = count.element_count();
    if let (true, Some(s)) = (count.is_tuple(), &b.shape) {
        elements = s.element_count();
    }
    let mut seen: FxHashSet<InstructionId> = FxHashSet::default();
    let mut todo: Vec<(InstructionId, Option<usize>)> = vec![(maker, wanted)];
    while let Some((id, element)) = todo.pop() {
        if seen.len() >= MAX_LOOK || !seen.insert(id) {
            continue;
        }
        let i = module.instruction(id);
        let operands = module.operands(id);
        let same_count = |o: InstructionId| {
            let s = module.shape(o);
            !s.is_tuple() && s.element_count() == elements
        };
        match i.opcode {
            "convert" => {
                let from = operands.first().map(|&o| module.shape(o));
                if from.is_some_and(|s| is_half(s.element_type) && s.element_count() == elements) {
                    return true;
                }
                todo.extend(operands.iter().map(|&o| (o, None)));
            }
            "fusion" => {
                let root = module
                    .called(id)
                    .first()
                    .and_then(|&c| module.computation(c).root);
                if let Some(root) = root {
                    let made = match element {
                        Some(n) => module.operands(root).get(n).copied().unwrap_or(root),
                        None => root,
                    };
                    todo.push((made, None));
                }
            }
            "parameter" => {}
            "get-tuple-element" => {
                let n = Some(i.tuple_index as usize);
                todo.extend(operands.iter().map(|&o| (o, n)));
            }
            // A product of 16-bit matrices that comes out as float32.
            "dot" | "convolution"
                if operands
                    .iter()
                    .all(|&o| is_half(module.shape(o).element_type)) =>
            {
                return true;
            }
            "bitcast" | "reshape" | "transpose" | "copy" | "copy-done" | "copy-start" => {
                todo.extend(operands.iter().map(|&o| (o, None)));
            }
            opcode if is_elementwise(opcode) => {
                todo.extend(
                    operands
                        .iter()
                        .filter(|&&o| same_count(o))
                        .map(|&o| (o, None)),
                );
            }
            _ => {}
        }
    }
    false
}

fn is_half(t: ElementType) -> bool {
    t == ElementType::BF16 || t.name() == "f16"
}

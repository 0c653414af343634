//! What a policy of a checkpoint keeps: the matrix products of a loop's body.
//!
//! In: a forward loop. Out: the bytes of its body's products over all iterations.

use rustc_hash::FxHashSet;

use crate::hlo::op_name::{is_product, is_rematerialized, phase, Phase};
use crate::hlo::{ComputationId, InstructionId, Opcode};
use crate::peak::Context;

/// Computations looked at inside of a loop's body at most.
const MAX_COMPUTATIONS: usize = 20_000;

/// Bytes of all matrix products and convolutions of a forward loop's body, over `trips` iterations:
/// what `dots_saveable` may keep. `None` where another loop in the body makes products as well.
pub fn product_bytes(ctx: &Context<'_, '_>, of: InstructionId, trips: u64) -> Option<u64> {
    let module = &ctx.program.module;
    let &body = module.called(of).first()?;
    let mut seen: FxHashSet<ComputationId> = FxHashSet::default();
    let mut todo = vec![(body, Inside::default())];
    let (mut plain, mut again): (Vec<Product<'_>>, Vec<Product<'_>>) = (Vec::new(), Vec::new());
    while let Some((c, inside)) = todo.pop() {
        if !seen.insert(c) {
            continue;
        }
        if seen.len() > MAX_COMPUTATIONS {
            return None;
        }
        for i in module.computation(c).instructions() {
            let at = module.instruction(i);
            let inner = Inside {
                a_loop: inside.a_loop || at.opcode == Opcode::While,
                a_copy: inside.a_copy || is_rematerialized(at.name),
            };
            todo.extend(module.called(i).iter().map(|&c| (c, inner)));
            let product = matches!(at.opcode, Opcode::Dot | Opcode::Convolution)
                || at.opcode == Opcode::CustomCall && is_product(at.op_name);
            if !product || phase(at.op_name) == Phase::Backward {
                continue;
            }
            if inside.a_loop {
                return None;
            }
            let shape = module.shape(i);
            let bytes = shape.padded_bytes();
            let list = if inner.a_copy { &mut again } else { &mut plain };
            list.push((at.op_name, shape.dimensions, bytes));
        }
    }
    // What a copy of a fusion computes once more is one product.
    let is_new = |p: &&Product<'_>| !plain.iter().any(|q| q.0 == p.0 && q.1 == p.1);
    let new: Vec<&Product<'_>> = again.iter().take(1000).filter(is_new).collect();
    let once = plain
        .iter()
        .chain(new)
        .fold(0u64, |s, p| s.saturating_add(p.2));
    Some(once.saturating_mul(trips))
}

/// Name of the operation, dimensions, bytes.
type Product<'a> = (&'a str, Vec<u64>, u64);

/// What a computation is called from.
#[derive(Clone, Copy, Default)]
struct Inside {
    a_loop: bool,
    a_copy: bool,
}

/// Whether the compiler itself computes things again to make the program fit.
pub fn compiler_recomputes(ctx: &Context<'_, '_>) -> bool {
    ctx.program
        .module
        .instructions
        .iter()
        .any(|i| i.opcode == Opcode::Fusion && is_rematerialized(i.name))
}

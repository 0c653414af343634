//! `--checkpoint`: what the forward pass keeps for the backward pass is computed again there, from
//! the inputs of the block it belongs to, as `jax.checkpoint` would have made of the program.
//!
//! In: a module, a scope and whether matrix products are kept. Out: the module with copies of forward
//! instructions behind barriers. Layers in a loop are in [`scan`], layers written out one after
//! another in [`blocks`] and [`written`].

mod blocks;
mod build;
mod graph;
mod inline;
mod loops;
mod scan;
mod wanted;
mod written;

use super::arguments::returned;
use super::context::{nothing, Context};
use super::module::Editable;
use crate::error::Result;

use wanted::Wanted;

/// `SCOPE[:dots]`; `all` for every block.
pub(crate) fn checkpoint(
    module: &mut Editable,
    context: &Context<'_, '_>,
    value: &str,
) -> Result<String> {
    let (scope, dots) = match value.strip_suffix(":dots") {
        Some(scope) => (scope, true),
        None => (value, false),
    };
    let wanted = Wanted::new(scope, dots);
    inline::inline_calls(module)?;
    let mut loops = Vec::new();
    for at in 0..module.computations.len() {
        loops.extend(scan::checkpoint(module, at, &wanted));
    }
    let entry = module.entry_position();
    let data = data_arguments(context);
    let written = match module.computations.get_mut(entry) {
        Some(entry) => written::checkpoint(entry, &data, &wanted),
        None => Vec::new(),
    };
    let mut said = Vec::new();
    for l in &loops {
        said.push(format!(
            "a loop of {} rounds reads {} stacked values less",
            l.rounds, l.stacks
        ));
    }
    for w in &written {
        said.push(format!(
            "{} blocks of {} computed again, {} values kept for the backward pass less",
            w.blocks, w.input, w.values
        ));
    }
    match said.is_empty() {
        true => Err(nothing(
            "checkpoint",
            value,
            "no layers of that scope, in a loop or written out alike, of which the backward pass uses more than the input",
        )),
        false => Ok(said.join("; ")),
    }
}

/// Numbers of the arguments that bring data: nothing takes their place in the next step, and where
/// whole numbers are among them (tokens, labels), they have a batch as large.
fn data_arguments(context: &Context<'_, '_>) -> Vec<usize> {
    let module = &context.before.module;
    let parameters = module.entry_parameters();
    let all: Vec<u64> = parameters
        .iter()
        .map(|&p| module.instruction(p).parameter_number.into())
        .collect();
    let returned = returned(context.before, &all);
    let mut found = Vec::new();
    let mut batches = Vec::new();
    for (&p, number) in parameters.iter().zip(all) {
        let shape = module.shape(p);
        let Some(&first) = shape.dimensions.first() else {
            continue;
        };
        if !returned.contains_key(&number) {
            if !shape.element_type.is_float() {
                batches.push(first);
            }
            found.push((number as usize, first));
        }
    }
    found.retain(|(_, first)| batches.is_empty() || batches.contains(first));
    found.into_iter().map(|f| f.0).collect()
}

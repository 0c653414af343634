//! What to write in JAX for an edit, and how to see that it worked.
//!
//! In: an edit. Out: code and instructions.

use std::collections::BTreeSet;

use super::base::Base;
use super::edit::Edit;
use super::python::{comment, is_identifier, variable};
use super::sharding_code::sharding_code;
use crate::findings::Finding;
use crate::peak::{argument_name, top_level};

/// The JAX code for an edit, as lines of Python to adapt. `findings` as for selectors.
pub fn jax_code(base: &Base<'_, '_>, findings: &[Finding], edit: &Edit) -> String {
    match edit {
        Edit::Donate { selector } => {
            let names = match selector.as_str() {
                "all" => donated_names(base),
                s => vec![s.split(['[', '.']).next().unwrap_or(s).to_owned()],
            };
            let function = function_name(base);
            if names.is_empty() || !names.iter().all(|n| is_identifier(n)) {
                return format!("# give jax.jit({function}, ...) the positions of these arguments as donate_argnums");
            }
            let names: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
            format!(
                "{function} = jax.jit({function}, donate_argnames=({},))",
                names.join(", ")
            )
        }
        Edit::Shard { selector, ways } => sharding_code(base, findings, selector, ways),
        Edit::Batch { old, new, .. } => format!("batch_size = {new}  # was {old}"),
        Edit::Microbatch { count } => format!(
            "def accumulate(carry, part):\n    value, grads = jax.value_and_grad(loss)(params, part)\n    return jax.tree.map(jnp.add, carry, (value, grads)), None\nparts = batch.reshape({count}, batch.shape[0] // {count}, *batch.shape[1:])\nzeros = jax.tree.map(jnp.zeros_like, params)\n(value, grads), _ = jax.lax.scan(accumulate, (jnp.zeros(()), zeros), parts)\n# divide value and grads by {count}; keep each part sharded as the batch was"
        ),
        Edit::Dtype { selector, to } => {
            let to = match to.name().as_ref() {
                "bf16" => "bfloat16".to_owned(),
                "f16" => "float16".to_owned(),
                "f32" => "float32".to_owned(),
                other => other.to_owned(),
            };
            let name = variable(selector);
            format!("{name} = jax.tree.map(\n    lambda a: a.astype(jnp.{to}) if a.dtype == jnp.float32 else a, {name})")
        }
        Edit::Checkpoint { scope, dots } => {
            let policy = if *dots {
                ", policy=jax.checkpoint_policies.checkpoint_dots"
            } else {
                ""
            };
            let last = scope.rsplit('/').next().unwrap_or(scope);
            let what = if scope != "all" && is_identifier(last) { last } else { "layer" };
            format!("# the function of one layer, before lax.scan or the loop\n{what} = jax.checkpoint({what}{policy})")
        }
        Edit::Drop { selector } => comment(&format!("remove what computes {selector}")),
        Edit::PadFree => "# make the last two dimensions multiples of the tile (8 x 128), or merge small ones".to_owned(),
        Edit::Offload { selector } => {
            let name = variable(selector);
            format!("host = jax.tree.map(\n    lambda a: a.sharding.with_memory_kind(\"pinned_host\"), {name})\n{name} = jax.device_put({name}, host)  # and back inside the step, where it is used")
        }
        Edit::NoDebug => "# remove jax.debug.print and jax.debug.callback from the step".to_owned(),
    }
}

/// How to verify an edit.
pub fn how_to_verify(edit: &Edit) -> String {
    match edit {
        Edit::Donate { .. } => "compile again: no \"donated buffers were not usable\" warning, and alias_size_in_bytes of memory_analysis() has grown",
        Edit::Shard { .. } | Edit::NoDebug | Edit::Checkpoint { .. } => "compile again: `xpeak summary NEW_DUMP` shows the new total",
        Edit::Microbatch { .. } => "compile again; the loss of one step must agree with that of the whole batch",
        Edit::Dtype { .. } => "compile again, then compare training metrics over some hundred steps: rounding changes",
        Edit::Batch { .. } => "compile again, then check training metrics: the learning rate may need to follow",
        Edit::PadFree | Edit::Drop { .. } => "compile again, then check training metrics: the model changes",
        Edit::Offload { .. } => "compile again; measure the time of a step: transfers are slow",
    }
    .to_owned()
}

/// The function that was compiled: `train_step` of `jit_train_step`.
fn function_name<'b>(base: &'b Base<'_, '_>) -> &'b str {
    let name = base.program.module.name;
    let name = name.strip_prefix("jit_").unwrap_or(name);
    if is_identifier(name) {
        name
    } else {
        "step"
    }
}

/// Top-level names of the arguments of which some part may save memory when donated.
fn donated_names(base: &Base<'_, '_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = base
        .donations()
        .iter()
        .filter(|p| p.may_save)
        .map(|p| top_level(argument_name(base.program, p.parameter)));
    names
        .filter(|n| seen.insert(*n))
        .map(str::to_owned)
        .collect()
}

//! What to write in JAX for an edit, and how to see that it worked.
//!
//! In: an edit. Out: code and instructions.

use super::base::Base;
use super::edit::{Edit, Ways};

/// The JAX code for an edit, as lines to adapt.
pub fn jax_code(base: &Base<'_, '_>, edit: &Edit) -> String {
    match edit {
        Edit::Donate { selector } => {
            let names = match selector.as_str() {
                "all" => argument_names(base),
                s => vec![s.split(['[', '.']).next().unwrap_or(s).to_owned()],
            };
            let names: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
            format!("step = jax.jit(step, donate_argnames=({},))", names.join(", "))
        }
        Edit::Shard { selector, ways } => {
            let axes = match ways {
                Ways::Axis(a) => format!("\"{a}\""),
                Ways::Count(n) => format!("<mesh axes of {n} devices in all>"),
            };
            if is_argument(base, selector) {
                format!(
                    "# {selector}: split its largest dimension\nsharding = NamedSharding(mesh, P({axes}))\n{selector} = jax.device_put({selector}, sharding)  # and in_shardings / out_shardings of jit"
                )
            } else {
                format!(
                    "# where {selector} is made\nx = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P({axes})))"
                )
            }
        }
        Edit::Batch { old, new, .. } => format!("batch_size = {new}  # was {old}"),
        Edit::Microbatch { count } => format!(
            "def accumulate(carry, part):\n    value, grads = jax.value_and_grad(loss)(params, part)\n    return jax.tree.map(jnp.add, carry, (value, grads)), None\nparts = batch.reshape({count}, batch.shape[0] // {count}, *batch.shape[1:])\nzeros = jax.tree.map(jnp.zeros_like, params)\n(value, grads), _ = jax.lax.scan(accumulate, (jnp.zeros(()), zeros), parts)\n# divide value and grads by {count}; keep each part sharded as the batch was"
        ),
        Edit::Dtype { selector, to } => format!(
            "{selector} = jax.tree.map(lambda a: a.astype(jnp.{}), {selector})",
            match to.name().as_ref() {
                "bf16" => "bfloat16".to_owned(),
                "f16" => "float16".to_owned(),
                "f32" => "float32".to_owned(),
                other => other.to_owned(),
            }
        ),
        Edit::Checkpoint { scope, dots } => {
            let policy = if *dots {
                ", policy=jax.checkpoint_policies.checkpoint_dots"
            } else {
                ""
            };
            let what = if scope == "all" { "layer" } else { scope };
            format!("{0} = jax.checkpoint({0}{policy})  # the function of one layer, before lax.scan or the loop", plain(what))
        }
        Edit::Drop { selector } => format!("# remove what computes {selector}"),
        Edit::PadFree => "# make the last two dimensions multiples of the tile (8 x 128), or merge small ones".to_owned(),
        Edit::Offload { selector } => format!(
            "host = NamedSharding(mesh, spec, memory_kind=\"pinned_host\")\n{selector} = jax.device_put({selector}, host)  # and jax.device_put back inside the step, where it is used"
        ),
        Edit::NoDebug => "# remove jax.debug.print and jax.debug.callback from the step".to_owned(),
    }
}

/// How to verify an edit.
pub fn how_to_verify(edit: &Edit) -> String {
    match edit {
        Edit::Donate { .. } => "compile again: no \"donated buffers were not usable\" warning, and alias_size_in_bytes of memory_analysis() has grown",
        Edit::Shard { .. } | Edit::NoDebug | Edit::Checkpoint { .. } => "compile again: a clean compile is enough; `xpeak diff` shows what changed",
        Edit::Microbatch { .. } => "compile again; the loss of one step must agree with that of the whole batch",
        Edit::Dtype { .. } => "compile again, then compare training metrics over some hundred steps: rounding changes",
        Edit::Batch { .. } => "compile again, then check training metrics: the learning rate may need to follow",
        Edit::PadFree | Edit::Drop { .. } => "compile again, then check training metrics: the model changes",
        Edit::Offload { .. } => "compile again; measure the time of a step: transfers are slow",
    }
    .to_owned()
}

fn plain(scope: &str) -> &str {
    scope.rsplit('/').next().unwrap_or(scope)
}

fn argument_names(base: &Base<'_, '_>) -> Vec<String> {
    let module = &base.program.module;
    let mut out: Vec<String> = Vec::new();
    let root = module.entry_root().map(|r| module.shape(r));
    for i in module.entry_parameters() {
        let shape = module.shape(i);
        let mut returned = false;
        if let Some(r) = &root {
            r.for_each_leaf(&mut |_, leaf| returned |= *leaf == shape);
        }
        let name = module
            .instruction(i)
            .op_name
            .split(['[', '.'])
            .next()
            .unwrap_or_default();
        if returned
            && shape.element_count() > 1
            && !name.is_empty()
            && !out.iter().any(|n| n == name)
        {
            out.push(name.to_owned());
        }
    }
    out
}

fn is_argument(base: &Base<'_, '_>, selector: &str) -> bool {
    let module = &base.program.module;
    let arguments = module.entry_parameters();
    arguments
        .iter()
        .any(|&i| module.instruction(i).op_name.contains(selector))
}

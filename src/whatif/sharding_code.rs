//! JAX code that shards a tensor.
//!
//! In: a selector and a number of ways or an axis. Out: Python, with the mesh's own axes where the
//! program names them.

use super::base::Base;
use super::python::{comment, variable};
use super::selector::{finding_named, plain_shape, select, MatchedBy};
use crate::findings::Finding;
use crate::hlo::InstructionId;

const IMPORT: &str = "from jax.sharding import NamedSharding, PartitionSpec";
/// The axis of a mesh that the code makes itself.
const OWN_AXIS: &str = "shard";

/// How often something is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ways {
    /// That many times.
    Count(u64),
    /// By the size of this mesh axis.
    Axis(String),
}

impl std::fmt::Display for Ways {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ways::Count(n) => write!(f, "{n}"),
            Ways::Axis(a) => f.write_str(a),
        }
    }
}

/// The code.
pub(crate) fn sharding_code(
    base: &Base<'_, '_>,
    findings: &[Finding],
    selector: &str,
    ways: &Ways,
) -> String {
    if let Some(f) = finding_named(findings, selector) {
        return of_finding(base, f, ways);
    }
    let chosen = select(base.program, findings, selector);
    let first = chosen.instructions.first().copied();
    let (axes, count) = axes(base, first, ways);
    let mut out = vec![IMPORT.to_owned()];
    out.extend(own_mesh(&axes, count));
    let axes: Vec<String> = axes.iter().map(|a| format!("\"{a}\"")).collect();
    let on = match &axes[..] {
        [] => format!("\"{OWN_AXIS}\""),
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    };
    if chosen.by == MatchedBy::Argument {
        let name = variable(selector);
        if let Some(i) = first {
            let shape = plain_shape(&base.program.module.shape(i));
            let text = match chosen.instructions.len() {
                1 => format!("{selector}: {shape} on a device"),
                n => format!("{selector}: {n} arrays, the first {shape} on a device"),
            };
            out.insert(0, comment(&text));
        }
        out.push(format!(
            "def sharding(a):  # the first dimension that {count} divides\n    d = next((d for d, n in enumerate(a.shape) if n % {count} == 0), None)\n    spec = PartitionSpec() if d is None else PartitionSpec(*[None] * d, {on})\n    return NamedSharding(mesh, spec)\n{name} = jax.device_put({name}, jax.tree.map(sharding, {name}))"
        ));
        out.push(comment(
            "the same shardings in in_shardings and, for what comes back, out_shardings of jit",
        ));
        return out.join("\n");
    }
    let Some(i) = first else {
        return comment(&format!("shard {selector}"));
    };
    let shape = base.program.module.shape(i);
    let place = base.program.module.source_of(i).map_or_else(
        || base.program.module.instruction(i).op_name.to_owned(),
        |s| format!("{}:{}", s.file, s.line),
    );
    out.push(comment(&format!("{place}: {}", plain_shape(&shape))));
    let d = shape
        .dimensions
        .iter()
        .position(|n| n.is_multiple_of(count.max(1)))
        .unwrap_or(0);
    out.push(format!(
        "x = jax.lax.with_sharding_constraint(\n    x, NamedSharding(mesh, PartitionSpec({}{on})))",
        "None, ".repeat(d)
    ));
    out.join("\n")
}

/// A finding says what to do already.
fn of_finding(base: &Base<'_, '_>, f: &Finding, ways: &Ways) -> String {
    let own = format!("'{OWN_AXIS}'");
    let action = f.action.replace("<axis>", &own);
    let mut out = vec![comment(&f.title), comment(&action)];
    let Some(spec) = spec_in(&action) else {
        return out.join("\n");
    };
    out.push(IMPORT.to_owned());
    if spec.contains(&own) {
        let (_, count) = axes(base, None, ways);
        out.extend(own_mesh(&[], count));
    }
    out.push(format!("sharding = NamedSharding(mesh, {spec})"));
    if action.contains("with_sharding_constraint(") {
        out.push("x = jax.lax.with_sharding_constraint(x, sharding)".to_owned());
    } else if action.contains("device_put(") {
        out.push("x = jax.device_put(x, sharding)".to_owned());
    }
    out.join("\n")
}

/// `PartitionSpec(...)` of a text, to its closing bracket.
fn spec_in(text: &str) -> Option<&str> {
    let from = text.find("PartitionSpec(")?;
    let mut depth = 0usize;
    for (at, c) in text.get(from..)?.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return text.get(from..=from + at);
                }
            }
            _ => {}
        }
    }
    None
}

fn own_mesh(axes: &[String], count: u64) -> Option<String> {
    axes.is_empty().then(|| {
        format!(
            "mesh = jax.make_mesh(({count},), (\"{OWN_AXIS}\",))  # or axes of your mesh with {count} devices"
        )
    })
}

/// Names of mesh axes to split over, and how many ways that is. Without names where none explain
/// the copies.
fn axes(base: &Base<'_, '_>, first: Option<InstructionId>, ways: &Ways) -> (Vec<String>, u64) {
    let r = &base.replication;
    match ways {
        Ways::Axis(name) => {
            let mut all = r.meshes().iter().flat_map(|m| &m.axes);
            let size = all.find(|a| a.name == *name).map_or(1, |a| a.size);
            (vec![name.clone()], size)
        }
        Ways::Count(n) => {
            let classes = first.and_then(|i| r.leaf_classes(i).first().copied());
            let free = classes.map(|c| r.free_axes(c)).unwrap_or_default();
            let free: Vec<_> = free.into_iter().filter(|a| a.size > 1).collect();
            if let Some(a) = free.iter().find(|a| a.size == *n) {
                return (vec![a.name.clone()], *n);
            }
            let product = free.iter().fold(1u64, |p, a| p.saturating_mul(a.size));
            if product == *n {
                return (free.into_iter().map(|a| a.name).collect(), *n);
            }
            (Vec::new(), *n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_cut_at_their_bracket() {
        assert_eq!(
            spec_in("NamedSharding(mesh, PartitionSpec(None, ('a', 'b')))), or"),
            Some("PartitionSpec(None, ('a', 'b'))")
        );
        assert_eq!(spec_in("in its PartitionSpec."), None);
        assert_eq!(spec_in("PartitionSpec((("), None);
    }
}

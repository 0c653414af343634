//! What the framework's name of an operation tells. JAX writes a path: transformations wrapped
//! around the scopes that they were applied to, then scopes of the user's code, then the primitive:
//! `jit(step)/transpose(jvp(Model))/layers_3/mlp/dot_general`.
//!
//! In: names as they stand in the metadata of instructions. Out: their parts. Names are read by
//! whole path components, never by what they contain: `my_transpose(x)` is a user's scope.

/// Part of a training step, by the framework's name of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Differentiated forward pass: `jvp` without `transpose` around it.
    Forward,
    /// Backward pass: `transpose` of a `jvp`; recomputation under `jax.checkpoint` is part of it.
    Backward,
    /// Neither, or unknown.
    Other,
}

/// Transformations that JAX writes around a scope.
const TRANSFORMATIONS: [&str; 6] = ["jvp", "transpose", "vmap", "checkpoint", "remat", "pmap"];

/// The transformations around a path component, outermost first, and what they are applied to:
/// `transpose(jvp(Model))` → `[transpose, jvp]`, `Model`.
fn unwrapped(component: &str) -> (Vec<&str>, &str) {
    let mut around = Vec::new();
    let mut core = component;
    while let Some((name, inner)) = core.strip_suffix(')').and_then(|c| c.split_once('(')) {
        if !TRANSFORMATIONS.contains(&name) {
            break;
        }
        around.push(name);
        core = inner;
    }
    (around, core)
}

/// Components of an operation's path, outermost first; slashes within brackets do not separate.
/// Empty components are left out.
pub fn components(op_name: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(op_name);
    let next = move || {
        let text = rest?;
        let mut depth = 0i32;
        for (i, c) in text.char_indices() {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth = (depth - 1).max(0),
                '/' if depth == 0 => {
                    let (head, tail) = text.split_at(i);
                    rest = tail.get(1..);
                    return Some(head);
                }
                _ => {}
            }
        }
        rest = None;
        Some(text)
    };
    std::iter::from_fn(next).filter(|c| !c.is_empty())
}

/// The phase of an operation. A scope of the user's that is called `transpose(x)` says nothing: a
/// backward pass is the transposition of a linearised program, `transpose(jvp(...))`.
pub fn phase(op_name: &str) -> Phase {
    if !op_name.contains("jvp(") {
        return Phase::Other;
    }
    let mut forward = false;
    for component in components(op_name) {
        let (around, _) = unwrapped(component);
        let Some(last) = around.iter().rposition(|&t| t == "jvp") else {
            continue;
        };
        if around.iter().take(last).any(|&t| t == "transpose") {
            return Phase::Backward;
        }
        forward = true;
    }
    if forward {
        Phase::Forward
    } else {
        Phase::Other
    }
}

/// Whether an operation stands under `jax.checkpoint`, in either pass.
pub fn is_checkpointed(op_name: &str) -> bool {
    // Old names wrap the scope, new ones are a component of their own.
    components(op_name).any(|c| {
        let (around, core) = unwrapped(c);
        around.iter().any(|t| matches!(*t, "checkpoint" | "remat"))
            || matches!(core, "checkpoint" | "remat" | "rematted_computation")
    })
}

/// Whether an operation computes again, in the backward pass, what `jax.checkpoint` did not keep.
pub fn is_recomputed(op_name: &str) -> bool {
    op_name.contains("rematted_computation")
        && components(op_name).any(|c| unwrapped(c).1 == "rematted_computation")
}

/// Whether an operation stands in the body of a loop.
pub fn is_in_loop(op_name: &str) -> bool {
    let mut in_while = false;
    components(op_name).any(|c| {
        let core = unwrapped(c).1;
        let found = in_while && core == "body";
        in_while = core == "while";
        found
    })
}

/// The scopes of an operation path, outermost first, without the leading `jit(...)`.
pub fn scopes(op_name: &str) -> Vec<&str> {
    let mut out: Vec<&str> = components(op_name).collect();
    if out.len() > 1 && (out[0].starts_with("jit(") || out[0].starts_with("pjit(")) {
        out.remove(0);
    }
    out
}

/// The user's scopes in an operation's name, without the framework's own:
/// `jit(step)/jvp(Model)/layers_3/mlp/dot_general` is in `Model/layers_3/mlp`. Empty if there are
/// none.
pub fn scope(op_name: &str) -> String {
    let mut parts: Vec<&str> = components(op_name).collect();
    parts.pop();
    let kept = parts.into_iter().skip(1).filter_map(|part| {
        let core = unwrapped(part).1;
        let own = matches!(
            core,
            "" | "while" | "body" | "cond" | "closed_call" | "checkpoint" | "rematted_computation"
        ) || core.contains('(');
        (!own).then_some(core)
    });
    kept.collect::<Vec<_>>().join("/")
}

/// The last part of an operation's name: `dot_general`, or of an einsum `bsd,dhk->bshk/dot_general`.
pub fn operation(op_name: &str) -> &str {
    op_name.rsplit('/').next().unwrap_or(op_name)
}

/// Whether an operation is a matrix product or a convolution.
pub fn is_product(op_name: &str) -> bool {
    matches!(operation(op_name), "dot_general" | "conv_general_dilated")
}

/// An instruction's name without the numbers and suffixes that XLA gives to copies of it:
/// `fusion.12.remat3.clone` → `fusion`.
pub fn base_name(name: &str) -> &str {
    let mut out = name;
    while let Some((head, tail)) = out.rsplit_once('.') {
        let word = tail.trim_end_matches(|c: char| c.is_ascii_digit());
        if head.is_empty() || !matches!(word, "" | "remat" | "clone" | "remat_uncompressed") {
            break;
        }
        out = head;
    }
    out
}

/// Whether the compiler computes an instruction a second time to save memory: it marks its name
/// with `.remat`. (`.clone` is its suffix for any copy of an instruction, and says nothing.)
pub fn is_rematerialized(name: &str) -> bool {
    name.split('.').skip(1).any(|part| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        matches!(word, "remat" | "remat_uncompressed" | "remat_compressed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_the_transformations() {
        assert_eq!(phase("jit(f)/jvp()/while/body/dot_general"), Phase::Forward);
        assert_eq!(phase("jit(f)/transpose(jvp())/mul"), Phase::Backward);
        assert_eq!(
            phase("jit(f)/vmap(transpose(jvp(M)))/a/mul"),
            Phase::Backward
        );
        assert_eq!(
            phase("jit(f)/transpose(vmap(jvp(a/b)))/mul"),
            Phase::Backward
        );
        assert_eq!(phase("jit(f)/sub"), Phase::Other);
        assert_eq!(phase(""), Phase::Other);
    }

    #[test]
    fn a_users_scope_is_no_phase() {
        for name in [
            "jit(f)/transpose(x)/mul",
            "jit(f)/my_transpose(jvp(x))/mul",
            "jit(f)/my_jvp(x)/mul",
            "jit(f)/transpose(mul)",
            "jit(f)/transpose",
            "jvp(",
            "transpose(jvp(",
        ] {
            assert_eq!(phase(name), Phase::Other, "{name}");
        }
        assert_eq!(phase("jit(f)/jvp(M)/transpose(x)/mul"), Phase::Forward);
    }

    #[test]
    fn checkpoints_in_old_and_new_names() {
        assert!(is_checkpointed("jit(f)/jvp(checkpoint)/mul"));
        assert!(is_checkpointed("jit(f)/jvp()/checkpoint/mul"));
        assert!(is_checkpointed(
            "jit(f)/transpose(jvp())/checkpoint/rematted_computation/mul"
        ));
        assert!(!is_checkpointed("jit(f)/jvp()/checkpointing/mul"));
        assert!(is_recomputed(
            "jit(f)/transpose(jvp())/checkpoint/rematted_computation/mul"
        ));
        assert!(!is_recomputed("jit(f)/not_rematted_computation/mul"));
        assert!(is_in_loop("jit(f)/transpose(jvp(while))/body/mul"));
        assert!(is_in_loop("jit(f)/while/body/mul"));
        assert!(!is_in_loop("jit(f)/while/cond/body/mul"));
    }

    #[test]
    fn scopes_are_the_users() {
        assert_eq!(
            scope("jit(f)/jvp(Model)/layers_3/mlp/dot_general"),
            "Model/layers_3/mlp"
        );
        assert_eq!(scope("jit(f)/jvp()/while/body/closed_call/exp"), "");
        assert_eq!(scope("jit(f)/jvp(jit(log_softmax))/sub"), "");
        assert_eq!(scope("jit(f)/transpose(jvp(a/b))/sub"), "a/b");
        assert_eq!(
            operation("jit(f)/jvp()/bsd,dhk->bshk/dot_general"),
            "dot_general"
        );
    }

    #[test]
    fn paths_split_at_slashes_outside_parentheses() {
        assert_eq!(
            scopes("jit(step)/transpose(jvp(a/b))/while/dot_general"),
            ["transpose(jvp(a/b))", "while", "dot_general"]
        );
        assert_eq!(scopes("jit(step)"), ["jit(step)"]);
        assert_eq!(scopes("a)//b"), ["a)", "b"]);
        assert!(scopes("").is_empty());
    }

    #[test]
    fn copies_share_a_base_name() {
        assert_eq!(base_name("fusion.12.remat3.clone.1"), "fusion");
        assert_eq!(base_name("copy"), "copy");
        assert_eq!(base_name("custom-call.7"), "custom-call");
        assert_eq!(base_name("a.b.3"), "a.b");
        assert_eq!(base_name(".5"), ".5");
    }

    #[test]
    fn a_clone_is_no_rematerialization() {
        assert!(is_rematerialized("fusion.12.remat3"));
        assert!(is_rematerialized("fusion.12.remat.clone.1"));
        assert!(is_rematerialized("copy.1.remat_uncompressed"));
        assert!(!is_rematerialized("fusion.1.clone"));
        assert!(!is_rematerialized("fusion.rematted"));
        assert!(!is_rematerialized("remat.3"));
        assert!(!is_rematerialized("convolution.12"));
    }
}

//! What an operation's name tells: its place in automatic differentiation and the scope of the
//! user's code it is from.

use super::text::stars;

/// Part of a training step, by the framework's name of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Differentiated forward pass: `jvp` without `transpose`.
    Forward,
    /// Backward pass: `transpose`; recomputation under `jax.checkpoint` is part of it.
    Backward,
    /// Neither, or unknown.
    Other,
}

/// The phase of an operation.
pub fn phase(op_name: &str) -> Phase {
    if op_name.contains("transpose(") {
        Phase::Backward
    } else if op_name.contains("jvp(") {
        Phase::Forward
    } else {
        Phase::Other
    }
}

/// The user's scopes in an operation's name, without the framework's own:
/// `jit(step)/jvp(Model)/layers_3/mlp/dot_general` is in `Model/layers_3/mlp`. Empty if there are
/// none.
pub fn scope(op_name: &str) -> String {
    let mut parts: Vec<&str> = op_name.split('/').collect();
    parts.pop();
    let kept = parts.into_iter().skip(1).filter_map(|part| {
        let mut part = part;
        loop {
            let inner = ["jvp(", "transpose(", "vmap(", "checkpoint(", "remat("]
                .iter()
                .find_map(|w| part.strip_prefix(w)?.strip_suffix(')'));
            match inner {
                Some(i) => part = i,
                None => break,
            }
        }
        let own = matches!(
            part,
            "" | "while" | "body" | "cond" | "closed_call" | "checkpoint" | "rematted_computation"
        ) || part.contains('(');
        (!own).then_some(part)
    });
    kept.collect::<Vec<_>>().join("/")
}

/// A scope with its numbers replaced: `layers_3/mlp` and `layers_4/mlp` are alike.
pub fn scope_pattern(scope: &str) -> String {
    stars(scope)
}

/// The last part of an operation's name: `dot_general`, or of an einsum `bsd,dhk->bshk/dot_general`.
pub fn operation(op_name: &str) -> &str {
    op_name.rsplit('/').next().unwrap_or(op_name)
}

/// Whether an operation is a matrix product or a convolution.
pub fn is_product(op_name: &str) -> bool {
    matches!(operation(op_name), "dot_general" | "conv_general_dilated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_the_transformations() {
        assert_eq!(phase("jit(f)/jvp()/while/body/dot_general"), Phase::Forward);
        assert_eq!(phase("jit(f)/transpose(jvp())/mul"), Phase::Backward);
        assert_eq!(phase("jit(f)/sub"), Phase::Other);
        assert_eq!(phase(""), Phase::Other);
    }

    #[test]
    fn scopes_are_the_users() {
        assert_eq!(
            scope("jit(f)/jvp(Model)/layers_3/mlp/dot_general"),
            "Model/layers_3/mlp"
        );
        assert_eq!(scope("jit(f)/jvp()/while/body/closed_call/exp"), "");
        assert_eq!(scope("jit(f)/jvp(jit(log_softmax))/sub"), "");
        assert_eq!(scope_pattern("Model/layers_13/mlp"), "Model/layers_*/mlp");
        assert_eq!(
            operation("jit(f)/jvp()/bsd,dhk->bshk/dot_general"),
            "dot_general"
        );
    }
}

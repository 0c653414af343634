//! What is at the peak as a tree of named scopes: `jit(step)/transpose(jvp(layer))/dot_general`
//! becomes nested nodes.

use std::collections::BTreeMap;

use super::context::Context;
use super::labels::buffer_label;
use crate::hlo::op_name::scopes;
use crate::hlo::AllocationKind;

/// A scope and what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScopeNode {
    /// The scope's own name.
    pub name: String,
    /// Bytes at the peak, its descendants' included.
    pub bytes: u64,
    /// Tile padding in them.
    pub padding_bytes: u64,
    /// Buffers in them.
    pub count: usize,
    /// Scopes below, largest first, ties by name. Their bytes add up to at most this node's.
    pub children: Vec<ScopeNode>,
}

#[derive(Default)]
struct Builder {
    bytes: u64,
    padding: u64,
    count: usize,
    children: BTreeMap<String, Builder>,
}

/// Paths deeper than this are cut there.
const MAX_DEPTH: usize = 64;

/// The tree of everything at the peak. Entry arguments stand under `arguments`, then their
/// top-level name; the rest by operation path, without the leading `jit(...)`.
pub fn scope_tree(ctx: &Context<'_, '_>) -> ScopeNode {
    let mut root = Builder::default();
    for b in &ctx.peak.buffers {
        let label = buffer_label(ctx, b);
        let mut path: Vec<String> = match b.kind {
            AllocationKind::Parameter | AllocationKind::Donated => {
                let mut p = vec!["arguments".to_owned()];
                p.extend(argument_path(&label));
                p
            }
            _ => scopes(&label).into_iter().map(str::to_owned).collect(),
        };
        path.truncate(MAX_DEPTH);
        let mut at = &mut root;
        at.add(b.counted_bytes, b.padding_bytes());
        for name in path {
            at = at.children.entry(name).or_default();
            at.add(b.counted_bytes, b.padding_bytes());
        }
    }
    root.finish("everything".to_owned())
}

impl Builder {
    fn add(&mut self, bytes: u64, padding: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.padding = self.padding.saturating_add(padding);
        self.count += 1;
    }

    fn finish(self, name: String) -> ScopeNode {
        let mut children: Vec<ScopeNode> = self
            .children
            .into_iter()
            .map(|(n, b)| b.finish(n))
            .collect();
        children.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        ScopeNode {
            name,
            bytes: self.bytes,
            padding_bytes: self.padding,
            count: self.count,
            children,
        }
    }
}

/// `state[0]['mlp']['up']` → `state`, `[0]`, `['mlp']`, `['up']`.
pub fn argument_path(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let skip = usize::from(rest.starts_with('['));
        let cut = rest
            .char_indices()
            .skip(skip)
            .find(|(i, c)| *i > 0 && matches!(c, '[' | '.'))
            .map_or(rest.len(), |(i, _)| i);
        let (head, tail) = rest.split_at(cut);
        out.push(head.to_owned());
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_names_split_at_keys() {
        assert_eq!(
            argument_path("state[0]['mlp']['up']"),
            ["state", "[0]", "['mlp']", "['up']"]
        );
        assert_eq!(argument_path("params.layer.w"), ["params", ".layer", ".w"]);
        assert_eq!(argument_path("x"), ["x"]);
    }
}

//! Buffers at the peak by path of named scopes, and in the innermost by shape. In: op names. Out: a tree of [`Scope`]s.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::data::Scope;
use crate::hlo::op_name::scopes;
use crate::hlo::AllocationKind;
use crate::peak::{argument_path, buffer_label, Context};

/// Deeper scopes count as their ancestor.
const MAX_DEPTH: usize = 8;

#[derive(Default)]
struct Node {
    by_kind: BTreeMap<AllocationKind, u64>,
    count: u64,
    children: BTreeMap<String, Node>,
}

/// The tree of what is live at the peak.
pub(crate) fn scope_tree(ctx: &Context<'_, '_>) -> Scope {
    let mut root = Node::default();
    for b in &ctx.peak.buffers {
        let mut path = path_of(&buffer_label(ctx, b), b.kind);
        if let Some(shape) = &b.shape {
            let mut shape = shape.clone();
            shape.layout = None;
            path.push(shape.to_string());
        }
        root.add(path, b.kind, b.counted_bytes);
    }
    root.finish("")
}

/// Where a buffer belongs: arguments by the parts of their name, others by named scope.
fn path_of(label: &str, kind: AllocationKind) -> Vec<String> {
    let mut path = Vec::new();
    if matches!(kind, AllocationKind::Parameter | AllocationKind::Donated) {
        path.push("arguments".to_owned());
        let bare = |p: &String| p.trim_matches(['[', ']', '.', '\'', '"']).to_owned();
        path.extend(argument_path(label).iter().map(bare));
    } else {
        path.extend(scopes(label).into_iter().map(str::to_owned));
    }
    path.truncate(MAX_DEPTH);
    path
}

impl Node {
    fn add(&mut self, path: Vec<String>, kind: AllocationKind, bytes: u64) {
        let mut at = self;
        let count = |node: &mut Node| {
            let sum = node.by_kind.entry(kind).or_default();
            *sum = sum.saturating_add(bytes);
            node.count += 1;
        };
        count(at);
        for part in path {
            at = at.children.entry(part).or_default();
            count(at);
        }
    }

    fn finish(self, name: &str) -> Scope {
        let size_bytes = self
            .by_kind
            .values()
            .fold(0u64, |s, b| s.saturating_add(*b));
        let most = self.by_kind.iter().max_by_key(|(k, b)| (**b, Reverse(**k)));
        let kind = most.map(|(k, _)| *k);
        let mut children: Vec<Scope> = self
            .children
            .into_iter()
            .map(|(name, node)| node.finish(&name))
            .collect();
        let inside = children
            .iter()
            .fold(0u64, |s, c| s.saturating_add(c.size_bytes));
        let own = size_bytes.saturating_sub(inside);
        if own > 0 && !children.is_empty() {
            children.push(Scope {
                name: String::new(),
                size_bytes: own,
                count: self.count,
                kind,
                children: Vec::new(),
            });
        }
        children.sort_by(|a, b| (b.size_bytes, &a.name).cmp(&(a.size_bytes, &b.name)));
        Scope {
            name: name.to_owned(),
            size_bytes,
            count: self.count,
            kind,
            children,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_together_and_lose_their_brackets() {
        let path = path_of("state[0]['mlp']['up']", AllocationKind::Donated);
        assert_eq!(path, ["arguments", "state", "0", "mlp", "up"]);
        let path = path_of("jit(f)/while/dot", AllocationKind::Temporary);
        assert_eq!(path, ["while", "dot"]);
        assert!(path_of("", AllocationKind::Output).is_empty());
    }

    #[test]
    fn a_tree_adds_up_and_keeps_what_a_scope_holds_itself() {
        let mut root = Node::default();
        let path = |s: &str| s.split('/').map(str::to_owned).collect::<Vec<_>>();
        root.add(path("a/b"), AllocationKind::Temporary, 10);
        root.add(path("a"), AllocationKind::Output, 3);
        root.add(path("c"), AllocationKind::Output, 20);
        let tree = root.finish("");
        assert_eq!(
            (tree.size_bytes, tree.kind),
            (33, Some(AllocationKind::Output))
        );
        let names: Vec<_> = tree.children.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["c", "a"]);
        let a: Vec<_> = tree.children[1]
            .children
            .iter()
            .map(|c| (c.name.as_str(), c.size_bytes))
            .collect();
        assert_eq!(a, [("b", 10), ("", 3)]);
    }
}

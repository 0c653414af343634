//! The fixed point over the graph: from "all the same" down, along the edges, until nothing
//! changes. A value is looked at again only when something it is made from got finer.

use std::collections::VecDeque;

use super::classes::DeviceClassesId;
use super::graph::Builder;

/// What is known of every node.
#[derive(Debug)]
pub(crate) struct Solution {
    pub(crate) classes: Vec<DeviceClassesId>,
    /// Whether anything from outside the program goes into it.
    pub(crate) from_data: Vec<bool>,
}

/// Classes of every node; `None` if that takes more steps than any real program could need.
/// Pinned nodes keep their seed.
pub(crate) fn solve(b: &mut Builder<'_, '_>, pinned: &[u32], data: &[u32]) -> Option<Solution> {
    let n = b.graph.seed.len();
    let edges = std::mem::take(&mut b.graph.edges);
    let (starts, targets) = adjacency(n, &edges);
    drop(edges);
    let mut is_pinned = vec![false; n];
    for &p in pinned {
        if let Some(x) = is_pinned.get_mut(p as usize) {
            *x = true;
        }
    }
    let mut values = b.graph.seed.clone();
    let mut queue: VecDeque<u32> = VecDeque::new();
    let mut queued = vec![false; n];
    for v in 0..n {
        let t = b.graph.transform[v];
        if t != 0 && !is_pinned[v] {
            let made = b.transforms.apply(t, DeviceClassesId::ONE, &mut b.classes);
            values[v] = b.classes.refine(values[v], made);
        }
        if values[v] != DeviceClassesId::ONE {
            queue.push_back(v as u32);
            queued[v] = true;
        }
    }
    let mut steps = targets.len().saturating_mul(64).saturating_add(1 << 20);
    while let Some(u) = queue.pop_front() {
        let u = u as usize;
        queued[u] = false;
        let from = values[u];
        let out = starts[u] as usize..starts[u + 1] as usize;
        steps = steps.checked_sub(out.len())?;
        for &v in &targets[out] {
            let v = v as usize;
            if is_pinned[v] {
                continue;
            }
            let made = b
                .transforms
                .apply(b.graph.transform[v], from, &mut b.classes);
            let finer = b.classes.refine(values[v], made);
            if finer != values[v] {
                values[v] = finer;
                if !queued[v] {
                    queued[v] = true;
                    queue.push_back(v as u32);
                }
            }
        }
    }
    Some(Solution {
        classes: values,
        from_data: reachable(n, &starts, &targets, data),
    })
}

fn reachable(n: usize, starts: &[u32], targets: &[u32], from: &[u32]) -> Vec<bool> {
    let mut seen = vec![false; n];
    let mut stack: Vec<u32> = from.to_vec();
    while let Some(u) = stack.pop() {
        let u = u as usize;
        if u >= n || std::mem::replace(&mut seen[u], true) {
            continue;
        }
        let out = starts[u] as usize..starts[u + 1] as usize;
        stack.extend(targets[out].iter().filter(|&&v| !seen[v as usize]));
    }
    seen
}

/// Targets of each node's edges, one after the other, and where each node's start. Edges from or
/// to nodes that do not exist are left out.
fn adjacency(n: usize, edges: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; n + 1];
    let fits = |&&(a, b): &&(u32, u32)| (a as usize) < n && (b as usize) < n;
    for &(from, _) in edges.iter().filter(fits) {
        starts[from as usize + 1] += 1;
    }
    for k in 0..n {
        starts[k + 1] += starts[k];
    }
    let mut next = starts.clone();
    let mut targets = vec![0u32; starts[n] as usize];
    for &(from, to) in edges.iter().filter(fits) {
        let at = &mut next[from as usize];
        targets[*at as usize] = to;
        *at += 1;
    }
    (starts, targets)
}

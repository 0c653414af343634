//! Where the layers of a forward pass begin and end, when they are written out one after another.
//!
//! In: a computation and the arguments that bring data. Out: [`Blocks`]: the values between layers,
//! which every path from the data to the loss goes through. Among those, matrix products make
//! segments; the longest run of segments that repeats itself is the layers.

use rustc_hash::FxHashMap;

use super::graph::Graph;
use crate::hlo::Opcode;

/// What is known of a forward pass.
#[derive(Debug)]
pub(crate) struct Passes {
    /// Whether an instruction is of the backward pass or behind it.
    pub(crate) backward: Vec<bool>,
    /// Whether it depends on data.
    pub(crate) of_data: Vec<bool>,
    /// Whether it is of the forward pass and gradients may flow through it.
    flows: Vec<bool>,
}

/// Values between layers, by position, ascending: each is the input of a layer, the last the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks(pub(crate) Vec<usize>);

/// A layer of more segments than this is not found.
const LONGEST_PERIOD: usize = 64;
/// More beginnings than this are not tried.
const MOST_ENTRIES: usize = 40;

impl Passes {
    pub(crate) fn of(graph: &Graph, data: &[usize]) -> Passes {
        let n = graph.len();
        let (mut backward, mut of_data) = (vec![false; n], vec![false; n]);
        let mut flows = vec![false; n];
        for (at, node) in graph.nodes.iter().enumerate() {
            let any = |of: &[bool]| node.operands.iter().any(|&o| of[o]);
            backward[at] = node.op_name.contains("transpose(") || any(&backward);
            let brings = node.opcode == Opcode::Parameter && data.contains(&node.number);
            of_data[at] = brings || any(&of_data);
            flows[at] = !backward[at] && of_data[at] && node.may_flow() && at != graph.root;
        }
        Passes {
            backward,
            of_data,
            flows,
        }
    }

    /// Values that gradients come from, of those an instruction uses.
    fn sources<'g>(&'g self, graph: &'g Graph, at: usize) -> impl Iterator<Item = usize> + 'g {
        let operands = graph.nodes[at].operands.iter().copied();
        operands.filter(|&o| self.flows[o])
    }

    /// What is computed from `entry`, by position, with it.
    fn reached(&self, graph: &Graph, entry: usize) -> Vec<bool> {
        let mut out = vec![false; graph.len()];
        out[entry] = true;
        for at in entry + 1..graph.len() {
            out[at] = self.flows[at] && self.sources(graph, at).any(|s| out[s]);
        }
        out
    }
}

/// The layers of each branch of the forward pass.
pub(crate) fn find(graph: &Graph, passes: &Passes) -> Vec<Blocks> {
    let is_loss = |at: usize| {
        let node = &graph.nodes[at];
        let mut users = node.users.iter();
        passes.flows[at]
            && node.element.is_float()
            && node.element_count() <= 1
            && !users.any(|&u| passes.flows[u])
    };
    let losses: Vec<usize> = (0..graph.len()).filter(|&at| is_loss(at)).collect();
    let begins = |at: &usize| passes.flows[*at] && passes.sources(graph, *at).next().is_none();
    let mut entries: Vec<(usize, usize, Vec<bool>)> = (0..graph.len())
        .filter(begins)
        .take(4 * MOST_ENTRIES)
        .map(|entry| {
            let reached = passes.reached(graph, entry);
            (reached.iter().filter(|r| **r).count(), entry, reached)
        })
        .collect();
    entries.sort_by_key(|e| (std::cmp::Reverse(e.0), e.1));
    let mut covered = vec![false; graph.len()];
    let mut out = Vec::new();
    for (_, entry, reached) in entries.into_iter().take(MOST_ENTRIES) {
        let Some(&loss) = losses.iter().rev().find(|&&l| reached[l]) else {
            continue;
        };
        let mut chain = chain(graph, passes, &reached, entry, loss);
        let merges = chain.iter().position(|&at| covered[at]);
        chain.truncate(merges.unwrap_or(chain.len()));
        if let Some(blocks) = repeated(graph, passes, &reached, &chain) {
            out.push(blocks);
            for (c, r) in covered.iter_mut().zip(&reached) {
                *c |= r;
            }
        }
    }
    out
}

/// Values that every path from `entry` to `loss` goes through, in order (its dominators).
fn chain(
    graph: &Graph,
    passes: &Passes,
    reached: &[bool],
    entry: usize,
    loss: usize,
) -> Vec<usize> {
    let mut above: FxHashMap<usize, (usize, usize)> = FxHashMap::default();
    above.insert(entry, (entry, 0));
    for at in (entry + 1..=loss).filter(|&at| reached[at]) {
        let mut common: Option<usize> = None;
        for source in passes.sources(graph, at).filter(|&s| reached[s]) {
            common = Some(match common {
                None => source,
                Some(other) => meet(&above, other, source),
            });
        }
        let Some(parent) = common else { continue };
        let depth = above.get(&parent).map_or(0, |p| p.1);
        above.insert(at, (parent, depth + 1));
    }
    let mut out = vec![loss];
    let mut at = loss;
    while let Some(&(parent, _)) = above.get(&at).filter(|_| at != entry) {
        out.push(parent);
        at = parent;
    }
    out.reverse();
    out
}

fn meet(above: &FxHashMap<usize, (usize, usize)>, a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while a != b {
        let depth = |at: usize| above.get(&at).map_or(0, |p| p.1);
        let up = |at: usize| above.get(&at).map_or(at, |p| p.0);
        match depth(a) < depth(b) {
            true => b = up(b),
            false if depth(a) == 0 => break,
            false => a = up(a),
        }
    }
    a
}

/// What a segment computes: its products, and the shape it ends with.
type Signature = (Vec<(Opcode, Vec<u64>)>, Vec<u64>);

/// The longest run of segments of the chain that repeats itself, with the shortest period.
fn repeated(graph: &Graph, passes: &Passes, reached: &[bool], chain: &[usize]) -> Option<Blocks> {
    let (cuts, signatures) = segments(graph, passes, reached, chain);
    let n = signatures.len();
    let mut best: Option<(usize, usize, usize)> = None; // covered, period, from
    for period in 1..=(n / 2).min(LONGEST_PERIOD) {
        let mut from = 0;
        while from + period < n {
            let same = (from..n - period).take_while(|&s| signatures[s] == signatures[s + period]);
            let run = same.count();
            let covered = (run / period + 1) * period;
            if run >= period && best.is_none_or(|b| covered > b.0) {
                best = Some((covered, period, from));
            }
            from += run + 1;
        }
    }
    let (covered, period, from) = best?;
    let mut out: Vec<usize> = (from..=from + covered)
        .step_by(period)
        .filter_map(|s| cuts.get(s).copied())
        .map(|c| chain[c])
        .collect();
    // What is before the first layer and looks like what is between layers comes as late as can be.
    let like = out.get(1).map(|&at| &graph.nodes[at])?;
    let start = cuts[from];
    let next = first_product(graph, passes, reached, chain, start)?;
    let later = (start..next).rev().find(|&c| {
        let node = &graph.nodes[chain[c]];
        node.dimensions == like.dimensions && node.element == like.element
    });
    if let (Some(later), Some(first)) = (later, out.first_mut()) {
        *first = chain[later];
    }
    Some(Blocks(out))
}

/// Positions in the chain between which there is a product, and what each of those segments is.
fn segments(
    graph: &Graph,
    passes: &Passes,
    reached: &[bool],
    chain: &[usize],
) -> (Vec<usize>, Vec<Signature>) {
    let members = members(graph, passes, reached, chain);
    let (mut cuts, mut signatures) = (vec![0], Vec::new());
    let mut products: Vec<(Opcode, Vec<u64>)> = Vec::new();
    for (at, members) in members.iter().enumerate() {
        let nodes = members.iter().map(|&m| &graph.nodes[m]);
        let nodes = nodes.filter(|n| n.opcode.is_product());
        products.extend(nodes.map(|n| (n.opcode, n.dimensions.clone())));
        if !products.is_empty() {
            products.sort();
            let end = graph.nodes[chain[at + 1]].dimensions.clone();
            signatures.push((std::mem::take(&mut products), end));
            cuts.push(at + 1);
        }
    }
    (cuts, signatures)
}

/// For each value of the chain but the last, what lies between it and the next, the next one too.
fn members(graph: &Graph, passes: &Passes, reached: &[bool], chain: &[usize]) -> Vec<Vec<usize>> {
    let place: FxHashMap<usize, usize> = chain.iter().enumerate().map(|(p, &c)| (c, p)).collect();
    let mut out = vec![Vec::new(); chain.len().saturating_sub(1)];
    let mut behind: FxHashMap<usize, usize> = FxHashMap::default();
    let first = chain.first().copied().unwrap_or(graph.len());
    for at in (first..graph.len()).filter(|&at| reached[at]) {
        let last = passes
            .sources(graph, at)
            .filter_map(|s| behind.get(&s))
            .max()
            .copied();
        let own = place.get(&at).copied();
        let member = own.and_then(|p| p.checked_sub(1)).or(last);
        if let Some(members) = member.and_then(|m| out.get_mut(m)) {
            members.push(at);
        }
        if let Some(is) = own.or(last) {
            behind.insert(at, is);
        }
    }
    out
}

/// The first position of the chain behind `start` with a product in front of it.
fn first_product(
    graph: &Graph,
    passes: &Passes,
    reached: &[bool],
    chain: &[usize],
    start: usize,
) -> Option<usize> {
    let members = members(graph, passes, reached, chain);
    let has = |m: &Vec<usize>| m.iter().any(|&at| graph.nodes[at].opcode.is_product());
    let found = members.iter().skip(start).position(has);
    found.map(|p| start + p + 1)
}

//! The memory of results: in which order results stand, when each is written, and which
//! temporaries live there before.
//!
//! In: a base and one of its blocks. Out: places in the program order.

use rustc_hash::FxHashMap;

use super::base::Base;
use crate::dataflow::dimensions::NodeId;
use crate::dataflow::{names_of, Through};
use crate::hlo::{AllocationKind, BufferId, Opcode};

/// When an output's memory is written.
#[derive(Debug, Clone)]
pub(crate) struct Writes {
    /// Place in the program order of the first write, by anything: the compiler lets temporaries
    /// use the memory as long as it is free.
    pub(crate) first: u32,
    /// Of the result itself, or its first part.
    pub(crate) result: u32,
    /// Buffers that are the result.
    pub(crate) results: Vec<BufferId>,
    /// Temporaries that were there before.
    pub(crate) housed: Vec<BufferId>,
    /// Size of the largest of these, as compiled.
    pub(crate) housed_bytes: u64,
}

impl Writes {
    /// Of an output's block; `None` where nothing of it is in the program order.
    pub(crate) fn of(base: &Base<'_, '_>, block: usize) -> Option<Writes> {
        let module = &base.program.module;
        let names = &base.blocks.get(block)?.names;
        let mut placed: Vec<(u32, BufferId)> = Vec::new();
        let mut in_parts = false;
        for &b in names {
            let Some(i) = base.assignment.buffer(b).instruction else {
                continue;
            };
            let opcode = module.instruction(i).opcode;
            // A loop writes its result part by part, from before its first round on.
            in_parts |= opcode == Opcode::While;
            // A bitcast or tuple writes nothing.
            if opcode.renames() || opcode == Opcode::Parameter {
                continue;
            }
            placed.extend(base.graph.order_of(i).map(|o| (o, b)));
        }
        placed.sort_unstable();
        let (first, last) = (placed.first()?.0, placed.last()?.0);
        let is_result = |o: u32| in_parts || o == last;
        let of = |wanted: bool| -> Vec<BufferId> {
            let chosen = placed.iter().filter(|p| is_result(p.0) == wanted);
            chosen.map(|p| p.1).collect()
        };
        let housed = of(false);
        let sizes = housed.iter().map(|&b| base.assignment.buffer(b).size_bytes);
        Some(Writes {
            first,
            result: if in_parts { first } else { last },
            results: of(true),
            housed_bytes: sizes.max().unwrap_or(0),
            housed,
        })
    }

    /// Program point of the first write.
    pub(crate) fn first_point(&self, base: &Base<'_, '_>) -> u32 {
        point(base, self.first)
    }

    /// Program point of the result's first write.
    pub(crate) fn result_point(&self, base: &Base<'_, '_>) -> u32 {
        point(base, self.result)
    }
}

fn point(base: &Base<'_, '_>, order: u32) -> u32 {
    let i = base.graph.program_order().get(order as usize);
    i.and_then(|&i| base.points.point_of(&base.graph, i))
        .unwrap_or(0)
}

/// Output blocks by their place in the program's result; those that cannot be placed come last.
pub(crate) fn outputs_in_order(base: &Base<'_, '_>) -> Vec<usize> {
    let places = places_in_result(base);
    let mut out: Vec<(usize, usize)> = base
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, b)| b.kind == AllocationKind::Output)
        .map(|(i, b)| {
            let nodes = b.names.iter().filter_map(|&n| base.content(n));
            let place = nodes.filter_map(|(n, _)| places.get(&n).copied()).min();
            (place.unwrap_or(usize::MAX), i)
        })
        .collect();
    out.sort_unstable();
    out.into_iter().map(|(_, i)| i).collect()
}

/// Names followed for one part of the result at most.
const MAX_NAMES: usize = 16;

/// Place of every node that the result's leaves come from unchanged.
fn places_in_result(base: &Base<'_, '_>) -> FxHashMap<NodeId, usize> {
    let module = &base.program.module;
    let mut out = FxHashMap::default();
    let Some(root) = module.entry_root() else {
        return out;
    };
    for place in 0..module.operands(root).len() as i64 {
        let names = names_of(
            base.program,
            &(root, vec![place]),
            Through::Names,
            MAX_NAMES,
        );
        for (i, path) in names {
            if let Some(n) = base.values.node_at(base.program, i, &path) {
                out.entry(n).or_insert(place as usize);
            }
        }
    }
    out
}

//! Which edits a plan may try, the least risky first.
//!
//! In: a base. Out: groups of alternatives; within a group each one saves more and costs more.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::base::Base;
use super::batch;
use super::edit::{Edit, Ways};
use super::readers::is_backward;
use crate::findings::{Finding, FindingKind, Safety};
use crate::hlo::{AllocationKind, ElementType, InstructionId};

/// Alternatives of which a plan takes at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) safety: Safety,
    pub(crate) alternatives: Vec<Edit>,
}

/// What an edit may change besides memory.
pub fn safety_of(edit: &Edit) -> Safety {
    match edit {
        Edit::Donate { .. } | Edit::NoDebug => Safety::Safe,
        Edit::Shard { .. }
        | Edit::Checkpoint { .. }
        | Edit::Microbatch { .. }
        | Edit::Offload { .. } => Safety::ChangesSpeed,
        Edit::Dtype { .. } => Safety::ChangesNumerics,
        Edit::Batch { .. } => Safety::ChangesTraining,
        Edit::PadFree | Edit::Drop { .. } => Safety::ChangesModel,
    }
}

/// Candidates for `base`, in the order in which a plan tries them.
pub(crate) fn candidates(base: &Base<'_, '_>, findings: &[Finding]) -> Vec<Candidate> {
    let mut out = Vec::new();
    let mut add = |alternatives: Vec<Edit>| {
        if let Some(first) = alternatives.first() {
            out.push(Candidate {
                safety: safety_of(first),
                alternatives,
            });
        }
    };
    add(vec![Edit::NoDebug]);
    add(vec![Edit::Donate {
        selector: "all".to_owned(),
    }]);
    for edit in shardings(base, findings) {
        add(vec![edit]);
    }
    add(vec![
        Edit::Checkpoint {
            scope: "all".to_owned(),
            dots: true,
        },
        Edit::Checkpoint {
            scope: "all".to_owned(),
            dots: false,
        },
    ]);
    let local = local_batch(base);
    let slices: Vec<u64> = (1..7)
        .map(|k| 1u64 << k)
        .filter(|&n| local >= n && local.is_multiple_of(n))
        .collect();
    // Gradients can be summed up over slices; other programs only have a smaller batch.
    if base
        .graph
        .program_order()
        .iter()
        .any(|&i| is_backward(base, i))
    {
        let counts = slices.iter().map(|&count| Edit::Microbatch { count });
        add(counts.collect());
    }
    for name in names_of_large(base, |i| {
        base.program.module.shape(i).element_type == ElementType::F32
    }) {
        add(vec![Edit::Dtype {
            selector: name,
            to: ElementType::BF16,
        }]);
    }
    if let Some((argument, dimension, global)) = batch_argument(base) {
        let smaller = slices.iter().map(|n| Edit::Batch {
            old: global,
            new: global / n,
            seed: Some((argument.clone(), Some(dimension))),
        });
        add(smaller.collect());
    }
    add(vec![Edit::PadFree]);
    for name in names_of_large(base, |i| batch::is_state(base, i)) {
        add(vec![Edit::Offload { selector: name }]);
    }
    out.sort_by_key(|c| c.safety);
    out
}

fn local_batch(base: &Base<'_, '_>) -> u64 {
    let seeds = batch::find(base, None, None);
    let sizes = seeds
        .seeds
        .iter()
        .filter_map(|&(n, d)| base.values.dimensions(n).get(usize::from(d)).copied());
    sizes.min().unwrap_or(0)
}

/// Name, dimension and global size of the first argument that carries the batch.
fn batch_argument(base: &Base<'_, '_>) -> Option<(String, u8, u64)> {
    let &(node, dimension) = batch::find(base, None, None).seeds.first()?;
    let i = base.values.instruction_of(node);
    let local = *base.values.dimensions(node).get(usize::from(dimension))?;
    let tiles = batch::tiles(base, i);
    let tile = tiles.get(usize::from(dimension)).copied().unwrap_or(1);
    let at = base.program.module.instruction(i);
    let name = if at.op_name.is_empty() {
        at.name
    } else {
        at.op_name
    };
    Some((name.to_owned(), dimension, local.saturating_mul(tile)))
}

/// Top-level names of arguments (`state` of `state[0]['mlp']`) of which those that `wanted` picks
/// make up a hundredth of the total; by name.
fn names_of_large(base: &Base<'_, '_>, wanted: impl Fn(InstructionId) -> bool) -> Vec<String> {
    let module = &base.program.module;
    let mut of_number: FxHashMap<u32, u64> = FxHashMap::default();
    for b in &base.blocks {
        if let (AllocationKind::Parameter | AllocationKind::Donated, Some(n)) =
            (b.kind, b.parameter)
        {
            let sum = of_number.entry(n).or_default();
            *sum = sum.saturating_add(b.size_bytes);
        }
    }
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for i in module.entry_parameters() {
        let at = module.instruction(i);
        let size = of_number.get(&at.parameter_number).copied().unwrap_or(0);
        if wanted(i) {
            let name = at.op_name.split(['[', '.']).next().unwrap_or_default();
            if !name.is_empty() {
                let sum = sizes.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(size);
            }
        }
    }
    let least = base.usage.allocated_bytes / 100;
    sizes
        .into_iter()
        .filter(|(_, s)| *s > least)
        .map(|(n, _)| n)
        .collect()
}

/// Arguments that every device holds whole, and tensors that findings name.
fn shardings(base: &Base<'_, '_>, findings: &[Finding]) -> Vec<Edit> {
    let module = &base.program.module;
    let ways = u64::from(module.num_partitions);
    if ways < 2 {
        return Vec::new();
    }
    let shard = |selector: String| Edit::Shard {
        selector,
        ways: Ways::Count(ways),
    };
    let mut out: Vec<Edit> = Vec::new();
    let all = names_of_large(base, |_| true);
    for name in names_of_large(base, |i| is_replicated(base, i)) {
        // A name whose arguments are partly split already is no good selector.
        let same = names_of_large(base, |i| !is_replicated(base, i));
        if all.contains(&name) && !same.contains(&name) {
            out.push(shard(name));
        }
    }
    for (kind, name) in [
        (FindingKind::Unsharded, "unsharded"),
        (FindingKind::RedundantCopies, "redundant_copies"),
    ] {
        let of_kind = findings.iter().filter(|f| f.kind == kind);
        for (n, _) in of_kind
            .enumerate()
            .take(6)
            .filter(|(_, f)| is_whole(f, ways))
        {
            out.push(shard(format!("{name}:{}", n + 1)));
        }
    }
    out
}

/// Whether a finding is of tensors of which every device holds all. Those that are split over some
/// axes are left as they are: the partitioner would gather what a further split cuts apart.
fn is_whole(f: &Finding, ways: u64) -> bool {
    let (saving, bytes, ways) = (
        u128::from(f.saving_bytes),
        u128::from(f.bytes),
        u128::from(ways),
    );
    // A rounded-down byte in each of at most a million buffers.
    (saving + (1 << 20)) * ways >= bytes * (ways - 1) && bytes > 0
}

/// Whether an argument's sharding says that every device has all of it.
fn is_replicated(base: &Base<'_, '_>, i: InstructionId) -> bool {
    let partitions = u64::from(base.program.module.num_partitions);
    batch::sharding_of(base, i).is_some_and(|s| s.is_fully_replicated(partitions))
}

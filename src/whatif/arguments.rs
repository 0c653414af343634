//! Arguments by their names, as plans speak of them.
//!
//! In: a base. Out: names of large arguments.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::base::Base;
use crate::hlo::{AllocationKind, InstructionId};
use crate::peak::top_level;

/// Top-level names of arguments (`state` of `state[0]['mlp']`) of which those that `wanted` picks
/// make up a hundredth of the total; by name.
pub(crate) fn names_of_large(
    base: &Base<'_, '_>,
    wanted: impl Fn(InstructionId) -> bool,
) -> Vec<String> {
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
    for &i in module.entry_parameters() {
        let at = module.instruction(i);
        let size = of_number.get(&at.parameter_number).copied().unwrap_or(0);
        if wanted(i) {
            let name = top_level(at.op_name);
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

//! In: listed allocations. Out: groups of those that repeat, largest first.
//!
//! Two allocations are alike when their shape is the same and their operation too, numbers of
//! layers and suffixes of copies aside: the layers of a model, a value that is rematerialised.

use std::collections::BTreeMap;

use super::report::{Allocation, AllocationGroup};
use crate::hlo::op_name::base_name;
use crate::text::stars;

/// Groups of alike allocations; ties in the order of the text.
pub(crate) fn fold(allocations: &[Allocation]) -> Vec<AllocationGroup> {
    let mut index: BTreeMap<(Option<&str>, String), usize> = BTreeMap::new();
    let mut groups: Vec<AllocationGroup> = Vec::new();
    for a in allocations {
        let label = label(a);
        let key = (a.shape.as_deref(), label.clone());
        let n = *index.entry(key).or_insert(groups.len());
        match groups.get_mut(n) {
            Some(g) => {
                g.count += 1;
                g.bytes = g.bytes.saturating_add(a.size_bytes);
                g.padding_bytes = g
                    .padding_bytes
                    .zip(a.padding_bytes)
                    .and_then(|(x, y)| x.checked_add(y));
            }
            None => groups.push(AllocationGroup {
                label,
                shape: a.shape.clone(),
                count: 1,
                bytes: a.size_bytes,
                padding_bytes: a.padding_bytes,
                source: a.source.clone(),
            }),
        }
    }
    groups.sort_by_key(|g| std::cmp::Reverse(g.bytes));
    groups
}

/// The operation without what differs between repeats.
fn label(a: &Allocation) -> String {
    if let Some(name) = &a.op_name {
        return stars(name);
    }
    match (a.instruction().or(a.label.as_deref()), &a.allocation_type) {
        (Some(name), _) => stars(base_name(name)),
        (None, Some(kind)) if kind == "parameter" => "entry parameter".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_and_not() {
        let make = |op: &str, shape: &str, size| Allocation {
            size_bytes: size,
            op_name: Some(op.to_string()),
            shape: Some(shape.to_string()),
            ..Allocation::default()
        };
        let groups = fold(&[
            make("a/0/x", "f32[4]", 10),
            make("b/x", "f32[4]", 15),
            make("a/1/x", "f32[4]", 10),
            make("a/2/x", "f32[8]", 20),
        ]);
        let seen: Vec<(u64, u64)> = groups.iter().map(|g| (g.count, g.bytes)).collect();
        assert_eq!(seen, [(2, 20), (1, 20), (1, 15)]);
    }
}

//! In: listed allocations. Out: groups of those that repeat, largest first.
//!
//! Two allocations are alike when their shape is the same and their operation too, numbers,
//! `.remat` and `.clone` aside: the layers of a model, the copies of a rematerialised value.

use std::collections::BTreeMap;

use super::report::{Allocation, AllocationGroup};

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
    let name = a
        .op_name
        .as_deref()
        .or_else(|| a.instruction())
        .or(a.label.as_deref());
    let name = match (name, a.allocation_type.as_deref()) {
        (None, Some("parameter")) => "entry parameter",
        (name, _) => name.unwrap_or_default(),
    };
    let base = if a.op_name.is_some() {
        name
    } else {
        strip_suffixes(name)
    };
    without_numbers(base)
}

/// `fusion.12.remat3.clone` without its chain of suffixes.
fn strip_suffixes(name: &str) -> &str {
    let end = [".remat", ".clone"]
        .iter()
        .filter_map(|s| name.find(s))
        .min();
    end.and_then(|n| name.get(..n)).unwrap_or(name)
}

/// Numbers that stand alone between separators become `N`; those in brackets stay, they are
/// dimensions and parameters.
fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut depth = 0usize;
    let mut chars = name.chars().peekable();
    let mut before = '/';
    while let Some(c) = chars.next() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && c.is_ascii_digit() && !before.is_ascii_alphanumeric() {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            out.push('N');
            before = '0';
            continue;
        }
        out.push(c);
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_suffixes() {
        assert_eq!(
            without_numbers("jit(f)/layers/12/dot[dims=(3,)]"),
            "jit(f)/layers/N/dot[dims=(3,)]"
        );
        assert_eq!(without_numbers("layers_3/mlp"), "layers_N/mlp");
        assert_eq!(without_numbers("conv2d/w1"), "conv2d/w1");
        assert_eq!(strip_suffixes("fusion.12.remat3.clone.1"), "fusion.12");
    }

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

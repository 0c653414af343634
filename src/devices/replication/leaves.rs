//! The array leaves of serialized shapes, without decoding the shapes: how many, and which of
//! them lie under a tuple element.

use crate::hlo::decode::schema::shape;
use crate::hlo::decode::wire::{fields, Value};

/// Tuples nested deeper than this count as one leaf: such shapes are refused elsewhere too.
const MAX_DEPTH: u32 = 64;

fn children(shape: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let element_type = fields(shape)
        .filter_map(Result::ok)
        .find_map(|(n, v)| (n == shape::ELEMENT_TYPE).then_some(v));
    let is_tuple = element_type == Some(Value::Varint(13));
    is_tuple.then(|| {
        fields(shape)
            .filter_map(Result::ok)
            .filter_map(|(n, v)| (n == shape::TUPLE_SHAPES).then(|| v.bytes())?)
    })
}

fn count_at(shape: &[u8], depth: u32) -> u32 {
    match children(shape) {
        Some(inner) if depth < MAX_DEPTH => {
            inner.fold(0, |n: u32, c| n.saturating_add(count_at(c, depth + 1)))
        }
        _ => 1,
    }
}

/// First leaf of each element of a tuple, and the number of leaves last; `None` of an array.
pub(crate) fn element_offsets(shape: &[u8]) -> Option<Vec<u32>> {
    let mut out = vec![0u32];
    let mut at = 0u32;
    for c in children(shape)? {
        at = at.saturating_add(count_at(c, 1));
        out.push(at);
    }
    Some(out)
}

/// Leaves under the part of a shape at `index`, as a half-open range; `None` if there is no such
/// part.
pub(crate) fn leaf_range(shape: &[u8], index: &[i64]) -> Option<(u32, u32)> {
    let mut from = 0u32;
    let mut at = shape;
    for (depth, &i) in index.iter().enumerate().take(MAX_DEPTH as usize) {
        let mut found = None;
        for (k, c) in children(at)?.enumerate() {
            if i == k as i64 {
                found = Some(c);
                break;
            }
            from = from.saturating_add(count_at(c, depth as u32 + 1));
        }
        at = found?;
    }
    Some((from, from.saturating_add(count_at(at, index.len() as u32))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use xpeak_protos::hlo::ShapeProto;

    #[test]
    fn leaves_are_numbered_in_order() {
        let leaf = ShapeProto {
            element_type: 11,
            ..Default::default()
        };
        let tuple = |t: Vec<ShapeProto>| ShapeProto {
            element_type: 13,
            tuple_shapes: t,
            ..Default::default()
        };
        let s = tuple(vec![
            tuple(vec![leaf.clone(), leaf.clone()]),
            tuple(vec![]),
            leaf.clone(),
        ])
        .encode_to_vec();
        assert_eq!(element_offsets(&s), Some(vec![0, 2, 2, 3]));
        assert_eq!(element_offsets(&leaf.encode_to_vec()), None);
        assert_eq!(leaf_range(&s, &[]), Some((0, 3)));
        assert_eq!(leaf_range(&s, &[0, 1]), Some((1, 2)));
        assert_eq!(leaf_range(&s, &[1]), Some((2, 2)));
        assert_eq!(leaf_range(&s, &[2]), Some((2, 3)));
        assert_eq!(leaf_range(&s, &[3]), None);
        assert_eq!(leaf_range(&s, &[2, 0]), None);
        assert_eq!(leaf_range(&s, &[-1]), None);
    }
}

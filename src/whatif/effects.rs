//! What edits do to the shape of single arrays: dimensions of the batch scale, classes are split, change
//! their type, lose their padding.
//!
//! In: effects collected from edits. Out: the new size of any buffer. Effects multiply, so their
//! order does not matter.

use rustc_hash::FxHashMap;

use super::base::Base;
use crate::dataflow::dimensions::batch_dimensions::BatchDimensions;
use crate::dataflow::dimensions::NodeId;
use crate::dataflow::producer_of_buffer;
use crate::hlo::{BufferId, ElementType, Shape};
use crate::peak::better_shape;
use crate::peak::padding::Convolutions;

/// Everything that changes shapes.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) batches: Vec<BatchScale>,
    /// How many ways each node is split.
    pub(crate) split: FxHashMap<NodeId, u64>,
    /// Nodes of `split` that follow from an argument, with that argument's node.
    pub(crate) gathered: FxHashMap<NodeId, NodeId>,
    /// New types of classes of nodes that take their type from each other.
    pub(crate) types: FxHashMap<u32, ElementType>,
    /// New types of nodes that change theirs alone.
    pub(crate) types_alone: FxHashMap<NodeId, ElementType>,
    /// Padding goes where a better shape exists, but for arrays of convolutions.
    pub(crate) pad_free: Option<Convolutions>,
}

/// Dimensions of the batch times `new` / `old`.
#[derive(Debug)]
pub(crate) struct BatchScale {
    pub(crate) batch_dimensions: BatchDimensions,
    pub(crate) old: u64,
    pub(crate) new: u64,
    /// Only temporaries scale, not arguments and results.
    pub(crate) temporaries_only: bool,
}

impl Effects {
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
            && self.split.is_empty()
            && self.types.is_empty()
            && self.types_alone.is_empty()
            && self.pad_free.is_none()
    }

    /// The shape of a node after all effects; `split` false leaves splitting out.
    pub(crate) fn shape(
        &self,
        base: &Base<'_, '_>,
        node: NodeId,
        shape: &Shape,
        temporary: bool,
        split: bool,
    ) -> Shape {
        let mut new = shape.clone();
        let of_class = || self.types.get(&base.values.type_class(node));
        if let Some(&to) = self.types_alone.get(&node).or_else(of_class) {
            if new.element_type.is_float() {
                new.element_type = to;
                if let Some(l) = &mut new.layout {
                    l.element_size_in_bits = 0;
                }
            }
        }
        for b in &self.batches {
            if temporary || !b.temporaries_only {
                b.batch_dimensions
                    .scale(node, &mut new.dimensions, b.old, b.new);
            }
        }
        if let (true, Some(&ways)) = (split, self.split.get(&node)) {
            divide(&mut new.dimensions, ways);
        }
        new
    }

    /// Bytes of a buffer after all effects.
    pub(crate) fn size_of(&self, base: &Base<'_, '_>, buffer: BufferId, temporary: bool) -> u64 {
        let old = base.assignment.buffer(buffer).size_bytes;
        let Some((node, shape)) = base.content(buffer) else {
            return old;
        };
        let new = self.shape(base, node, shape, temporary, true);
        let saved = self.padding_saved(base, buffer, &new);
        if new == *shape && saved == 0 {
            return old;
        }
        resized(old, shape.padded_bytes(), new.padded_bytes() - saved)
    }

    /// What a better shape saves of a buffer's padding: the verdict of the analysis.
    fn padding_saved(&self, base: &Base<'_, '_>, buffer: BufferId, shape: &Shape) -> u64 {
        let Some(convolutions) = &self.pad_free else {
            return 0;
        };
        let Some(better) = better_shape(shape) else {
            return 0;
        };
        let made_by = producer_of_buffer(base.program, buffer).map(|m| m.instruction);
        let of = [base.assignment.buffer(buffer).instruction, made_by];
        if convolutions.touch(of) {
            return 0;
        }
        better.saving_bytes
    }

    /// Bytes of something with several names: no name may lack room.
    pub(crate) fn size_of_all(
        &self,
        base: &Base<'_, '_>,
        names: &[BufferId],
        old: u64,
        temporary: bool,
    ) -> u64 {
        let sizes = names
            .iter()
            .filter(|&&b| base.content(b).is_some())
            .map(|&b| self.size_of(base, b, temporary));
        match sizes.max() {
            Some(new) => {
                let largest = names
                    .iter()
                    .map(|&b| base.assignment.buffer(b).size_bytes)
                    .max();
                resized(old, largest.unwrap_or(old), new)
            }
            None => old,
        }
    }
}

/// `actual` bytes once what was `old` by its shape is `new`.
fn resized(actual: u64, old: u64, new: u64) -> u64 {
    if actual == old || old == 0 {
        return if old == 0 { actual } else { new };
    }
    let scaled = u128::from(actual) * u128::from(new) / u128::from(old);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Splits dimensions `ways` times in all: the slowest dimension that divides evenly takes as much
/// as it can, then the next; what is left over rounds up the largest.
pub(crate) fn divide(dimensions: &mut [u64], ways: u64) {
    let mut left = ways.max(1);
    for d in dimensions.iter_mut() {
        let g = gcd(*d, left);
        if g > 1 {
            *d /= g;
            left /= g;
        }
    }
    if left > 1 {
        if let Some(d) = dimensions.iter_mut().max() {
            *d = d.div_ceil(left);
        }
    }
}

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_prefers_even_parts() {
        let split = |d: &[u64], n| {
            let mut d = d.to_vec();
            divide(&mut d, n);
            d
        };
        assert_eq!(split(&[32000, 2048], 4), [8000, 2048]);
        assert_eq!(split(&[2, 8, 16], 4), [1, 4, 16]);
        assert_eq!(split(&[7, 9], 4), [7, 3]);
        assert_eq!(split(&[], 4), [0u64; 0]);
        assert_eq!(split(&[3], 1), [3]);
    }

    #[test]
    fn sizes_keep_what_the_shape_does_not_tell() {
        assert_eq!(resized(1000, 1000, 250), 250);
        assert_eq!(resized(1024, 512, 256), 512);
        assert_eq!(resized(77, 0, 5), 77);
        assert_eq!(resized(u64::MAX, 1, u64::MAX), u64::MAX);
    }
}

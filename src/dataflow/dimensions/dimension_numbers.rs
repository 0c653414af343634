//! Dimension numbers of products, gathers and scatters, read from an instruction's bytes.

use super::values::{NodeId, Values};
use crate::hlo::decode::wire::{fields, numbers, Value};

/// Corresponding dimensions of two of an instruction's arrays: `(array, array, pairs)`. Operands
/// are counted from 0; a number past the last one is the result.
pub(crate) type Related = (usize, usize, Vec<(u8, u8)>);

/// Two nodes and their corresponding dimensions.
pub(crate) type RelatedNodes = (NodeId, NodeId, Box<[(u8, u8)]>);

const RESULT: usize = usize::MAX;

/// Which dimension of a convolution is which.
#[derive(Debug, Default)]
pub(crate) struct ConvolutionNumbers {
    pub(crate) input_batch: usize,
    pub(crate) input_feature: usize,
    pub(crate) kernel_input: usize,
    pub(crate) kernel_output: usize,
    pub(crate) output_batch: usize,
    pub(crate) output_feature: usize,
    pub(crate) input_spatial: Vec<usize>,
    pub(crate) kernel_spatial: Vec<usize>,
    pub(crate) output_spatial: Vec<usize>,
}

/// Every number of the message in field `field` of `raw`, as `(field, number)`.
fn message(raw: &[u8], field: u32) -> Vec<(u32, usize)> {
    let mut out = Vec::new();
    for (n, value) in fields(raw).filter_map(Result::ok) {
        let (true, Some(bytes)) = (n == field, value.bytes()) else {
            continue;
        };
        for (inner, value) in fields(bytes).filter_map(Result::ok) {
            if matches!(value, Value::Varint(_) | Value::Bytes(_)) {
                drop(numbers(value, |v| {
                    out.push((inner, usize::try_from(v).unwrap_or(RESULT)));
                }));
            }
        }
    }
    out
}

fn list(all: &[(u32, usize)], field: u32) -> Vec<usize> {
    all.iter()
        .filter(|(f, _)| *f == field)
        .map(|(_, v)| *v)
        .collect()
}

fn one(all: &[(u32, usize)], field: u32) -> usize {
    // A zero is not written.
    list(all, field).first().copied().unwrap_or(0)
}

fn pairs(a: impl IntoIterator<Item = usize>, b: impl IntoIterator<Item = usize>) -> Vec<(u8, u8)> {
    a.into_iter()
        .zip(b)
        .filter_map(|(x, y)| Some((u8::try_from(x).ok()?, u8::try_from(y).ok()?)))
        .collect()
}

/// Dimension numbers of a convolution.
pub(crate) fn convolution(raw: &[u8]) -> ConvolutionNumbers {
    let m = message(raw, 16);
    ConvolutionNumbers {
        kernel_input: one(&m, 3),
        kernel_output: one(&m, 4),
        kernel_spatial: list(&m, 6),
        input_batch: one(&m, 7),
        input_feature: one(&m, 8),
        output_batch: one(&m, 9),
        output_feature: one(&m, 10),
        input_spatial: list(&m, 11),
        output_spatial: list(&m, 12),
    }
}

/// Of a dot: contracted and batch dimensions of both operands, and where the rest went.
pub(crate) fn dot(raw: &[u8], v: &Values, inputs: &[NodeId]) -> Vec<Related> {
    let m = message(raw, 30);
    let (lc, rc, lb, rb) = (list(&m, 1), list(&m, 2), list(&m, 3), list(&m, 4));
    let rank = |k: usize| inputs.get(k).map_or(0, |&n| v.dimensions(n).len());
    let free = |rank: usize, c: &[usize], b: &[usize]| {
        (0..rank)
            .filter(|d| !c.contains(d) && !b.contains(d))
            .collect::<Vec<_>>()
    };
    let lf = free(rank(0), &lc, &lb);
    let rf = free(rank(1), &rc, &rb);
    let batch = lb.len();
    let mut lhs_out = pairs(lb.clone(), 0..batch);
    lhs_out.extend(pairs(lf.clone(), batch..));
    let mut rhs_out = pairs(rb.clone(), 0..batch);
    rhs_out.extend(pairs(rf, batch + lf.len()..));
    let mut lhs_rhs = pairs(lc, rc);
    lhs_rhs.extend(pairs(lb, rb));
    vec![(0, RESULT, lhs_out), (1, RESULT, rhs_out), (0, 1, lhs_rhs)]
}

/// Of a gather: what of the result comes from the operand, and what from the indices.
pub(crate) fn gather(raw: &[u8], v: &Values, inputs: &[NodeId], out: NodeId) -> Vec<Related> {
    let m = message(raw, 33);
    let (offset, collapsed, vector) = (list(&m, 1), list(&m, 2), one(&m, 4));
    let (operand_batch, index_batch) = (list(&m, 5), list(&m, 6));
    let rank = |k: usize| inputs.get(k).map_or(0, |&n| v.dimensions(n).len());
    let windows = (0..rank(0)).filter(|d| !collapsed.contains(d) && !operand_batch.contains(d));
    let size = |n: Option<&NodeId>, d: usize| n.and_then(|&n| v.dimensions(n).get(d).copied());
    // A window dimension that is cut down to a part does not carry over whole.
    let windows: Vec<(usize, usize)> = windows
        .zip(offset.iter().copied())
        .filter(|&(from, to)| size(inputs.first(), from) == v.dimensions(out).get(to).copied())
        .collect();
    let batch_out = (0..v.dimensions(out).len()).filter(|d| !offset.contains(d));
    let batch_in = (0..rank(1)).filter(|&d| d != vector);
    vec![
        (
            0,
            RESULT,
            pairs(windows.iter().map(|w| w.0), windows.iter().map(|w| w.1)),
        ),
        (1, RESULT, pairs(batch_in, batch_out)),
        (0, 1, pairs(operand_batch, index_batch)),
    ]
}

/// Of a scatter with one target: target against updates, and indices against updates.
pub(crate) fn scatter(raw: &[u8], v: &Values, inputs: &[NodeId]) -> Vec<RelatedNodes> {
    let [target, indices, updates] = inputs else {
        return Vec::new();
    };
    let m = message(raw, 48);
    let (window, inserted, vector) = (list(&m, 1), list(&m, 2), one(&m, 4));
    let target_batch = list(&m, 5);
    let kept = (0..v.dimensions(*target).len())
        .filter(|d| !inserted.contains(d) && !target_batch.contains(d))
        .zip(window.iter().copied())
        .filter(|&(t, u)| v.dimensions(*target).get(t) == v.dimensions(*updates).get(u));
    let kept: Vec<(usize, usize)> = kept.collect();
    let batch_updates = (0..v.dimensions(*updates).len()).filter(|d| !window.contains(d));
    let batch_indices = (0..v.dimensions(*indices).len()).filter(|&d| d != vector);
    vec![
        (
            *target,
            *updates,
            pairs(kept.iter().map(|k| k.0), kept.iter().map(|k| k.1)).into(),
        ),
        (
            *indices,
            *updates,
            pairs(batch_indices, batch_updates).into(),
        ),
    ]
}

//! Dimension numbers of products, gathers and scatters, read from an instruction's bytes.

use super::values::{NodeId, Values};
use crate::hlo::decode::schema::{
    convolution_dimension_numbers, dot_dimension_numbers, gather_dimension_numbers,
    hlo_instruction, scatter_dimension_numbers,
};
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
    use convolution_dimension_numbers as field;
    let m = message(raw, hlo_instruction::CONVOLUTION_DIMENSION_NUMBERS);
    ConvolutionNumbers {
        kernel_input: one(&m, field::KERNEL_INPUT_FEATURE_DIMENSION),
        kernel_output: one(&m, field::KERNEL_OUTPUT_FEATURE_DIMENSION),
        kernel_spatial: list(&m, field::KERNEL_SPATIAL_DIMENSIONS),
        input_batch: one(&m, field::INPUT_BATCH_DIMENSION),
        input_feature: one(&m, field::INPUT_FEATURE_DIMENSION),
        output_batch: one(&m, field::OUTPUT_BATCH_DIMENSION),
        output_feature: one(&m, field::OUTPUT_FEATURE_DIMENSION),
        input_spatial: list(&m, field::INPUT_SPATIAL_DIMENSIONS),
        output_spatial: list(&m, field::OUTPUT_SPATIAL_DIMENSIONS),
    }
}

/// Of a dot: contracted and batch dimensions of both operands, and where the rest went.
pub(crate) fn dot(raw: &[u8], v: &Values, inputs: &[NodeId]) -> Vec<Related> {
    use dot_dimension_numbers as field;
    let m = message(raw, hlo_instruction::DOT_DIMENSION_NUMBERS);
    let lc = list(&m, field::LHS_CONTRACTING_DIMENSIONS);
    let rc = list(&m, field::RHS_CONTRACTING_DIMENSIONS);
    let lb = list(&m, field::LHS_BATCH_DIMENSIONS);
    let rb = list(&m, field::RHS_BATCH_DIMENSIONS);
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
    use gather_dimension_numbers as field;
    let m = message(raw, hlo_instruction::GATHER_DIMENSION_NUMBERS);
    let offset = list(&m, field::OFFSET_DIMS);
    let collapsed = list(&m, field::COLLAPSED_SLICE_DIMS);
    let vector = one(&m, field::INDEX_VECTOR_DIM);
    let operand_batch = list(&m, field::OPERAND_BATCHING_DIMS);
    let index_batch = list(&m, field::START_INDICES_BATCHING_DIMS);
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
    use scatter_dimension_numbers as field;
    let m = message(raw, hlo_instruction::SCATTER_DIMENSION_NUMBERS);
    let window = list(&m, field::UPDATE_WINDOW_DIMS);
    let inserted = list(&m, field::INSERTED_WINDOW_DIMS);
    let vector = one(&m, field::INDEX_VECTOR_DIM);
    let target_batch = list(&m, field::INPUT_BATCHING_DIMS);
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

//! Instructions and shapes made from nothing.
//!
//! In: shapes as bytes, ids of operands. Out: records for [`Computation::push`].

use crate::compiler::rewrite::module::Computation;
use crate::compiler::rewrite::record::Record;
use crate::compiler::wire_out::Message;
use crate::hlo::decode::schema::{hlo_instruction, layout, shape};
use crate::hlo::ElementType;

/// Fields that only what is made here needs.
mod field {
    pub(super) const DYNAMIC_SLICE_SIZES: u32 = 20;
    pub(super) const LITERAL_SHAPE: u32 = 1;
}

/// An instruction without id and name.
pub(crate) fn instruction(
    opcode: &str,
    shape: Vec<u8>,
    operands: impl IntoIterator<Item = u64>,
) -> Record {
    let mut out = Record::default();
    out.set_bytes(hlo_instruction::OPCODE, opcode.as_bytes().to_vec());
    out.set_bytes(hlo_instruction::SHAPE, shape);
    out.set_numbers(hlo_instruction::OPERAND_IDS, operands);
    out
}

/// Part `index` of tuple `of`.
pub(crate) fn part(of: u64, index: usize, shape: Vec<u8>) -> Record {
    let mut out = instruction("get-tuple-element", shape, [of]);
    out.set_number(hlo_instruction::TUPLE_INDEX, index as u64);
    out
}

/// A slice along the first dimension, one thick, of an array of `shape` with that dimension 1.
pub(crate) fn slice(of: u64, index: u64, zero: u64, dimensions: &[u64], shape: Vec<u8>) -> Record {
    let rest = dimensions.len().saturating_sub(1);
    let starts = [of, index].into_iter().chain(vec![zero; rest]);
    let mut out = instruction("dynamic-slice", shape, starts);
    out.set_numbers(field::DYNAMIC_SLICE_SIZES, dimensions.iter().copied());
    out
}

/// A scalar zero; `None` of a type that xpeak does not write.
pub(crate) fn zero(element: ElementType) -> Option<Record> {
    // The field of its values in a LiteralProto, and how many bytes one has; 0 for a number.
    let (values, width) = match &*element.name() {
        "f32" => (8, 4),
        "f64" => (9, 8),
        "f16" => (11, 2),
        "bf16" => (13, 2),
        "s32" => (4, 0),
        "s64" => (5, 0),
        "u32" => (6, 0),
        "u64" => (7, 0),
        _ => return None,
    };
    let mut literal = Message::default();
    literal.bytes(field::LITERAL_SHAPE, &array(element, &[]));
    literal.bytes(values, &vec![0; if width == 0 { 1 } else { width }]);
    let mut out = instruction("constant", array(element, &[]), []);
    out.set_bytes(hlo_instruction::LITERAL, literal.0);
    Some(out)
}

/// An array's shape, in the order of its dimensions.
pub(crate) fn array(element: ElementType, dimensions: &[u64]) -> Vec<u8> {
    let mut out = Message::default();
    out.number(shape::ELEMENT_TYPE, element.0.into());
    out.packed(shape::DIMENSIONS, dimensions.iter().copied());
    out.packed(shape::IS_DYNAMIC_DIMENSION, dimensions.iter().map(|_| 0));
    out.message(shape::LAYOUT, |l| {
        l.packed(layout::MINOR_TO_MAJOR, (0..dimensions.len() as u64).rev());
        l.number(layout::TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, 1);
    });
    out.0
}

/// The shape of a tuple of these.
pub(crate) fn tuple(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Message::default();
    out.number(shape::ELEMENT_TYPE, ElementType::TUPLE.0.into());
    for part in parts {
        out.bytes(shape::TUPLE_SHAPES, part);
    }
    out.0
}

/// Lets values through a barrier together; ids of what comes out, in order.
pub(crate) fn barrier(
    computation: &mut Computation,
    values: &[u64],
    shapes: &[Vec<u8>],
) -> Vec<u64> {
    let shape = tuple(shapes);
    let all = instruction("tuple", shape.clone(), values.iter().copied());
    let all = computation.push(all);
    let through = computation.push(instruction("opt-barrier", shape, [all]));
    let parts = shapes.iter().enumerate();
    parts
        .map(|(at, s)| computation.push(part(through, at, s.clone())))
        .collect()
}

/// The shape of an instruction, as bytes.
pub(crate) fn shape_of(i: &Record) -> Vec<u8> {
    i.bytes(hlo_instruction::SHAPE).to_vec()
}

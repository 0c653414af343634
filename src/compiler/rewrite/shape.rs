//! Shapes as records.

use super::record::Record;
use crate::hlo::decode::schema::{hlo_instruction, layout, shape};

/// A shape changed.
pub(crate) fn changed(bytes: &[u8], change: &dyn Fn(&mut Record)) -> Option<Vec<u8>> {
    let mut record = Record::read(bytes).ok()?;
    change(&mut record);
    Some(record.bytes_out())
}

/// Another element type. The layout's tiles were chosen for the old one.
pub(crate) fn set_element(record: &mut Record, element: u64) {
    record.set_number(shape::ELEMENT_TYPE, element);
    untile(record);
}

/// Another memory space.
pub(crate) fn set_space(record: &mut Record, space: u64) {
    let layout_bytes = record.bytes(shape::LAYOUT);
    let mut l = Record::read(layout_bytes).unwrap_or_default();
    l.set_number(layout::MEMORY_SPACE, space);
    record.set_bytes(shape::LAYOUT, l.bytes_out());
}

/// Leaves tiles and element sizes to the compiler.
pub(crate) fn untile(record: &mut Record) {
    let mut l = Record::read(record.bytes(shape::LAYOUT)).unwrap_or_default();
    l.remove(layout::TILES);
    l.remove(layout::ELEMENT_SIZE_IN_BITS);
    record.set_bytes(shape::LAYOUT, l.bytes_out());
}

/// Parts of a tuple's shape changed: each by its place, `None` to take it out.
pub(crate) fn map_parts(record: &mut Record, change: impl Fn(usize, &[u8]) -> Option<Vec<u8>>) {
    let parts: Vec<Vec<u8>> = record
        .all(shape::TUPLE_SHAPES)
        .enumerate()
        .filter_map(|(i, p)| change(i, p))
        .collect();
    record.set_all(shape::TUPLE_SHAPES, parts);
}

/// An instruction's shape, decoded.
pub(crate) fn of(i: &Record) -> crate::hlo::Shape {
    crate::hlo::decode_shape(i.bytes(hlo_instruction::SHAPE)).unwrap_or_default()
}

//! ShapeProto bytes → [`Shape`].

use super::schema::{layout, shape, tile};
use super::wire::{fields, numbers, Value, WireError, WireResult};
use crate::hlo::{ElementType, Layout, Shape};

/// Tuples nested deeper than this are refused: real ones stay under ten.
const MAX_TUPLE_DEPTH: u32 = 64;

/// Reads a serialized shape.
///
/// # Errors
/// Malformed bytes, or tuples nested beyond reason.
pub fn decode_shape(bytes: &[u8]) -> WireResult<Shape> {
    decode_at_depth(bytes, 0)
}

/// Reads the part of a serialized shape at `index` alone: the other elements of wide tuples are
/// stepped over. `None` if there is no such part.
///
/// # Errors
/// Malformed bytes on the way to it.
pub fn decode_shape_leaf(bytes: &[u8], index: &[i64]) -> WireResult<Option<Shape>> {
    let mut at = bytes;
    for &element in index {
        let Ok(element) = usize::try_from(element) else {
            return Ok(None);
        };
        let mut seen = 0;
        let mut found = None;
        for field in fields(at) {
            if let (shape::TUPLE_SHAPES, Value::Bytes(b)) = field? {
                if seen == element {
                    found = Some(b);
                    break;
                }
                seen += 1;
            }
        }
        match found {
            Some(b) => at = b,
            None => return Ok(None),
        }
    }
    decode_shape(at).map(Some)
}

fn decode_at_depth(bytes: &[u8], depth: u32) -> WireResult<Shape> {
    if depth > MAX_TUPLE_DEPTH {
        return Err(WireError::new("tuples nested too deep", bytes));
    }
    let mut shape = Shape::default();
    for field in fields(bytes) {
        match field? {
            (shape::ELEMENT_TYPE, Value::Varint(v)) => {
                shape.element_type = ElementType(u32::try_from(v).unwrap_or(0));
            }
            (shape::DIMENSIONS, v) => numbers(v, |n| shape.dimensions.push(non_negative(n)))
                .map_err(|e| e.within("dimensions", None))?,
            (shape::TUPLE_SHAPES, Value::Bytes(b)) => {
                let i = shape.tuple.len();
                let inner =
                    decode_at_depth(b, depth + 1).map_err(|e| e.within("tuple_shapes", Some(i)))?;
                shape.tuple.push(inner);
            }
            (shape::LAYOUT, Value::Bytes(b)) => {
                shape.layout = Some(decode_layout(b).map_err(|e| e.within("layout", None))?);
            }
            _ => {}
        }
    }
    Ok(shape)
}

fn decode_layout(bytes: &[u8]) -> WireResult<Layout> {
    let mut layout = Layout::default();
    for field in fields(bytes) {
        match field? {
            (layout::MINOR_TO_MAJOR, v) => {
                numbers(v, |n| {
                    layout
                        .minor_to_major
                        .push(u32::try_from(n).unwrap_or(u32::MAX))
                })?;
            }
            (layout::TILES, Value::Bytes(tile)) => {
                let mut dims = Vec::new();
                for field in fields(tile) {
                    if let (tile::DIMENSIONS, v) = field? {
                        numbers(v, |n| dims.push(non_negative(n)))?;
                    }
                }
                layout.tiles.push(dims);
            }
            (layout::ELEMENT_SIZE_IN_BITS, Value::Varint(v)) => {
                layout.element_size_in_bits = u32::try_from(v).unwrap_or(0).min(1024);
            }
            (layout::MEMORY_SPACE, Value::Varint(v)) => layout.memory_space = v as i64,
            (layout::TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, Value::Varint(v)) => {
                layout.tail_padding_alignment_in_elements = non_negative(v)
            }
            _ => {}
        }
    }
    Ok(layout)
}

/// A size as stored: negative numbers (unbounded, or damage) count as nothing.
fn non_negative(n: u64) -> u64 {
    if (n as i64) < 0 {
        0
    } else {
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use xpeak_protos::hlo;

    #[test]
    fn a_shape_survives_the_wire() {
        let leaf = hlo::ShapeProto {
            element_type: 11,
            dimensions: vec![129, 1024],
            layout: Some(hlo::LayoutProto {
                minor_to_major: vec![1, 0],
                tiles: vec![hlo::TileProto {
                    dimensions: vec![8, 128],
                }],
                memory_space: 1,
                ..Default::default()
            }),
            ..Default::default()
        };
        let tuple = hlo::ShapeProto {
            element_type: 13,
            tuple_shapes: vec![leaf.clone(), leaf],
            ..Default::default()
        };
        let got = decode_shape(&tuple.encode_to_vec()).unwrap();
        let bytes = tuple.encode_to_vec();
        assert_eq!(
            decode_shape_leaf(&bytes, &[1]).unwrap().as_ref(),
            got.leaf(&[1])
        );
        assert_eq!(decode_shape_leaf(&bytes, &[]).unwrap().as_ref(), Some(&got));
        assert_eq!(decode_shape_leaf(&bytes, &[2]).unwrap(), None);
        assert_eq!(decode_shape_leaf(&bytes, &[-1]).unwrap(), None);
        assert_eq!(
            got.leaf(&[1]).unwrap().to_string(),
            "f32[129,1024]{1,0:T(8,128)S(1)}"
        );
    }

    #[test]
    fn endless_nesting_is_refused() {
        let mut shape = hlo::ShapeProto {
            element_type: 13,
            ..Default::default()
        };
        for _ in 0..90 {
            shape = hlo::ShapeProto {
                element_type: 13,
                tuple_shapes: vec![shape],
                ..Default::default()
            };
        }
        assert!(decode_shape(&shape.encode_to_vec()).is_err());
    }
}

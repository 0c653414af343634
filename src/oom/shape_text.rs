//! In: an HLO shape as printed. Out: the same as a [`Shape`], which knows its bytes.
//!
//! ```text
//! shape  = array | "(" shape { "," shape } ")"
//! array  = type "[" [ dim { "," dim } ] "]" [ layout ]
//! dim    = [ "<=" ] digits
//! layout = "{" [ digits { "," digits } ] [ ":" { attribute } ] "}"
//! attribute = "T" tile { tile } | ( "S" | "E" | "L" ) "(" digits ")" | other "(" ... ")"
//! ```

use super::cursor::Cursor;
use crate::hlo::{ElementType, Layout, Shape};

const MAX_RANK: usize = 64;
const MAX_DEPTH: usize = 16;
const MAX_LEAVES: usize = 4096;

/// A shape read from text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeText(pub Shape);

impl ShapeText {
    /// Reads a shape that is all of `text`; blanks are ignored.
    pub fn parse(text: &str) -> Option<ShapeText> {
        let squeezed: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        let mut c = Cursor::new(&squeezed);
        ShapeText::read(&mut c).filter(|_| c.rest().is_empty())
    }

    /// Reads a shape in text without blanks.
    pub(crate) fn read(c: &mut Cursor<'_>) -> Option<ShapeText> {
        let mut ahead = c.clone();
        let read = shape(&mut ahead, 0, &mut 0)?;
        *c = ahead;
        Some(ShapeText(read))
    }

    /// Bytes with tile padding; a tuple's is the sum of its leaves. `None` on overflow.
    pub fn padded_bytes(&self) -> Option<u64> {
        Some(self.0.padded_bytes()).filter(|&b| b < u64::MAX)
    }

    /// Bytes without padding. `None` on overflow.
    pub fn unpadded_bytes(&self) -> Option<u64> {
        Some(self.0.unpadded_bytes()).filter(|&b| b < u64::MAX)
    }
}

fn shape(c: &mut Cursor<'_>, depth: usize, leaves: &mut usize) -> Option<Shape> {
    *leaves += 1;
    if depth > MAX_DEPTH || *leaves > MAX_LEAVES {
        return None;
    }
    if !c.lit("(") {
        return array(c);
    }
    let mut tuple = Vec::new();
    while !c.lit(")") {
        if !tuple.is_empty() && !c.lit(",") {
            return None;
        }
        skip_comment(c);
        tuple.push(shape(c, depth + 1, leaves)?);
    }
    Some(Shape {
        element_type: ElementType::TUPLE,
        tuple,
        ..Shape::default()
    })
}

/// `/*index=5*/` between tuple elements.
fn skip_comment(c: &mut Cursor<'_>) {
    if c.lit("/*") {
        c.skip_past("*/", 32);
    }
}

fn array(c: &mut Cursor<'_>) -> Option<Shape> {
    let name = c.take_while(|b| b.is_ascii_alphanumeric());
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    let element_type = ElementType::from_name(&name).filter(|&t| t != ElementType::TUPLE)?;
    if element_type.bits() == 0 && !["token", "opaque"].contains(&name.as_str()) {
        return None;
    }
    c.want("[")?;
    let mut out = Shape::array(element_type, &dimensions(c)?);
    if c.peek() == Some(b'{') {
        let start = c.pos();
        out.layout = layout(c, out.dimensions.len());
        if out.layout.is_none() {
            // Not a layout after all: the shape ends before it.
            c.seek(start);
        }
    }
    Some(out)
}

fn dimensions(c: &mut Cursor<'_>) -> Option<Vec<u64>> {
    let mut dims = Vec::new();
    while !c.lit("]") {
        if !dims.is_empty() && !c.lit(",") {
            return None;
        }
        c.lit("<=");
        dims.push(c.int()?);
        if dims.len() > MAX_RANK {
            return None;
        }
    }
    Some(dims)
}

fn layout(c: &mut Cursor<'_>, rank: usize) -> Option<Layout> {
    c.want("{")?;
    let mut out = Layout::default();
    let mut seen = vec![false; rank];
    while let Some(d) = c.int() {
        let d = u32::try_from(d).ok()?;
        if std::mem::replace(seen.get_mut(usize::try_from(d).ok()?)?, true) {
            return None;
        }
        out.minor_to_major.push(d);
        if !c.lit(",") {
            break;
        }
    }
    if out.minor_to_major.len() != rank {
        return None;
    }
    if c.lit(":") {
        attributes(c, &mut out)?;
    }
    c.lit("}").then_some(out)
}

fn attributes(c: &mut Cursor<'_>, out: &mut Layout) -> Option<()> {
    while c.peek() != Some(b'}') {
        let name = c.take_while(|b| b.is_ascii_alphabetic() || b == b'#' || b == b'*');
        if name == b"T" {
            while c.lit("(") {
                out.tiles.push(numbers(c)?);
                if out.tiles.len() > MAX_RANK {
                    return None;
                }
            }
            continue;
        }
        c.want("(")?;
        let inner = c.take_while(|b| b != b')' && b != b'}');
        c.want(")")?;
        let mut inner = Cursor::new(inner);
        let number = inner.int().filter(|_| inner.rest().is_empty());
        match (name, number) {
            (b"S", Some(n)) => out.memory_space = i64::try_from(n).ok()?,
            (b"E", Some(n)) => out.element_size_in_bits = u32::try_from(n).ok()?,
            (b"L", Some(n)) => out.tail_padding_alignment_in_elements = n,
            _ => {}
        }
    }
    Some(())
}

/// The numbers of a tile after its opening parenthesis; a `*` or a zero is no tile we know.
fn numbers(c: &mut Cursor<'_>) -> Option<Vec<u64>> {
    let mut out = Vec::new();
    loop {
        out.push(c.int().filter(|&n| n > 0)?);
        if c.lit(")") {
            return (out.len() <= MAX_RANK).then_some(out);
        }
        c.want(",")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: u64 = 1 << 30;
    const M: u64 = 1 << 20;

    #[test]
    fn padding_as_compilers_printed_it() {
        let hundredths =
            |whole: u64, hundredths: u64, unit: u64| unit * whole + unit * hundredths / 100;
        for (text, padded, unpadded) in [
            ("s32[8388608,8,4]{2,1,0:T(8,128)}", 32 * G, G),
            ("u32[12582912,1]{1,0:T(8,128)}", 6 * G, 48 * M),
            ("bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}", 4 * G, G),
            (
                "s32[29360128,10]{1,0:T(8,128)}",
                14 * G,
                hundredths(1, 9, G),
            ),
            (
                "f32[128,256,896,18]{0,3,2,1:T(8,128)}",
                hundredths(2, 62, G),
                hundredths(1, 97, G),
            ),
            (
                "f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}",
                512 * M,
                hundredths(40, 50, M),
            ),
            (
                "bf16[4,512,512,64]{3,0,2,1:T(4,128)(2,1)}",
                256 * M,
                128 * M,
            ),
            (
                "f32[512,245,256]{2,1,0:T(8,128)}",
                124 * M,
                hundredths(122, 50, M),
            ),
            ("f32[29184,1,2560]{2,1,0:T(2,128)}", 570 * M, 285 * M),
            ("f32[29184,2,2560]{2,1,0:T(2,128)}", 570 * M, 570 * M),
            ("f32[32,4096,4096]{1,2,0:T(8,128)}", 2 * G, 2 * G),
        ] {
            let shape = ShapeText::parse(text).expect(text);
            let (p, u) = (
                shape.padded_bytes().unwrap(),
                shape.unpadded_bytes().unwrap(),
            );
            assert!(
                crate::oom::size::prints_as(p, padded),
                "{text}: {p} is not {padded}"
            );
            assert!(
                crate::oom::size::prints_as(u, unpadded),
                "{text}: {u} is not {unpadded}"
            );
        }
    }

    #[test]
    fn exact_bytes() {
        let size = |t: &str| ShapeText::parse(t).unwrap().padded_bytes();
        assert_eq!(
            size("bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}"),
            Some(5_242_880)
        );
        assert_eq!(
            size("bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}"),
            Some(1_638_400)
        );
        assert_eq!(size("f32[129,1024]{1,0:T(8,128)}"), Some(136 * 1024 * 4));
        assert_eq!(size("f32[]{:T(128)}"), Some(512));
        assert_eq!(size("f32[]"), Some(4));
        assert_eq!(size("s4[3]{0}"), Some(2));
        assert_eq!(
            size("(f32[2]{0}, /*index=1*/ (bf16[3]{0}, u8[]))"),
            Some(8 + 6 + 1)
        );
        assert_eq!(size("pred[1000]{0:T(1024)(128)(4,1)S(1)}"), Some(1024));
    }

    #[test]
    fn memory_space_and_prefix() {
        let mut c = Cursor::new(b"f32[8,3]{1,0:T(8,128)S(5)}Unpadded");
        let shape = ShapeText::read(&mut c).unwrap().0;
        assert_eq!(shape.to_string(), "f32[8,3]{1,0:T(8,128)S(5)}");
        assert_eq!(shape.layout.map(|l| l.memory_space), Some(5));
        assert_eq!(c.rest(), b"Unpadded");
        let mut c = Cursor::new(b"f32[2]{metadata");
        let bytes = ShapeText::read(&mut c).unwrap().padded_bytes();
        assert_eq!((bytes, c.pos()), (Some(8), 6));
        let mut c = Cursor::new(b"f32[2,");
        assert_eq!((ShapeText::read(&mut c), c.pos()), (None, 0));
    }

    #[test]
    fn hostile_shapes() {
        let deep = "(".repeat(100_000);
        for text in [
            "f32[",
            "f32[1",
            "f99[1]",
            "f32[2]{3}",
            "f32[2,2]{0,0}",
            "(f32[1]",
            &deep,
        ] {
            assert_eq!(
                ShapeText::parse(text),
                None,
                "{}",
                &text[..text.len().min(20)]
            );
        }
        let huge = "f32[18446744073709551615,18446744073709551615,18446744073709551615]";
        assert_eq!(ShapeText::parse(huge).unwrap().padded_bytes(), None);
        assert_eq!(
            ShapeText::parse("f32[18446744073709551615]{0:T(8)}")
                .unwrap()
                .padded_bytes(),
            None
        );
        assert_eq!(ShapeText::parse("f32[2]{0:T(0)}"), None);
        assert_eq!(ShapeText::parse("tuple[2]"), None);
        assert_eq!(ShapeText::parse("invalid[2]"), None);
    }
}

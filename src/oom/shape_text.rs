//! In: an HLO shape as printed. Out: its element type, dimensions, layout, and bytes.
//!
//! ```text
//! shape  = array | "(" shape { "," shape } ")"
//! array  = type "[" [ dim { "," dim } ] "]" [ layout ]
//! dim    = [ "<=" ] digits
//! layout = "{" [ digits { "," digits } ] [ ":" { attribute } ] "}"
//! attribute = "T" tile { tile } | "S" "(" digits ")" | other "(" ... ")"
//! ```
//! Padded size: dimensions in major-to-minor order, the trailing ones rounded up to the first
//! tile (a shape of lower rank gets leading ones); sub-tiles such as `(2,1)` add nothing.

use super::cursor::Cursor;

const MAX_RANK: usize = 64;
const MAX_DEPTH: usize = 16;
const MAX_LEAVES: usize = 4096;

/// A shape read from text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeText {
    /// One array.
    Array(ArrayText),
    /// A tuple of shapes.
    Tuple(Vec<ShapeText>),
}

/// An array shape read from text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayText {
    /// Element type, as `bf16`.
    pub element_type: String,
    /// Bits of one element.
    pub element_bits: u64,
    /// Logical dimensions.
    pub dimensions: Vec<u64>,
    /// Minor-to-major order; empty when the text has no layout.
    pub minor_to_major: Vec<usize>,
    /// First tile; empty without one.
    pub tile: Vec<u64>,
    /// Memory space, from `S(n)`.
    pub memory_space: Option<u64>,
}

impl ShapeText {
    /// Reads a shape that is all of `text`; blanks are ignored.
    pub fn parse(text: &str) -> Option<ShapeText> {
        let squeezed: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        let (shape, n) = ShapeText::parse_prefix(&squeezed)?;
        (n == squeezed.len()).then_some(shape)
    }

    /// Reads a shape at the start of text without blanks; gives it and its length.
    pub fn parse_prefix(text: &[u8]) -> Option<(ShapeText, usize)> {
        let mut c = Cursor::new(text);
        let mut leaves = 0;
        let shape = shape(&mut c, 0, &mut leaves)?;
        Some((shape, c.pos()))
    }

    /// Bytes with tile padding; a tuple's is the sum of its leaves. `None` on overflow.
    pub fn padded_bytes(&self) -> Option<u64> {
        self.sum(&ArrayText::padded_bytes)
    }

    /// Bytes without padding. `None` on overflow.
    pub fn unpadded_bytes(&self) -> Option<u64> {
        self.sum(&ArrayText::unpadded_bytes)
    }

    fn sum(&self, f: &dyn Fn(&ArrayText) -> Option<u64>) -> Option<u64> {
        match self {
            ShapeText::Array(a) => f(a),
            ShapeText::Tuple(parts) => parts
                .iter()
                .try_fold(0u64, |sum, p| sum.checked_add(p.sum(f)?)),
        }
    }
}

impl ArrayText {
    /// Product of the logical dimensions, in bytes.
    pub fn unpadded_bytes(&self) -> Option<u64> {
        bytes(&self.dimensions, self.element_bits)
    }

    /// The same after rounding up to the tile.
    pub fn padded_bytes(&self) -> Option<u64> {
        bytes(&self.physical_dimensions()?, self.element_bits)
    }

    /// Dimensions in major-to-minor order, rounded up to the tile.
    pub fn physical_dimensions(&self) -> Option<Vec<u64>> {
        let mut dims: Vec<u64> = if self.minor_to_major.is_empty() {
            self.dimensions.clone()
        } else {
            let order = self.minor_to_major.iter().rev();
            order
                .map(|&d| self.dimensions.get(d).copied())
                .collect::<Option<_>>()?
        };
        while dims.len() < self.tile.len() {
            dims.insert(0, 1);
        }
        for (dim, &tile) in dims.iter_mut().rev().zip(self.tile.iter().rev()) {
            *dim = dim.checked_next_multiple_of(tile)?;
        }
        Some(dims)
    }

    /// Padded over unpadded, when the shape is not empty.
    pub fn expansion(&self) -> Option<f64> {
        let unpadded = self.unpadded_bytes()?;
        (unpadded > 0).then_some(self.padded_bytes()? as f64 / unpadded as f64)
    }
}

fn bytes(dims: &[u64], bits: u64) -> Option<u64> {
    let elements = dims
        .iter()
        .try_fold(1u128, |n, &d| n.checked_mul(u128::from(d)))?;
    u64::try_from(elements.checked_mul(u128::from(bits))?.div_ceil(8)).ok()
}

fn shape(c: &mut Cursor<'_>, depth: usize, leaves: &mut usize) -> Option<ShapeText> {
    *leaves += 1;
    if depth > MAX_DEPTH || *leaves > MAX_LEAVES {
        return None;
    }
    if !c.lit("(") {
        return array(c).map(ShapeText::Array);
    }
    let mut parts = Vec::new();
    while !c.lit(")") {
        if !parts.is_empty() && !c.lit(",") {
            return None;
        }
        skip_comment(c);
        parts.push(shape(c, depth + 1, leaves)?);
    }
    Some(ShapeText::Tuple(parts))
}

/// `/*index=5*/` between tuple elements.
fn skip_comment(c: &mut Cursor<'_>) {
    if c.lit("/*") {
        c.skip_past("*/", 32);
    }
}

fn array(c: &mut Cursor<'_>) -> Option<ArrayText> {
    let name = c.take_while(|b| b.is_ascii_alphanumeric());
    let element_type = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    let element_bits = element_bits(&element_type)?;
    if !c.lit("[") {
        return None;
    }
    let dimensions = dimensions(c)?;
    let mut out = ArrayText {
        element_type,
        element_bits,
        dimensions,
        minor_to_major: Vec::new(),
        tile: Vec::new(),
        memory_space: None,
    };
    if c.peek() == Some(b'{') {
        let start = c.pos();
        if layout(c, &mut out).is_none() {
            // Not a layout after all: the shape ends before it.
            c.seek(start);
            out.minor_to_major.clear();
            out.tile.clear();
            out.memory_space = None;
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

fn layout(c: &mut Cursor<'_>, out: &mut ArrayText) -> Option<()> {
    c.lit("{").then_some(())?;
    let mut seen = vec![false; out.dimensions.len()];
    while let Some(d) = c.int() {
        let d = usize::try_from(d).ok()?;
        if std::mem::replace(seen.get_mut(d)?, true) {
            return None;
        }
        out.minor_to_major.push(d);
        if !c.lit(",") {
            break;
        }
    }
    if out.minor_to_major.len() != out.dimensions.len() {
        return None;
    }
    if c.lit(":") {
        attributes(c, out)?;
    }
    c.lit("}").then_some(())
}

fn attributes(c: &mut Cursor<'_>, out: &mut ArrayText) -> Option<()> {
    while c.peek() != Some(b'}') {
        let name = c.take_while(|b| b.is_ascii_alphabetic() || b == b'#' || b == b'*');
        if name == b"T" {
            let mut first = true;
            while c.lit("(") {
                let tile = numbers(c)?;
                if std::mem::take(&mut first) {
                    out.tile = tile;
                }
            }
        } else {
            c.lit("(").then_some(())?;
            let inner = c.take_while(|b| b != b')' && b != b'}');
            c.lit(")").then_some(())?;
            if name == b"S" {
                out.memory_space = super::size::parse_int(inner).map(|(n, _)| n);
            }
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
        c.lit(",").then_some(())?;
    }
}

/// Bits of an element type, by its HLO name.
fn element_bits(name: &str) -> Option<u64> {
    Some(match name {
        "token" | "opaque" => 0,
        "pred" => 8,
        "s1" | "u1" => 1,
        "s2" | "u2" => 2,
        "s4" | "u4" | "f4e2m1fn" => 4,
        "s8" | "u8" => 8,
        "s16" | "u16" | "f16" | "bf16" => 16,
        "s32" | "u32" | "f32" => 32,
        "s64" | "u64" | "f64" | "c64" => 64,
        "c128" => 128,
        f if f.starts_with("f8e") => 8,
        _ => return None,
    })
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
                super::super::size::prints_as(p, padded),
                "{text}: {p} is not {padded}"
            );
            assert!(
                super::super::size::prints_as(u, unpadded),
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
        let Some((ShapeText::Array(a), n)) =
            ShapeText::parse_prefix(b"f32[8,3]{1,0:T(8,128)S(5)}Unpadded")
        else {
            panic!("no shape");
        };
        assert_eq!((a.memory_space, n), (Some(5), 26));
        let (shape, n) = ShapeText::parse_prefix(b"f32[2]{metadata").unwrap();
        assert_eq!((shape.padded_bytes(), n), (Some(8), 6));
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
    }
}

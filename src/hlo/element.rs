//! Element types of arrays, by their number in XLA's `PrimitiveType`.

use std::fmt;

/// An array's element type. Numbers that this version does not know are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ElementType(pub u32);

/// Name and bits of every known type, indexed by number.
const TYPES: [(&str, u32); 35] = [
    ("invalid", 0),
    ("pred", 8),
    ("s8", 8),
    ("s16", 16),
    ("s32", 32),
    ("s64", 64),
    ("u8", 8),
    ("u16", 16),
    ("u32", 32),
    ("u64", 64),
    ("f16", 16),
    ("f32", 32),
    ("f64", 64),
    ("tuple", 0),
    ("opaque", 0),
    ("c64", 64),
    ("bf16", 16),
    ("token", 0),
    ("c128", 128),
    ("f8e5m2", 8),
    ("f8e4m3fn", 8),
    ("s4", 4),
    ("u4", 4),
    ("f8e4m3b11fnuz", 8),
    ("f8e5m2fnuz", 8),
    ("f8e4m3fnuz", 8),
    ("s2", 2),
    ("u2", 2),
    ("f8e4m3", 8),
    ("f8e3m4", 8),
    ("s1", 1),
    ("u1", 1),
    ("f4e2m1fn", 4),
    ("f8e8m0fnu", 8),
    ("buffer", 0),
];

impl ElementType {
    /// 32-bit float.
    pub const F32: ElementType = ElementType(11);
    /// 64-bit float.
    pub const F64: ElementType = ElementType(12);
    /// bfloat16.
    pub const BF16: ElementType = ElementType(16);
    /// A tuple of shapes.
    pub const TUPLE: ElementType = ElementType(13);
    /// An ordering token; takes no memory of its own.
    pub const TOKEN: ElementType = ElementType(17);

    /// XLA's name, `f32`; `type99` for an unknown number.
    pub fn name(self) -> std::borrow::Cow<'static, str> {
        match TYPES.get(self.0 as usize) {
            Some((name, _)) => (*name).into(),
            None => format!("type{}", self.0).into(),
        }
    }

    /// Bits of one element when nothing in the layout says otherwise; 0 where the type has no
    /// elements or is unknown.
    pub fn bits(self) -> u32 {
        TYPES.get(self.0 as usize).map_or(0, |t| t.1)
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<ElementType> {
        TYPES
            .iter()
            .position(|t| t.0 == name)
            .map(|i| ElementType(i as u32))
    }

    /// Whether it is a floating-point type (complex ones are not).
    pub fn is_float(self) -> bool {
        matches!(self.0, 10..=12 | 16 | 19 | 20 | 23..=25 | 28 | 29 | 32 | 33)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

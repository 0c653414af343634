//! In: an argument whose size differs from what the program expects (G13, E0102).
//! Out: both shapes with their padding. It is no out-of-memory, but shows what a layout costs.
//!
//! ```text
//! "Executable(" NAME ") expected parameter" int "of size" int "(" shape ")"
//!     "but got buffer with incompatible size" int "(" shape ")"
//! ```

use super::cursor::{lossy, rfind, Cursor};
use super::found::{base, Found};
use super::report::{Allocation, Kind};
use super::section::Squeezed;
use super::shape_text::ShapeText;

/// Reads it from `but got buffer`.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let from = at.saturating_sub(2000);
    let start = from + rfind(sq.text.get(from..at)?, b"Executable(")?;
    let mut c = Cursor::within(&sq.text, start, end);
    c.lit("Executable(");
    let name = lossy(c.take_while(|b| b != b')'));
    c.skip_past("expectedparameter", 4).then_some(())?;
    let parameter = c.int()?;
    c.lit("ofsize").then_some(())?;
    let expected = buffer(&mut c, "expected")?;
    c.skip_past("incompatiblesize", 40).then_some(())?;
    let got = buffer(&mut c, "given")?;
    let mut r = base(sq, start, Kind::TpuInputMismatch, false);
    r.program = Some(name).filter(|n| !n.is_empty());
    r.notes.push(format!(
        "parameter {parameter}: the program was compiled for another shape or layout"
    ));
    r.allocations = vec![expected, got];
    Some(Found::Report(Box::new(r)))
}

fn buffer(c: &mut Cursor<'_>, role: &str) -> Option<Allocation> {
    let size = c.int()?;
    let mut a = Allocation {
        size_bytes: size,
        label: Some(role.to_string()),
        ..Allocation::default()
    };
    if c.lit("(") {
        let (shape, n) = ShapeText::parse_prefix(c.rest())?;
        a.shape = c.rest().get(..n).map(lossy);
        c.seek(c.pos() + n);
        if shape.padded_bytes() == Some(size) {
            a.exact_bytes = Some(size);
            a.unpadded_bytes = shape.unpadded_bytes();
            a.padding_bytes = a.unpadded_bytes.and_then(|u| size.checked_sub(u));
            a.padding_from = Some("shape");
        }
    }
    Some(a)
}

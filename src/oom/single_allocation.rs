//! In: one allocation larger than the memory (G6). Out: its values.
//!
//! ```text
//! "Allocation (size=" int ") would exceed memory (size=" int ") :: #allocation" int
//!     "[shape = '" shape "', space=" SPACE ", size = 0x" hex ", tag = '" text "'] ::"
//!     ( instruction | "<no-hlo-instruction>" )
//! ```
//! The hexadecimal size can be unset (all ones): the decimal one counts. Often cut after the shape.

use super::cursor::{lossy, Cursor};
use super::found::{base, Found};
use super::report::{Allocation, Kind};
use super::section::Squeezed;
use super::shape_text::ShapeText;

/// Reads it from `Allocation (size=`.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Allocation(size=").then_some(())?;
    let size = c.int()?;
    c.lit(")wouldexceedmemory(size=").then_some(())?;
    let limit = c.int().filter(|_| c.lit(")"));
    let mut r = base(sq, at, Kind::TpuSingleAllocation, true);
    r.used_bytes = Some(size);
    r.limit_bytes = limit;
    let mut a = Allocation {
        size_bytes: size,
        ..Allocation::default()
    };
    let quoted = |c: &mut Cursor<'_>| {
        let start = c.pos();
        let n = c.take_while(|b| b != b'\'').len();
        (start, start + n)
    };
    if c.skip_past("[shape='", 60) {
        let (start, stop) = quoted(&mut c);
        a.shape = Some(lossy(sq.text.get(start..stop)?)).filter(|s| !s.is_empty());
    }
    if c.skip_past("space=", 8) {
        let space = c.take_while(|b| b.is_ascii_alphanumeric() || b == b'_');
        r.space = Some(lossy(space).to_ascii_lowercase()).filter(|s| !s.is_empty());
    }
    if c.skip_past("tag='", 60) {
        let (start, stop) = quoted(&mut c);
        a.label = Some(sq.readable(start, stop)).filter(|s| !s.is_empty());
    }
    if c.skip_past("]::", 8) && !c.lit("<no-hlo-instruction>") {
        c.lit("%");
        let name = c.take_while(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        r.instruction = Some(lossy(name)).filter(|s| !s.is_empty());
    }
    let shape = a.shape.as_deref().and_then(ShapeText::parse);
    if let Some((padded, unpadded)) =
        shape.and_then(|s| Some((s.padded_bytes()?, s.unpadded_bytes()?)))
    {
        if padded == size {
            a.exact_bytes = Some(padded);
            a.unpadded_bytes = Some(unpadded);
            a.padding_bytes = padded.checked_sub(unpadded);
            a.padding_from = Some("shape");
        }
    }
    r.allocations.push(a);
    Some(Found::Report(Box::new(r)))
}

//! In: failures of the TPU runtime: a buffer (E0100), a program's load (E0101), an argument of
//! another size (E0102). Out: their values.
//!
//! ```text
//! buffer   = "Attempting to allocate" size "." "That was not possible. There are" size "free."
//!            [ "Due to fragmentation, the largest contiguous region of free memory is" size "."
//!            | "The largest contiguous region of free memory is" size "due to fragmentation." ]
//!            [ "; (" coordinates ")" ]
//! load     = [ "Error loading program '" NAME "':" ]
//!            "Attempting to reserve" size "at the bottom of memory."
//!            [ "That was not possible. There are" size "free," size "reserved, and" size "reservable." ]
//! mismatch = "Executable(" NAME ") expected parameter" int "of size" int "(" shape ")"
//!            "but got buffer with incompatible size" int "(" shape ")"
//! ```
//! `mismatch` is no out-of-memory, but shows what a layout costs.

use super::blocks::measure;
use super::cursor::{lossy, named, Cursor};
use super::found::{Found, Message};
use super::report::{Allocation, Kind};
use super::shape_text::ShapeText;

/// A buffer that found no room.
pub(crate) fn buffer(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let requested = c.size()?;
    c.want(".Thatwasnotpossible")?;
    let mut r = m.report(Kind::TpuRuntimeAllocation, true);
    r.requested_bytes = Some(requested);
    r.free_bytes = c.size_after("Thereare", 4);
    r.largest_free_block_bytes = c.size_after("largestcontiguousregionoffreememoryis", 60);
    // The coordinates name the memory; without them this message is HBM's.
    c.skip_past("_", 200);
    let space = lossy(c.take_while(|b| b.is_ascii_alphabetic())).to_lowercase();
    r.space = Some(if space == "vmem" { space } else { "hbm".into() });
    Some(r.into())
}

/// A program whose reserve found no room.
pub(crate) fn load(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let requested = c.size()?;
    c.want("atthebottomofmemory")?;
    let mut r = m.report(Kind::TpuProgramLoad, true);
    r.requested_bytes = Some(requested);
    if c.skip_past("Thereare", 30) {
        r.free_bytes = c.size();
        r.reservable_bytes = c.size_after("reserved,and", 30);
    }
    r.space = Some("hbm".to_string());
    let program = m.before("Errorloadingprogram'", 400);
    r.program = program.and_then(|(_, text)| named(text.split(|&b| b == b'\'').next()?));
    Some(r.into())
}

/// An argument of another size than the program expects.
pub(crate) fn mismatch(m: &Message<'_>) -> Option<Found> {
    let (start, _) = m.before("Executable(", 2000)?;
    let mut c = m.from(start);
    c.want("Executable(")?;
    let name = c.name_until(b')');
    c.reach("expectedparameter", 4)?;
    let parameter = c.int()?;
    c.want("ofsize")?;
    let expected = shaped(&mut c, "expected")?;
    c.reach("incompatiblesize", 40)?;
    let given = shaped(&mut c, "given")?;
    let mut r = m.report_from(start, Kind::TpuInputMismatch, false);
    r.program = name;
    r.notes.push(format!(
        "parameter {parameter}: the program was compiled for another shape or layout"
    ));
    r.allocations = vec![expected, given];
    Some(r.into())
}

/// `int (shape)`.
fn shaped(c: &mut Cursor<'_>, role: &str) -> Option<Allocation> {
    let mut a = Allocation {
        size_bytes: c.int()?,
        label: Some(role.to_string()),
        ..Allocation::default()
    };
    if c.lit("(") {
        let start = c.pos();
        ShapeText::read(c)?;
        a.shape = named(c.since(start));
        measure(&mut a, |computed, said| computed == said);
    }
    Some(a)
}

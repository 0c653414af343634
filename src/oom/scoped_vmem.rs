//! In: a scoped VMEM failure (G4, E1001). Out: its values.
//!
//! ```text
//! "Ran out of memory in memory space" SPACE "while allocating on stack for" [ "%" ] NAME "="
//!     instruction "." "Scoped allocation with size" size "and limit" size
//!     "exceeded scoped" SPACE "limit by" size "."
//! ```

use super::blocks;
use super::cursor::{lossy, rfind, Cursor};
use super::found::{base, Found};
use super::report::{Allocation, Kind};
use super::section::Squeezed;
use super::shape_text::ShapeText;

/// Reads it from `while allocating on stack for`.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let before = sq.text.get(at.saturating_sub(80)..at)?;
    let head = rfind(before, b"memoryspace")?;
    let space = lossy(before.get(head + "memoryspace".len()..)?);
    let start = at - (before.len() - head);
    let mut r = base(
        sq,
        start.saturating_sub("Ranoutofmemoryin".len()),
        Kind::TpuScopedVmem,
        true,
    );
    let mut c = Cursor::within(&sq.text, at, end);
    c.skip_past("stackfor", 40);
    c.lit("%");
    let name = c.take_while(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    r.instruction = (!name.is_empty()).then(|| lossy(name));
    let instruction = c.pos();
    r.opcode = opcode(c.clone());
    let mut size = c.clone();
    if size.skip_past("Scopedallocationwithsize", usize::MAX >> 1) {
        r.used_bytes = size.size();
        if size.lit("andlimit") {
            r.limit_bytes = size.size();
        }
        if size.skip_past("limitby", 40) {
            r.over_bytes = size.size();
        }
    }
    let mut a = Allocation::default();
    blocks::operator(sq, instruction, end, &mut a);
    r.op_name = a.op_name;
    r.space = Some(space).filter(|s| !s.is_empty());
    Some(Found::Report(Box::new(r)))
}

/// The opcode of `= shape opcode(`.
fn opcode(mut c: Cursor<'_>) -> Option<String> {
    c.lit("=").then_some(())?;
    let (_, n) = ShapeText::parse_prefix(c.rest())?;
    c.seek(c.pos().checked_add(n)?);
    let word = c.take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (!word.is_empty() && c.peek() == Some(b'(')).then(|| lossy(word))
}

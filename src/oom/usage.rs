//! In: what the TPU compiler says about memory when nothing failed (G18). Out: its values.
//!
//! ```text
//! "XLA::TPU program" SPACE "usage:" size "/" size
//! tables of a space as in tpu_compile.rs, without a headline
//! ```

use super::blocks;
use super::cursor::{lossy, Cursor};
use super::found::{base, Found};
use super::report::{Kind, SpaceUsage};
use super::section::Squeezed;
use super::tpu_compile::tables;

/// One usage line.
pub(crate) fn parse_line(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("XLA::TPUprogram").then_some(())?;
    let space = lossy(c.take_while(|b| b.is_ascii_uppercase())).to_ascii_lowercase();
    c.lit("usage:").then_some(())?;
    let used = c.size()?;
    c.lit("/").then_some(())?;
    let limit = c.size()?;
    let mut r = base(sq, at, Kind::TpuUsage, false);
    r.usages.push(SpaceUsage {
        space,
        used_bytes: Some(used),
        limit_bytes: Some(limit),
    });
    Some(Found::Usage(Box::new(r)))
}

/// Tables without a headline: what is left of a report, or the compiler's information.
pub(crate) fn parse_table(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let before = sq.text.get(at.saturating_sub(32)..at)?;
    let head = super::cursor::rfind(before, b"Total")?;
    let name = before.get(head + 5..)?;
    if name.is_empty() || name.len() > 24 || !name.iter().all(u8::is_ascii_lowercase) {
        return None;
    }
    let space = lossy(name);
    let start = at - (before.len() - head);
    let mut r = base(sq, start, Kind::TpuUsage, false);
    tables(sq, &space, start, end, &mut r);
    r.total_bytes?;
    r.allocations = blocks::parse(sq, at, end);
    r.space = Some(space);
    Some(Found::Usage(Box::new(r)))
}

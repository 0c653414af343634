//! In: a SparseCore stack allocation that does not fit (G10, E3000). Out: its values.
//!
//! ```text
//! "'memref.alloca' op current allocation offset upper bound (" int "words) exceeds the legitimate
//!     user allocatable offset upper bound (" int "words) in memory space" int
//!     "when allocating" int "words."
//! ```
//! Values are words; their size in bytes depends on the memory and is not in the text.

use super::cursor::Cursor;
use super::found::{base, Found};
use super::report::Kind;
use super::section::Squeezed;

/// Reads it from `'memref.alloca' op`.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.skip_past("upperbound(", 80).then_some(())?;
    let used = c.int()?;
    c.lit("words)exceeds").then_some(())?;
    c.skip_past("upperbound(", 80).then_some(())?;
    let limit = c.int()?;
    c.skip_past("memoryspace", 20).then_some(())?;
    let id = c.int()?;
    let mut r = base(sq, at, Kind::TpuSparsecoreAlloca, true);
    r.space = Some(space_name(id));
    let mut note = format!("reaches word {used} where {limit} is the last allowed");
    if c.lit("whenallocating") {
        if let Some(words) = c.int() {
            note = format!("allocating {words} words {note}");
        }
    }
    r.notes.push(note);
    Some(Found::Report(Box::new(r)))
}

fn space_name(id: u64) -> String {
    match id {
        0 => "sparsecore smem".to_string(),
        201 => "tile_spmem".to_string(),
        202 => "spmem".to_string(),
        203 => "hbm".to_string(),
        204 => "sflag".to_string(),
        _ => format!("space {id}"),
    }
}

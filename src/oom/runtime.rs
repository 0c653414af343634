//! In: a TPU runtime failure: a buffer (G11, E0100) or a program's load (G12, E0101).
//! Out: its values.
//!
//! ```text
//! "Attempting to allocate" size "." "That was not possible. There are" size "free."
//!     [ "Due to fragmentation, the largest contiguous region of free memory is" size "."
//!     | "The largest contiguous region of free memory is" size "due to fragmentation." ]
//!     [ "; (" coordinates ")" ]
//! [ "Error loading program '" NAME "':" ] "Attempting to reserve" size "at the bottom of memory."
//!     [ "That was not possible. There are" size "free," size "reserved, and" size "reservable." ]
//! ```

use super::cursor::{lossy, rfind, Cursor};
use super::found::{base, Found};
use super::report::Kind;
use super::section::Squeezed;

/// A buffer that found no room.
pub(crate) fn parse_allocation(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Attemptingtoallocate").then_some(())?;
    let requested = c.size()?;
    c.lit(".Thatwasnotpossible").then_some(())?;
    let mut r = base(sq, at, Kind::TpuRuntimeAllocation, true);
    r.requested_bytes = Some(requested);
    if c.skip_past("Thereare", 4) {
        r.free_bytes = c.size();
    }
    if c.skip_past("largestcontiguousregionoffreememoryis", 60) {
        r.largest_free_block_bytes = c.size();
    }
    let mut space = c.clone();
    let tail = space
        .skip_past("_", 200)
        .then(|| space.take_while(|b| b.is_ascii_alphabetic()));
    let named = tail
        .filter(|t| !t.is_empty() && t.len() < 8)
        .map(|t| lossy(t).to_lowercase());
    // The coordinates name the memory; without them this message is HBM's.
    r.space = named
        .filter(|s| s == "hbm" || s == "vmem")
        .or_else(|| Some("hbm".to_string()));
    Some(Found::Report(Box::new(r)))
}

/// A program whose reserve found no room.
pub(crate) fn parse_load(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Attemptingtoreserve").then_some(())?;
    let requested = c.size()?;
    c.lit("atthebottomofmemory").then_some(())?;
    let mut r = base(sq, at, Kind::TpuProgramLoad, true);
    r.requested_bytes = Some(requested);
    if c.skip_past("Thereare", 30) {
        r.free_bytes = c.size();
        if c.skip_past("reserved,and", 30) {
            r.reservable_bytes = c.size();
        }
    }
    r.space = Some("hbm".to_string());
    r.program = program(sq, at);
    Some(Found::Report(Box::new(r)))
}

/// `Error loading program 'NAME':` just before.
fn program(sq: &Squeezed, at: usize) -> Option<String> {
    const WORDS: &[u8] = b"Errorloadingprogram'";
    let before = sq.text.get(at.saturating_sub(400)..at)?;
    let start = rfind(before, WORDS)? + WORDS.len();
    let name = before.get(start..)?.split(|&b| b == b'\'').next()?;
    (!name.is_empty()).then(|| lossy(name))
}

//! In: the compiler's early stop (G8). Out: its values.
//!
//! ```text
//! "Aborting compilation early because it's unlikely to have enough [device] memory."
//!     "Requires" size ", has" size "available."
//! ```

use super::cursor::Cursor;
use super::found::{base, Found};
use super::report::Kind;
use super::section::Squeezed;

/// Reads it from `Aborting compilation early`.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.skip_past("Requires", 200).then_some(())?;
    let mut r = base(sq, at, Kind::TpuFastExit, true);
    r.used_bytes = Some(c.size()?);
    if c.lit(",has") {
        r.limit_bytes = c.size();
    }
    r.space = Some("hbm".to_string());
    Some(Found::Report(Box::new(r)))
}

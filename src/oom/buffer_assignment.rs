//! In: the GPU backend's buffer assignment report (G15). Out: its values.
//!
//! ```text
//! "BufferAssignment stats:" { name ":" size [ "(" percent "%)" ] } "Peak buffers:" { block }
//! name = "parameter allocation" | "constant allocation" | "maybe_live_out allocation"
//!      | "preallocated temp allocation" | "preallocated temp fragmentation"
//!      | "total allocation" | "total fragmentation"
//! ```
//! Blocks are those of blocks.rs; shapes have no layout, labels are opcodes.

use super::blocks;
use super::cursor::Cursor;
use super::found::{base, Found};
use super::report::Kind;
use super::section::Squeezed;

/// Reads it from `BufferAssignment stats:`.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let c = Cursor::within(&sq.text, at, end);
    let list = c.find("Peakbuffers:", usize::MAX >> 1).unwrap_or(end);
    let stats = Cursor::within(&sq.text, at, list);
    let value = |name: &str| {
        let mut c = stats.clone();
        c.skip_past(name, usize::MAX >> 1)
            .then(|| c.size())
            .flatten()
    };
    let mut r = base(sq, at, Kind::GpuBufferAssignment, true);
    r.parameter_bytes = value("parameterallocation:");
    r.constant_bytes = value("constantallocation:");
    r.output_bytes = value("maybe_live_outallocation:");
    r.temp_bytes = value("preallocatedtempallocation:");
    r.total_bytes = value("totalallocation:");
    r.fragmentation_bytes =
        value("totalfragmentation:").or_else(|| value("preallocatedtempfragmentation:"));
    r.allocations = blocks::parse(sq, list, end);
    let said = r
        .total_bytes
        .or(r.temp_bytes)
        .or(r.parameter_bytes)
        .is_some();
    (said || !r.allocations.is_empty()).then(|| Found::BufferAssignment(Box::new(r)))
}

//! In: failures of the GPU backends: one line, a buffer assignment report, the log of the BFC
//! allocator of any era. Out: their values, down to the allocator's chunks.
//!
//! ```text
//! line     = "Out of memory while trying to allocate" amount [ "with allocator" NAME ]
//!            [ "on device" int ] "."
//!            { "[executable_name='" NAME "']" | "[tf-allocator-allocation-error='" text "']" }
//! request  = "Failed to allocate request for" size "(" int "B) on device ordinal" int
//! driver   = "failed to allocate" size "(" int "bytes) from device:"
//!            ( "CUDA_ERROR_OUT_OF_MEMORY" | "HIP_ERROR_OutOfMemory" )
//! limit    = "Not enough memory to allocate" int "on device" int "within provided limit."
//!            "limit=" int "]"
//! amount   = size | int "bytes"
//!
//! stats    = "BufferAssignment stats:" { name ":" size [ "(" percent "%)" ] }
//!            "Peak buffers:" { block }                                    see blocks.rs
//! name     = "parameter allocation" | "constant allocation" | "maybe_live_out allocation"
//!          | "preallocated temp allocation" | "preallocated temp fragmentation"
//!          | "total allocation" | "total fragmentation"
//!
//! bfc      = "Allocator (" NAME ") ran out of memory trying to allocate" size
//!            [ "(rounded to" int ")" ] { chunk | figure | bar }
//! chunk    = "InUse at" addr "of size" int "next" int      \  folded while reading: see section.rs
//!          | "Free  at" addr "of size" int "next" int      /
//!          | int "Chunks of size" int "totalling" size
//! figure   = "Sum Total of in-use chunks:" size
//!          | ( "total_region_allocated_bytes_:" | "Total bytes in pool:" | "Total size in pool:" )
//!            amount "memory_limit_:" amount ...
//!          | "Stats:" { ( "Limit:" | "InUse:" | "MaxInUse:" | "LargestFreeBlock:" | ... ) amount }
//! bar      = { "*" | "_" | "x" }
//! ```
//! Blocks of a buffer assignment have shapes without layout, and opcodes as labels. With "The
//! caller indicates that this is not a failure" the allocator's log is none.

use std::cmp::Reverse;

use super::blocks;
use super::cursor::{named, Cursor, FAR};
use super::found::{Found, Message};
use super::lexer::is_bar;
use super::report::{ChunkSize, ChunkStats, Kind, OomReport, WarningKind};
use crate::units;

/// Starts of lines of a buffer assignment report and of the allocator's log.
pub(crate) const LINES: &[&str] = &[
    "parameter allocation",
    "preallocated temp",
    "maybe_live_out",
    "constant allocation",
    "InUse",
    "MaxInUse",
    "Free ",
    "Limit",
    "LargestFreeBlock",
    "Sum Total",
];
/// Chunk sizes kept.
const MAX_SIZES: usize = 32;

/// The usual one.
pub(crate) fn line(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    c.peek().filter(u8::is_ascii_digit)?;
    let mut r = m.report(Kind::GpuAllocation, true);
    r.requested_bytes = c.amount();
    if c.skip_past("executable_name='", 400) {
        r.module = named(c.take_while(|b| b != b'\'' && b != b']'));
    }
    Some(r.into())
}

/// The platform allocator's.
pub(crate) fn request(m: &Message<'_>) -> Option<Found> {
    let requested = m.cursor().exact()?;
    let mut r = m.report(Kind::GpuAllocation, true);
    r.requested_bytes = Some(requested);
    Some(r.into())
}

/// The driver's. The allocator asks it for less and less, so it comes in series.
pub(crate) fn driver(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let requested = c.exact()?;
    (c.skip_past("OutOfMemory", 60) || c.skip_past("ERROR_OUT_OF_MEMORY", 60)).then_some(())?;
    let mut r = m.report(Kind::GpuAllocation, true);
    r.requested_bytes = Some(requested);
    r.notes
        .push("the driver's line; the allocator may have gone on with a smaller request".into());
    Some(Found::Driver(Box::new(r)))
}

/// The limit set for a device.
pub(crate) fn limit(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let requested = c.size_or_int();
    c.want("ondevice")?;
    let mut r = m.report(Kind::GpuAllocation, true);
    r.requested_bytes = requested;
    if c.skip_past("limit=", 80) {
        r.limit_bytes = c.size_or_int();
    }
    Some(r.into())
}

/// The buffer assignment report.
pub(crate) fn buffer_assignment(m: &Message<'_>) -> Option<Found> {
    let list = m.cursor().find("Peakbuffers:", FAR).unwrap_or(m.end);
    let stats = Cursor::within(&m.sq.text, m.at, list);
    let value = |name: &str| stats.clone().size_after(name, FAR);
    let mut r = m.report(Kind::GpuBufferAssignment, true);
    r.parameter_bytes = value("parameterallocation:");
    r.constant_bytes = value("constantallocation:");
    r.output_bytes = value("maybe_live_outallocation:");
    r.temp_bytes = value("preallocatedtempallocation:");
    r.total_bytes = value("totalallocation:");
    r.fragmentation_bytes =
        value("totalfragmentation:").or_else(|| value("preallocatedtempfragmentation:"));
    r.allocations = blocks::parse(m.sq, list, m.end);
    let said = [r.total_bytes, r.temp_bytes, r.parameter_bytes];
    let says = said.iter().any(Option::is_some) || !r.allocations.is_empty();
    says.then(|| Found::BufferAssignment(Box::new(r)))
}

/// The BFC allocator's log.
pub(crate) fn bfc(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let mut requested = c.size_or_int()?;
    let no_failure = "Thecallerindicatesthatthisisnotafailure";
    if c.find(no_failure, 120).is_some() {
        let message = format!(
            "the allocator had no {} and went on with less",
            units::bytes(requested)
        );
        return Some(m.warning(WarningKind::AllocatorRetry, message, Some(requested), None));
    }
    if c.lit("(roundedto") {
        requested = c.int().unwrap_or(requested);
    }
    let mut r = m.report(Kind::GpuBfc, true);
    r.requested_bytes = Some(requested);
    let name = m.before("Allocator(", 80);
    let mut chunks = ChunkStats {
        allocator: name.and_then(|(_, text)| named(text.strip_suffix(b")")?)),
        ..ChunkStats::default()
    };
    for line in m.sq.lines_in(m.at, m.end) {
        read_line(line.trim(), &mut r, &mut chunks);
    }
    let total = |s: &ChunkSize| s.size_bytes.saturating_mul(s.count);
    chunks
        .in_use
        .sort_by_key(|s| Reverse((total(s), s.size_bytes)));
    chunks.in_use.truncate(MAX_SIZES);
    for run in m.sq.runs_in(m.at, m.end).filter(|r| r.free_count > 0) {
        chunks.free_count = chunks.free_count.saturating_add(run.free_count);
        let sum = chunks.free_bytes.unwrap_or(0);
        chunks.free_bytes = Some(sum.saturating_add(run.free_bytes));
        chunks.largest_free_bytes = chunks.largest_free_bytes.max(Some(run.largest_free));
    }
    // Many builds print 0 for the largest free block and mean that they did not look.
    let said = r.largest_free_block_bytes.filter(|&b| b > 0);
    r.largest_free_block_bytes = said
        .or(chunks.largest_free_bytes)
        .or(r.largest_free_block_bytes);
    r.chunks = Some(chunks);
    Some(r.into())
}

fn read_line(line: &str, r: &mut OomReport, chunks: &mut ChunkStats) {
    if is_bar(line) {
        let used = line.bytes().filter(|b| *b != b'_').count();
        chunks.bar_in_use_percent = Some((used * 1000 / line.len().max(1)) as f64 / 10.0);
        return;
    }
    if let Some((count, rest)) = line.split_once(" Chunks of size ") {
        let size = rest.split(' ').next().and_then(|s| s.parse().ok());
        if let (Ok(count), Some(size_bytes)) = (count.trim().parse(), size) {
            chunks.in_use.push(ChunkSize { size_bytes, count });
        }
        return;
    }
    let amount = |text: &str| Cursor::new(text.trim().as_bytes()).size_or_int();
    if let Some((_, rest)) = line.split_once("memory_limit_:") {
        r.limit_bytes = r.limit_bytes.or_else(|| amount(rest));
        return;
    }
    let Some((name, value)) = line.split_once(':') else {
        return;
    };
    match name.trim() {
        "Limit" => r.limit_bytes = amount(value).or(r.limit_bytes),
        "InUse" => r.in_use_bytes = amount(value),
        "MaxInUse" => chunks.max_in_use_bytes = amount(value),
        "LargestFreeBlock" => r.largest_free_block_bytes = amount(value),
        "Sum Total of in-use chunks" => chunks.in_use_bytes = amount(value),
        _ => {}
    }
}

//! In: the log of the BFC allocator (G16), of any era. Out: its values, down to the chunks.
//!
//! ```text
//! "Allocator (" NAME ") ran out of memory trying to allocate" size [ "(rounded to" int ")" ] ...
//! "InUse at" addr "of size" int "next" int      \  folded while reading: see section.rs
//! "Free  at" addr "of size" int "next" int      /
//! int "Chunks of size" int "totalling" size
//! "Sum Total of in-use chunks:" size
//! ( "total_region_allocated_bytes_:" | "Total bytes in pool:" | "Total size in pool:" ) amount
//!     "memory_limit_:" amount ...
//! "Stats:" { ( "Limit:" | "InUse:" | "MaxInUse:" | "LargestFreeBlock:" | ... ) amount }
//! bar = { "*" | "_" | "x" }
//! amount = int | size
//! ```
//! With "The caller indicates that this is not a failure" it is none.

use super::cursor::{lossy, rfind, Cursor};
use super::found::{base, Found};
use super::lexer::is_bar;
use super::report::{ChunkSize, ChunkStats, Kind, OomReport, Warning};
use super::section::Squeezed;
use super::size::{human, parse_int, parse_size};

/// Chunk sizes kept.
const MAX_SIZES: usize = 32;

/// Reads it from `ran out of memory trying to allocate`.
pub(crate) fn parse(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("ranoutofmemorytryingtoallocate").then_some(())?;
    let mut requested = c.size_or_int()?;
    let allocator = allocator(sq, at);
    if c.find("Thecallerindicatesthatthisisnotafailure", 120)
        .is_some()
    {
        let message = format!(
            "the allocator had no {} and went on with less",
            human(requested)
        );
        let (line, count) = sq.line_at(at);
        let kind = "allocator_retry";
        let bytes = Some(requested);
        return Some(Found::Warning(
            line,
            Warning {
                kind,
                message,
                bytes,
                limit_bytes: None,
                count,
            },
        ));
    }
    if c.lit("(roundedto") {
        requested = c.int().unwrap_or(requested);
    }
    let mut r = base(sq, at, Kind::GpuBfc, true);
    r.requested_bytes = Some(requested);
    let mut chunks = ChunkStats {
        allocator,
        ..ChunkStats::default()
    };
    for line in sq.lines_in(at, end) {
        read_line(line.trim(), &mut r, &mut chunks);
    }
    let largest_first = |s: &ChunkSize| {
        (
            std::cmp::Reverse(s.size_bytes.saturating_mul(s.count)),
            std::cmp::Reverse(s.size_bytes),
        )
    };
    chunks.in_use.sort_by_key(largest_first);
    chunks.in_use.truncate(MAX_SIZES);
    for run in sq.runs_in(at, end) {
        chunks.free_count = chunks.free_count.saturating_add(run.free_count);
        if run.free_count > 0 {
            let sum = chunks
                .free_bytes
                .unwrap_or(0)
                .saturating_add(run.free_bytes);
            chunks.free_bytes = Some(sum);
            chunks.largest_free_bytes = chunks.largest_free_bytes.max(Some(run.largest_free));
        }
    }
    // Many builds print 0 for the largest free block and mean that they did not look.
    let said = r.largest_free_block_bytes.filter(|&b| b > 0);
    r.largest_free_block_bytes = said
        .or(chunks.largest_free_bytes)
        .or(r.largest_free_block_bytes);
    r.chunks = Some(chunks);
    Some(Found::Report(Box::new(r)))
}

/// `Allocator (NAME)` just before.
fn allocator(sq: &Squeezed, at: usize) -> Option<String> {
    let before = sq.text.get(at.saturating_sub(80)..at)?;
    let name = before.get(rfind(before, b"Allocator(")? + 10..)?;
    let name = name.strip_suffix(b")")?;
    (!name.is_empty()).then(|| lossy(name))
}

fn amount(text: &str) -> Option<u64> {
    let text = text.trim().as_bytes();
    parse_size(text).or_else(|| parse_int(text)).map(|(n, _)| n)
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

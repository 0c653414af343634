//! In: text that looks like a device out of memory and is none (G20). Out: what it is instead.
//!
//! ```text
//! "oom-kill" | "oom_kill" | "OOM killed" | "OOMKilled" | "Out of memory: Kill"       host memory
//! ( "code" | "status" ) [ ":" | "=" ] "137"                                          host memory
//! "std::bad_alloc"                                                                   host memory
//! "OOM when allocating tensor with shape[" dims "] and type" TYPE ... "by allocator" NAME
//! "Ran out of memory in memory space" SPACE ". Estimated" decimal "exceeds" decimal  a tool's guess
//! ```

use super::cursor::Cursor;
use super::found::{base, Found};
use super::report::Kind;
use super::section::Squeezed;

fn host(sq: &Squeezed, at: usize, note: &str) -> Option<Found> {
    let mut r = base(sq, at, Kind::HostOom, false);
    r.space = Some("host".to_string());
    r.notes.push(note.to_string());
    Some(Found::Report(Box::new(r)))
}

/// The kernel, the container or the scheduler killed the process.
pub(crate) fn parse_kill(sq: &Squeezed, at: usize, _end: usize) -> Option<Found> {
    host(sq, at, "the process was killed for its host memory")
}

/// Exit status 137: killed, mostly for host memory.
pub(crate) fn parse_exit(sq: &Squeezed, at: usize, _end: usize) -> Option<Found> {
    let line = sq.readable(at, sq.line_end(at).min(at + 40));
    let rest = line.split_once("137").map_or("", |(_, rest)| rest);
    if rest.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    host(
        sq,
        at,
        "exit status 137: killed by signal 9, mostly for host memory",
    )
}

/// C++ found no host memory.
pub(crate) fn parse_bad_alloc(sq: &Squeezed, at: usize, _end: usize) -> Option<Found> {
    host(sq, at, "std::bad_alloc: the process found no host memory")
}

/// TensorFlow's executor ran out: the device is full, but there is no XLA program to look at.
pub(crate) fn parse_tensorflow(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("OOMwhenallocatingtensorwithshape").then_some(())?;
    (c.peek() == Some(b'[')).then_some(())?;
    let text = sq.readable(at, sq.line_end(at).min(end));
    let mut r = base(sq, at, Kind::TensorflowOp, false);
    r.notes.push(text.trim().chars().take(200).collect());
    r.notes
        .push("TensorFlow's op-by-op executor ran out, not an XLA program".to_string());
    Some(Found::Report(Box::new(r)))
}

/// A tool's own guess in XLA's words, with decimal units.
pub(crate) fn estimate(sq: &Squeezed, at: usize) -> Option<Found> {
    let text = sq.readable(at, sq.line_end(at).min(at + 400));
    let mut r = base(sq, at, Kind::LookAlike, false);
    r.notes.push(text.trim().chars().take(200).collect());
    r.notes
        .push("a tool's own estimate before compiling, not XLA's error".to_string());
    Some(Found::Report(Box::new(r)))
}

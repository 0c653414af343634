//! In: host memory that ran out, figures that frameworks print about a program, and text that only
//! looks like a device out of memory. Out: their values, or what it is instead.
//!
//! ```text
//! cpu      = "Out of memory allocating" int "bytes."                          the CPU backend
//! pinned   = "Out of host memory while trying to allocate" amount "."         pinned host memory
//! killed   = "oom-kill" | "oom_kill" | "OOM killed" | "OOMKilled" | "Out of memory: Kill"
//! status   = ( "code" | "status" ) [ ":" | "=" ] "137"
//! no room  = "std::bad_alloc"
//! tf op    = "OOM when allocating tensor with shape[" dims "] and type" TYPE ... "by allocator" NAME
//! estimate = "Ran out of memory in memory space" SPACE ". Estimated" decimal "exceeds" decimal
//! figures  = "Post Compilation Analysis: Graph input size:" number "GB" ...               PyTorch/XLA
//!          | ( "Total memory size:" | "Total estimated memory size" ... )
//!            { name "size:" number "GB" "," }                                             MaxText
//!          | "Using (GB)" number "/" number "(" percent "%) on" DEVICE                    MaxText
//!          | "AllocatorStats" { name ":" number unit }                                    Reactant
//! amount   = size | int "bytes"
//! ```
//! GB stays text: none of them says whether it is 10^9 or 2^30.

use super::found::{Found, Message};
use super::report::{Figure, Kind};
use crate::units::parse_size;

/// Starts of lines of a framework's figures.
pub(crate) const LINES: &[&str] = &["Graph ", "Aliased ", "Intermediate ", "Compiled program"];
/// Lines looked at, and figures kept.
const MAX_LINES: usize = 16;
const MAX_FIGURES: usize = 24;

/// The CPU backend's.
pub(crate) fn cpu(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    c.peek().filter(u8::is_ascii_digit)?;
    let mut r = m.report(Kind::CpuAllocation, true);
    r.requested_bytes = c.amount();
    Some(r.into())
}

/// Pinned host memory of a GPU program: not the device's.
pub(crate) fn pinned(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    c.peek().filter(u8::is_ascii_digit)?;
    let mut r = m.report(Kind::HostOom, false);
    r.requested_bytes = c.amount();
    r.space = Some("host".to_string());
    r.pinned_host = true;
    let note = "pinned host memory; XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB sets its limit";
    r.notes.push(note.to_string());
    Some(r.into())
}

fn host(m: &Message<'_>, note: &str) -> Option<Found> {
    let mut r = m.report(Kind::HostOom, false);
    r.space = Some("host".to_string());
    r.notes.push(note.to_string());
    Some(r.into())
}

/// The kernel, the container or the scheduler killed the process.
pub(crate) fn killed(m: &Message<'_>) -> Option<Found> {
    host(m, "the process was killed for its host memory")
}

/// Exit status 137: killed, mostly for host memory.
pub(crate) fn status(m: &Message<'_>) -> Option<Found> {
    let line = m.sq.readable(m.at, m.sq.line_end(m.at).min(m.at + 40));
    let rest = line.split_once("137").map_or("", |(_, rest)| rest);
    let longer = rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    let note = "exit status 137: killed by signal 9, mostly for host memory";
    (!longer).then(|| host(m, note)).flatten()
}

/// C++ found no host memory.
pub(crate) fn bad_alloc(m: &Message<'_>) -> Option<Found> {
    host(m, "std::bad_alloc: the process found no host memory")
}

/// A report that quotes its text and says what it is.
fn quoted(m: &Message<'_>, kind: Kind, text: &str, what: &str) -> Option<Found> {
    let mut r = m.report(kind, false);
    r.notes.push(text.trim().chars().take(200).collect());
    r.notes.push(what.to_string());
    Some(r.into())
}

/// TensorFlow's executor ran out: the device is full, but there is no XLA program to look at.
pub(crate) fn tensorflow(m: &Message<'_>) -> Option<Found> {
    m.cursor().want("[")?;
    let what = "TensorFlow's op-by-op executor ran out, not an XLA program";
    quoted(m, Kind::TensorflowOp, &m.line(), what)
}

/// A tool's own guess in XLA's words, with decimal units.
pub(crate) fn estimate(m: &Message<'_>) -> Option<Found> {
    let text = m.sq.readable(m.at, m.sq.line_end(m.at).min(m.at + 400));
    let what = "a tool's own estimate before compiling, not XLA's error";
    quoted(m, Kind::LookAlike, &text, what)
}

/// PyTorch/XLA's lines.
pub(crate) fn pytorch(m: &Message<'_>) -> Option<Found> {
    figures(m, m.end, "pytorch_xla")
}

/// MaxText's summary.
pub(crate) fn maxtext(m: &Message<'_>) -> Option<Found> {
    figures(m, m.sq.line_end(m.at).min(m.end), "maxtext")
}

/// MaxText's line per device.
pub(crate) fn maxtext_device(m: &Message<'_>) -> Option<Found> {
    let line = m.line();
    let rest = line.strip_prefix("Using (GB)")?.trim();
    let (amount, device) = rest.split_once(" on ")?;
    amount.chars().next().filter(char::is_ascii_digit)?;
    let figure = Figure {
        name: format!("used on {}", device.trim()),
        text: format!("{} GB", amount.split('(').next()?.trim()),
        bytes: None,
    };
    accounting(m, "maxtext", vec![figure])
}

/// Reactant's box.
pub(crate) fn reactant(m: &Message<'_>) -> Option<Found> {
    figures(m, m.end, "reactant")
}

fn figures(m: &Message<'_>, end: usize, from: &str) -> Option<Found> {
    let lines = m.sq.lines_in(m.at, end).take(MAX_LINES);
    let parts = lines.flat_map(|l| l.split(", "));
    accounting(
        m,
        from,
        parts.filter_map(figure).take(MAX_FIGURES).collect(),
    )
}

fn accounting(m: &Message<'_>, from: &str, figures: Vec<Figure>) -> Option<Found> {
    if figures.is_empty() {
        return None;
    }
    let mut r = m.report(Kind::FrameworkAccounting, false);
    r.accounting = figures;
    r.notes.push(format!("figures of {from}, as printed"));
    Some(r.into())
}

/// `name: number unit`.
fn figure(text: &str) -> Option<Figure> {
    let (name, value) = text.rsplit_once(':')?;
    let mut words = value.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    number.parse::<f64>().ok().filter(|n| n.is_finite())?;
    let unit = unit.trim_end_matches(['.', ',']);
    let bytes = match unit {
        "B" | "KiB" | "MiB" | "GiB" | "TiB" => parse_size(&format!("{number}{unit}")),
        "KB" | "MB" | "GB" | "TB" => None,
        _ => return None,
    };
    Some(Figure {
        name: name.rsplit(':').next().unwrap_or(name).trim().to_string(),
        text: format!("{number} {unit}"),
        bytes,
    })
}

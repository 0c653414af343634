//! What a family parser hands back, and what all of them share: the start of a report, error codes, names.

use super::report::{Kind, OomReport, Warning};
use super::section::Squeezed;

/// What a parser found.
#[derive(Debug)]
pub(crate) enum Found {
    /// A failure, or something that stands for itself.
    Report(Box<OomReport>),
    /// Something to note beside a failure.
    Warning(u64, Warning),
    /// A buffer assignment report: belongs to the GPU failure before it.
    BufferAssignment(Box<OomReport>),
    /// A usage line or table: belongs to the usage lines before it.
    Usage(Box<OomReport>),
}

/// A report with what every message may carry: its line, how often, its error code.
pub(crate) fn base(sq: &Squeezed, at: usize, kind: Kind, oom: bool) -> OomReport {
    let mut r = OomReport::new(kind, oom);
    (r.line, r.count) = sq.line_at(at);
    r.code = error_code(sq, at);
    r.truncated = sq.section.truncated;
    r
}

/// `E1000:` shortly before the message.
fn error_code(sq: &Squeezed, at: usize) -> Option<String> {
    let before = sq.text.get(at.saturating_sub(160)..at)?;
    let n = before.windows(6).rposition(|w| match w {
        [b'E', digits @ .., b':'] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    })?;
    let glued = n > 0 && before.get(n - 1).is_some_and(|b| b.is_ascii_alphanumeric());
    let code = before.get(n..n + 5)?;
    // Another message between the code and this one would own the code.
    let between = before.get(n..)?;
    let other = super::cursor::find(between, b"Seehttps").is_some();
    (!glued && !other).then(|| super::cursor::lossy(code))
}

/// A name in the readable text: letters, digits and `_.-<>$`; a full stop at its end is not its.
/// A line that is full can break a name: then it goes on in the next.
pub(crate) fn name_at(sq: &Squeezed, at: usize) -> Option<String> {
    const FULL_LINE: usize = 60;
    let part = |c: &char| c.is_ascii_alphanumeric() || "_.-<>$".contains(*c);
    let raw = sq.section.raw.get(sq.raw_at(at)..)?;
    let mut lines = raw.split('\n').take(4);
    let first = lines.next()?;
    let mut name: String = first.chars().take(256).take_while(part).collect();
    let before = sq
        .section
        .raw
        .get(..sq.raw_at(at))?
        .rsplit('\n')
        .next()?
        .len();
    let mut full = before + first.len() >= FULL_LINE && name.len() == first.len();
    for next in lines {
        if !full || name.ends_with('.') || next.starts_with("See http") {
            break;
        }
        let next = next.trim_start();
        let more: String = next.chars().take(256).take_while(part).collect();
        full = next.len() >= FULL_LINE && more.len() == next.len();
        name.push_str(&more);
    }
    let name = name.trim_end_matches('.');
    (!name.is_empty()).then(|| name.to_string())
}

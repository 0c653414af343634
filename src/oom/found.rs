//! A message as a family parser gets it, what the parser hands back, and what all of them share:
//! the start of a report, error codes, names.

use super::cursor::{find, lossy, rfind, Cursor};
use super::report::{Kind, OomReport, Warning, WarningKind};
use super::section::Squeezed;

/// A message: its text, and where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub sq: &'a Squeezed,
    /// Where the words that tell it start.
    pub at: usize,
    /// Where they end.
    pub after: usize,
    /// Where the message ends at the latest.
    pub end: usize,
}

/// What a parser found.
#[derive(Debug)]
pub(crate) enum Found {
    /// A failure, or something that stands for itself.
    Report(Box<OomReport>),
    /// The GPU driver's line; the allocator may have gone on with a smaller request.
    Driver(Box<OomReport>),
    /// Something to note beside a failure.
    Warning(u64, Warning),
    /// A buffer assignment report: belongs to the GPU failure before it.
    BufferAssignment(Box<OomReport>),
    /// A usage line or table: belongs to the usage lines before it.
    Usage(Box<OomReport>),
}

impl From<OomReport> for Found {
    fn from(r: OomReport) -> Self {
        Found::Report(Box::new(r))
    }
}

impl<'a> Message<'a> {
    /// Behind the words that tell the message.
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor::within(&self.sq.text, self.after, self.end)
    }

    /// The text from `start` on, to the message's end.
    pub fn from(&self, start: usize) -> Cursor<'a> {
        Cursor::within(&self.sq.text, start, self.end)
    }

    /// Where `word` last stands in the `max` bytes before the message, and what is between.
    pub fn before(&self, word: &str, max: usize) -> Option<(usize, &'a [u8])> {
        let start = self.at.saturating_sub(max);
        let n = rfind(self.sq.text.get(start..self.at)?, word)?;
        let between = self.sq.text.get(start + n + word.len()..self.at)?;
        Some((start + n, between))
    }

    /// The readable text from the message's words to the end of their line.
    pub fn line(&self) -> String {
        let end = self.sq.line_end(self.at).min(self.end);
        self.sq.readable(self.at, end).trim().to_owned()
    }

    /// A report with what every message may carry: its line, how often, its error code.
    pub fn report(&self, kind: Kind, oom: bool) -> OomReport {
        self.report_from(self.at, kind, oom)
    }

    /// The same for a message that starts before its words.
    pub fn report_from(&self, at: usize, kind: Kind, oom: bool) -> OomReport {
        let mut r = OomReport::new(kind, oom);
        (r.line, r.count) = self.sq.line_at(at);
        r.code = error_code(self.sq, at);
        r.truncated = self.sq.section.truncated;
        r
    }

    /// A warning, with its figure and the limit that it names.
    pub fn warning(
        &self,
        kind: WarningKind,
        message: String,
        bytes: Option<u64>,
        limit_bytes: Option<u64>,
    ) -> Found {
        let (line, count) = self.sq.line_at(self.at);
        let warning = Warning {
            kind,
            message,
            bytes,
            limit_bytes,
            count,
        };
        Found::Warning(line, warning)
    }
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
    let other = find(before.get(n..)?, "Seehttps").is_some();
    (!glued && !other).then(|| lossy(code))
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
    let before = sq.section.raw.get(..sq.raw_at(at))?;
    let before = before.rsplit('\n').next()?.len();
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

//! In: cleaned lines that belong together. Out: their text without blanks, with the way back.
//!
//! Blanks and line breaks carry nothing in these messages: pasting wraps, glues and re-aligns
//! them. So parsers work on *squeezed* text, where `Used 21.95G of 15.48G hbm.` is
//! `Used21.95Gof15.48Ghbm.`, however it was wrapped, and ask for the readable text of a range.

use super::cursor::lossy;

/// Free and used pieces listed by the BFC allocator, folded while the log is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChunkRun {
    /// Where the run stands in the section's raw text.
    pub at: usize,
    pub free_count: u64,
    pub free_bytes: u64,
    pub largest_free: u64,
    pub in_use_bytes: u64,
}

/// Lines under collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub tag: Option<String>,
    /// Cleaned lines, each with its line end.
    pub raw: String,
    /// Start of each line in `raw`, its number in the log, and how many lines it stands for.
    pub lines: Vec<(usize, u64, u64)>,
    pub runs: Vec<ChunkRun>,
    /// Lines since the last one that belonged here.
    pub idle: u32,
    pub last_line: u64,
    /// A cap was reached.
    pub truncated: bool,
}

/// A section without blanks.
#[derive(Debug)]
pub(crate) struct Squeezed {
    pub text: Vec<u8>,
    map: Vec<u32>,
    pub section: Section,
}

impl Section {
    /// Adds a line; chunk lines are folded instead.
    pub fn push(&mut self, text: &str, number: u64, repeated: u64) {
        if let Some((free, size)) = chunk_line(text) {
            self.fold_chunk(free, size);
            return;
        }
        self.lines.push((self.raw.len(), number, repeated));
        self.raw.push_str(text);
        self.raw.push('\n');
    }

    fn fold_chunk(&mut self, free: bool, size: u64) {
        let at = self.raw.len();
        if self.runs.last().is_none_or(|r| r.at != at) {
            self.runs.push(ChunkRun {
                at,
                ..ChunkRun::default()
            });
        }
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        if free {
            run.free_count = run.free_count.saturating_add(1);
            run.free_bytes = run.free_bytes.saturating_add(size);
            run.largest_free = run.largest_free.max(size);
        } else {
            run.in_use_bytes = run.in_use_bytes.saturating_add(size);
        }
    }

    /// Takes the blanks out.
    pub fn squeeze(self) -> Squeezed {
        let mut text = Vec::with_capacity(self.raw.len());
        let mut map = Vec::with_capacity(self.raw.len());
        for (at, b) in self.raw.bytes().enumerate() {
            if !b.is_ascii_whitespace() {
                text.push(b);
                map.push(u32::try_from(at).unwrap_or(u32::MAX));
            }
        }
        Squeezed {
            text,
            map,
            section: self,
        }
    }
}

/// `InUse at 703b12d00 of size 256 next 274`, `Free  at 70ff of size 256 next 275`.
fn chunk_line(text: &str) -> Option<(bool, u64)> {
    let mut words = text.split_ascii_whitespace();
    let free = match words.next()? {
        "InUse" => false,
        "Free" => true,
        _ => return None,
    };
    if words.next()? != "at" {
        return None;
    }
    words.next()?;
    (words.next()? == "of" && words.next()? == "size").then_some(())?;
    Some((free, words.next()?.parse().ok()?))
}

impl Squeezed {
    /// Place in the raw text of a place in the squeezed one.
    pub fn raw_at(&self, at: usize) -> usize {
        self.map
            .get(at)
            .map_or(self.section.raw.len(), |&n| n as usize)
    }

    /// Place in the squeezed text of a place in the raw one (the next that is no blank).
    pub fn squeezed_at(&self, raw: usize) -> usize {
        self.map.partition_point(|&n| (n as usize) < raw)
    }

    /// The readable text of a squeezed range; line breaks inside it are taken as wraps.
    pub fn readable(&self, start: usize, end: usize) -> String {
        let Some(last) = end.checked_sub(1).filter(|&e| e >= start) else {
            return String::new();
        };
        let raw = self.section.raw.as_bytes();
        let range = self.raw_at(start)..(self.raw_at(last) + 1).min(raw.len());
        let text = lossy(raw.get(range).unwrap_or_default());
        let mut out = String::with_capacity(text.len());
        for (n, line) in text.split('\n').enumerate() {
            out.push_str(if n == 0 { line } else { line.trim_start() });
        }
        out
    }

    /// End of the line that holds this place, in squeezed text.
    pub fn line_end(&self, at: usize) -> usize {
        let raw = self.raw_at(at);
        let next = self.section.lines.partition_point(|l| l.0 <= raw);
        self.section
            .lines
            .get(next)
            .map_or(self.text.len(), |l| self.squeezed_at(l.0))
    }

    /// Number in the log of the line that holds this place, and how many lines it stands for.
    pub fn line_at(&self, at: usize) -> (u64, u64) {
        let raw = self.raw_at(at);
        let n = self.section.lines.partition_point(|l| l.0 <= raw);
        let line = n.checked_sub(1).and_then(|n| self.section.lines.get(n));
        line.map_or((0, 1), |l| (l.1, l.2))
    }

    /// The cleaned lines of a squeezed range.
    pub fn lines_in(&self, start: usize, end: usize) -> impl Iterator<Item = &str> {
        let raw = self.section.raw.as_bytes();
        let range = self.raw_at(start)..self.raw_at(end).min(raw.len());
        self.section.raw.get(range).unwrap_or_default().lines()
    }

    /// Chunk runs that stand in a squeezed range.
    pub fn runs_in(&self, start: usize, end: usize) -> impl Iterator<Item = &ChunkRun> {
        let (from, to) = (self.raw_at(start), self.raw_at(end));
        self.section
            .runs
            .iter()
            .filter(move |r| r.at >= from && r.at <= to)
    }
}

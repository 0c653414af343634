//! In: a log of any size. Out: its sections that may speak of memory, in order.
//!
//! Most of a log is stepped over: a line is looked at only when it holds one of the words
//! that open a message, or follows such a line closely. Memory is bounded whatever the input: one block of the log, and a
//! capped text for each of a few open sections (one for each process whose lines are mixed).

use std::io::{self, Read};

use super::families::{follows, opening};
use super::lexer::{clean, Cleaned};
use super::section::Section;

/// Bytes of the log held at once; a longer line is read in pieces.
const BLOCK: usize = 1 << 20;
/// Longest piece of a line that is kept.
const MAX_LINE: usize = 256 << 10;
/// Text kept before the word that opened a section, when its line is long.
const MAX_BEFORE: usize = 4 << 10;
/// Text of one section.
const MAX_SECTION: usize = 1 << 20;
/// Lines of one section.
const MAX_SECTION_LINES: usize = 20_000;
/// Lines a section waits for something that belongs to it.
const IDLE_LINES: u32 = 40;
/// Lines of the whole log after which a section that got nothing is closed.
const STALE_LINES: u64 = 400;
/// Sections open at once.
const MAX_OPEN: usize = 16;

/// Whether text holds a word that could open a section.
pub(crate) fn has_word(text: &[u8]) -> bool {
    opening(text).is_some()
}

/// Reads a log to its end and hands over each section as soon as it is complete.
pub(crate) fn scan(mut input: impl Read, mut done: impl FnMut(Section)) -> io::Result<()> {
    let mut state = Scan {
        open: Vec::new(),
        line: 1,
        recent: None,
    };
    let mut buffer = vec![0; BLOCK];
    let mut filled = 0;
    loop {
        let free = buffer.get_mut(filled..).unwrap_or_default();
        let n = match input.read(free) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            n => n?,
        };
        filled = (filled + n).min(buffer.len());
        let end = n == 0;
        if !end && filled < buffer.len() {
            continue;
        }
        let text = buffer.get(..filled).unwrap_or_default();
        let whole = memchr::memrchr(b'\n', text).map_or(filled, |n| n + 1);
        let now = if end { filled } else { whole };
        state.block(text.get(..now).unwrap_or_default(), &mut done);
        if end {
            break;
        }
        buffer.copy_within(now..filled, 0);
        filled -= now;
    }
    state.close(|_| true, &mut done);
    Ok(())
}

struct Scan {
    open: Vec<Section>,
    line: u64,
    /// Tag of the section that got the last line.
    recent: Option<Option<String>>,
}

impl Scan {
    fn block(&mut self, text: &[u8], done: &mut impl FnMut(Section)) {
        let mut at = 0;
        while at < text.len() {
            if self.open.is_empty() {
                let rest = text.get(at..).unwrap_or_default();
                let Some(hit) = opening(rest).map(|n| at + n) else {
                    self.count_lines(Some(rest));
                    return;
                };
                let skipped = text.get(at..hit).unwrap_or_default();
                let start = at + memchr::memrchr(b'\n', skipped).map_or(0, |n| n + 1);
                self.count_lines(text.get(at..start));
                at = start.max(hit.saturating_sub(MAX_BEFORE));
            }
            let rest = text.get(at..).unwrap_or_default();
            let newline = memchr::memchr(b'\n', rest).map(|n| n + 1);
            let take = newline.unwrap_or(rest.len()).min(MAX_LINE);
            self.feed(rest.get(..take).unwrap_or_default(), done);
            self.line += u64::from(newline == Some(take));
            at += take;
        }
    }

    fn count_lines(&mut self, text: Option<&[u8]>) {
        let count = memchr::memchr_iter(b'\n', text.unwrap_or_default()).count();
        self.line += count as u64;
    }

    fn feed(&mut self, raw: &[u8], done: &mut impl FnMut(Section)) {
        let opens = has_word(raw);
        let line = clean(&String::from_utf8_lossy(raw));
        let belongs = opens || follows(&line.text);
        if let Some(n) = self.section_for(&line, opens) {
            self.recent = self.open.get(n).map(|s| s.tag.clone());
            self.add(n, &line, belongs, done);
        }
        let now = self.line;
        self.close(
            |s| s.idle > IDLE_LINES || now > s.last_line + STALE_LINES,
            done,
        );
    }

    /// The section of the line's writer, or of the line before when it has no tag.
    fn section_for(&mut self, line: &Cleaned, opens: bool) -> Option<usize> {
        let tag = match (&line.tag, &self.recent) {
            (None, Some(recent)) => recent.clone(),
            (tag, _) => tag.clone(),
        };
        if let Some(n) = self.open.iter().position(|s| s.tag == tag) {
            return Some(n);
        }
        if !opens || self.open.len() >= MAX_OPEN {
            return (!self.open.is_empty() && line.tag.is_none()).then_some(self.open.len() - 1);
        }
        self.open.push(Section {
            tag,
            last_line: self.line,
            ..Section::default()
        });
        Some(self.open.len() - 1)
    }

    fn add(&mut self, n: usize, line: &Cleaned, belongs: bool, done: &mut impl FnMut(Section)) {
        let number = self.line;
        let Some(s) = self.open.get_mut(n) else {
            return;
        };
        if s.raw.len() + line.text.len() > MAX_SECTION || s.lines.len() >= MAX_SECTION_LINES {
            let rest = Section {
                tag: s.tag.clone(),
                truncated: true,
                ..Section::default()
            };
            let full = std::mem::replace(s, rest);
            done(Section {
                truncated: true,
                ..full
            });
        }
        s.push(&line.text, number, line.repeated);
        s.idle = if belongs { 0 } else { s.idle + 1 };
        s.last_line = if belongs { number } else { s.last_line };
    }

    fn close(&mut self, which: impl Fn(&Section) -> bool, done: &mut impl FnMut(Section)) {
        if !self.open.iter().any(&which) {
            return;
        }
        let (closed, open) = std::mem::take(&mut self.open).into_iter().partition(which);
        self.open = open;
        if self.open.is_empty() {
            self.recent = None;
        }
        let closed: Vec<Section> = closed;
        closed.into_iter().for_each(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &[u8]) -> Vec<Section> {
        let mut out = Vec::new();
        scan(text, |s| out.push(s)).unwrap();
        out
    }

    #[test]
    fn other_lines_are_stepped_over() {
        let noise = "step 1 loss 3.2\n".repeat(200_000);
        let text = format!("{noise}RESOURCE_EXHAUSTED: x\nnext\n{noise}");
        let found = sections(text.as_bytes());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].lines[0].1, 200_001);
        assert!(found[0].raw.starts_with("RESOURCE_EXHAUSTED: x\nnext\n"));
        assert!(found[0].lines.len() < 60);
    }

    #[test]
    fn a_line_without_end_stays_bounded() {
        let mut text = vec![b'x'; 5 << 20];
        text.extend_from_slice(b" Ran out of memory in memory space hbm.");
        text.extend(std::iter::repeat_n(b'y', 5 << 20));
        let found = sections(&text);
        assert!(!found.is_empty());
        assert!(found.iter().all(|s| s.raw.len() <= MAX_SECTION + 1));
        assert!(found.iter().any(|s| s.raw.contains("memory space hbm.")));
    }

    #[test]
    fn mixed_processes_are_told_apart() {
        let text = "(W pid=1) RESOURCE_EXHAUSTED: a\n(W pid=2) RESOURCE_EXHAUSTED: b\n\
                    (W pid=1) Size: 1\n(W pid=2) Size: 2\n";
        let found = sections(text.as_bytes());
        let raw: Vec<&str> = found.iter().map(|s| s.raw.as_str()).collect();
        assert_eq!(
            raw,
            [
                "RESOURCE_EXHAUSTED: a\nSize: 1\n",
                "RESOURCE_EXHAUSTED: b\nSize: 2\n"
            ]
        );
    }
}

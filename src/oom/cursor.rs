//! In: text without blanks. Out: a small scanner over it, and what the family parsers read with it.
//!
//! Reads come in two sorts. Those that give a `bool` or a value are for parts that may be missing;
//! [`Cursor::want`] and [`Cursor::reach`] give `None` where a message must go on, for `?`.

use memchr::memmem;

use crate::units::size_prefix;

/// No limit to how far to look.
pub(crate) const FAR: usize = usize::MAX >> 1;

/// A position in text; every read either moves past what it read or stays.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of `text`.
    pub fn new(text: &'a [u8]) -> Self {
        Cursor { text, at: 0 }
    }

    /// At `at`, reading no further than `end`.
    pub fn within(text: &'a [u8], at: usize, end: usize) -> Self {
        let end = end.min(text.len());
        Cursor {
            text: text.get(..end).unwrap_or(text),
            at: at.min(end),
        }
    }

    /// Position from the start of the text.
    pub fn pos(&self) -> usize {
        self.at
    }

    /// Moves to a position.
    pub fn seek(&mut self, at: usize) {
        self.at = at.min(self.text.len());
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// What was read since a position.
    pub fn since(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Next byte.
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Moves past `word` if it is next.
    pub fn lit(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    /// Moves past `word`, which must be next.
    pub fn want(&mut self, word: &str) -> Option<()> {
        self.lit(word).then_some(())
    }

    /// Moves past `word` if it starts within the next `max` bytes.
    pub fn skip_past(&mut self, word: &str, max: usize) -> bool {
        let found = self.find(word, max);
        self.at = found.map_or(self.at, |at| at + word.len());
        found.is_some()
    }

    /// Moves past `word`, which must start within the next `max` bytes.
    pub fn reach(&mut self, word: &str, max: usize) -> Option<()> {
        self.skip_past(word, max).then_some(())
    }

    /// Where `word` starts within the next `max` bytes.
    pub fn find(&self, word: &str, max: usize) -> Option<usize> {
        let rest = self.rest();
        let rest = rest.get(..max.saturating_add(word.len())).unwrap_or(rest);
        find(rest, word).map(|n| self.at + n)
    }

    /// Reads a size with its unit.
    pub fn size(&mut self) -> Option<u64> {
        let (value, n) = size_prefix(self.rest())?;
        self.at += n;
        Some(value)
    }

    /// Reads an unsigned integer.
    pub fn int(&mut self) -> Option<u64> {
        let mut ahead = self.clone();
        let digits = ahead.take_while(|b| b.is_ascii_digit());
        let value = std::str::from_utf8(digits).ok()?.parse().ok()?;
        *self = ahead;
        Some(value)
    }

    /// Reads a size with its unit, or an integer.
    pub fn size_or_int(&mut self) -> Option<u64> {
        self.size().or_else(|| self.int())
    }

    /// Reads a size with its unit, or an integer followed by `bytes`. An integer that the text's
    /// end may have cut is no value.
    pub fn amount(&mut self) -> Option<u64> {
        let start = self.at;
        let value = self
            .size()
            .or_else(|| self.int().filter(|_| self.lit("bytes")));
        if value.is_none() {
            self.at = start;
        }
        value
    }

    /// Reads `4.00GiB(4294967552B)`, `4.00GiB(4294967552bytes)` or a figure alone: the exact one
    /// where it stands.
    pub fn exact(&mut self) -> Option<u64> {
        let rounded = self.size_or_int()?;
        let mut ahead = self.clone();
        let exact = ahead.lit("(").then(|| ahead.int()).flatten();
        if exact.is_some() && (ahead.lit("bytes)") || ahead.lit("B)")) {
            *self = ahead;
            return exact;
        }
        Some(rounded)
    }

    /// The size behind `word`, if that starts within the next `max` bytes.
    pub fn size_after(&mut self, word: &str, max: usize) -> Option<u64> {
        self.skip_past(word, max).then(|| self.size()).flatten()
    }

    /// Reads while `keep` holds.
    pub fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let n = rest.iter().take_while(|&&b| keep(b)).count();
        self.at += n;
        rest.get(..n).unwrap_or_default()
    }

    /// Reads a name: what is left before `mark`; `None` when that is nothing.
    pub fn name_until(&mut self, mark: u8) -> Option<String> {
        named(self.take_while(|b| b != mark))
    }

    /// Reads a name of letters, digits and `more`; `None` when there is none.
    pub fn name_of(&mut self, more: &[u8]) -> Option<String> {
        named(self.take_while(|b| b.is_ascii_alphanumeric() || more.contains(&b)))
    }
}

/// Text that is not empty.
pub(crate) fn named(text: &[u8]) -> Option<String> {
    (!text.is_empty()).then(|| lossy(text))
}

/// First place of `word` in `text`.
pub(crate) fn find(text: &[u8], word: &str) -> Option<usize> {
    memmem::find(text, word.as_bytes())
}

/// Last place of `word` in `text`.
pub(crate) fn rfind(text: &[u8], word: &str) -> Option<usize> {
    memmem::rfind(text, word.as_bytes())
}

/// Bytes as text, damaged ones replaced.
pub(crate) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

//! In: text without blanks. Out: a small scanner over it, shared by the family parsers.

use super::size::{parse_int, parse_size};

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

    /// Moves past the first of `words` that is next.
    pub fn any_lit(&mut self, words: &[&str]) -> bool {
        words.iter().any(|w| self.lit(w))
    }

    /// Reads a size with its unit.
    pub fn size(&mut self) -> Option<u64> {
        let (value, n) = parse_size(self.rest())?;
        self.at += n;
        Some(value)
    }

    /// Reads an integer.
    pub fn int(&mut self) -> Option<u64> {
        let (value, n) = parse_int(self.rest())?;
        self.at += n;
        Some(value)
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

    /// Reads a size with its unit, or an integer.
    pub fn size_or_int(&mut self) -> Option<u64> {
        self.size().or_else(|| self.int())
    }

    /// Reads while `keep` holds.
    pub fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let n = rest.iter().take_while(|&&b| keep(b)).count();
        self.at += n;
        rest.get(..n).unwrap_or_default()
    }

    /// Moves past `word` if it starts within the next `max` bytes.
    pub fn skip_past(&mut self, word: &str, max: usize) -> bool {
        match self.find(word, max) {
            Some(at) => {
                self.at = at + word.len();
                true
            }
            None => false,
        }
    }

    /// Where `word` starts within the next `max` bytes.
    pub fn find(&self, word: &str, max: usize) -> Option<usize> {
        let rest = self.rest();
        let rest = rest.get(..max.saturating_add(word.len())).unwrap_or(rest);
        find(rest, word.as_bytes()).map(|n| self.at + n)
    }
}

/// First place of `word` in `text`.
pub(crate) fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    let first = *word.first()?;
    let mut from = 0;
    while let Some(n) = text.get(from..)?.iter().position(|&b| b == first) {
        let at = from + n;
        if text.get(at..)?.starts_with(word) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Last place of `word` in `text`.
pub(crate) fn rfind(text: &[u8], word: &[u8]) -> Option<usize> {
    if word.is_empty() || word.len() > text.len() {
        return None;
    }
    text.windows(word.len()).rposition(|w| w == word)
}

/// Bytes as text, damaged ones replaced.
pub(crate) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

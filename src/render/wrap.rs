//! Words into lines of a width: the only place that breaks them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::escape::clean;
use super::words::{Span, Tone, Words};

/// Fewest columns that text is set in.
const NARROWEST: usize = 8;

/// `words` in lines of at most `width` columns, broken at blanks where it can be; a word longer
/// than a line is broken after a mark between names. Never empty.
pub fn wrap(words: &Words, width: usize) -> Vec<Vec<Span>> {
    let mut lines = Lines {
        width: width.max(NARROWEST),
        done: Vec::new(),
        line: Vec::new(),
        used: 0,
    };
    for (n, part) in hard_lines(words).into_iter().enumerate() {
        if n > 0 {
            lines.end();
        }
        for word in split(&part) {
            lines.add(word);
        }
    }
    lines.end();
    lines.done
}

/// Words between the breaks that are asked for.
fn hard_lines(words: &Words) -> Vec<Vec<Span>> {
    let mut out = vec![Vec::new()];
    for &Span { tone, ref text } in &words.0 {
        for (n, text) in text.split('\n').enumerate() {
            if n > 0 {
                out.push(Vec::new());
            }
            let text = match tone {
                Tone::Quoted => format!("`{}`", clean(text)),
                _ => clean(text),
            };
            if let Some(line) = out.last_mut() {
                line.push(Span { tone, text });
            }
        }
    }
    out
}

/// A word: pieces of several tones with no blank between them.
type Word = Vec<Span>;

fn split(line: &[Span]) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut open = false;
    for span in line {
        let pieces: Vec<&str> = match span.tone {
            Tone::Path => vec![&span.text],
            _ => span.text.split(' ').collect(),
        };
        for (n, piece) in pieces.into_iter().enumerate() {
            if n > 0 {
                open = false;
            }
            if piece.is_empty() {
                continue;
            }
            let piece = Span {
                tone: span.tone,
                text: piece.to_owned(),
            };
            match out.last_mut() {
                Some(word) if open => word.push(piece),
                _ => out.push(vec![piece]),
            }
            open = true;
        }
    }
    out
}

struct Lines {
    width: usize,
    done: Vec<Vec<Span>>,
    line: Vec<Span>,
    used: usize,
}

impl Lines {
    fn end(&mut self) {
        self.done.push(std::mem::take(&mut self.line));
        self.used = 0;
    }

    fn push(&mut self, span: Span) {
        self.used += span.text.width();
        match self.line.last_mut() {
            Some(last) if last.tone == span.tone => last.text.push_str(&span.text),
            _ => self.line.push(span),
        }
    }

    fn add(&mut self, word: Word) {
        let wide: usize = word.iter().map(|s| s.text.width()).sum();
        if self.used > 0 && self.used + 1 + wide > self.width {
            self.end();
        }
        if self.used > 0 {
            // A blank has the tone of what stands on both sides of it, else none.
            let tone = match (self.line.last(), word.first()) {
                (Some(a), Some(b)) if a.tone == b.tone => a.tone,
                _ => Tone::Plain,
            };
            let text = " ".to_owned();
            self.push(Span { tone, text });
        }
        for mut piece in word {
            while piece.tone != Tone::Path && self.used + piece.text.width() > self.width {
                let at = after_mark(&piece.text, fitting(&piece.text, self.width - self.used));
                if at == 0 {
                    self.end();
                    continue;
                }
                let rest = piece.text.split_off(at);
                let tone = piece.tone;
                self.push(std::mem::replace(&mut piece, Span { tone, text: rest }));
                self.end();
            }
            if !piece.text.is_empty() {
                self.push(piece);
            }
        }
    }
}

/// Where to cut `word` at or before `most`: after the last mark between names, if one is there.
fn after_mark(word: &str, most: usize) -> usize {
    let head = word.get(..most).unwrap_or(word);
    head.rfind(['/', ',', '(', '[', '{', '=', '.', ':', '-', '>', '_'])
        .map_or(most, |at| at + 1)
}

/// Bytes of `text` that take at most `room` columns; at least one character of a whole line.
fn fitting(text: &str, room: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room && (at > 0 || room < 2) {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap_text(text: &str, width: usize) -> Vec<String> {
        let plain = |line: Vec<Span>| line.into_iter().map(|s| s.text).collect();
        let lines = wrap(&Words::from(text), width);
        lines.into_iter().map(plain).collect()
    }

    #[test]
    fn long_words_are_broken_after_marks() {
        assert_eq!(wrap_text("aaaaaaaaaaaa bb", 8), ["aaaaaaaa", "aaaa bb"]);
        assert_eq!(
            wrap_text("jit(f)/while/body", 10),
            ["jit(f)/", "while/body"]
        );
        assert_eq!(wrap_text("", 8), [""]);
    }

    #[test]
    fn every_line_fits_and_nothing_is_lost() {
        let text =
            "words and 日本語日本語日本語日本語 more a/very/long.name_of[things],with-marks "
                .repeat(9);
        for width in 8..60 {
            let lines = wrap_text(&text, width);
            assert!(lines.iter().all(|l| l.width() <= width), "{width}");
            let bare = |s: &str| s.replace(' ', "");
            assert_eq!(bare(&lines.concat()), bare(&text));
        }
    }

    #[test]
    fn tones_and_breaks_stay() {
        let words = Words::from("a ").code("b").plain(", c\nd");
        let lines = wrap(&words, 20);
        assert_eq!(lines.len(), 2);
        let tones: Vec<_> = lines[0].iter().map(|s| (s.tone, s.text.as_str())).collect();
        assert_eq!(
            tones,
            [(Tone::Plain, "a "), (Tone::Code, "b"), (Tone::Plain, ", c")]
        );
    }
}

//! Running text whose words are told apart by what they mean, not by how they look.

/// How words are meant; each format has its own way to show it, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As any other.
    #[default]
    Plain,
    /// A name or code: monospaced where the format can.
    Code,
    /// Code within a sentence: in backticks where the format has no better way.
    Quoted,
    /// What matters most.
    Strong,
    /// What may be skipped.
    Quiet,
    /// A saving; it fits.
    Good,
    /// Close to a limit; something is amiss.
    Warning,
    /// Over a limit.
    Bad,
    /// A file's path: never broken, so that it can be copied.
    Path,
    /// An address of the web.
    Link,
    /// A bar, where nothing else is to be said by its colour.
    Drawn,
}

/// Words of one tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// How they are meant.
    pub tone: Tone,
    /// As they came: renderers clean and escape. A newline breaks the line.
    pub text: String,
}

/// Running text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words(pub Vec<Span>);

impl Words {
    /// Nothing yet.
    pub fn new() -> Words {
        Words::default()
    }

    /// A sentence with code in backticks; what stands outside of them has `tone`.
    pub fn toned(tone: Tone, text: &str) -> Words {
        let parts: Vec<&str> = text.split('`').collect();
        // A backtick without its other is only that.
        if parts.len().is_multiple_of(2) {
            return Words::new().with(tone, text);
        }
        let mut out = Words::new();
        for (n, part) in parts.into_iter().enumerate() {
            out = out.with(if n % 2 == 0 { tone } else { Tone::Quoted }, part);
        }
        out
    }

    /// The same with a sentence that has code in backticks.
    pub fn sentence(mut self, text: &str) -> Words {
        self.0.extend(Words::from(text).0);
        self
    }

    /// The same with more words.
    pub fn with(mut self, tone: Tone, text: impl Into<String>) -> Words {
        let text = text.into();
        if !text.is_empty() {
            self.0.push(Span { tone, text });
        }
        self
    }

    /// The same with plain words.
    pub fn plain(self, text: impl Into<String>) -> Words {
        self.with(Tone::Plain, text)
    }

    /// The same with a name.
    pub fn code(self, text: impl Into<String>) -> Words {
        self.with(Tone::Code, text)
    }

    /// The same with what matters most.
    pub fn strong(self, text: impl Into<String>) -> Words {
        self.with(Tone::Strong, text)
    }

    /// The same with what may be skipped.
    pub fn quiet(self, text: impl Into<String>) -> Words {
        self.with(Tone::Quiet, text)
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Words {
        Words::toned(Tone::Plain, text)
    }
}

impl From<String> for Words {
    fn from(text: String) -> Words {
        Words::toned(Tone::Plain, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_a_sentence_is_told_apart() {
        let tones =
            |text: &str| -> Vec<Tone> { Words::from(text).0.iter().map(|s| s.tone).collect() };
        assert_eq!(
            tones("use `x.mean()` or `y`"),
            [Tone::Plain, Tone::Quoted, Tone::Plain, Tone::Quoted]
        );
        assert_eq!(tones("a ` alone"), [Tone::Plain]);
        assert_eq!(tones(""), []);
    }
}

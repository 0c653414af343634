//! Colours of a terminal, or none.

use crate::render::words::Tone;

/// Whether escape sequences are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Colours on.
    pub color: bool,
}

impl Style {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Headings and the figures that matter most.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What may be skipped.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// As words of a tone are shown.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain | Tone::Code | Tone::Path | Tone::Link => text.to_owned(),
            Tone::Quoted => text.to_owned(),
            Tone::Strong => self.bold(text),
            Tone::Quiet => self.dim(text),
            Tone::Good => self.wrap("32", text),
            Tone::Warning => self.wrap("33", text),
            Tone::Bad => self.wrap("31", text),
            Tone::Drawn => self.blue(text),
        }
    }

    /// The graph.
    pub fn blue(self, text: &str) -> String {
        self.wrap("34", text)
    }
}

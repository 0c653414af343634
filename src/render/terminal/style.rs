//! Colours of the terminal report, or none.

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

    /// Over the limit.
    pub fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// Close to the limit.
    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// Fine; a saving.
    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// The graph.
    pub fn blue(self, text: &str) -> String {
        self.wrap("34", text)
    }
}

//! A document for a terminal: fits the width it is given, coloured or not.

mod columns;
mod graph;
mod style;

pub use style::Style;

use super::document::{Block, Document, Fact, Item, Mark};
use super::words::{Tone, Words};
use super::wrap::wrap;
use columns::{render_table, spans};
use graph::render_graph;
use unicode_width::UnicodeWidthStr;

/// The document in lines of at most `width` columns.
pub fn render_terminal(document: &Document, width: usize, style: Style) -> String {
    let mut out = Screen {
        text: String::new(),
        width,
        style,
    };
    out.blocks(&document.blocks, "");
    out.text
}

/// Columns of a fact's name, at the least: facts and rows of figures stand below one another.
const FACT: usize = 8;

struct Screen {
    text: String,
    width: usize,
    style: Style,
}

impl Screen {
    /// Blocks behind an indent.
    fn blocks(&mut self, blocks: &[Block], indent: &str) {
        let mut before: Option<&Block> = None;
        for block in blocks {
            let start = self.text.len();
            let gap = before.is_some_and(|b| !belongs(b, block));
            self.block(block, indent);
            if self.text.len() > start {
                if gap {
                    self.text.insert(start, '\n');
                }
                before = Some(block);
            }
        }
    }

    fn block(&mut self, block: &Block, indent: &str) {
        match block {
            Block::Heading(_, words) => {
                let plain = Style { color: false };
                for line in wrap(words, self.width.saturating_sub(indent.width())) {
                    let line = self.style.bold(&spans(&line, plain));
                    self.text.push_str(&format!("{indent}{line}\n"));
                }
            }
            Block::Paragraph(words) | Block::Footer(words) => self.lines(indent, indent, words),
            Block::Facts(facts) => self.facts(facts, indent),
            Block::Table(table) => {
                let text = render_table(table, self.width, self.style);
                self.text.push_str(&text);
            }
            Block::List(items) => self.list(items, indent),
            Block::Code { text, .. } => {
                for line in text.lines() {
                    let line = super::clean(line);
                    self.text.push_str(format!("{indent}  {line}").trim_end());
                    self.text.push('\n');
                }
            }
            Block::Details { summary, .. } => self.lines(indent, &format!("{indent}  "), summary),
            Block::Timeline { bytes, peak_point } => {
                let graph = render_graph(bytes, *peak_point, self.width, self.style);
                self.text.push_str(&graph);
            }
            Block::Picture { .. } | Block::Drawing { .. } => {}
        }
    }

    /// Names in a column, what is said of them beside.
    fn facts(&mut self, facts: &[Fact], indent: &str) {
        let widest = facts.iter().map(|f| f.name.width()).max().unwrap_or(0);
        let widest = widest.max(FACT);
        let next = format!("{indent}{}", " ".repeat(widest + 2));
        for f in facts {
            let pad = " ".repeat(widest + 2 - f.name.width());
            let first = format!("{indent}{}{pad}", f.name);
            self.lines(&first, &next, &f.value);
        }
    }

    fn list(&mut self, items: &[Item], indent: &str) {
        let last = items.iter().map(|i| match i.mark {
            Mark::Number(n) => n,
            _ => 0,
        });
        let digits = last.max().unwrap_or(0).to_string().len().max(2);
        let airy = is_airy(items);
        for (n, item) in items.iter().enumerate() {
            if n > 0 && airy {
                self.text.push('\n');
            }
            let (mark, tone) = match item.mark {
                Mark::Bullet => ("  - ".to_owned(), Tone::Plain),
                Mark::Number(n) => (format!("{n:>digits$}. "), Tone::Plain),
                Mark::Yes => ("  + ".to_owned(), Tone::Good),
                Mark::No => ("  - ".to_owned(), Tone::Warning),
            };
            let next = format!("{indent}{}", " ".repeat(mark.width()));
            let first = format!("{indent}{}", self.style.tone(tone, &mark));
            for (n, block) in item.blocks.iter().enumerate() {
                match block {
                    Block::Paragraph(words) if n == 0 => self.lines(&first, &next, words),
                    other => self.block(other, &next),
                }
            }
        }
    }

    /// Words behind `first`, further lines behind `next`; both are as wide.
    fn lines(&mut self, first: &str, next: &str, words: &Words) {
        let room = self.width.saturating_sub(next.width());
        for (n, line) in wrap(words, room).iter().enumerate() {
            let lead = if n == 0 { first } else { next };
            let line = spans(line, self.style);
            self.text.push_str(format!("{lead}{line}").trim_end());
            self.text.push('\n');
        }
    }
}

/// Whether entries stand apart: those with lines to copy are long.
fn is_airy(items: &[Item]) -> bool {
    let code = |b: &Block| matches!(b, Block::Code { .. });
    items.iter().any(|i| i.blocks.iter().any(code))
}

/// Whether a block follows another without a blank line.
fn belongs(before: &Block, block: &Block) -> bool {
    match (before, block) {
        (Block::Heading(..), _) => true,
        (Block::Paragraph(_) | Block::Table(_), Block::Facts(_)) => true,
        (Block::Facts(_) | Block::Paragraph(_), Block::Table(t)) => t.title.is_empty(),
        (Block::Table(t), Block::List(items)) => t.title.is_empty() && !is_airy(items),
        (Block::Details { .. }, Block::Details { .. } | Block::Paragraph(_)) => true,
        (Block::Paragraph(_), Block::List(_)) => true,
        _ => false,
    }
}

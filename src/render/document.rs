//! What is shown, without a format: headings, paragraphs, facts, tables, lists, code, details and
//! pictures. Commands make one ([`super::documents`]); a renderer a format shows it.

use super::table::Table;
use super::words::Words;

/// Something said about the whole, under its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// What it is about, a word or two.
    pub name: &'static str,
    /// What is said.
    pub value: Words,
}

/// What stands before an item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// One of several.
    Bullet,
    /// The place in an order, from 1.
    Number(usize),
    /// Can be done.
    Yes,
    /// Cannot be done.
    No,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What stands before it.
    pub mark: Mark,
    /// Paragraphs, code, details.
    pub blocks: Vec<Block>,
}

impl Item {
    /// An entry of one paragraph.
    pub fn of(mark: Mark, words: impl Into<Words>) -> Item {
        Item {
            mark,
            blocks: vec![Block::Paragraph(words.into())],
        }
    }
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The title of what follows: 1 is the document's own, 2 a part's.
    Heading(u8, Words),
    /// Running text.
    Paragraph(Words),
    /// Names and what is said of each.
    Facts(Vec<Fact>),
    /// Rows and columns, with a title of its own.
    Table(Table),
    /// Entries in order.
    List(Vec<Item>),
    /// Lines to copy.
    Code {
        /// For a highlighter, such as `python`.
        language: &'static str,
        /// The lines.
        text: String,
    },
    /// What is folded away where the format can; a terminal shows the summary alone.
    Details {
        /// What is seen of it.
        summary: Words,
        /// What is in it.
        blocks: Vec<Block>,
    },
    /// Memory over program order: drawn in characters on a terminal, by charts elsewhere.
    Timeline {
        /// Bytes at each program point.
        bytes: Vec<u64>,
        /// The point of the peak.
        peak_point: usize,
    },
    /// A picture in a file beside the document.
    Picture {
        /// Its name.
        file: String,
        /// What it shows.
        caption: String,
    },
    /// A picture within the document.
    Drawing {
        /// SVG, from our own charts.
        svg: String,
        /// What it shows.
        caption: String,
    },
    /// How the document was made.
    Footer(Words),
}

/// Something to show.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// Of the page, in plain words.
    pub title: String,
    /// Its parts, in order.
    pub blocks: Vec<Block>,
}

impl Document {
    /// An empty one.
    pub fn new(title: impl Into<String>) -> Document {
        Document {
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    /// Adds a heading.
    pub fn heading(&mut self, level: u8, words: impl Into<Words>) {
        self.blocks.push(Block::Heading(level, words.into()));
    }

    /// Adds a paragraph, unless it is empty.
    pub fn paragraph(&mut self, words: impl Into<Words>) {
        let words = words.into();
        if !words.is_empty() {
            self.blocks.push(Block::Paragraph(words));
        }
    }

    /// Adds a bulleted list, unless it is empty.
    pub fn bullets<W: Into<Words>>(&mut self, items: impl IntoIterator<Item = W>) {
        let items = items.into_iter().map(|w| Item::of(Mark::Bullet, w));
        self.list(items.collect());
    }

    /// Adds a list, unless it is empty.
    pub fn list(&mut self, items: Vec<Item>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Adds facts, unless there are none.
    pub fn facts(&mut self, facts: Vec<Fact>) {
        if !facts.is_empty() {
            self.blocks.push(Block::Facts(facts));
        }
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }
}

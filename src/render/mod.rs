//! Data → text: each command's answer becomes a [`Document`] once, each format shows any document.
//!
//! In: reports, what-ifs, plans, triages, inventories. Out: text. May use: the data's types of every
//! room below; computes nothing but layout.

pub(crate) mod csv;
pub mod document;
pub mod documents;
pub(crate) mod escape;
pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod table;
pub(crate) mod terminal;
pub mod words;
pub(crate) mod wrap;

pub use csv::render_csv;
pub use document::{Block, Document};
pub use escape::clean;
pub use html::render_html;
pub use markdown::render_markdown;
pub use table::{cut, elide, Align, Cell, Column, Table};
pub use terminal::{render_terminal, Style};

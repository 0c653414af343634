//! Data → text: terminal, Markdown, HTML, CSV.
//!
//! In: reports, what-ifs, plans, triages. Out: text. May use: the data's types of every room below;
//! computes nothing but layout.

pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod joined_text;
pub(crate) mod markdown;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod terminal;
pub mod triage_markdown;
pub mod triage_text;
pub mod whatif_markdown;
pub mod whatif_text;

pub use csv::render_csv;
pub use html::render_html;
pub use joined_text::{render_joined, render_joined_markdown};
pub use markdown::{render_markdown, table, MarkdownOptions};
pub use table::{clean, cut, elide, Align, Cell, Column, Table};
pub use tables::tables;
pub use terminal::{render_terminal, Style, TerminalOptions};

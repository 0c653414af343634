//! From sources to a [`Report`], and from a report to text: the analyses' data gathered in one
//! serialisable structure, then printed by one small file per format.

mod build;
mod csv;
mod enrich;
mod html;
mod inventory;
mod join;
mod join_flags;
mod join_shapes;
mod join_steps;
mod joined_text;
mod load;
mod markdown;
mod module;
mod schema;
mod table;
mod tables;
mod terminal;

pub use build::{kind_name, shapes_only, space_report, timeline};
pub use csv::render_csv;
pub use enrich::meshes_beside;
pub use html::render_html;
pub use inventory::{inventory, FileEntry, Inventory, ModuleEntry};
pub use join::{join, Joined, JoinedGroup, Reconciliation};
pub use join_flags::{flags_in_force, FlagInForce};
pub use join_shapes::{join_shapes, render_shapes, render_shapes_markdown, JoinedShapes};
pub use joined_text::{render_joined, render_joined_markdown};
pub use load::{load, Detail, Loaded, Options};
pub use markdown::{render_markdown, table as markdown_table, MarkdownOptions};
pub use module::{LoadedModule, SpaceAnalysis};
pub use schema::*;
pub use table::{clean, cut, elide, Align, Cell, Column, Table};
pub use tables::tables;
pub use terminal::{render_graph, render_table, render_terminal, wrap, Style, TerminalOptions};

//! From sources to a [`Report`], and from a report to text: the analyses' data gathered in one
//! serialisable structure, then printed by one small file per format.

mod build;
mod inventory;
mod load;
mod module;
mod schema;

pub use build::{kind_name, shapes_only, space_report, timeline};
pub use inventory::{inventory, FileEntry, Inventory, ModuleEntry};
pub use load::{load, Loaded, LoadedModule, Options};
pub use module::SpaceAnalysis;
pub use schema::*;

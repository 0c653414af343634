//! What each command has to say, as a [`Document`](super::Document); one file a command.

mod buffers;
#[cfg(feature = "compiler")]
mod compile;
mod explain;
mod findings;
mod inventory;
mod joined;
mod plan;
mod rankings;
mod report;
mod steps;
mod triage;
mod whatif;

pub use buffers::buffers;
#[cfg(feature = "compiler")]
pub use compile::{compile, compile_figures, fits, fits_table, flags, flags_table, measured};
pub use explain::{catalogue, explanation, topic_list};
pub use inventory::{inventory, modules_of_files};
pub use plan::{overview, plan};
pub use rankings::{rankings, Ranking, RANKINGS};
pub use report::{report, Audience, ReportDocument};
pub use triage::{groups, headline, triage};
pub use whatif::{figures, whatif};

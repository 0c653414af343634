//! What out-of-memory text says, as data. Nothing is invented: a value the text does not say is
//! `None`.
//!
//! In: a log or an exception. Out: [`OomText`]. May use: `units`, `text`, and of `hlo` shapes and
//! names; knows no program, and not what to do about a failure, which is `triage`'s.
//!
//! ```text
//! bytes -> scan (lines that matter) -> lexer (wrappers off) -> section (blanks out)
//!       -> families (one parser a message) -> assemble (repeats, scenario) -> OomText
//! ```

mod assemble;
mod blocks;
mod cursor;
mod device;
mod families;
mod found;
mod gpu;
mod groups;
mod host_and_frameworks;
mod lexer;
pub mod report;
mod scan;
mod scenario;
mod section;
pub(crate) mod shape_text;
pub(crate) mod size;
mod tpu_compile;
mod tpu_runtime;
mod warnings;

use std::io::{self, BufRead, Read};

pub use report::{Allocation, AllocationGroup, Kind, OomReport, OomText, Scenario};

/// Reads text that is in memory.
pub fn read_str(text: &str) -> OomText {
    // Reading from a slice cannot fail.
    read_all(text.as_bytes()).unwrap_or_default()
}

/// Reads a log of any size, in bounded memory. Bytes that are no UTF-8 are replaced.
///
/// # Errors
/// What the reader reports.
pub fn read(input: impl BufRead) -> io::Result<OomText> {
    read_all(input)
}

/// Most of a text that [`looks_like_oom`] reads.
const MAX_HEAD: usize = 1 << 20;

/// Whether the start of a text (1 MiB of it at most) tells of a device that ran out of memory.
/// Text without any word of such messages is told by one quick search.
pub fn looks_like_oom(head: &[u8]) -> bool {
    let head = head.get(..MAX_HEAD).unwrap_or(head);
    scan::has_word(head) && read_all(head).is_ok_and(|text| text.has_oom())
}

/// The HBM limit in bytes, as printed and so rounded, of the first compile-time HBM failure that
/// names one. A compiler that stopped early names a lower limit of its own: it does not count.
pub fn limit_in(text: &str) -> Option<u64> {
    read_str(text).reports.iter().find_map(|r| {
        let compile = match r.kind {
            Kind::TpuCompileHbm => true,
            Kind::TpuTcSc | Kind::TpuSingleAllocation => r.in_hbm(),
            _ => false,
        };
        r.limit_bytes.filter(|_| compile && r.oom)
    })
}

fn read_all(input: impl Read) -> io::Result<OomText> {
    let mut all = assemble::Assembly::default();
    scan::scan(input, |section| {
        all.add(families::parse(&section.squeeze()));
    })?;
    Ok(all.finish())
}

//! What out-of-memory text says, as data. Nothing is invented: a value the text does not say is
//! `None`.
//!
//! In: a log or an exception. Out: [`TriageReport`]. May use: `hlo` for shapes; knows no program.
//!
//! ```text
//! bytes -> scan (lines that matter) -> lexer (wrappers off) -> section (blanks out)
//!       -> families (one parser each) -> assemble (repeats, scenario, advice) -> TriageReport
//! ```

mod accounting;
mod anchors;
mod assemble;
mod bfc;
mod blocks;
mod buffer_assignment;
mod cursor;
mod device;
mod families;
mod fast_exit;
mod found;
mod gpu_line;
mod groups;
mod lexer;
mod look_alike;
mod mismatch;
pub mod report;
mod runtime;
mod scan;
mod scenario;
mod scoped_vmem;
mod section;
pub mod shape_text;
mod single_allocation;
pub mod size;
mod sparsecore;
mod tc_sc;
mod tpu_compile;
mod usage;
mod warnings;

use std::io::{self, BufRead, Read};

pub use report::{Allocation, AllocationGroup, Kind, OomReport, Scenario, TriageReport};

/// Reads text that is in memory.
pub fn triage_str(text: &str) -> TriageReport {
    // Reading from a slice cannot fail.
    read(text.as_bytes()).unwrap_or_else(|_| assemble::Assembly::default().finish())
}

/// Reads a log of any size, in bounded memory. Bytes that are no UTF-8 are replaced.
///
/// # Errors
/// What the reader reports.
pub fn triage_reader(input: impl BufRead) -> io::Result<TriageReport> {
    read(input)
}

/// Most of a text that [`looks_like_oom`] reads.
const MAX_HEAD: usize = 1 << 20;

/// Whether the start of a text (1 MiB of it at most) tells of a device that ran out of memory.
/// Text without any word of such messages is told by one quick search.
pub fn looks_like_oom(head: &[u8]) -> bool {
    let head = head.get(..MAX_HEAD).unwrap_or(head);
    scan::has_word(head) && read(head).is_ok_and(|report| report.has_oom())
}

/// The HBM limit in bytes, as printed and so rounded, of the first compile-time HBM failure that
/// names one. A compiler that stopped early names a lower limit of its own: it does not count.
pub fn limit_in(text: &str) -> Option<u64> {
    triage_str(text).reports.iter().find_map(|r| {
        let hbm = r.space.as_deref() == Some("hbm");
        let compile = match r.kind {
            Kind::TpuCompileHbm => true,
            Kind::TpuTcSc | Kind::TpuSingleAllocation => hbm,
            _ => false,
        };
        r.limit_bytes.filter(|_| compile && r.oom)
    })
}

fn read(input: impl Read) -> io::Result<TriageReport> {
    let mut all = assemble::Assembly::default();
    scan::scan(input, |section| {
        all.add(families::parse(&section.squeeze()))
    })?;
    Ok(all.finish())
}

//! In: squeezed text. Out: what each message in it says, by the parser of its family.
//!
//! A message is found by a few words of it that nothing else contains; adding a family is one
//! line in [`WORDS`] and one file.

use std::sync::OnceLock;

use super::anchors::Anchors;
use super::report::{Kind, OomReport, Warning};
use super::section::Squeezed;
use super::{
    accounting, bfc, buffer_assignment, fast_exit, gpu_line, look_alike, mismatch, runtime,
    scoped_vmem, single_allocation, sparsecore, tc_sc, tpu_compile, usage, warnings,
};

/// What a parser found.
#[derive(Debug)]
pub(super) enum Found {
    /// A failure, or something that stands for itself.
    Report(Box<OomReport>),
    /// Something to note beside a failure.
    Warning(u64, Warning),
    /// A buffer assignment report: belongs to the GPU failure before it.
    BufferAssignment(Box<OomReport>),
    /// A usage line or table: belongs to the usage lines before it.
    Usage(Box<OomReport>),
}

/// A parser: text, where its words start, where its message ends at the latest.
type Parser = fn(&Squeezed, usize, usize) -> Option<Found>;

/// Words without blanks, their parser, and whether they end the message before them.
const WORDS: &[(&str, Parser, bool)] = &[
    (
        "Ranoutofmemoryinmemoryspace",
        tpu_compile::parse_space,
        true,
    ),
    ("whileallocatingonstackfor", scoped_vmem::parse, false),
    ("RanoutofmemoryonHBM", tpu_compile::parse_short, true),
    ("Allocation(size=", single_allocation::parse, true),
    ("Abortingcompilationearly", fast_exit::parse, true),
    ("TPUTensorCoreHbmusage", tc_sc::parse, true),
    ("TCHbmusage:", tc_sc::parse, true),
    ("'memref.alloca'op", sparsecore::parse, true),
    ("Attemptingtoallocate", runtime::parse_allocation, true),
    ("Attemptingtoreserve", runtime::parse_load, true),
    ("butgotbufferwithincompatiblesize", mismatch::parse, true),
    (
        "Outofmemorywhiletryingtoallocate",
        gpu_line::parse_out_of_memory,
        true,
    ),
    ("Outofmemoryallocating", gpu_line::parse_cpu, true),
    (
        "Outofhostmemorywhiletryingtoallocate",
        gpu_line::parse_pinned_host,
        true,
    ),
    ("Failedtoallocaterequestfor", gpu_line::parse_request, true),
    ("failedtoallocate", gpu_line::parse_driver, true),
    ("Notenoughmemorytoallocate", gpu_line::parse_limit, true),
    ("BufferAssignmentstats:", buffer_assignment::parse, true),
    ("ranoutofmemorytryingtoallocate", bfc::parse, true),
    (
        "reducememoryusebelow",
        warnings::parse_rematerialization,
        false,
    ),
    ("input/outputarguments(", warnings::parse_arguments, false),
    ("Involuntaryfullremat", warnings::parse_spmd, false),
    (
        "donatedbufferswerenotusable:",
        warnings::parse_donation,
        false,
    ),
    ("XLA::TPUprogram", usage::parse_line, true),
    ("usage>=", usage::parse_table, false),
    (
        "PostCompilationAnalysis:Graph",
        accounting::parse_pytorch,
        true,
    ),
    ("Totalmemorysize:", accounting::parse_maxtext, true),
    ("Totalestimatedmemorysize", accounting::parse_maxtext, true),
    ("Using(GB)", accounting::parse_maxtext_device, true),
    ("AllocatorStats", accounting::parse_reactant, true),
    ("oom-kill", look_alike::parse_kill, true),
    ("oom_kill", look_alike::parse_kill, true),
    ("OOMkilled", look_alike::parse_kill, true),
    ("OOMKilled", look_alike::parse_kill, true),
    ("Outofmemory:Kill", look_alike::parse_kill, true),
    ("code137", look_alike::parse_exit, true),
    ("code:137", look_alike::parse_exit, true),
    ("code=137", look_alike::parse_exit, true),
    ("status137", look_alike::parse_exit, true),
    ("std::bad_alloc", look_alike::parse_bad_alloc, true),
    (
        "OOMwhenallocatingtensorwithshape",
        look_alike::parse_tensorflow,
        true,
    ),
];

fn anchors() -> &'static Anchors {
    static SET: OnceLock<Anchors> = OnceLock::new();
    SET.get_or_init(|| Anchors::new(WORDS.iter().map(|w| w.0)))
}

/// Everything the text says, in its order.
pub(super) fn parse(sq: &Squeezed) -> Vec<Found> {
    let mut hits = Vec::new();
    let mut from = 0;
    while let Some((at, word)) = anchors().find(&sq.text, from) {
        if let Some(entry) = WORDS.get(word) {
            hits.push((at, entry.1, entry.2, word));
        }
        from = at + 1;
    }
    // Ends of messages, from the back, so that one pass is enough. The next of its own kind always
    // ends a message: then no two parsers of a kind read the same text.
    let mut ends = vec![sq.text.len(); hits.len()];
    let mut next = sq.text.len();
    let mut next_same = vec![sq.text.len(); WORDS.len()];
    for (end, &(at, _, closes, word)) in ends.iter_mut().zip(&hits).rev() {
        let same = next_same
            .get_mut(word)
            .map_or(next, |s| std::mem::replace(s, at));
        *end = next.min(same);
        if closes {
            next = at;
        }
    }
    let mut out = Vec::new();
    let mut table_owner_end = 0;
    for (&(at, parser, _, _), &end) in hits.iter().zip(&ends) {
        if at < table_owner_end && std::ptr::fn_addr_eq(parser, usage::parse_table as Parser) {
            continue;
        }
        let Some(found) = parser(sq, at, end) else {
            continue;
        };
        if let Found::Report(r) = &found {
            if matches!(
                r.kind,
                Kind::TpuCompileHbm
                    | Kind::TpuCompileVmem
                    | Kind::TpuCompileSmem
                    | Kind::TpuCompileSpace
            ) {
                table_owner_end = end;
            }
        }
        out.push(found);
    }
    out
}

/// A report with what every message may carry: its line, how often, its error code.
pub(super) fn base(sq: &Squeezed, at: usize, kind: Kind, oom: bool) -> OomReport {
    let mut r = OomReport::new(kind, oom);
    (r.line, r.count) = sq.line_at(at);
    r.code = error_code(sq, at);
    r.truncated = sq.section.truncated;
    r
}

/// `E1000:` shortly before the message.
fn error_code(sq: &Squeezed, at: usize) -> Option<String> {
    let before = sq.text.get(at.saturating_sub(160)..at)?;
    let n = before.windows(6).rposition(|w| match w {
        [b'E', digits @ .., b':'] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    })?;
    let glued = n > 0 && before.get(n - 1).is_some_and(|b| b.is_ascii_alphanumeric());
    let code = before.get(n..n + 5)?;
    // Another message between the code and this one would own the code.
    let between = before.get(n..)?;
    let other = super::cursor::find(between, b"Seehttps").is_some();
    (!glued && !other).then(|| super::cursor::lossy(code))
}

/// A name in the readable text: letters, digits and `_.-<>$`; a full stop at its end is not its.
/// A line that is full can break a name: then it goes on in the next.
pub(super) fn name_at(sq: &Squeezed, at: usize) -> Option<String> {
    const FULL_LINE: usize = 60;
    let part = |c: &char| c.is_ascii_alphanumeric() || "_.-<>$".contains(*c);
    let raw = sq.section.raw.get(sq.raw_at(at)..)?;
    let mut lines = raw.split('\n').take(4);
    let first = lines.next()?;
    let mut name: String = first.chars().take(256).take_while(part).collect();
    let before = sq
        .section
        .raw
        .get(..sq.raw_at(at))?
        .rsplit('\n')
        .next()?
        .len();
    let mut full = before + first.len() >= FULL_LINE && name.len() == first.len();
    for next in lines {
        if !full || name.ends_with('.') || next.starts_with("See http") {
            break;
        }
        let next = next.trim_start();
        let more: String = next.chars().take(256).take_while(part).collect();
        full = next.len() >= FULL_LINE && more.len() == next.len();
        name.push_str(&more);
    }
    let name = name.trim_end_matches('.');
    (!name.is_empty()).then(|| name.to_string())
}

//! In: squeezed text. Out: what each message in it says, by the parser of its family.
//!
//! A message is found by a few words of it that nothing else contains; adding a family is one
//! line in [`WORDS`] and one file.

use std::sync::OnceLock;

use super::anchors::Anchors;
use super::found::Found;
use super::report::Kind;
use super::section::Squeezed;
use super::{
    accounting, bfc, buffer_assignment, fast_exit, gpu_line, look_alike, mismatch, runtime,
    scoped_vmem, single_allocation, sparsecore, tc_sc, tpu_compile, usage, warnings,
};

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
pub(crate) fn parse(sq: &Squeezed) -> Vec<Found> {
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

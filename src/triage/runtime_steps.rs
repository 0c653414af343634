//! Steps about a device or a host that is full while a program runs, by scenario.

use super::actions::{
    ALLOCATION_ORDER, CHUNKS, CUDA_MALLOC_ASYNC, DROP_REFERENCES, DUMP, GPU_ALLOCATION_ORDER,
    HOST_MEMORY, LESS_IN_USE, LIVE_ARRAYS, LOOK, OTHER_PROCESSES, PINNED_HOST_LIMIT, READ_GPU_DUMP,
    RESIDENT, SMALLER_TEMPORARIES,
};
use super::failure::Failure;
use super::rule::Rule;
use super::step_id::StepId;
use super::steps::{intervention, Step};
use crate::units;

/// The device is full of live arrays.
pub(crate) const FULL: &[Rule] = &[
    Rule::Step(live_arrays),
    Rule::Step(|_| Some(DROP_REFERENCES.because(""))),
    Rule::Step(|_| {
        let why = "An update without donation holds the old and the new state at once.";
        intervention(StepId::Donation, why)
    }),
    Rule::Step(|_| {
        let why = "Create large arrays sharded (jit the initialiser with out_shardings): created \
                   whole, they land on one device first.";
        intervention(StepId::Sharding, why)
    }),
    Rule::Step(|_| intervention(StepId::HostOffload, "")),
];

/// Free, but not in one piece.
pub(crate) const FRAGMENTATION: &[Rule] = &[
    Rule::Step(|f| {
        let r = f.text;
        Some(ALLOCATION_ORDER.because(format!(
            "{} are free, the largest piece is {}, asked {}.",
            size(r.free_bytes),
            size(r.largest_free_block_bytes),
            size(r.requested_bytes)
        )))
    }),
    Rule::Step(|_| {
        let why = "Outputs then take the place of inputs, and no hole is left.";
        intervention(StepId::Donation, why)
    }),
    Rule::Step(live_arrays),
    Rule::Step(|_| {
        let why = "Smaller pieces a device find room more easily.";
        intervention(StepId::Sharding, why)
    }),
];

/// The program's reserve.
pub(crate) const PROGRAM_LOAD: &[Rule] = &[
    Rule::Step(resident),
    Rule::Step(live_arrays),
    Rule::Step(|_| Some(SMALLER_TEMPORARIES.because(""))),
    Rule::Step(|_| intervention(StepId::Donation, "Less is resident beside it.")),
];

/// GPU memory is full.
pub(crate) const GPU: &[Rule] = &[
    Rule::Warnings,
    Rule::Step(|f| {
        let what = f.largest()?.describe();
        Some(LOOK.because(format!("Peak buffers: the largest is {what}.")))
    }),
    Rule::Step(|f| {
        let asked = size(f.text.requested_bytes);
        Some(OTHER_PROCESSES.because(format!("Asked {asked}.")))
    }),
    Rule::Step(|f| {
        let unlisted = f.buffers.is_empty();
        unlisted.then(|| DUMP.titled("Run again with a dump", ""))
    }),
    Rule::Step(|f| f.buffers.is_empty().then(|| READ_GPU_DUMP.because(""))),
    Rule::Step(|_| intervention(StepId::Donation, "Costs nothing to try.")),
    Rule::Step(|f| {
        let mut names = f.buffers.iter().filter_map(|a| a.op_name);
        names.any(|n| n.contains("jvp")).then_some(())?;
        intervention(
            StepId::Checkpoint,
            "Largest buffers are of the gradient (`jvp`).",
        )
    }),
    Rule::Step(|_| intervention(StepId::Microbatching, "")),
];

/// GPU memory in pieces. Who holds the memory matters first where it is full.
pub(crate) const GPU_FRAGMENTATION: &[Rule] = &[
    Rule::Step(less_in_use),
    Rule::Step(|f| chunks(f).filter(|_| !enough_in_pieces(f))),
    Rule::Step(|f| {
        Some(CUDA_MALLOC_ASYNC.because(match missing(f) {
            Some(_) => {
                "Only after that: what is free lies in pieces, and the driver's allocator joins \
                 them."
                    .to_string()
            }
            None => figures(f),
        }))
    }),
    Rule::Step(|_| Some(GPU_ALLOCATION_ORDER.because(""))),
    Rule::Step(|f| chunks(f).filter(|_| enough_in_pieces(f))),
    Rule::Step(|_| {
        let why = "Outputs then take the place of inputs.";
        intervention(StepId::Donation, why)
    }),
];

/// Host RAM.
pub(crate) const HOST: &[Rule] = &[
    Rule::Step(|f| {
        let asked = || format!("Asked {}", size(f.text.requested_bytes));
        let said = f.text.notes.first().cloned().unwrap_or_else(asked);
        Some(HOST_MEMORY.because(format!("{said}.")))
    }),
    Rule::Step(|f| f.text.pinned_host.then(|| PINNED_HOST_LIMIT.because(""))),
    Rule::Step(|f| {
        let why = "On the CPU backend device memory is host memory.";
        intervention(StepId::Donation, why).filter(|_| f.text.oom)
    }),
];

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "an unknown size".to_string(), units::bytes)
}

fn live_arrays(f: &Failure<'_>) -> Option<Step> {
    let (asked, free) = (size(f.text.requested_bytes), size(f.text.free_bytes));
    Some(LIVE_ARRAYS.because(format!("Asked {asked}, free {free}.")))
}

fn resident(f: &Failure<'_>) -> Option<Step> {
    let r = f.text;
    let short = r.requested_bytes.zip(r.reservable_bytes);
    let gap = match short.map(|(asked, there)| asked.saturating_sub(there)) {
        Some(0) => " It misses by less than the text's rounding.".to_string(),
        Some(short) => format!(" About {} are missing.", units::bytes(short)),
        None => String::new(),
    };
    let name = r.program.as_deref().or(r.module.as_deref());
    Some(RESIDENT.because(format!(
        "{} wants {} in one piece at the bottom of memory, {} can be reserved.{gap}",
        name.unwrap_or("the program"),
        size(r.requested_bytes),
        size(r.reservable_bytes)
    )))
}

/// Whether what is free would do in one piece.
fn enough_in_pieces(f: &Failure<'_>) -> bool {
    let free = f.text.unused_bytes().zip(f.text.requested_bytes);
    free.is_some_and(|(free, asked)| free >= asked)
}

/// How much too little is free, even in one piece.
fn missing(f: &Failure<'_>) -> Option<u64> {
    let missing = f.text.requested_bytes?.checked_sub(f.text.unused_bytes()?);
    missing.filter(|&m| m > 0)
}

fn figures(f: &Failure<'_>) -> String {
    let r = f.text;
    format!(
        "Asked {}; {} of {} are not in use, the largest free block is {}.",
        size(r.requested_bytes),
        size(r.unused_bytes()),
        size(r.limit_bytes),
        size(r.largest_free_block_bytes)
    )
}

fn less_in_use(f: &Failure<'_>) -> Option<Step> {
    let missing = units::bytes(missing(f)?);
    let title = format!("Memory is full by {missing}: less must be in use");
    let why = format!(
        "{} Even in one piece, what is free would be {missing} too little: drop arrays, donate, \
         or ask for less.",
        figures(f)
    );
    Some(LESS_IN_USE.titled(title, why))
}

fn chunks(f: &Failure<'_>) -> Option<Step> {
    let c = f.text.chunks.as_ref()?.in_use.first()?;
    let chunks = if c.count == 1 { "chunk" } else { "chunks" };
    Some(CHUNKS.because(format!(
        "{} {chunks} of {} in use: look for arrays of that size.",
        c.count,
        units::bytes(c.size_bytes)
    )))
}

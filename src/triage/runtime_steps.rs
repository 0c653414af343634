//! In: a failure on a running device, or on the host. Out: steps, by scenario.

use super::program_steps::{describe, dump_step};
use super::steps::{warning_steps, Step};
use crate::findings::Safety;
use crate::oom::size::human;
use crate::oom::OomReport;

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "an unknown size".to_string(), human)
}

fn live_arrays(r: &OomReport) -> Step {
    Step::look(
        "live_arrays",
        "See what is resident just before the failing line",
        format!(
            "Asked {}, free {}. jax.profiler.save_device_memory_profile(\"mem.prof\") there, then \
             `go tool pprof -top mem.prof` (or `pprof`): live arrays by Python stack. jax.live_arrays() lists them too.",
            size(r.requested_bytes),
            size(r.free_bytes)
        ),
    )
}

/// The device is full of live arrays.
pub(crate) fn full(r: &OomReport) -> Vec<Step> {
    let mut out = vec![
        live_arrays(r),
        Step::look(
            "drop_references",
            "Drop what is not needed",
            "Old states, metrics and batches stay while Python refers to them: del them, or x.delete().",
        )
        .verified_by("Run again; the resident total must go down."),
    ];
    let why = "An update without donation holds the old and the new state at once.";
    out.extend(Step::intervention("donation", why));
    out.extend(Step::intervention(
        "sharding",
        "Create large arrays sharded (jit the initialiser with out_shardings): created whole, they land on one device first.",
    ));
    out.extend(Step::intervention("host_offload", ""));
    out
}

/// Free, but not in one piece.
pub(crate) fn fragmentation(r: &OomReport) -> Vec<Step> {
    let mut out = vec![
        Step::look(
            "allocation_order",
            "Allocate large, long-lived arrays first",
            format!(
                "{} are free, the largest piece is {}, asked {}. Short-lived arrays between long-lived \
                 ones cut memory up: load weights and state before anything else.",
                size(r.free_bytes),
                size(r.largest_free_block_bytes),
                size(r.requested_bytes)
            ),
        )
        .verified_by("Run again; compare the largest free piece."),
    ];
    out.extend(Step::intervention(
        "donation",
        "Outputs then take the place of inputs, and no hole is left.",
    ));
    out.push(live_arrays(r));
    out.extend(Step::intervention(
        "sharding",
        "Smaller pieces a device find room more easily.",
    ));
    out
}

/// The program's reserve.
pub(crate) fn program_load(r: &OomReport) -> Vec<Step> {
    let short = r
        .requested_bytes
        .zip(r.reservable_bytes)
        .map(|(a, b)| a.saturating_sub(b));
    let gap = match short {
        Some(0) => " It misses by less than the text's rounding.".to_string(),
        Some(s) => format!(" About {} are missing.", human(s)),
        None => String::new(),
    };
    let name = r
        .program
        .as_deref()
        .or(r.module.as_deref())
        .unwrap_or("the program");
    let mut out = vec![Step::look(
        "resident",
        "Free what is resident before this program loads",
        format!(
            "{name} wants {} in one piece at the bottom of memory, {} can be reserved.{gap} Arrays and other \
             loaded programs are in the way: drop references; jax.clear_caches() unloads programs.",
            size(r.requested_bytes),
            size(r.reservable_bytes)
        ),
    )
    .verified_by("Load it again.")];
    out.push(live_arrays(r));
    out.push(
        Step::look(
            "smaller_temporaries",
            "Make the program's temporaries smaller",
            "The reserve is mostly its temporaries: compile it with xla_dump_to=DIR and \
             xla_dump_hlo_as_proto, then run xpeak DIR to see its peak.",
        )
        .verified_by("xpeak summary NEW_DIR: its temporaries must be smaller."),
    );
    out.extend(Step::intervention(
        "donation",
        "Less is resident beside it.",
    ));
    out
}

/// GPU memory is full.
pub(crate) fn gpu(r: &OomReport) -> Vec<Step> {
    let mut out = warning_steps(r);
    if let Some(a) = r.largest() {
        let detail = format!("Peak buffers: the largest is {}.", describe(a));
        out.push(Step::look("look", "Look at the largest buffer", detail));
    }
    out.push(
        Step::look(
            "other_processes",
            "Check who else uses the GPU, and how much JAX took",
            format!(
                "Asked {}. nvidia-smi (rocm-smi) before the run; JAX takes 75 % of the memory at start: \
                 XLA_PYTHON_CLIENT_MEM_FRACTION=.90 takes more.",
                size(r.requested_bytes)
            ),
        )
        .verified_by("Run again."),
    );
    if r.allocations.is_empty() {
        let dump = dump_step();
        out.push(Step {
            title: "Run again with a dump".to_string(),
            ..dump
        });
        out.push(Step::look(
            "read_dump",
            "xpeak triage LOG --with DIR",
            "Joins this text with the dump: the buffers at the peak, by source line.",
        ));
    }
    out.extend(Step::intervention("donation", "Costs nothing to try."));
    let backward = r
        .allocations
        .iter()
        .filter_map(|a| a.op_name.as_deref())
        .any(|n| n.contains("jvp"));
    if backward {
        out.extend(Step::intervention(
            "checkpoint",
            "Largest buffers are of the gradient (`jvp`).",
        ));
    }
    out.extend(Step::intervention("microbatching", ""));
    out
}

/// GPU memory in pieces.
pub(crate) fn gpu_fragmentation(r: &OomReport) -> Vec<Step> {
    let free = r
        .limit_bytes
        .zip(r.in_use_bytes)
        .and_then(|(l, u)| l.checked_sub(u));
    let enough = free.zip(r.requested_bytes).is_some_and(|(f, a)| f >= a);
    let figures = format!(
        "Asked {}; {} of {} are not in use, the largest free block is {}.",
        size(r.requested_bytes),
        size(free),
        size(r.limit_bytes),
        size(r.largest_free_block_bytes)
    );
    let chunks = r.chunks.as_ref().and_then(|c| c.in_use.first()).map(|c| {
        let chunks = if c.count == 1 { "chunk" } else { "chunks" };
        Step::look(
            "chunks",
            "Find what holds the largest chunks",
            format!(
                "{} {chunks} of {} in use: look for arrays of that size.",
                c.count,
                human(c.size_bytes)
            ),
        )
    });
    let mut out = Vec::new();
    let missing = free.zip(r.requested_bytes).filter(|_| !enough);
    let allocator = match missing {
        Some((f, a)) => {
            let missing = human(a.saturating_sub(f));
            let detail = format!(
                "{figures} Even in one piece, what is free would be {missing} too little: drop arrays, \
                 donate, or ask for less."
            );
            let title = format!("Memory is full by {missing}: less must be in use");
            out.push(
                Step::look("less_in_use", title, detail)
                    .verified_by("Run again; the figure \"in use\" must go down."),
            );
            "Only after that: what is free lies in pieces, and the driver's allocator joins them."
                .to_string()
        }
        None => figures,
    };
    // Who holds the memory matters first where it is full.
    let (first, last) = if enough {
        (None, chunks)
    } else {
        (chunks, None)
    };
    out.extend(first);
    out.push(
        Step::look(
            "cuda_malloc_async",
            "Try the driver's allocator: TF_GPU_ALLOCATOR=cuda_malloc_async",
            allocator,
        )
        .costing(Safety::ChangesSpeed, "Allocation can be slower.")
        .verified_by(
            "Run again; the failing size or line changes when fragmentation was to blame.",
        ),
    );
    out.push(
        Step::look(
            "allocation_order",
            "Allocate large, long-lived arrays first",
            "Weights and optimizer state before data and compilation; avoid arrays that grow.",
        )
        .verified_by("Run again."),
    );
    out.extend(last);
    out.extend(Step::intervention(
        "donation",
        "Outputs then take the place of inputs.",
    ));
    out
}

/// Host RAM.
pub(crate) fn host(r: &OomReport) -> Vec<Step> {
    let said = r
        .notes
        .first()
        .cloned()
        .unwrap_or_else(|| format!("Asked {}", size(r.requested_bytes)));
    let mut out = vec![Step::look(
        "host_memory",
        "Look at host RAM, not at the device",
        format!("{said}. Usual causes: data loader workers and caches, gathering a checkpoint on one host, compiling several large programs at once."),
    )
    .verified_by("Watch the process's resident size.")];
    if r.notes
        .iter()
        .any(|n| n.contains("XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB"))
    {
        out.push(Step::look(
            "pinned_host_limit",
            "Raise XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB",
            "The pinned host pool is 64 GB unless set; the host must have the memory.",
        ));
    }
    if r.oom {
        out.extend(Step::intervention(
            "donation",
            "On the CPU backend device memory is host memory.",
        ));
    }
    out
}

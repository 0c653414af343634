//! In: a failure of the compiler. Out: steps for the program, by scenario.

use super::steps::{must_go, over, shorten, warning_steps, Step};
use crate::findings::Safety;
use crate::oom::size::human;
use crate::oom::{Allocation, AllocationGroup, Kind, OomReport};

/// From this part of an allocation on, padding is worth a step.
const PADDING_PART: u64 = 5;

/// What a large allocation usually means; not so where a dump shows why it is there.
pub(crate) const CONFIGURATION: &str =
    " One tensor of this size is almost never a lack of capacity, but configuration.";

/// How to get a dump. Measured: it is written even when compilation runs out of memory.
pub(crate) fn dump_step() -> Step {
    Step::look(
        "dump",
        "Compile again with a dump; it is written even though compilation fails",
        "your_jitted_function.lower(*args).compile(compiler_options={\"xla_dump_to\": \"DIR\", \
         \"xla_dump_hlo_as_proto\": True}), or for a whole run \
         XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_proto\".",
    )
    .verified_by("DIR holds a file named *after_optimizations.hlo.pb.")
}

fn read_dump_step() -> Step {
    Step::look(
        "read_dump",
        "xpeak triage LOG --with DIR",
        "Reads this text and the dump together: the allocations behind the total, their source \
         lines, copies and padding.",
    )
}

/// What an allocation is, for people: bytes, shape, name, source.
pub(crate) fn describe(a: &Allocation) -> String {
    let mut out = human(a.size_bytes);
    if let Some(shape) = &a.shape {
        out.push_str(&format!(" {shape}"));
    }
    if let Some(name) = a.op_name.as_deref().or(a.label.as_deref()) {
        out.push_str(&format!(" of {}", shorten(name, 90)));
    }
    if let Some(s) = &a.source {
        let line = s.line.map_or_else(String::new, |l| format!(":{l}"));
        out.push_str(&format!(" ({}{line})", s.file));
    }
    out
}

fn is_f32(a: &Allocation) -> bool {
    a.shape.as_deref().is_some_and(|s| s.starts_with("f32["))
}

fn padding_step(a: &Allocation) -> Option<Step> {
    let padding = a
        .padding_bytes
        .filter(|&p| p >= a.size_bytes / PADDING_PART && p > 0)?;
    let why = format!(
        "{} of its {} are tile padding.",
        human(padding),
        human(a.size_bytes)
    );
    Step::intervention("dimensions", why)
}

/// No list in the text.
pub(crate) fn undetermined(r: &OomReport) -> Vec<Step> {
    let mut out = Vec::new();
    if r.kind == Kind::TpuFastExit {
        out.push(Step::look(
            "fast_exit",
            "Let the compiler go on to its report",
            "The compiler stopped before it packed memory. LIBTPU_INIT_ARGS=\
             \"--xla_tpu_impure_oom_fast_exit_threshold=-1\" makes it \
             finish its report (compilers since 2025 list no allocations even then).",
        ));
    }
    let mut dump = dump_step();
    if r.kind == Kind::TpuFastExit {
        // Measured: a compilation that stops early leaves no buffer assignment.
        dump.title =
            "Compile with that flag and a dump; one that stops early writes none".to_string();
    }
    out.push(dump);
    out.push(read_dump_step());
    if r.kind != Kind::TpuCompileSpace {
        out.extend(warning_steps(r));
        let why = format!("Costs nothing to try.{}", must_go(r));
        out.extend(Step::intervention("donation", why));
    }
    out
}

/// One allocation over half of the limit.
pub(crate) fn large(r: &OomReport) -> Vec<Step> {
    let Some(a) = r.largest() else {
        return undetermined(r);
    };
    let part = match r.limit_bytes.filter(|&l| l > 0) {
        Some(l) => format!(
            ", {} % of the limit",
            u128::from(a.size_bytes) * 100 / u128::from(l)
        ),
        None => String::new(),
    };
    let mut out = vec![Step::look(
        "look",
        "Look at the one large allocation",
        format!("{}{part}.{CONFIGURATION}", describe(a)),
    )];
    // Without its padding it would not be large: that comes first.
    let mostly_padding = a.padding_bytes.is_some_and(|p| p > a.size_bytes / 2);
    out.extend(padding_step(a).filter(|_| mostly_padding));
    let says_callback = [&a.op_name, &a.label].into_iter().flatten().any(|n| {
        n.contains("debug_callback") || n.contains("callback") || n.contains("host_transfer")
    });
    let why = if says_callback {
        "Its name says that it is one."
    } else {
        "If a callback reads this tensor, it is materialised whole."
    };
    out.extend(Step::intervention("remove_debug_print", why));
    out.extend(warning_steps(r));
    let why =
        "Check the mesh shape, and whether this tensor has a sharding: without one every device \
               holds all of it.";
    out.extend(Step::intervention("sharding", why));
    out.extend(padding_step(a).filter(|_| !mostly_padding));
    if a.source.is_none() && a.op_name.is_none() {
        out.push(dump_step());
        out.push(read_dump_step());
    }
    if is_f32(a) {
        let why = format!("It is f32: half of it is {}.", human(a.size_bytes / 2));
        out.extend(Step::intervention("bfloat16", why));
    }
    out
}

/// Many allocations, none over half of the limit.
pub(crate) fn aggregate(r: &OomReport) -> Vec<Step> {
    let mut out = warning_steps(r);
    if let Some(a) = r
        .largest()
        .filter(|_| r.groups.iter().all(|g| g.count == 1))
    {
        let detail = format!("The largest is {}.{}", describe(a), must_go(r));
        out.push(Step::look(
            "look",
            "No single allocation is to blame: look at the largest",
            detail,
        ));
    }
    let repeated = r.groups.iter().find(|g| g.count > 1);
    out.extend(Step::intervention(
        "donation",
        format!("Costs nothing to try.{}", must_go(r)),
    ));
    let in_gradient = r
        .allocations
        .iter()
        .any(|a| names(a).any(|n| n.contains("jvp")));
    if let Some(g) = repeated.filter(|_| in_gradient) {
        out.extend(Step::intervention("checkpoint", group(g)));
    }
    let why = repeated.map_or_else(|| "The largest tensors first.".to_string(), group);
    out.extend(Step::intervention("sharding", why));
    if in_gradient {
        let why = "Temporaries of the gradient (`jvp`) shrink with the batch.";
        out.extend(Step::intervention("microbatching", why));
    }
    let padded = r
        .allocations
        .iter()
        .max_by_key(|a| (a.padding_bytes, std::cmp::Reverse(a.size_bytes)));
    out.extend(padded.and_then(padding_step));
    let f32_bytes: u64 = r
        .allocations
        .iter()
        .filter(|a| is_f32(a))
        .fold(0, |s, a| s.saturating_add(a.size_bytes));
    if f32_bytes > r.listed_bytes.unwrap_or(0) / 2 {
        let why = format!("{} of the listed allocations are f32.", human(f32_bytes));
        out.extend(Step::intervention("bfloat16", why));
    }
    if let (Some(over), Some(used)) = (over(r), r.used_bytes) {
        // Measured gains are a few per cent: a flag cannot close a wider gap.
        if over <= used / 25 {
            let why = format!("Only {} are missing.", human(over));
            out.extend(Step::flag("xla_tpu_rwb_fusion", "false", why));
        }
    }
    if out.len() < 6
        && r.allocations
            .iter()
            .all(|a| a.op_name.is_none() && a.source.is_none())
    {
        out.push(dump_step());
        out.push(read_dump_step());
    }
    out
}

fn names(a: &Allocation) -> impl Iterator<Item = &str> {
    [a.op_name.as_deref(), a.label.as_deref()]
        .into_iter()
        .flatten()
}

fn group(g: &AllocationGroup) -> String {
    let shape = g.shape.as_deref().unwrap_or("unknown shape");
    let source = match &g.source {
        Some(s) => format!(
            " ({}{})",
            s.file,
            s.line.map_or_else(String::new, |l| format!(":{l}"))
        ),
        None => String::new(),
    };
    format!(
        "{} x {shape} take {}: {}{source}.",
        g.count,
        human(g.bytes),
        shorten(&g.label, 80)
    )
}

/// TensorCore and SparseCore.
pub(crate) fn imbalance(r: &OomReport) -> Vec<Step> {
    let side = r.bottleneck.as_deref().unwrap_or("both");
    let size = |b: Option<u64>| b.map_or_else(|| "unknown".to_string(), human);
    let split = format!(
        "TensorCore {}, SparseCore {}, available {}.",
        size(r.tensorcore_bytes),
        size(r.sparsecore_bytes),
        size(r.limit_bytes)
    );
    let mut out = Vec::new();
    if side != "tensorcore" {
        out.push(Step::look(
            "sparsecore_stack",
            "Shrink the SparseCore's stack in HBM",
            format!("{split} It grows with feature_width, max_unique_nz_per_row and logical_replica_count: lower the largest."),
        ).verified_by("Compile again."));
        out.push(Step::look(
            "sparsecore_mod_sharding",
            "Check that embedding tables are mod-sharded over all chips",
            "Tables are aligned to 32 bytes (8 floats): narrow ones waste; stack them.",
        ));
        out.push(
            Step::look(
                "sparsecore_prefetch",
                "Lower maximum_parallel_iterations",
                "High values prefetch more into the heap.",
            )
            .costing(Safety::ChangesSpeed, "Less overlap."),
        );
        out.push(
            Step::look(
                "xla_sc_num_serialized_tables_to_optimize_hbm",
                "Serialise tables: --xla_sc_num_serialized_tables_to_optimize_hbm=N",
                "Tables one after the other need less stack.",
            )
            .costing(Safety::ChangesSpeed, "Less parallelism.")
            .verified_by("Compile again."),
        );
    }
    if side != "sparsecore" {
        out.push(dump_step());
        out.push(read_dump_step());
        out.extend(Step::intervention(
            "donation",
            format!("{split} The TensorCore's side is the program's."),
        ));
    }
    out
}

/// Scoped VMEM of one instruction.
pub(crate) fn scoped_vmem(r: &OomReport) -> Vec<Step> {
    let name = r.instruction.as_deref().unwrap_or("the instruction");
    let of = r
        .op_name
        .as_deref()
        .map_or_else(String::new, |n| format!(" ({})", shorten(n, 80)));
    let needs = match (r.used_bytes, r.limit_bytes) {
        (Some(u), Some(l)) => format!(
            "%{name}{of} needs {} of scoped VMEM, the limit is {}.",
            human(u),
            human(l)
        ),
        _ => format!("%{name}{of} needs more scoped VMEM than the limit."),
    };
    // Only a custom call is a kernel; where the text lost the instruction, it may be one.
    let opcode = r.opcode.as_deref();
    let kernel = opcode.map(|o| o == "custom-call");
    let lead = |title: &str| {
        format!(
            "{title}{}",
            if kernel.is_none() {
                ", if it is one"
            } else {
                ""
            }
        )
    };
    let blocks = Step::look(
        "smaller_blocks",
        lead("A Pallas kernel: smaller blocks"),
        format!(
            "{needs} Lower its block shapes or its buffering; estimates leave out register spills."
        ),
    )
    .costing(Safety::ChangesSpeed, "More grid steps.")
    .verified_by("Compile again.");
    let limit = r.used_bytes.map(|used| {
        let mib = used.div_ceil(1 << 20);
        let kib = mib.saturating_mul(1024);
        let all = format!("LIBTPU_INIT_ARGS=\"--xla_tpu_scoped_vmem_limit_kib={kib}\"");
        let how = match kernel {
            Some(false) => format!("{needs} {all} raises it for the whole program."),
            _ => format!(
                "For one kernel compiler_params=pltpu.CompilerParams(vmem_limit_bytes={mib} * 2**20); \
                 for all, {all}."
            ),
        };
        Step::look(
            "vmem_limit",
            format!("Raise the limit to {mib} MiB or more"),
            format!("{how} It must stay below the chip's VMEM (v6e 128 MiB, v7x 64 MiB)."),
        )
        .costing(Safety::ChangesSpeed, "Less VMEM for XLA's own prefetching.")
        .verified_by("Compile again.")
    });
    let operation = Step::look(
        "no_kernel",
        match opcode {
            Some(o) => format!("Not a kernel of yours but XLA's own {o}: change the operation"),
            None => "No kernel of yours: change the operation".to_string(),
        },
        "XLA made this allocation itself: a slice, gather or transpose with a layout that fits badly. \
         Avoid tiny last dimensions around it, or report it to XLA with the dump.",
    );
    let mut out = Vec::new();
    match kernel {
        Some(true) => {
            out.push(blocks);
            out.extend(limit);
        }
        Some(false) => {
            out.extend(limit);
            out.push(operation);
        }
        None => {
            out.extend(limit);
            out.push(blocks);
            out.push(operation);
        }
    }
    out
}

/// VMEM as a whole.
pub(crate) fn vmem(r: &OomReport) -> Vec<Step> {
    let mut out = Vec::new();
    if let Some(a) = r.largest() {
        let what = format!("The largest allocation is {}.", describe(a));
        out.push(Step::look(
            "look",
            "Look at the largest allocation in VMEM",
            what,
        ));
        if a.label.as_deref().is_some_and(|l| l.contains("spill")) {
            out.push(
                Step::look(
                    "spills",
                    "Register spills: make the kernel's body smaller",
                    format!(
                        "{} are spill slots: less unrolling, smaller vectors at once.",
                        human(a.size_bytes)
                    ),
                )
                .costing(Safety::ChangesSpeed, "")
                .verified_by("Compile again."),
            );
        }
    }
    out.push(
        Step::look(
            "smaller_blocks",
            "Smaller blocks in Pallas kernels",
            format!(
                "Block shapes times buffers, plus scratch, must fit.{}",
                must_go(r)
            ),
        )
        .costing(Safety::ChangesSpeed, "More grid steps.")
        .verified_by("Compile again."),
    );
    out.push(dump_step());
    out
}

/// Scalar memory.
pub(crate) fn smem(r: &OomReport) -> Vec<Step> {
    vec![
        Step::look(
            "smem_arguments",
            "Move arrays out of scalar memory",
            format!("Scalar-prefetch arguments, index tables and SMEM scratch of Pallas kernels share it.{} Shorten them, or keep them in VMEM or HBM.", must_go(r)),
        )
        .verified_by("Compile again."),
        dump_step(),
    ]
}

/// SparseCore's own memories.
pub(crate) fn sparsecore(r: &OomReport) -> Vec<Step> {
    let note = r.notes.first().cloned().unwrap_or_default();
    vec![Step::look(
        "sparsecore_stack",
        "Make the SparseCore's work smaller at once",
        format!(
            "In {}: {note}. Lower the batch or feature width a core handles at once.",
            r.space.as_deref().unwrap_or("its memory")
        ),
    )
    .verified_by("Compile again; https://openxla.org/xla/errors/error_3000 has more.")]
}

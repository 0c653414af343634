//! Steps about a program that does not compile for lack of memory, by scenario.

use super::actions::{
    DUMP, FAST_EXIT, LOOK, NO_KERNEL, READ_DUMP, SMALLER_BLOCKS, SMALLER_BLOCKS_OF_ALL,
    SMEM_ARGUMENTS, SPARSECORE_MOD_SHARDING, SPARSECORE_PREFETCH, SPARSECORE_SERIALIZED,
    SPARSECORE_STACK, SPARSECORE_WORK, SPILLS, VMEM_LIMIT,
};
use super::failure::{Buffer, Failure};
use super::rule::Rule;
use super::step_id::StepId;
use super::steps::{flag, intervention, shorten, Step};
use crate::oom::report::Bottleneck;
use crate::oom::{AllocationGroup, Kind};
use crate::units;

/// No list in the text.
pub(crate) const UNDETERMINED: &[Rule] = &[
    Rule::Step(|f| stopped_early(f).then(|| FAST_EXIT.because(""))),
    Rule::Step(dump),
    Rule::Step(read_dump),
    Rule::Warnings,
    Rule::Step(free_donation),
];

/// No list, of a memory that is not the program's to fill.
pub(crate) const OTHER_SPACE: &[Rule] = &[Rule::Step(dump), Rule::Step(read_dump)];

/// One allocation over half of the limit.
pub(crate) const LARGE: &[Rule] = &[
    Rule::Step(look_at_large),
    // Without its padding it would not be large: that comes first.
    Rule::Step(|f| f.largest().filter(|a| mostly_padding(a)).and_then(padding)),
    Rule::Step(debug_print),
    Rule::Warnings,
    Rule::Step(|_| {
        let why = "Check the mesh shape, and whether this tensor has a sharding: without one \
                   every device holds all of it.";
        intervention(StepId::Sharding, why)
    }),
    Rule::Step(|f| f.largest().filter(|a| !mostly_padding(a)).and_then(padding)),
    Rule::Step(|f| f.largest().filter(|a| unnamed(a)).and_then(|_| dump(f))),
    Rule::Step(|f| {
        f.largest()
            .filter(|a| unnamed(a))
            .and_then(|_| read_dump(f))
    }),
    Rule::Step(|f| {
        let a = f.largest().filter(|a| a.is_f32())?;
        let why = format!(
            "It is f32: half of it is {}.",
            units::bytes(a.size_bytes / 2)
        );
        intervention(StepId::Bfloat16, why)
    }),
];

/// Many allocations, none over half of the limit.
pub(crate) const AGGREGATE: &[Rule] = &[
    Rule::Warnings,
    Rule::Step(look_at_largest_of_many),
    Rule::Step(free_donation),
    Rule::Step(|f| {
        let group = repeated(f).filter(|_| in_gradient(f))?;
        intervention(StepId::Checkpoint, describe_group(group))
    }),
    Rule::Step(|f| {
        let group = repeated(f).map(describe_group);
        let why = group.unwrap_or_else(|| "The largest tensors first.".to_string());
        intervention(StepId::Sharding, why)
    }),
    Rule::Step(|f| {
        let why = "Temporaries of the gradient (`jvp`) shrink with the batch.";
        intervention(StepId::Microbatching, why).filter(|_| in_gradient(f))
    }),
    Rule::Step(|f| {
        let most = |a: &&Buffer<'_>| (a.padding_bytes, std::cmp::Reverse(a.size_bytes));
        f.buffers.iter().max_by_key(most).and_then(padding)
    }),
    Rule::Step(mostly_f32),
    Rule::Step(small_gap),
    Rule::IfRoom(&[
        |f| f.buffers.iter().all(unnamed).then(|| dump(f)).flatten(),
        |f| {
            f.buffers
                .iter()
                .all(unnamed)
                .then(|| read_dump(f))
                .flatten()
        },
    ]),
];

/// TensorCore and SparseCore.
pub(crate) const IMBALANCE: &[Rule] = &[
    Rule::Step(|f| sparsecore(f).then(|| SPARSECORE_STACK.because(split(f)))),
    Rule::Step(|f| sparsecore(f).then(|| SPARSECORE_MOD_SHARDING.because(""))),
    Rule::Step(|f| sparsecore(f).then(|| SPARSECORE_PREFETCH.because(""))),
    Rule::Step(|f| sparsecore(f).then(|| SPARSECORE_SERIALIZED.because(""))),
    Rule::Step(|f| dump(f).filter(|_| tensorcore(f))),
    Rule::Step(|f| read_dump(f).filter(|_| tensorcore(f))),
    Rule::Step(|f| {
        let why = format!("{} The TensorCore's side is the program's.", split(f));
        intervention(StepId::Donation, why).filter(|_| tensorcore(f))
    }),
];

/// Scoped VMEM of one instruction.
pub(crate) const SCOPED_VMEM: &[Rule] = &[
    Rule::Step(|f| smaller_blocks(f).filter(|_| is_kernel(f) == Some(true))),
    Rule::Step(vmem_limit),
    Rule::Step(|f| smaller_blocks(f).filter(|_| is_kernel(f).is_none())),
    Rule::Step(no_kernel),
];

/// VMEM as a whole.
pub(crate) const VMEM: &[Rule] = &[
    Rule::Step(|f| {
        let what = format!("The largest allocation is {}.", f.largest()?.describe());
        Some(LOOK.titled("Look at the largest allocation in VMEM", what))
    }),
    Rule::Step(|f| {
        let a = f.largest()?;
        a.label.filter(|l| l.contains("spill"))?;
        Some(SPILLS.because(format!(
            "{} are spill slots: less unrolling, smaller vectors at once.",
            units::bytes(a.size_bytes)
        )))
    }),
    Rule::Step(|f| {
        let why = "Block shapes times buffers, plus scratch, must fit.";
        Some(SMALLER_BLOCKS_OF_ALL.because(format!("{why}{}", f.must_go())))
    }),
    Rule::Step(dump),
];

/// Scalar memory.
pub(crate) const SMEM: &[Rule] = &[
    Rule::Step(|f| {
        let why = "Scalar-prefetch arguments, index tables and SMEM scratch of Pallas kernels \
                   share it.";
        Some(SMEM_ARGUMENTS.because(format!("{why}{}", f.must_go())))
    }),
    Rule::Step(dump),
];

/// SparseCore's own memories.
pub(crate) const SPARSECORE: &[Rule] = &[Rule::Step(|f| {
    let space = f.text.space.as_deref().unwrap_or("its memory");
    let note = f.text.notes.first().map_or("", String::as_str);
    Some(SPARSECORE_WORK.because(format!("In {space}: {note}.")))
})];

/// From this part of an allocation on, padding is worth a step.
const PADDING_PART: u64 = 5;
/// Measured gains of flags are a few per cent of what is used: a flag cannot close a wider gap.
const FLAG_PART: u64 = 25;

fn stopped_early(f: &Failure<'_>) -> bool {
    f.text.kind == Kind::TpuFastExit
}

fn dump(f: &Failure<'_>) -> Option<Step> {
    Some(match stopped_early(f) {
        // Measured: a compilation that stops early leaves no buffer assignment.
        true => DUMP.titled(
            "Compile with that flag and a dump; one that stops early writes none",
            "",
        ),
        false => DUMP.because(""),
    })
}

fn read_dump(_: &Failure<'_>) -> Option<Step> {
    Some(READ_DUMP.because(""))
}

fn free_donation(f: &Failure<'_>) -> Option<Step> {
    let why = format!("Costs nothing to try.{}", f.must_go());
    intervention(StepId::Donation, why)
}

fn look_at_large(f: &Failure<'_>) -> Option<Step> {
    let a = f.largest()?;
    let limit = f.text.limit_bytes.filter(|&l| l > 0);
    let part = limit.map_or_else(String::new, |l| {
        let percent = u128::from(a.size_bytes) * 100 / u128::from(l);
        format!(", {percent} % of the limit")
    });
    let usual = match f.explained {
        true => "",
        false => " One tensor of this size is almost never a lack of capacity, but configuration.",
    };
    let what = format!("{}{part}.{usual}", a.describe());
    Some(LOOK.titled("Look at the one large allocation", what))
}

fn look_at_largest_of_many(f: &Failure<'_>) -> Option<Step> {
    let a = f.largest().filter(|_| repeated(f).is_none())?;
    let title = "No single allocation is to blame: look at the largest";
    let what = format!("The largest is {}.{}", a.describe(), f.must_go());
    Some(LOOK.titled(title, what))
}

fn padding(a: &Buffer<'_>) -> Option<Step> {
    let worth = |p: &u64| *p >= a.size_bytes / PADDING_PART && *p > 0;
    let why = format!(
        "{} of its {} are tile padding.",
        units::bytes(a.padding_bytes.filter(worth)?),
        units::bytes(a.size_bytes)
    );
    intervention(StepId::Dimensions, why)
}

fn mostly_padding(a: &Buffer<'_>) -> bool {
    a.padding_bytes.is_some_and(|p| p > a.size_bytes / 2)
}

/// Nothing tells where it comes from.
fn unnamed(a: &Buffer<'_>) -> bool {
    a.source.is_none() && a.op_name.is_none()
}

fn debug_print(f: &Failure<'_>) -> Option<Step> {
    let says = |n: &str| n.contains("callback") || n.contains("host_transfer");
    let why = match f.largest()?.names().any(says) {
        true => "Its name says that it is one.",
        false => "If a callback reads this tensor, it is materialised whole.",
    };
    intervention(StepId::RemoveDebugPrint, why)
}

/// The largest group of allocations that repeat.
fn repeated<'a>(f: &Failure<'a>) -> Option<&'a AllocationGroup> {
    f.text.groups.iter().find(|g| g.count > 1)
}

fn in_gradient(f: &Failure<'_>) -> bool {
    let mut names = f.buffers.iter().flat_map(Buffer::names);
    names.any(|n| n.contains("jvp"))
}

fn mostly_f32(f: &Failure<'_>) -> Option<Step> {
    let f32s = f.buffers.iter().filter(|a| a.is_f32());
    let bytes = f32s.fold(0u64, |sum, a| sum.saturating_add(a.size_bytes));
    let most = bytes > f.text.listed_bytes.unwrap_or(0) / 2;
    let why = format!("{} of the listed allocations are f32.", units::bytes(bytes));
    most.then(|| intervention(StepId::Bfloat16, why)).flatten()
}

fn small_gap(f: &Failure<'_>) -> Option<Step> {
    let over = f.over()?;
    (over <= f.text.used_bytes? / FLAG_PART).then_some(())?;
    let why = format!("Only {} are missing.", units::bytes(over));
    flag("xla_tpu_rwb_fusion", "false", why)
}

fn describe_group(g: &AllocationGroup) -> String {
    let shape = g.shape.as_deref().unwrap_or("unknown shape");
    let source = g.source.as_ref();
    let source = source.map_or_else(String::new, |s| format!(" ({s})"));
    format!(
        "{} x {shape} take {}: {}{source}.",
        g.count,
        units::bytes(g.bytes),
        shorten(&g.label, 80)
    )
}

/// Whether the SparseCore, alone or with the other, is to blame.
fn sparsecore(f: &Failure<'_>) -> bool {
    f.text.bottleneck != Some(Bottleneck::Tensorcore)
}

/// Whether the TensorCore, alone or with the other, is to blame.
fn tensorcore(f: &Failure<'_>) -> bool {
    f.text.bottleneck != Some(Bottleneck::Sparsecore)
}

fn split(f: &Failure<'_>) -> String {
    let size = |b: Option<u64>| b.map_or_else(|| "unknown".to_string(), units::bytes);
    format!(
        "TensorCore {}, SparseCore {}, available {}.",
        size(f.text.tensorcore_bytes),
        size(f.text.sparsecore_bytes),
        size(f.text.limit_bytes)
    )
}

/// Only a custom call is a kernel; where the text lost the instruction, it may be one.
fn is_kernel(f: &Failure<'_>) -> Option<bool> {
    Some(f.text.opcode.as_deref()? == "custom-call")
}

/// What the instruction needs of scoped VMEM.
fn needs(f: &Failure<'_>) -> String {
    let r = f.text;
    let name = r.instruction.as_deref().unwrap_or("the instruction");
    let of = r.op_name.as_deref();
    let of = of.map_or_else(String::new, |n| format!(" ({})", shorten(n, 80)));
    match (r.used_bytes, r.limit_bytes) {
        (Some(used), Some(limit)) => format!(
            "%{name}{of} needs {} of scoped VMEM, the limit is {}.",
            units::bytes(used),
            units::bytes(limit)
        ),
        _ => format!("%{name}{of} needs more scoped VMEM than the limit."),
    }
}

fn smaller_blocks(f: &Failure<'_>) -> Option<Step> {
    let lead = if is_kernel(f).is_none() {
        ", if it is one"
    } else {
        ""
    };
    let title = format!("{}{lead}", SMALLER_BLOCKS.title);
    Some(SMALLER_BLOCKS.titled(title, needs(f)))
}

fn vmem_limit(f: &Failure<'_>) -> Option<Step> {
    let mib = f.text.used_bytes?.div_ceil(1 << 20);
    let kib = mib.saturating_mul(1024);
    let all = format!("LIBTPU_INIT_ARGS=\"--xla_tpu_scoped_vmem_limit_kib={kib}\"");
    let how = match is_kernel(f) {
        Some(false) => format!("{} {all} raises it for the whole program.", needs(f)),
        _ => format!(
            "For one kernel compiler_params=pltpu.CompilerParams(vmem_limit_bytes={mib} * 2**20); \
             for all, {all}."
        ),
    };
    let title = format!("{} to {mib} MiB or more", VMEM_LIMIT.title);
    Some(VMEM_LIMIT.titled(title, how))
}

fn no_kernel(f: &Failure<'_>) -> Option<Step> {
    Some(match f.text.opcode.as_deref() {
        Some("custom-call") => return None,
        Some(o) => NO_KERNEL.titled(
            format!("Not a kernel of yours but XLA's own {o}: change the operation"),
            "",
        ),
        None => NO_KERNEL.because(""),
    })
}

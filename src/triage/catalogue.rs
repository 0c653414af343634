//! The catalogue of interventions, flags and terms: data only. Nothing comes in.
//!
//! Documented values are those of XLA's and JAX's public guides. Measured ones were compiled ahead
//! of time with libtpu 0.0.52 for a 4-layer transformer training step with a peak of 7.438 GiB;
//! `tools/measure_flags.py` measures them again with the compiler that is installed.

use super::step_id::StepId;
pub use crate::findings::Safety;

/// Something to change in a program.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Intervention {
    /// Its name in JSON and for `explain`.
    pub id: StepId,
    /// For people.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// What it costs.
    pub trade_off: &'static str,
    /// What it does to results.
    pub safety: Safety,
    /// How much it can bring.
    pub gain: &'static str,
    /// Sign that it fits.
    pub fits_when: &'static str,
    /// How to write it.
    pub how: &'static str,
    /// How to see that it worked.
    pub verify: &'static str,
}

/// A compiler flag.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Flag {
    /// Name, without dashes.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Documented default.
    pub default: &'static str,
    /// Documented suggestion.
    pub suggested: &'static str,
    /// What it costs.
    pub trade_off: &'static str,
    /// What it does to results.
    pub safety: Safety,
    /// What it did on a 4-layer transformer; empty when it was not measured.
    pub measured: &'static str,
    /// The same in a word.
    pub outcome: Outcome,
}

/// What a flag's suggested value did when it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A smaller peak.
    Saved,
    /// The same peak.
    NoChange,
    /// The compiler does not take the value, or fails with it.
    Failed,
    /// Not measured.
    Unmeasured,
}

/// A word worth explaining, or a kind of finding.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Term {
    /// Name for `explain`.
    pub id: &'static str,
    /// What it means, in a few words; for lists.
    pub brief: &'static str,
    /// What it means.
    pub text: &'static str,
}

/// How to see that a change worked that leaves results alone.
pub(crate) const COMPILE_AGAIN: &str =
    "Compile again: the error is a compile-time check, so a clean compile is enough.";
/// The same where results change.
pub(crate) const COMPILE_AND_METRICS: &str = "Compile again, then check the training metrics too.";

/// Interventions, in the order of the E1000 guide's table.
pub const INTERVENTIONS: &[Intervention] = &[
    Intervention {
        id: StepId::RemoveDebugPrint,
        name: "Remove jax.debug.print and other callbacks",
        what: "A callback materialises the whole tensor to send it to the host, and breaks the fusions around it.",
        trade_off: "None, but the output is gone.",
        safety: Safety::Safe,
        gain: "The tensor printed and what its fusion would have avoided.",
        fits_when: "One tensor is far larger than the rest, and `debug_callback` or `custom-call` is in its name.",
        how: "Delete the call, or print a reduction (`x.mean()`, `x[0, 0]`) instead of `x`.",
        verify: COMPILE_AGAIN,
    },
    Intervention {
        id: StepId::Sharding,
        name: "Shard over more mesh axes",
        what: "Splits a tensor over devices, instead of keeping a whole copy on each.",
        trade_off: "More network traffic.",
        safety: Safety::ChangesSpeed,
        gain: "Up to the size of the mesh axis, on that tensor.",
        fits_when: "One tensor is far larger than others, or arrays are un-sharded.",
        how: "Give jit `in_shardings`/`out_shardings`, and intermediates `jax.lax.with_sharding_constraint(x, sharding)`.",
        verify: COMPILE_AGAIN,
    },
    Intervention {
        id: StepId::SmallerBatch,
        name: "Smaller batch",
        what: "Fewer examples at once.",
        trade_off: "Training dynamics change: learning rate and schedule may have to follow.",
        safety: Safety::ChangesTraining,
        gain: "Proportional, on activations.",
        fits_when: "Temporaries of the gradient (`jvp` in their names), many tensors shaped by the batch.",
        how: "Lower the batch size per device.",
        verify: COMPILE_AND_METRICS,
    },
    Intervention {
        id: StepId::Microbatching,
        name: "Micro-batching (gradient accumulation)",
        what: "Runs the batch in n parts and sums the gradients.",
        trade_off: "The step takes longer.",
        safety: Safety::ChangesSpeed,
        gain: "Activations go from M to about M/n; gradients are added once.",
        fits_when: "As for a smaller batch, when the batch must stay.",
        how: "Scan over micro-batches with `jax.lax.scan`, accumulate gradients, apply the update once.",
        verify: COMPILE_AGAIN,
    },
    Intervention {
        id: StepId::Bfloat16,
        name: "bfloat16 or quantised values",
        what: "Half the bytes an element, or fewer.",
        trade_off: "Risky for training: precision is lost.",
        safety: Safety::ChangesNumerics,
        gain: "About 2x on what is converted.",
        fits_when: "The largest tensors are f32.",
        how: "`x.astype(jnp.bfloat16)` for activations first; keep the optimizer's state in f32 if you can.",
        verify: COMPILE_AND_METRICS,
    },
    Intervention {
        id: StepId::Checkpoint,
        name: "jax.checkpoint (rematerialisation)",
        what: "Recomputes activations in the backward pass instead of keeping them.",
        trade_off: "Recompute time, at most one more forward pass.",
        safety: Safety::ChangesSpeed,
        gain: "Large, on activations.",
        fits_when: "Many tensors of one size in the backward pass, with `jvp` in their names.",
        how: "`jax.checkpoint(layer)` around a layer, or with `policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable`.",
        verify: COMPILE_AGAIN,
    },
    Intervention {
        id: StepId::Donation,
        name: "Donate arguments",
        what: "Lets outputs take the place of arguments that are not needed afterwards.",
        trade_off: "None; using a donated array again raises an error.",
        safety: Safety::Safe,
        gain: "The donated bytes, when an output of the same shape, type and layout exists and the argument is not read after that output is written. A cache that is read while the new one is written saves nothing.",
        fits_when: "Nothing special: a free try.",
        how: "`jax.jit(step, donate_argnums=(0,))` for the train state.",
        verify: "Compile again; a warning \"Some donated buffers were not usable\" means that it did not work for those.",
    },
    Intervention {
        id: StepId::Dimensions,
        name: "Change dimensions or layout",
        what: "Avoids tile padding: the trailing physical dimensions are rounded up to the tile, such as (8,128).",
        trade_off: "A reshape or transpose may cost time; another width is another model.",
        safety: Safety::ChangesModel,
        gain: "The padding.",
        fits_when: "Padding is a large part: a small last or second-last dimension (head size 64, a trailing 1 or 3).",
        how: "Put a large dimension last (transpose or merge dimensions); else choose multiples of the tile.",
        verify: "Compile again; if model dimensions changed, check the training metrics too.",
    },
    Intervention {
        id: StepId::HostOffload,
        name: "Offload to host memory",
        what: "Keeps optimizer state or activations in host memory.",
        trade_off: "Slow: transfers every step.",
        safety: Safety::ChangesSpeed,
        gain: "What is moved.",
        fits_when: "Huge optimizer state, nothing else left.",
        how: "A sharding with `memory_kind=\"pinned_host\"`, or a checkpoint policy that offloads.",
        verify: COMPILE_AGAIN,
    },
    Intervention {
        id: StepId::MoreChips,
        name: "Newer or more chips",
        what: "More memory, in all or for each chip.",
        trade_off: "More hardware.",
        safety: Safety::ChangesSpeed,
        gain: "See the capacities under `capacity`.",
        fits_when: "The rest is not enough.",
        how: "A larger mesh needs shardings that use it.",
        verify: COMPILE_AGAIN,
    },
];

/// Memory flags, "last resort" in the guide; in its order.
pub const FLAGS: &[Flag] = &[
    Flag {
        name: "xla_latency_hiding_scheduler_rerun",
        what: "How often the scheduler tries again with a tighter memory limit.",
        default: "1",
        suggested: "5 (not beyond 10)",
        trade_off: "Compile time; less overlap.",
        safety: Safety::ChangesSpeed,
        measured: "5: no change",
        outcome: Outcome::NoChange,
    },
    Flag {
        name: "xla_tpu_rwb_fusion",
        what: "Fuses reductions with what they are broadcast into; off, fewer large values live at once.",
        default: "true",
        suggested: "false",
        trade_off: "Slower where the fusion helped.",
        safety: Safety::ChangesSpeed,
        measured: "false: 7.438 to 7.289 GiB (2 %)",
        outcome: Outcome::Saved,
    },
    Flag {
        name: "xla_memory_scheduler",
        what: "Which order of instructions to look for.",
        default: "default",
        suggested: "list, dfs or post_order; not the guide's kBrkga, which is rejected",
        trade_off: "Compile time.",
        safety: Safety::ChangesSpeed,
        measured: "kBrkga is rejected (\"Unrecognized flag option\"), brkga is \"not implemented\"; default, list, dfs and post_order are accepted",
        outcome: Outcome::Failed,
    },
    Flag {
        name: "xla_tpu_enable_latency_hiding_scheduler",
        what: "Overlaps communication with computation, which keeps more alive.",
        default: "true",
        suggested: "false",
        trade_off: "Slower steps: communication is no longer hidden.",
        safety: Safety::ChangesSpeed,
        measured: "false: 7.438 to 7.406 GiB (0.4 %)",
        outcome: Outcome::Saved,
    },
    Flag {
        name: "xla_jf_spmd_threshold_for_windowed_einsum_mib",
        what: "From which size an einsum with a gathered operand runs in windows.",
        default: "-1",
        suggested: "10 to 1000 (MiB)",
        trade_off: "Speed, either way.",
        safety: Safety::ChangesSpeed,
        measured: "1000: no change",
        outcome: Outcome::NoChange,
    },
    Flag {
        name: "xla_tpu_max_hbm_size_mib",
        what: "A limit below the chip's, so that the rematerialisation pass works harder.",
        default: "the chip's",
        suggested: "a little below what must fit",
        trade_off: "Recompute time; fails when it cannot get there.",
        safety: Safety::ChangesSpeed,
        measured: "6000: compilation failed at 7.24G rather than fit",
        outcome: Outcome::Failed,
    },
    Flag {
        name: "xla_tpu_rematerialization_algo",
        what: "Which values the rematerialisation pass looks at first.",
        default: "the compiler's",
        suggested: "PEAK_PRIORITY",
        trade_off: "Compile time.",
        safety: Safety::ChangesSpeed,
        measured: "PEAK_PRIORITY: no change",
        outcome: Outcome::NoChange,
    },
    Flag {
        name: "xla_tpu_rematerialization_max_block_size_limit",
        what: "How many instructions are rematerialised together at most.",
        default: "the compiler's",
        suggested: "32",
        trade_off: "Compile time.",
        safety: Safety::ChangesSpeed,
        measured: "",
        outcome: Outcome::Unmeasured,
    },
    Flag {
        name: "xla_tpu_rematerialization_block_effort_factor",
        what: "How hard the pass looks for such blocks.",
        default: "the compiler's",
        suggested: "10.0",
        trade_off: "Compile time.",
        safety: Safety::ChangesSpeed,
        measured: "",
        outcome: Outcome::Unmeasured,
    },
    Flag {
        name: "xla_tpu_pre_fusion_remat",
        what: "Rematerialises before fusion too.",
        default: "false",
        suggested: "true",
        trade_off: "Recompute time; other fusions, so other rounding.",
        safety: Safety::ChangesNumerics,
        measured: "",
        outcome: Outcome::Unmeasured,
    },
];

/// Words.
pub const TERMS: &[Term] = &[
    Term { id: "peak", brief: "the most that is live at one point of the program", text: "The most that is live at one point of the program: parameters, outputs and constants, which count all the time, plus the largest heap of temporaries, at its first maximum." },
    Term { id: "allocated", brief: "what must fit: the sum of all allocations", text: "What must fit: the sum of all allocations of a memory space. It is at least the peak; the difference is fragmentation." },
    Term { id: "hbm", brief: "the device's main memory", text: "High-bandwidth memory: the device's main memory." },
    Term { id: "vmem", brief: "a TPU core's vector memory, on the chip", text: "A TPU core's vector memory, on the chip. XLA and Pallas kernels place blocks there; scoped VMEM is the part one kernel or fusion may use as its stack." },
    Term { id: "smem", brief: "a TPU core's scalar memory", text: "A TPU core's scalar memory, usually 1 MiB: scalars, indices, scalar-prefetch arguments of Pallas kernels." },
    Term { id: "temporary", brief: "a value that is neither argument nor output", text: "A value inside the program, neither argument nor output. Also \"HLO temp\", \"preallocated temp\"." },
    Term { id: "rematerialization", brief: "computing a value again instead of keeping it", text: "Computing a value again instead of keeping it. XLA does it by itself under pressure (`.remat` in names); jax.checkpoint asks for it." },
    Term { id: "replica_partition", brief: "other data against parts of one program", text: "Replicas run the program on other data, partitions split one program (SPMD). \"Un-sharded\" means the same on all partitions." },
    Term { id: "reserved", brief: "memory the system keeps for itself", text: "Memory the system keeps for itself; not the program's." },
    Term { id: "undetermined", brief: "a text that lists no allocations", text: "The text has no list of allocations. The newest compilers print none: compile with xla_dump_to and look at the dump." },
];

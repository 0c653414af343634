//! Steps of a kind of their own: data only. Interventions and flags are in the catalogue.

use super::step_id::StepId;
use super::steps::Action;

const COMPILE_AGAIN: &str = "Compile again.";
/// How to see that what did not compile does.
pub(crate) const COMPILES: &str = "Compile again: a clean compile is enough.";
const RUN_AGAIN: &str = "Run again.";

/// Measured: a dump is written even when compilation runs out of memory.
pub(crate) const DUMP: Action = Action::new(
    StepId::Dump,
    "Compile again with a dump; it is written even though compilation fails",
    "your_jitted_function.lower(*args).compile(compiler_options={\"xla_dump_to\": \"DIR\", \
     \"xla_dump_hlo_as_proto\": True}), or for a whole run \
     XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_proto\".",
)
.verified_by("DIR holds a file named *after_optimizations.hlo.pb.");

pub(crate) const READ_DUMP: Action = Action::new(
    StepId::ReadDump,
    "xpeak triage LOG --with DIR",
    "Reads this text and the dump together: the allocations behind the total, their source \
     lines, copies and padding.",
);

pub(crate) const READ_GPU_DUMP: Action = Action::new(
    StepId::ReadDump,
    READ_DUMP.title,
    "Joins this text with the dump: the buffers at the peak, by source line.",
);

/// Titles are the rules'.
pub(crate) const LOOK: Action = Action::new(StepId::Look, "Look at the largest buffer", "");

pub(crate) const FAST_EXIT: Action = Action::new(
    StepId::FastExit,
    "Let the compiler go on to its report",
    "The compiler stopped before it packed memory. LIBTPU_INIT_ARGS=\
     \"--xla_tpu_impure_oom_fast_exit_threshold=-1\" makes it \
     finish its report (compilers since 2025 list no allocations even then).",
);

pub(crate) const SPARSECORE_STACK: Action = Action::new(
    StepId::SparsecoreStack,
    "Shrink the SparseCore's stack in HBM",
    "It grows with feature_width, max_unique_nz_per_row and logical_replica_count: lower the \
     largest.",
)
.verified_by(COMPILE_AGAIN);

pub(crate) const SPARSECORE_WORK: Action = Action::new(
    StepId::SparsecoreStack,
    "Make the SparseCore's work smaller at once",
    "Lower the batch or feature width a core handles at once.",
)
.verified_by("Compile again; https://openxla.org/xla/errors/error_3000 has more.");

pub(crate) const SPARSECORE_MOD_SHARDING: Action = Action::new(
    StepId::SparsecoreModSharding,
    "Check that embedding tables are mod-sharded over all chips",
    "Tables are aligned to 32 bytes (8 floats): narrow ones waste; stack them.",
);

pub(crate) const SPARSECORE_PREFETCH: Action = Action::new(
    StepId::SparsecorePrefetch,
    "Lower maximum_parallel_iterations",
    "High values prefetch more into the heap.",
)
.slower("Less overlap.");

pub(crate) const SPARSECORE_SERIALIZED: Action = Action::new(
    StepId::Flag("xla_sc_num_serialized_tables_to_optimize_hbm"),
    "Serialise tables: --xla_sc_num_serialized_tables_to_optimize_hbm=N",
    "Tables one after the other need less stack.",
)
.slower("Less parallelism.")
.verified_by(COMPILE_AGAIN);

pub(crate) const SMALLER_BLOCKS: Action = Action::new(
    StepId::SmallerBlocks,
    "A Pallas kernel: smaller blocks",
    "Lower its block shapes or its buffering; estimates leave out register spills.",
)
.slower("More grid steps.")
.verified_by(COMPILE_AGAIN);

pub(crate) const SMALLER_BLOCKS_OF_ALL: Action = Action {
    title: "Smaller blocks in Pallas kernels",
    how: "",
    ..SMALLER_BLOCKS
};

pub(crate) const VMEM_LIMIT: Action = Action::new(
    StepId::VmemLimit,
    "Raise the limit",
    "It must stay below the chip's VMEM (v6e 128 MiB, v7x 64 MiB).",
)
.slower("Less VMEM for XLA's own prefetching.")
.verified_by(COMPILE_AGAIN);

pub(crate) const NO_KERNEL: Action = Action::new(
    StepId::NoKernel,
    "No kernel of yours: change the operation",
    "XLA made this allocation itself: a slice, gather or transpose with a layout that fits badly. \
     Avoid tiny last dimensions around it, or report it to XLA with the dump.",
);

pub(crate) const SPILLS: Action = Action::new(
    StepId::Spills,
    "Register spills: make the kernel's body smaller",
    "",
)
.slower("")
.verified_by(COMPILE_AGAIN);

pub(crate) const SMEM_ARGUMENTS: Action = Action::new(
    StepId::SmemArguments,
    "Move arrays out of scalar memory",
    "Shorten them, or keep them in VMEM or HBM.",
)
.verified_by(COMPILE_AGAIN);

pub(crate) const LIVE_ARRAYS: Action = Action::new(
    StepId::LiveArrays,
    "See what is resident just before the failing line",
    "jax.profiler.save_device_memory_profile(\"mem.prof\") there, then \
     `go tool pprof -top mem.prof` (or `pprof`): live arrays by Python stack. jax.live_arrays() \
     lists them too.",
);

pub(crate) const DROP_REFERENCES: Action = Action::new(
    StepId::DropReferences,
    "Drop what is not needed",
    "Old states, metrics and batches stay while Python refers to them: del them, or x.delete().",
)
.verified_by("Run again; the resident total must go down.");

pub(crate) const ALLOCATION_ORDER: Action = Action::new(
    StepId::AllocationOrder,
    "Allocate large, long-lived arrays first",
    "Short-lived arrays between long-lived ones cut memory up: load weights and state before \
     anything else.",
)
.verified_by("Run again; compare the largest free piece.");

pub(crate) const GPU_ALLOCATION_ORDER: Action = Action {
    how: "Weights and optimizer state before data and compilation; avoid arrays that grow.",
    verify: RUN_AGAIN,
    ..ALLOCATION_ORDER
};

pub(crate) const RESIDENT: Action = Action::new(
    StepId::Resident,
    "Free what is resident before this program loads",
    "Arrays and other loaded programs are in the way: drop references; jax.clear_caches() unloads \
     programs.",
)
.verified_by("Load it again.");

pub(crate) const SMALLER_TEMPORARIES: Action = Action::new(
    StepId::SmallerTemporaries,
    "Make the program's temporaries smaller",
    "The reserve is mostly its temporaries: compile it with xla_dump_to=DIR and \
     xla_dump_hlo_as_proto, then run xpeak DIR to see its peak.",
)
.verified_by("xpeak summary NEW_DIR: its temporaries must be smaller.");

pub(crate) const OTHER_PROCESSES: Action = Action::new(
    StepId::OtherProcesses,
    "Check who else uses the GPU, and how much JAX took",
    "nvidia-smi (rocm-smi) before the run; JAX takes 75 % of the memory at start: \
     XLA_PYTHON_CLIENT_MEM_FRACTION=.90 takes more.",
)
.verified_by(RUN_AGAIN);

pub(crate) const CHUNKS: Action =
    Action::new(StepId::Chunks, "Find what holds the largest chunks", "");

pub(crate) const LESS_IN_USE: Action =
    Action::new(StepId::LessInUse, "Less memory must be in use", "")
        .verified_by("Run again; the figure \"in use\" must go down.");

pub(crate) const CUDA_MALLOC_ASYNC: Action = Action::new(
    StepId::CudaMallocAsync,
    "Try the driver's allocator: TF_GPU_ALLOCATOR=cuda_malloc_async",
    "",
)
.slower("Allocation can be slower.")
.verified_by("Run again; the failing size or line changes when fragmentation was to blame.");

pub(crate) const HOST_MEMORY: Action = Action::new(
    StepId::HostMemory,
    "Look at host RAM, not at the device",
    "Usual causes: data loader workers and caches, gathering a checkpoint on one host, compiling \
     several large programs at once.",
)
.verified_by("Watch the process's resident size.");

pub(crate) const PINNED_HOST_LIMIT: Action = Action::new(
    StepId::PinnedHostLimit,
    "Raise XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB",
    "The pinned host pool is 64 GB unless set; the host must have the memory.",
);

pub(crate) const RECOMPILE: Action = Action::new(
    StepId::Recompile,
    "Give the program the arrays it was compiled for",
    "The array has the size of another layout or shape. Lower and compile with the arrays' own \
     shapes and formats, or put the argument in the layout the program expects (jax.device_put).",
);

pub(crate) const DONATION_REFUSED: Action = Action::new(
    StepId::DonationRefused,
    "Make the donation work",
    "Compare the donated arguments with the outputs, dtype first.",
)
.verified_by("Compile again: the warning must be gone.");

pub(crate) const SPMD_REMATERIALIZATION: Action = Action::new(
    StepId::SpmdRematerialization,
    "Give the tensor one sharding",
    "Between producer and consumer the whole tensor is on every device: add \
     jax.lax.with_sharding_constraint with the consumer's sharding.",
)
.slower("Changes what is communicated.")
.verified_by(DONATION_REFUSED.verify);

pub(crate) const ARGUMENTS_EXCEED_LIMIT: Action = Action::new(
    StepId::ArgumentsExceedLimit,
    "Shard or shrink parameters first",
    "",
);

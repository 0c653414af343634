//! In: values found by the family parsers. Out: the triage report, as it is written to JSON.
//!
//! Every size is in bytes. `None` means that the text did not say it. Printed sizes are rounded
//! (`27.12G`), so sums of them can be off by a unit of their last digit.

use serde::Serialize;

use crate::triage::Step;

/// What one piece of text says about memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TriageReport {
    /// Version of this structure; grows when a field changes its meaning.
    pub schema_version: u32,
    /// Failures in the order of the text, then what is no failure (usage lines, warnings).
    pub reports: Vec<OomReport>,
}

impl TriageReport {
    /// True when the text shows at least one device running out of memory.
    pub fn has_oom(&self) -> bool {
        self.reports.iter().any(|r| r.oom)
    }

    /// The first failure, or the first thing found when there is no failure.
    pub fn primary(&self) -> Option<&OomReport> {
        self.reports.first()
    }
}

/// Which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// TPU compiler, HBM.
    TpuCompileHbm,
    /// TPU compiler, VMEM.
    TpuCompileVmem,
    /// TPU compiler, SMEM.
    TpuCompileSmem,
    /// TPU compiler, any other memory space.
    TpuCompileSpace,
    /// TPU compiler, scoped VMEM of one instruction (E1001).
    TpuScopedVmem,
    /// TPU compiler, one allocation larger than the memory.
    TpuSingleAllocation,
    /// TPU compiler stopped early.
    TpuFastExit,
    /// TensorCore and SparseCore use given apart.
    TpuTcSc,
    /// SparseCore stack allocation (E3000).
    TpuSparsecoreAlloca,
    /// TPU runtime, a buffer (E0100).
    TpuRuntimeAllocation,
    /// TPU runtime, loading a program (E0101).
    TpuProgramLoad,
    /// TPU runtime, an argument of another size (E0102); no out-of-memory.
    TpuInputMismatch,
    /// GPU, one line.
    GpuAllocation,
    /// GPU, buffer assignment report.
    GpuBufferAssignment,
    /// GPU, log of the BFC allocator.
    GpuBfc,
    /// CPU backend.
    CpuAllocation,
    /// Host memory, not the device's.
    HostOom,
    /// TPU compiler's usage lines; no failure.
    TpuUsage,
    /// Warnings alone; no failure.
    Warnings,
    /// Figures a framework prints about its program; no failure.
    FrameworkAccounting,
    /// TensorFlow's op-by-op executor; not an XLA program.
    TensorflowOp,
    /// A tool's own guess, worded like XLA's error.
    LookAlike,
}

impl Kind {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::TpuCompileHbm => "tpu_compile_hbm",
            Kind::TpuCompileVmem => "tpu_compile_vmem",
            Kind::TpuCompileSmem => "tpu_compile_smem",
            Kind::TpuCompileSpace => "tpu_compile_space",
            Kind::TpuScopedVmem => "tpu_scoped_vmem",
            Kind::TpuSingleAllocation => "tpu_single_allocation",
            Kind::TpuFastExit => "tpu_fast_exit",
            Kind::TpuTcSc => "tpu_tc_sc",
            Kind::TpuSparsecoreAlloca => "tpu_sparsecore_alloca",
            Kind::TpuRuntimeAllocation => "tpu_runtime_allocation",
            Kind::TpuProgramLoad => "tpu_program_load",
            Kind::TpuInputMismatch => "tpu_input_mismatch",
            Kind::GpuAllocation => "gpu_allocation",
            Kind::GpuBufferAssignment => "gpu_buffer_assignment",
            Kind::GpuBfc => "gpu_bfc",
            Kind::CpuAllocation => "cpu_allocation",
            Kind::HostOom => "host_oom",
            Kind::TpuUsage => "tpu_usage",
            Kind::Warnings => "warnings",
            Kind::FrameworkAccounting => "framework_accounting",
            Kind::TensorflowOp => "tensorflow_op",
            Kind::LookAlike => "look_alike",
        }
    }
}

/// What went wrong, as far as the text tells; decides the advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scenario {
    /// TensorCore and SparseCore share HBM badly.
    TcScImbalance,
    /// One allocation over half of the limit.
    LargeAllocation,
    /// Many allocations, none over half of the limit.
    Aggregate,
    /// The text has no list of allocations.
    Undetermined,
    /// Scoped VMEM of one kernel or fusion.
    ScopedVmem,
    /// VMEM as a whole.
    Vmem,
    /// SMEM.
    Smem,
    /// SparseCore's own memories.
    SparsecoreMemory,
    /// The device is full of live arrays.
    RuntimeFull,
    /// Enough is free, but not in one piece.
    RuntimeFragmentation,
    /// The program's reserve does not fit beside what is resident.
    ProgramLoad,
    /// GPU memory is full.
    GpuAllocation,
    /// GPU memory is free in pieces too small.
    GpuFragmentation,
    /// Host RAM.
    HostMemory,
}

impl Scenario {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Scenario::TcScImbalance => "tc_sc_imbalance",
            Scenario::LargeAllocation => "large_allocation",
            Scenario::Aggregate => "aggregate",
            Scenario::Undetermined => "undetermined",
            Scenario::ScopedVmem => "scoped_vmem",
            Scenario::Vmem => "vmem",
            Scenario::Smem => "smem",
            Scenario::SparsecoreMemory => "sparsecore_memory",
            Scenario::RuntimeFull => "runtime_full",
            Scenario::RuntimeFragmentation => "runtime_fragmentation",
            Scenario::ProgramLoad => "program_load",
            Scenario::GpuAllocation => "gpu_allocation",
            Scenario::GpuFragmentation => "gpu_fragmentation",
            Scenario::HostMemory => "host_memory",
        }
    }
}

/// One failure (or one thing worth knowing) found in the text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OomReport {
    /// Which message it is.
    pub kind: Kind,
    /// A device ran out of memory.
    pub oom: bool,
    /// What went wrong; `None` when nothing did.
    pub scenario: Option<Scenario>,
    /// How often the text says the same.
    pub count: u64,
    /// Line of the text where it starts, from 1.
    pub line: u64,
    /// Error code, as `E1000`.
    pub code: Option<String>,
    /// Memory space: `hbm`, `vmem`, `smem`, `host`, ...
    pub space: Option<String>,
    /// Asked by the program as a whole.
    pub used_bytes: Option<u64>,
    /// What there is.
    pub limit_bytes: Option<u64>,
    /// `Exceeded ... by`, as the text says it.
    pub over_bytes: Option<u64>,
    /// Size of the request that failed.
    pub requested_bytes: Option<u64>,
    /// Free when it failed.
    pub free_bytes: Option<u64>,
    /// Largest free piece.
    pub largest_free_block_bytes: Option<u64>,
    /// What could be reserved for a program.
    pub reservable_bytes: Option<u64>,
    /// In use when it failed.
    pub in_use_bytes: Option<u64>,
    /// HBM of the TensorCore.
    pub tensorcore_bytes: Option<u64>,
    /// HBM of the SparseCore.
    pub sparsecore_bytes: Option<u64>,
    /// `tensorcore`, `sparsecore` or `both`.
    pub bottleneck: Option<String>,
    /// HLO module.
    pub module: Option<String>,
    /// Program being loaded.
    pub program: Option<String>,
    /// Instruction that failed.
    pub instruction: Option<String>,
    /// `op_name` of that instruction.
    pub op_name: Option<String>,
    /// HLO opcode of that instruction.
    pub opcode: Option<String>,
    /// Parameters.
    pub parameter_bytes: Option<u64>,
    /// Outputs.
    pub output_bytes: Option<u64>,
    /// Constants.
    pub constant_bytes: Option<u64>,
    /// Temporaries (`HLO temp`, `preallocated temp`).
    pub temp_bytes: Option<u64>,
    /// Total, when it is given apart from `used_bytes`.
    pub total_bytes: Option<u64>,
    /// Reserved by the system.
    pub reserved_bytes: Option<u64>,
    /// The program's part of the total.
    pub program_bytes: Option<u64>,
    /// Lost to fragmentation.
    pub fragmentation_bytes: Option<u64>,
    /// Temporaries with padding.
    pub padded_bytes: Option<u64>,
    /// Temporaries without padding.
    pub unpadded_bytes: Option<u64>,
    /// Allocations the text lists, in its order (largest first).
    pub allocations: Vec<Allocation>,
    /// The same, repeats folded; largest first.
    pub groups: Vec<AllocationGroup>,
    /// Sum of the listed allocations; `None` without a list.
    pub listed_bytes: Option<u64>,
    /// Total minus listed.
    pub unlisted_bytes: Option<u64>,
    /// What the BFC allocator's log says about its chunks.
    pub chunks: Option<ChunkStats>,
    /// Per memory space, what the compiler's usage lines say.
    pub usages: Vec<SpaceUsage>,
    /// Figures of a framework, as printed.
    pub accounting: Vec<Figure>,
    /// Warnings nearby.
    pub warnings: Vec<Warning>,
    /// Bytes of donated buffers that could not be used.
    pub donated_unusable_bytes: Option<u64>,
    /// Chip guessed from the capacity.
    pub device_guess: Option<DeviceGuess>,
    /// The list broke off, or a cap was reached: there may be more in the text.
    pub truncated: bool,
    /// What the reader should know about these values.
    pub notes: Vec<String>,
    /// What to do next, in order.
    pub advice: Vec<Step>,
}

impl OomReport {
    /// An empty report of this kind.
    pub fn new(kind: Kind, oom: bool) -> Self {
        OomReport {
            kind,
            oom,
            scenario: None,
            count: 1,
            line: 0,
            code: None,
            space: None,
            used_bytes: None,
            limit_bytes: None,
            over_bytes: None,
            requested_bytes: None,
            free_bytes: None,
            largest_free_block_bytes: None,
            reservable_bytes: None,
            in_use_bytes: None,
            tensorcore_bytes: None,
            sparsecore_bytes: None,
            bottleneck: None,
            module: None,
            program: None,
            instruction: None,
            op_name: None,
            opcode: None,
            parameter_bytes: None,
            output_bytes: None,
            constant_bytes: None,
            temp_bytes: None,
            total_bytes: None,
            reserved_bytes: None,
            program_bytes: None,
            fragmentation_bytes: None,
            padded_bytes: None,
            unpadded_bytes: None,
            allocations: Vec::new(),
            groups: Vec::new(),
            listed_bytes: None,
            unlisted_bytes: None,
            chunks: None,
            usages: Vec::new(),
            accounting: Vec::new(),
            warnings: Vec::new(),
            donated_unusable_bytes: None,
            device_guess: None,
            truncated: false,
            notes: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// The largest listed allocation; the first of equals.
    pub fn largest(&self) -> Option<&Allocation> {
        let top = self.allocations.iter().map(|a| a.size_bytes).max()?;
        self.allocations.iter().find(|a| a.size_bytes == top)
    }
}

/// One allocation the text lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Allocation {
    /// Size as printed.
    pub size_bytes: u64,
    /// Size computed from shape and layout, when it agrees with the printed one.
    pub exact_bytes: Option<u64>,
    /// Shape with layout, as printed.
    pub shape: Option<String>,
    /// Size without padding.
    pub unpadded_bytes: Option<u64>,
    /// Padding.
    pub padding_bytes: Option<u64>,
    /// Where the padding comes from: `text` or `shape`.
    pub padding_from: Option<&'static str>,
    /// The framework's name of the operation.
    pub op_name: Option<String>,
    /// Line of the program.
    pub source: Option<SourceLine>,
    /// Id in the module's stack frame table; only the dump can resolve it.
    pub stack_frame_id: Option<u64>,
    /// `XLA label`: the instruction, maybe cut.
    pub label: Option<String>,
    /// `Allocation type`, or `parameter`.
    #[serde(rename = "type")]
    pub allocation_type: Option<String>,
}

impl Allocation {
    /// Name of the instruction, from the label.
    pub fn instruction(&self) -> Option<&str> {
        let label = self.label.as_deref()?;
        let (name, _) = label.split_once(" = ")?;
        Some(name.trim_start_matches('%'))
    }
}

/// A line of the user's program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct SourceLine {
    /// File as the text names it.
    pub file: String,
    /// Line, from 1.
    pub line: Option<u64>,
}

/// Allocations that repeat: same shape, same operation but for numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AllocationGroup {
    /// The operation with numbers replaced by `N`, or the label's opcode.
    pub label: String,
    /// Shape of all of them.
    pub shape: Option<String>,
    /// How many.
    pub count: u64,
    /// Sum of sizes.
    pub bytes: u64,
    /// Sum of paddings, when every one is known.
    pub padding_bytes: Option<u64>,
    /// Source line of the first.
    pub source: Option<SourceLine>,
}

/// Chunks of the BFC allocator, from its log.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChunkStats {
    /// Chunks in use by size, largest total first; at most 32.
    pub in_use: Vec<ChunkSize>,
    /// Sum of chunks in use.
    pub in_use_bytes: Option<u64>,
    /// How many free pieces the log lists.
    pub free_count: u64,
    /// Their sum; `None` when the log lists none.
    pub free_bytes: Option<u64>,
    /// The largest of them.
    pub largest_free_bytes: Option<u64>,
    /// Most that was ever in use.
    pub max_in_use_bytes: Option<u64>,
    /// Per cent of the bar line's characters that are in use (`*` or `x`), with one decimal.
    pub bar_in_use_percent: Option<f64>,
    /// The allocator's name, as `GPU_0_bfc`.
    pub allocator: Option<String>,
}

/// Chunks of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChunkSize {
    /// Size of one.
    pub size_bytes: u64,
    /// How many.
    pub count: u64,
}

/// Use of one memory space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpaceUsage {
    /// The space's name, lower case.
    pub space: String,
    /// Used.
    pub used_bytes: Option<u64>,
    /// Of how much.
    pub limit_bytes: Option<u64>,
}

/// A figure as a framework printed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// As printed, with its unit.
    pub text: String,
    /// In bytes, when the unit leaves no doubt (`GiB`, not `GB`).
    pub bytes: Option<u64>,
}

/// A warning that bears on memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// `rematerialization`, `donation`, `spmd_rematerialization`, `arguments_exceed_limit`,
    /// `allocator_retry`.
    pub kind: &'static str,
    /// What it says, in short.
    pub message: String,
    /// The figure it is about.
    pub bytes: Option<u64>,
    /// The limit it names.
    pub limit_bytes: Option<u64>,
    /// How often.
    pub count: u64,
}

/// A chip guessed from the capacity in the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceGuess {
    /// The chip, as `TPU v5e`.
    pub device: &'static str,
    /// Always `guess`: the text does not name the chip.
    pub certainty: &'static str,
    /// What it was guessed from.
    pub from: String,
}

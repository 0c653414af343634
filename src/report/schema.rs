//! The report as data: what the JSON contract promises, plus the rankings that text formats print.
//! All sizes are bytes; nothing here is formatted.

use serde::Serialize;

use crate::error::Diagnostic;
use crate::findings::Finding;
use crate::hlo::SourceLine;
use crate::source::SourceLabel;

/// Version of the JSON structure; changes when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that is said about some input.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What made the report.
    pub tool: Tool,
    /// Files that modules came from.
    pub sources: Vec<SourceLabel>,
    /// The device.
    pub device: DeviceEntry,
    /// What was wrong with the input.
    pub diagnostics: Vec<Diagnostic>,
    /// Programs, the largest peak (of the chosen space) first.
    pub modules: Vec<ModuleReport>,
}

/// Name and version of the program.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Tool {
    /// `xpeak`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// What is known of the device.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct DeviceEntry {
    /// Name in the profile.
    pub kind: Option<String>,
    /// Device memory in bytes.
    pub hbm_capacity_bytes: Option<u64>,
    /// `profile`, `device_kind`, `dump` or `flag`.
    pub capacity_from: Option<&'static str>,
}

/// One program.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ModuleReport {
    /// Module name.
    pub name: String,
    /// Program id, in profiles.
    pub program_id: Option<u64>,
    /// Entry computation.
    pub entry_computation: String,
    /// Instructions in all computations.
    pub instruction_count: usize,
    /// Devices that one replica spans.
    pub num_partitions: u32,
    /// Replicas.
    pub replica_count: u32,
    /// Position in `sources`.
    pub source_index: usize,
    /// Hosts that hold the same program; empty outside log directories.
    pub hosts: Vec<String>,
    /// Memory spaces, by colour. Empty without buffer assignment.
    pub memory_spaces: Vec<SpaceReport>,
    /// Of a module without buffer assignment: what its shapes tell.
    pub shapes_only: Option<ShapesOnly>,
}

/// What can be known of a module that has no buffer assignment.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ShapesOnly {
    /// Bytes of entry parameters as laid out.
    pub parameter_bytes: u64,
    /// Bytes of the result as laid out.
    pub output_bytes: u64,
    /// Padding in both.
    pub padding_bytes: u64,
    /// Whether shapes are of the whole program rather than of one device.
    pub shapes_are_global: bool,
    /// Every array of parameters and result, largest first.
    pub arrays: Vec<ShapeEntry>,
}

/// One array of a module without buffer assignment.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ShapeEntry {
    /// Argument's name, or the result's part.
    pub name: String,
    /// `parameter` or `output`.
    pub kind: &'static str,
    /// Shape with layout.
    pub shape: String,
    /// Bytes as laid out.
    pub size_bytes: u64,
    /// Bytes of data.
    pub unpadded_bytes: u64,
}

/// One memory space of a program.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SpaceReport {
    /// The compiler's colour.
    pub color: i64,
    /// `HBM`.
    pub name: String,
    /// Whole-program bytes and the largest heap.
    pub peak_bytes: u64,
    /// Data alone at that point.
    pub peak_unpadded_bytes: u64,
    /// `peak_bytes - peak_unpadded_bytes`.
    pub padding_bytes: u64,
    /// Parameters, outputs, constants.
    pub indefinite_bytes: u64,
    /// Temporaries at the peak.
    pub heap_peak_bytes: u64,
    /// All allocations: what must fit.
    pub allocated_bytes: u64,
    /// `allocated_bytes - peak_bytes`.
    pub fragmentation_bytes: u64,
    /// Whether the heap is the union of live addresses (on-chip spaces whose buffers may overlap)
    /// rather than the sum of sizes.
    pub is_address_union: bool,
    /// Sums to `peak_bytes`.
    pub breakdown: Breakdown,
    /// Program point of the peak.
    pub peak_point: u32,
    /// Program points.
    pub point_count: usize,
    /// Instruction at the peak.
    pub peak_instruction: String,
    /// The framework's name of it.
    pub peak_op_name: String,
    /// Where it comes from.
    pub peak_source: Option<SourceLine>,
    /// Everything alive at the peak, largest first. Counted bytes sum to `peak_bytes`.
    pub buffers: Vec<BufferEntry>,
    /// Repeats folded, largest first. Sums to `peak_bytes`.
    pub groups: Vec<GroupEntry>,
    /// What is wasted or could be changed.
    pub findings: Vec<Finding>,
    /// Sums by other properties.
    pub rankings: Rankings,
    /// What devices hold identically, where the module runs on several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationEntry>,
    /// Memory at every program point, on demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
}

/// The peak by what memory is for.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[non_exhaustive]
pub struct Breakdown {
    /// Arguments that keep their memory.
    pub parameter_bytes: u64,
    /// Outputs that take over no argument.
    pub output_bytes: u64,
    /// Arguments whose memory an output takes over.
    pub donated_bytes: u64,
    /// Constants.
    pub constant_bytes: u64,
    /// Temporaries.
    pub temporary_bytes: u64,
}

/// One block of memory at the peak.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BufferEntry {
    /// The compiler's number; null for unattributed memory.
    pub logical_buffer_id: Option<i64>,
    /// The compiler's number of its allocation.
    pub allocation_index: Option<i64>,
    /// Offset in the allocation.
    pub offset_bytes: u64,
    /// Instruction that defines it.
    pub instruction: String,
    /// Part of the instruction's result.
    pub shape_index: Vec<i64>,
    /// HLO opcode.
    pub opcode: String,
    /// The framework's name; an argument's name for parameters.
    pub op_name: String,
    /// The operation path of what computes the value: differs from `op_name` where a loop or a
    /// tuple carries it.
    pub label: String,
    /// Where that comes from.
    pub source: Option<SourceLine>,
    /// Python stack, innermost first.
    pub stack: Vec<String>,
    /// Shape with layout.
    pub shape: String,
    /// `f32`.
    pub element_type: String,
    /// Logical dimensions.
    pub dimensions: Vec<u64>,
    /// Bytes.
    pub size_bytes: u64,
    /// Bytes that count towards the peak; differs from `size_bytes` only where on-chip buffers
    /// overlap in address.
    pub counted_bytes: u64,
    /// Data in the counted bytes.
    pub unpadded_bytes: u64,
    /// `counted_bytes - unpadded_bytes`.
    pub padding_bytes: u64,
    /// `parameter`, `output`, `donated`, `constant`, `temporary`.
    pub kind: &'static str,
    /// Entry parameter's number.
    pub parameter_number: Option<u32>,
    /// Program points, half open; null = whole program.
    pub live: Option<LiveEntry>,
    /// Devices the program runs on.
    pub devices: u64,
    /// Different copies among them; null where unknown.
    pub distinct_copies: Option<u64>,
    /// Bytes that full sharding would save on each device.
    pub redundant_bytes: Option<u64>,
    /// Sharding annotation, of parameters and outputs.
    pub sharding: Option<String>,
    /// What it is in a training or serving program: `parameters`, `optimizer_state`, ...
    pub origin: Option<String>,
    /// What that rests on: `structure`, or `name`.
    pub origin_certainty: Option<&'static str>,
    /// The rule by which the origin was told.
    pub origin_rule: Option<String>,
}

/// A live range.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct LiveEntry {
    /// First program point.
    pub start: u32,
    /// End (exclusive).
    pub end: u32,
}

/// Repeats of one buffer.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct GroupEntry {
    /// Operation path, `*` for numbers that vary.
    pub label: String,
    /// Shape with layout.
    pub shape: String,
    /// HLO opcode.
    pub opcode: String,
    /// Buffers.
    pub count: usize,
    /// Bytes at the peak.
    pub size_bytes: u64,
    /// Their padding.
    pub padding_bytes: u64,
    /// What they are for.
    pub kind: &'static str,
    /// Source line of the largest of them.
    pub source: Option<SourceLine>,
    /// The compiler's numbers, largest first.
    pub buffer_ids: Vec<i64>,
}

/// Sums of the peak by other properties; each adds up to the peak.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Rankings {
    /// By the user's source line.
    pub by_source_line: Vec<RankEntry>,
    /// By operation path: a tree in depth-first order.
    pub by_op_path: Vec<ScopeEntry>,
    /// By element type.
    pub by_element_type: Vec<RankEntry>,
    /// By HLO opcode.
    pub by_opcode: Vec<RankEntry>,
    /// By origin, where told.
    pub by_origin: Vec<RankEntry>,
    /// Temporaries by bytes × program points, most first; at most a thousand.
    pub long_held: Vec<HeldEntry>,
    /// Padding by buffer, most first.
    pub padding: Vec<PaddingEntry>,
    /// Entry parameters and outputs that are whole on every device, largest first.
    pub unsharded: Vec<UnshardedEntry>,
}

/// One row of a ranking.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RankEntry {
    /// The property.
    pub label: String,
    /// Buffers.
    pub count: usize,
    /// Bytes at the peak.
    pub size_bytes: u64,
    /// Their padding.
    pub padding_bytes: u64,
}

/// A scope of the operation path tree.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ScopeEntry {
    /// The scope's own name.
    pub name: String,
    /// Depth in the tree; 0 = outermost.
    pub depth: usize,
    /// Buffers in it.
    pub count: usize,
    /// Bytes at the peak, scopes below included.
    pub size_bytes: u64,
    /// Their padding.
    pub padding_bytes: u64,
}

/// A temporary and how long it is held.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct HeldEntry {
    /// The compiler's number.
    pub logical_buffer_id: i64,
    /// What people call it.
    pub label: String,
    /// Shape with layout.
    pub shape: String,
    /// Bytes.
    pub size_bytes: u64,
    /// Program points, half open.
    pub live: LiveEntry,
    /// Whether it is alive at the peak.
    pub at_peak: bool,
}

/// Padding of one buffer, or of several alike.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PaddingEntry {
    /// The compiler's numbers.
    pub buffer_ids: Vec<i64>,
    /// What people call it.
    pub label: String,
    /// Shape with layout.
    pub shape: String,
    /// Bytes of all of them.
    pub size_bytes: u64,
    /// Data in them.
    pub unpadded_bytes: u64,
    /// Bytes lost.
    pub padding_bytes: u64,
    /// What each padded dimension costs, in one buffer.
    pub causes: Vec<PaddingCauseEntry>,
    /// A shape that loses less.
    pub better: Option<BetterShapeEntry>,
}

/// What one padded dimension costs.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PaddingCauseEntry {
    /// Logical dimension; null for a tile dimension that the array lacks.
    pub dimension: Option<usize>,
    /// Its size.
    pub size: u64,
    /// What memory holds.
    pub padded: u64,
    /// Bytes that this adds.
    pub bytes: u64,
}

/// A shape that loses less.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BetterShapeEntry {
    /// `move`, `merge` or `round_down`.
    pub change: &'static str,
    /// Dimensions, the last one minor-most.
    pub dimensions: Vec<u64>,
    /// Bytes of one buffer then.
    pub size_bytes: u64,
    /// Bytes saved over all of them.
    pub saving_bytes: u64,
}

/// An entry parameter or output that is whole on every device.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct UnshardedEntry {
    /// Argument's or output's name.
    pub label: String,
    /// `parameter`, `donated` or `output`.
    pub kind: &'static str,
    /// Shape with layout.
    pub shape: String,
    /// Annotation, as XLA prints it; null where there is none.
    pub sharding: Option<String>,
    /// Arrays alike.
    pub count: usize,
    /// Bytes of all of them.
    pub size_bytes: u64,
    /// Bytes that sharding over all devices would save on each.
    pub saving_bytes: u64,
}

/// What devices hold identically at the peak.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ReplicationEntry {
    /// Devices.
    pub devices: u64,
    /// Bytes of the peak that another device holds too.
    pub redundant_bytes: u64,
    /// The part of that which depends on no argument (masks, zeros): nothing to shard, and in no
    /// group.
    pub unshardable_bytes: u64,
    /// Groups of buffers, most redundant first.
    pub rows: Vec<ReplicationRowEntry>,
}

/// Buffers that devices hold identically.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ReplicationRowEntry {
    /// What people call them.
    pub label: String,
    /// Shape with layout.
    pub shape: String,
    /// Where they arise.
    pub place: String,
    /// Buffers.
    pub count: usize,
    /// Bytes at the peak.
    pub size_bytes: u64,
    /// Different copies among the devices.
    pub distinct_copies: u64,
    /// Bytes that full sharding would save on each device.
    pub redundant_bytes: u64,
    /// Mesh axes or device groups over which they are the same.
    pub axes: Option<String>,
    /// The compiler's numbers.
    pub buffer_ids: Vec<i64>,
}

/// Memory over program order: one entry a program point in each list.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// Live bytes, whole-program memory included.
    pub total_bytes: Vec<u64>,
    /// Live temporaries.
    pub heap_bytes: Vec<u64>,
    /// Data alone in the live temporaries.
    pub unpadded_bytes: Vec<u64>,
    /// Instruction of the event.
    pub instruction: Vec<String>,
}

impl Report {
    /// The space that text formats show of a module: the one of that colour.
    pub fn space(module: &ModuleReport, color: i64) -> Option<&SpaceReport> {
        module.memory_spaces.iter().find(|s| s.color == color)
    }
}

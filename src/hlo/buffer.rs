//! Buffer assignment: logical buffers, allocations, heap simulator traces.

use super::ids::{AllocationId, BufferId, InstructionId};

/// A program's buffer assignment.
#[derive(Debug, Clone, Default)]
pub struct BufferAssignment<'a> {
    /// Every value's need for memory, in file order.
    pub logical_buffers: Vec<LogicalBuffer>,
    /// Every allocation, in file order.
    pub allocations: Vec<BufferAllocation>,
    /// What the compiler's heap simulator did, one trace per arena (not every arena has one).
    pub traces: Vec<HeapTrace<'a>>,
    pub(crate) shape_indices: Vec<i64>,
    pub(crate) assigned: Vec<AssignedBuffer>,
}

/// One value's need for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogicalBuffer {
    /// The compiler's number for it.
    pub id: i64,
    /// Bytes, tile padding included.
    pub size_bytes: u64,
    /// Instruction that defines it; `None` if the file names one that does not exist.
    pub instruction: Option<InstructionId>,
    /// Memory space.
    pub space: MemorySpace,
    /// Allocation that holds it; `None` if it is in none.
    pub allocation: Option<AllocationId>,
    /// Offset in that allocation.
    pub offset_bytes: u64,
    pub(crate) shape_index: (u32, u32),
}

/// One allocation: a whole-program block, or an arena that temporaries share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferAllocation {
    /// The compiler's number for it.
    pub index: i64,
    /// Bytes.
    pub size_bytes: u64,
    /// Memory space.
    pub space: MemorySpace,
    /// What it is for.
    pub kind: AllocationKind,
    /// Whether its contents outlive the program (an output, or a donated parameter).
    pub maybe_live_out: bool,
    /// Of a parameter's allocation: the parameter's number.
    pub parameter_number: Option<u32>,
    /// Of a parameter's allocation: the part of the parameter.
    pub parameter_index: Vec<i64>,
    pub(crate) assigned: (u32, u32),
}

/// What an allocation is for, from its flags. The first that applies: thread-local, constant,
/// donated, parameter, output, temporary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AllocationKind {
    /// An entry argument.
    Parameter,
    /// An entry argument whose memory an output takes over.
    Donated,
    /// A result.
    Output,
    /// A constant.
    Constant,
    /// Scratch inside embedded computations; no device memory of its own.
    ThreadLocal,
    /// An arena of temporaries.
    Temporary,
}

impl AllocationKind {
    /// Whether the allocation is live at every program point.
    pub fn is_whole_program(self) -> bool {
        matches!(
            self,
            AllocationKind::Parameter
                | AllocationKind::Donated
                | AllocationKind::Output
                | AllocationKind::Constant
        )
    }
}

/// A logical buffer's place in an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssignedBuffer {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset in the allocation.
    pub offset_bytes: u64,
    /// Bytes.
    pub size_bytes: u64,
}

/// One run of the compiler's heap simulator.
#[derive(Debug, Clone, Default)]
pub struct HeapTrace<'a> {
    /// What happened, in program order: one event is one program point.
    pub events: Vec<HeapEvent<'a>>,
    /// Whether it covers the whole module (false: a trace of memory-space assignment).
    pub whole_module: bool,
    /// Allocation it fills: the one that holds its first known buffer.
    pub allocation: Option<AllocationId>,
    /// Events that name a buffer the file does not have.
    pub unknown_buffers: u32,
}

/// One step of a heap simulator trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapEvent<'a> {
    /// What happens.
    pub kind: HeapEventKind,
    /// The buffer; `None` if the file does not have it (the event then does nothing).
    pub buffer: Option<BufferId>,
    /// Instruction at which it happens, by name.
    pub instruction_name: &'a str,
}

/// What a heap event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapEventKind {
    /// The buffer becomes live.
    Alloc,
    /// A reference to the buffer ends.
    Free,
    /// The buffer becomes another name of `canonical`.
    ShareWith {
        /// The buffer shared with; `None` if the file does not have it.
        canonical: Option<BufferId>,
    },
}

/// A memory space, by the compiler's colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemorySpace(pub i64);

impl MemorySpace {
    /// Device memory: HBM on TPU, device memory on GPU and CPU.
    pub const HBM: MemorySpace = MemorySpace(0);

    /// Name on a TPU (`HBM`, `VMEM`), or `space N` for colours without a known name.
    pub fn name(self) -> String {
        match self.0 {
            0 => "HBM",
            1 => "VMEM",
            2 => "SFLAG",
            3 => "CMEM",
            4 => "SMEM",
            5 => "host",
            6 => "workspace register",
            7 => "SparseCore private-stack HBM",
            8 => "SparseCore sequencer SFLAG",
            9 => "pinned HBM",
            10 => "SparseCore tile SFLAG",
            n => return format!("space {n}"),
        }
        .to_owned()
    }

    /// The space a user means: a colour number, or a name in any case.
    pub fn parse(text: &str) -> Option<MemorySpace> {
        if let Ok(color) = text.trim().parse::<i64>() {
            return Some(MemorySpace(color));
        }
        let wanted = text.trim().to_ascii_lowercase();
        (0..=10)
            .map(MemorySpace)
            .find(|s| s.name().to_ascii_lowercase() == wanted)
    }
}

impl<'a> BufferAssignment<'a> {
    /// The logical buffer with that handle.
    pub fn buffer(&self, id: BufferId) -> &LogicalBuffer {
        &self.logical_buffers[id.index()]
    }

    /// Handles of all logical buffers, in file order.
    pub fn buffer_ids(&self) -> impl Iterator<Item = BufferId> {
        (0..self.logical_buffers.len() as u32).map(BufferId)
    }

    /// The allocation with that handle.
    pub fn allocation(&self, id: AllocationId) -> &BufferAllocation {
        &self.allocations[id.index()]
    }

    /// Handles of all allocations, in file order.
    pub fn allocation_ids(&self) -> impl Iterator<Item = AllocationId> {
        (0..self.allocations.len() as u32).map(AllocationId)
    }

    /// Buffers placed in an allocation, in file order.
    pub fn assigned(&self, id: AllocationId) -> &[AssignedBuffer] {
        let (a, b) = self.allocation(id).assigned;
        self.assigned
            .get(a as usize..b as usize)
            .unwrap_or_default()
    }

    /// Part of its instruction's result that a buffer holds (empty: all of it).
    pub fn shape_index(&self, id: BufferId) -> &[i64] {
        let (a, b) = self.buffer(id).shape_index;
        self.shape_indices
            .get(a as usize..b as usize)
            .unwrap_or_default()
    }

    /// The value that a buffer holds: an instruction and the part of its result; `None` if no
    /// instruction is known to define it.
    pub fn value(&self, id: BufferId) -> Option<(InstructionId, Vec<i64>)> {
        let defined_by = self.buffer(id).instruction?;
        Some((defined_by, self.shape_index(id).to_vec()))
    }

    /// Memory spaces that have an allocation which is not thread-local, ascending.
    pub fn spaces(&self) -> Vec<MemorySpace> {
        let mut out: Vec<_> = self
            .allocations
            .iter()
            .filter(|a| a.kind != AllocationKind::ThreadLocal)
            .map(|a| a.space)
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }
}

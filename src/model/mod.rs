//! The program as xpeak sees it: frozen tables that borrow their text from the file.
//!
//! What holds after decoding: every handle ([`InstructionId`], [`ComputationId`], [`BufferId`],
//! [`AllocationId`]) that a table holds is in range for its program. References that the file
//! makes to things it does not have are `None` or left out, and reported as diagnostics.

mod buffer;
mod device;
mod element;
mod ids;
mod mesh;
mod module;
pub mod op_name;
pub mod opcode;
mod program;
mod shape;
mod sharding;
mod stack;

pub use buffer::{
    AllocationKind, AssignedBuffer, BufferAllocation, BufferAssignment, HeapEvent, HeapEventKind,
    HeapTrace, LogicalBuffer, MemorySpace,
};
pub use device::{capacity_of, Device};
pub use element::ElementType;
pub use ids::{AllocationId, BufferId, ComputationId, InstructionId};
pub(crate) use mesh::{product, transposed_iota};
pub use mesh::{AxisRef, Mesh, MeshAxis, MAX_DEVICES};
pub use module::{BufferDonor, HloComputation, HloInstruction, HloModule, InputOutputAlias};
pub use opcode::Opcode;
pub use program::Program;
pub use shape::{Layout, PhysicalDimension, Shape};
pub use sharding::{NamedSharding, Sharding, SubgroupKind, TileAssignment};
pub use stack::{SourceLine, StackFrameIndex};

//! The program as XLA wrote it: modules, instructions, shapes, shardings and buffer assignments, as
//! frozen tables that borrow their text from the file; and the decoding that fills them.
//!
//! In: bytes of an HloProto or an HloModuleProto. Out: [`Program`]. May use: nothing.
//!
//! What holds after decoding: every handle ([`InstructionId`], [`ComputationId`], [`BufferId`],
//! [`AllocationId`]) that a table holds is in range for its program. References that the file
//! makes to things it does not have are `None` or left out, and reported as diagnostics.

pub(crate) mod buffer;
pub(crate) mod by_computation;
pub(crate) mod decode;
pub(crate) mod element;
pub(crate) mod ids;
pub(crate) mod mesh;
pub(crate) mod module;
pub(crate) mod op_name;
pub(crate) mod opcode;
pub(crate) mod program;
pub(crate) mod shape;
pub(crate) mod sharding;
pub(crate) mod stack;

pub use buffer::{
    AllocationKind, AssignedBuffer, BufferAllocation, BufferAssignment, HeapEvent, HeapEventKind,
    HeapTrace, LogicalBuffer, MemorySpace,
};
pub use decode::wire::{WireError, WireResult};
pub use decode::{
    decode_program, decode_shape, decode_shape_leaf, decode_sharding, Attributes, CollectiveGroups,
    HloContainer,
};
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

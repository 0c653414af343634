//! Handles into one [`Program`](super::program::Program)'s tables. Dense, assigned in file order; never
//! meaningful in another program.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Position in its table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// An instruction: position in [`HloModule::instructions`](super::module::HloModule).
    InstructionId
}
id! {
    /// A computation: position in [`HloModule::computations`](super::module::HloModule).
    ComputationId
}
id! {
    /// A logical buffer: position in
    /// [`BufferAssignment::logical_buffers`](super::buffer::BufferAssignment). The number that XLA and
    /// XProf print is [`LogicalBuffer::id`](super::buffer::LogicalBuffer).
    BufferId
}
id! {
    /// A buffer allocation: position in
    /// [`BufferAssignment::allocations`](super::buffer::BufferAssignment).
    AllocationId
}

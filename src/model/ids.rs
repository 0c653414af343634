//! Handles into one [`Program`](super::Program)'s tables. Dense, assigned in file order; never
//! meaningful in another program.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

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
    /// An instruction: position in [`HloModule::instructions`](super::HloModule).
    InstructionId
}
id! {
    /// A computation: position in [`HloModule::computations`](super::HloModule).
    ComputationId
}
id! {
    /// A logical buffer: position in
    /// [`BufferAssignment::logical_buffers`](super::BufferAssignment). The number that XLA and
    /// XProf print is [`LogicalBuffer::id`](super::LogicalBuffer).
    BufferId
}
id! {
    /// A buffer allocation: position in
    /// [`BufferAssignment::allocations`](super::BufferAssignment).
    AllocationId
}

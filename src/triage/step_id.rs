//! What a step is: its id, and which intervention is on the same matter as a finding.

use serde::{Serialize, Serializer};
use strum::IntoStaticStr;

use crate::findings::FindingKind;

/// What a step is, by the name that it has in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum StepId {
    // Interventions of the catalogue.
    /// Remove debugging code.
    RemoveDebugPrint,
    /// Shard over more mesh axes.
    Sharding,
    /// Fewer examples at once.
    SmallerBatch,
    /// The batch in parts.
    Microbatching,
    /// Fewer bytes an element.
    Bfloat16,
    /// Recompute activations.
    Checkpoint,
    /// Donate arguments.
    Donation,
    /// Other dimensions or another layout.
    Dimensions,
    /// Keep state in host memory.
    HostOffload,
    /// More memory.
    MoreChips,
    // Steps of a kind of their own.
    /// Look at the largest buffer.
    Look,
    /// Write a dump.
    Dump,
    /// Read the dump with the text.
    ReadDump,
    /// Let the compiler finish its report.
    FastExit,
    /// The SparseCore's stack.
    SparsecoreStack,
    /// How embedding tables are sharded.
    SparsecoreModSharding,
    /// How much the SparseCore prefetches.
    SparsecorePrefetch,
    /// Smaller blocks of a kernel.
    SmallerBlocks,
    /// A higher limit of scoped VMEM.
    VmemLimit,
    /// No kernel of the user's.
    NoKernel,
    /// Register spills.
    Spills,
    /// Arrays in scalar memory.
    SmemArguments,
    /// See what is resident.
    LiveArrays,
    /// Drop what is not needed.
    DropReferences,
    /// Large, long-lived arrays first.
    AllocationOrder,
    /// Free what is resident.
    Resident,
    /// Smaller temporaries of a program.
    SmallerTemporaries,
    /// Who else uses the device.
    OtherProcesses,
    /// The allocator's largest chunks.
    Chunks,
    /// Less must be in use.
    LessInUse,
    /// The driver's allocator.
    CudaMallocAsync,
    /// Host memory.
    HostMemory,
    /// The limit of pinned host memory.
    PinnedHostLimit,
    /// Arrays as the program expects them.
    Recompile,
    /// A donation that was refused.
    DonationRefused,
    /// A tensor that is whole between two shardings.
    SpmdRematerialization,
    /// Arguments that alone do not fit.
    ArgumentsExceedLimit,
    // Names of other tables.
    /// A compiler flag, by its name.
    Flag(&'static str),
    /// What a finding asks for.
    Finding(FindingKind),
}

impl StepId {
    /// The name in JSON and, of what the catalogue has, for `explain`.
    pub fn name(self) -> &'static str {
        match self {
            StepId::Flag(name) => name,
            StepId::Finding(kind) => kind.name(),
            other => other.into(),
        }
    }

    /// The intervention that a finding's action is.
    pub fn of_finding(kind: FindingKind) -> Option<StepId> {
        Some(match kind {
            FindingKind::Donation => StepId::Donation,
            FindingKind::Unsharded | FindingKind::RedundantCopies => StepId::Sharding,
            FindingKind::SavedActivations => StepId::Checkpoint,
            FindingKind::Float32 => StepId::Bfloat16,
            FindingKind::DebugCallback => StepId::RemoveDebugPrint,
            FindingKind::Padding => StepId::Dimensions,
            FindingKind::LargeTensor
            | FindingKind::Fragmentation
            | FindingKind::LongLived
            | FindingKind::Capacity => return None,
        })
    }
}

impl Serialize for StepId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_names_of_the_json() {
        for (id, name) in [
            (StepId::Bfloat16, "bfloat16"),
            (StepId::RemoveDebugPrint, "remove_debug_print"),
            (StepId::SparsecoreModSharding, "sparsecore_mod_sharding"),
            (StepId::Flag("xla_tpu_rwb_fusion"), "xla_tpu_rwb_fusion"),
            (StepId::Finding(FindingKind::Unsharded), "unsharded"),
        ] {
            assert_eq!(id.name(), name);
        }
    }
}

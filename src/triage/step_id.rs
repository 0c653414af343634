//! What a step is: its id, and which intervention is on the same matter as a finding.

use serde::{Serialize, Serializer};
use strum::{EnumString, IntoStaticStr};

use crate::findings::FindingKind;

/// What a step is. What the catalogue or `actions` says of it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, EnumString)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum StepId {
    // Interventions of the catalogue.
    RemoveDebugPrint,
    Sharding,
    SmallerBatch,
    Microbatching,
    Bfloat16,
    Checkpoint,
    Donation,
    Dimensions,
    HostOffload,
    MoreChips,
    // Steps of a kind of their own.
    Look,
    Dump,
    ReadDump,
    FastExit,
    SparsecoreStack,
    SparsecoreModSharding,
    SparsecorePrefetch,
    SmallerBlocks,
    VmemLimit,
    NoKernel,
    Spills,
    SmemArguments,
    LiveArrays,
    DropReferences,
    AllocationOrder,
    Resident,
    SmallerTemporaries,
    OtherProcesses,
    Chunks,
    LessInUse,
    CudaMallocAsync,
    HostMemory,
    PinnedHostLimit,
    Recompile,
    DonationRefused,
    SpmdRematerialization,
    ArgumentsExceedLimit,
    // What other tables name.
    /// A compiler flag, by its name.
    #[strum(disabled)]
    Flag(&'static str),
    /// What a finding asks for.
    #[strum(disabled)]
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
        kind.intervention()?.parse().ok()
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
            (StepId::Finding(FindingKind::UNSHARDED), "unsharded"),
        ] {
            assert_eq!(id.name(), name);
        }
    }
}

//! What analyses of one memory space go by: the program, its memory, the peak.

use super::snapshot::{PeakBuffer, PeakSnapshot};
use crate::hlo::op_name::{phase, Phase};
use crate::hlo::Program;
use crate::memory::SpaceUsage;

/// What analyses of one memory space have to go by.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c, 'a> {
    /// The program.
    pub program: &'c Program<'a>,
    /// The space's use.
    pub usage: &'c SpaceUsage,
    /// Who is alive at its peak.
    pub peak: &'c PeakSnapshot,
    /// Capacity of the device's HBM in bytes, where known.
    pub capacity_bytes: Option<u64>,
}

impl Context<'_, '_> {
    /// The compiler's number of the logical buffer that names a block at the peak.
    pub fn buffer_id(&self, b: &PeakBuffer) -> Option<i64> {
        let assignment = self.program.assignment.as_ref()?;
        Some(assignment.buffer(b.buffer?).id)
    }

    /// Whether the program has a backward pass, by its operations' paths.
    pub fn has_backward_pass(&self) -> bool {
        let mut all = self.program.module.instructions.iter();
        all.any(|i| phase(i.op_name) == Phase::Backward)
    }

    /// Framework name of what a block holds; of a parameter its argument name
    /// (`state[0]['mlp']['up']`).
    pub fn op_name(&self, b: &PeakBuffer) -> &str {
        b.instruction
            .map_or("", |i| self.program.module.instruction(i).op_name)
    }
}

//! Instructions by computation: who calls each, and its parameters.
//!
//! In: pairs of a computation and an instruction. Out: the instructions of any computation.

use super::ids::{ComputationId, InstructionId};

/// Instructions by computation.
#[derive(Debug, Default)]
pub(crate) struct ByComputation {
    /// Where each computation's begin; one more entry than computations.
    starts: Vec<u32>,
    all: Vec<InstructionId>,
}

impl ByComputation {
    /// `pairs` come in the order that each computation's instructions are to have.
    pub(crate) fn new(pairs: &[(ComputationId, InstructionId)], computations: usize) -> Self {
        let mut starts = vec![0u32; computations + 1];
        for (c, _) in pairs {
            if let Some(n) = starts.get_mut(c.index() + 1) {
                *n += 1;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut all = vec![InstructionId(0); pairs.len()];
        for &(c, i) in pairs {
            let at = &mut next[c.index()];
            all[*at as usize] = i;
            *at += 1;
        }
        ByComputation { starts, all }
    }

    pub(crate) fn of(&self, c: ComputationId) -> &[InstructionId] {
        let bound = |at: usize| self.starts.get(at).copied().unwrap_or(0) as usize;
        let range = bound(c.index())..bound(c.index() + 1);
        self.all.get(range).unwrap_or_default()
    }
}

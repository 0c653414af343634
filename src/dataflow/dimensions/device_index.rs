//! Which indices depend on the device: a slice at such a place is the device's own share of data
//! that all devices have.
//!
//! In: a program. Out: instructions.

use rustc_hash::FxHashSet;

use crate::hlo::{ComputationId, InstructionId, Opcode, Program};

/// Instructions with a small result that depends on the number of the device.
pub(crate) fn device_dependent(program: &Program<'_>) -> FxHashSet<InstructionId> {
    let module = &program.module;
    let mut found: FxHashSet<InstructionId> = FxHashSet::default();
    let small = |i: InstructionId| {
        let s = module.shape(i);
        !s.is_tuple() && s.element_count() <= 64
    };
    if !module.ids().any(|i| {
        matches!(
            module.instruction(i).opcode,
            Opcode::PartitionId | Opcode::ReplicaId
        )
    }) {
        return found;
    }
    // Callees stand before their callers: a few passes reach what is passed in and out again.
    for _ in 0..4 {
        let before = found.len();
        for i in module.ids() {
            let at = module.instruction(i);
            let known = match at.opcode {
                Opcode::PartitionId | Opcode::ReplicaId => true,
                Opcode::While
                | Opcode::Tuple
                | Opcode::GetTupleElement
                | Opcode::Conditional
                | Opcode::Parameter => false,
                Opcode::Fusion | Opcode::Call => {
                    for &c in module.called(i) {
                        for (&o, &p) in module.operands(i).iter().zip(module.parameters(c)) {
                            if found.contains(&o) && small(p) {
                                found.insert(p);
                            }
                        }
                    }
                    let root = |c: &ComputationId| module.computation(*c).root;
                    module
                        .called(i)
                        .iter()
                        .filter_map(root)
                        .any(|r| found.contains(&r))
                }
                _ => module.operands(i).iter().any(|o| found.contains(o)) && small(i),
            };
            if known {
                found.insert(i);
            }
        }
        if found.len() == before {
            break;
        }
    }
    found
}

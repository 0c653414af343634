//! Which indices depend on the device: a slice at such a place is the device's own share of data
//! that all devices have.
//!
//! In: a program. Out: instructions.

use rustc_hash::FxHashSet;

use crate::hlo::{ComputationId, InstructionId, Opcode, Program};

/// Instructions with a small result that depends on the number of the device.
pub(crate) fn device_dependent(program: &Program<'_>) -> FxHashSet<InstructionId> {
    let module = &program.module;
    let parameters = parameters(program);
    let mut found: FxHashSet<InstructionId> = FxHashSet::default();
    let small = |i: InstructionId| {
        let s = module.shape(i);
        !s.is_tuple() && s.element_count() <= 64
    };
    let ids = || (0..module.instructions.len() as u32).map(InstructionId);
    if !ids().any(|i| {
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
        for i in ids() {
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
                        let inside = parameters.get(c.index()).map_or(&[][..], Vec::as_slice);
                        for (&o, &p) in module.operands(i).iter().zip(inside) {
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

/// Parameters of every computation, by number.
pub(crate) fn parameters(program: &Program<'_>) -> Vec<Vec<InstructionId>> {
    let module = &program.module;
    let mut out = vec![Vec::new(); module.computations.len()];
    for (c, list) in module.computations.iter().zip(&mut out) {
        for i in c.instructions() {
            if module.instruction(i).opcode == Opcode::Parameter {
                list.push(i);
            }
        }
        list.sort_by_key(|&i| (module.instruction(i).parameter_number, i));
    }
    out
}

//! Who reads a value, looked for through everything that only passes it on: tuples, loops'
//! arguments, copies.
//!
//! In: a node. Out: reading instructions.

use rustc_hash::FxHashSet;

use super::base::Base;
use crate::dataflow::dimensions::NodeId;
use crate::hlo::op_name::{phase, Phase};
use crate::hlo::{InstructionId, Opcode};

/// A reading of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reader {
    /// The instruction that reads.
    pub(crate) instruction: InstructionId,
    /// The loop in whose body it does, if the value went into one.
    pub(crate) inside: Option<InstructionId>,
}

/// Steps after which a value's further way is not followed.
const MOST: usize = 5_000;

/// Readers of `node`, ascending.
pub(crate) fn readers(base: &Base<'_, '_>, node: NodeId) -> Vec<Reader> {
    let module = &base.program.module;
    let mut out = Vec::new();
    let mut queue = vec![(node, None)];
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    while let Some((node, inside)) = queue.pop() {
        if !seen.insert(node) || seen.len() > MOST {
            continue;
        }
        let i = base.values.instruction_of(node);
        let offset = node - base.values.nodes(i).start;
        for u in base.graph.uses(i) {
            let user = u.user;
            let into = match module.instruction(user).opcode {
                Opcode::GetTupleElement => {
                    let index = module.instruction(user).tuple_index as usize;
                    let part = base.values.element(i, index);
                    if !part.contains(&node) {
                        continue;
                    }
                    Some(base.values.nodes(user).start + (node - part.start))
                }
                Opcode::Tuple => Some(base.values.element(user, u.operand as usize).start + offset),
                Opcode::Bitcast | Opcode::Copy | Opcode::OptBarrier => {
                    Some(base.values.nodes(user).start + offset)
                }
                // Destination, source, context.
                Opcode::CopyStart => Some(base.values.nodes(user).start),
                Opcode::CopyDone if offset == 0 => Some(base.values.nodes(user).start),
                Opcode::CopyDone => continue,
                Opcode::While => {
                    for &c in module.called(user) {
                        let parameter = module
                            .computation(c)
                            .instructions()
                            .find(|&p| module.instruction(p).opcode == Opcode::Parameter);
                        if let Some(p) = parameter {
                            queue.push((base.values.nodes(p).start + offset, Some(user)));
                        }
                    }
                    continue;
                }
                _ => None,
            };
            match into {
                Some(n) if base.values.nodes(user).contains(&n) => queue.push((n, inside)),
                _ => out.push(Reader {
                    instruction: user,
                    inside,
                }),
            }
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Whether an instruction belongs to a backward pass, by its operation path.
pub(crate) fn is_backward(base: &Base<'_, '_>, i: InstructionId) -> bool {
    phase(base.program.module.instruction(i).op_name) == Phase::Backward
}

/// The instruction that computed what `i` merely holds a copy of.
pub(crate) fn origin(base: &Base<'_, '_>, i: InstructionId) -> InstructionId {
    let module = &base.program.module;
    let mut at = i;
    for _ in 0..8 {
        let passes = matches!(
            module.instruction(at).opcode,
            Opcode::Copy
                | Opcode::CopyStart
                | Opcode::CopyDone
                | Opcode::Bitcast
                | Opcode::GetTupleElement
        );
        match module.operands(at).first() {
            Some(&o) if passes => at = o,
            _ => break,
        }
    }
    at
}

//! Can an instruction write its result over the operand it reads? Only if every element of the
//! result needs that operand at the same place and nowhere else.

use super::flow::source_of;
use super::graph::Graph;
use super::step::{Path, Through};
use crate::hlo::{ComputationId, InstructionId, Opcode, Program};

/// Whether `instruction` may write part `path` of its result over the memory of its operands
/// `operands` (all of them one value).
pub fn can_write_over(
    program: &Program<'_>,
    graph: &Graph,
    instruction: InstructionId,
    operands: &[u32],
    path: &[i64],
) -> bool {
    let module = &program.module;
    match module.instruction(instruction).opcode {
        Opcode::Fusion => {
            let Some(&body) = module.called(instruction).first() else {
                return false;
            };
            operands
                .iter()
                .all(|&o| fusion_can(program, graph, body, o, path))
        }
        Opcode::Copy => true,
        Opcode::DynamicUpdateSlice | Opcode::Scatter => operands == [0],
        opcode => path.is_empty() && opcode.is_elementwise(),
    }
}

fn fusion_can(
    program: &Program<'_>,
    graph: &Graph,
    body: ComputationId,
    operand: u32,
    path: &[i64],
) -> bool {
    let module = &program.module;
    let (Some(parameter), Some(root)) = (
        module.parameter(body, operand),
        module.computation(body).root,
    ) else {
        return false;
    };
    // The instruction inside the fusion that makes the result.
    let target = match path {
        [] => root,
        [element] => {
            let element = usize::try_from(*element).ok();
            let made = element.and_then(|e| module.operands(root).get(e).copied());
            match made.filter(|_| module.instruction(root).opcode == Opcode::Tuple) {
                Some(i) => i,
                None => return false,
            }
        }
        _ => return false,
    };
    let (target, _) = source_of(program, &(target, Path::new()), Through::Names);
    let mut seen = rustc_hash::FxHashSet::default();
    let mut todo = vec![parameter];
    let mut reached = parameter == target;
    while let Some(i) = todo.pop() {
        if !seen.insert(i) {
            continue;
        }
        for u in graph.uses(i) {
            let user = module.instruction(u.user);
            if user.opcode == Opcode::Tuple && u.user == root {
                continue;
            }
            let in_place = match user.opcode {
                Opcode::Bitcast | Opcode::Copy | Opcode::GetTupleElement => true,
                Opcode::DynamicUpdateSlice => u.operand == 0 && graph.uses(i).len() == 1,
                Opcode::Select => u.operand > 0 || same_shape(program, i, u.user),
                opcode => opcode.is_elementwise(),
            };
            if !in_place {
                return false;
            }
            reached |= u.user == target;
            todo.push(u.user);
        }
    }
    reached
}

fn same_shape(program: &Program<'_>, a: InstructionId, b: InstructionId) -> bool {
    program.module.shape(a).dimensions == program.module.shape(b).dimensions
}

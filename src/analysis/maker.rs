//! What computed a value, seen through copies, loops and in-place updates: the operation whose
//! name tells people what a buffer is.

use super::flow::{names_of, Path};
use super::graph::Graph;
use crate::model::{ComputationId, InstructionId, Program};

/// Steps back at most.
const MAX_STEPS: usize = 24;

/// What computed a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    /// The instruction; may be inside a fusion. The value itself if nothing better is found.
    pub instruction: InstructionId,
    /// The loop that filled the value slice by slice, if one did.
    pub stacked_by: Option<InstructionId>,
    /// Where the value's readers are to be looked for: the loop's result, or the value itself.
    pub value: (InstructionId, Path),
}

/// Finds what computed part `path` of `value`.
pub fn maker_of(program: &Program<'_>, graph: &Graph, value: InstructionId, path: &[u32]) -> Maker {
    let module = &program.module;
    let mut at = (value, path.to_vec());
    let mut stacked = None;
    let mut read_at = at.clone();
    for _ in 0..MAX_STEPS {
        let (id, path) = at.clone();
        let i = module.instruction(id);
        let operand = |n: usize| module.operands(id).get(n).copied();
        let next: Option<(InstructionId, Path)> = match i.opcode {
            "while" => {
                let body = module.called(id).first().copied();
                let found = body.and_then(|b| stacked_slice(program, graph, b, &path));
                match found {
                    Some(slice) => {
                        stacked = Some(id);
                        read_at = (id, path.clone());
                        Some(slice)
                    }
                    // The body's result, if it is not just handed on.
                    None => body
                        .and_then(|b| module.computation(b).root)
                        .map(|r| {
                            let names = names_of(program, graph, r, &path, 6);
                            names
                                .into_iter()
                                .find(|n| makes(module.instruction(n.0).opcode))
                        })
                        .unwrap_or_default()
                        .or_else(|| operand(0).map(|o| (o, path.clone()))),
                }
            }
            "parameter" => match graph.caller_of(i.computation) {
                Some(_) => names_of(program, graph, id, &path, 2)
                    .pop()
                    .filter(|n| n.0 != id),
                None => None,
            },
            "get-tuple-element" | "tuple" | "bitcast" | "opt-barrier" => {
                names_of(program, graph, id, &path, 2)
                    .pop()
                    .filter(|n| n.0 != id)
            }
            "copy" | "copy-start" | "copy-done" | "reshape" | "transpose" | "reduce-precision" => {
                operand(0).map(|o| (o, Path::new()))
            }
            "slice-start" | "slice-done" | "async-done" if i.op_name.is_empty() => {
                operand(0).map(|o| (o, Path::new()))
            }
            "fusion" => {
                let inner = module
                    .called(id)
                    .first()
                    .and_then(|&b| slice_in_fusion(program, graph, id, b, &path));
                // In a loop's body, a slice written in place stays in what the loop carries.
                let looping = graph
                    .caller_of(i.computation)
                    .filter(|&c| module.instruction(c).opcode == "while");
                match inner {
                    Some(n) => {
                        stacked = stacked.or(looping);
                        Some(n)
                    }
                    None => break,
                }
            }
            _ => break,
        };
        match next {
            Some(n) => at = n,
            None => break,
        }
    }
    let best = at.0;
    let named = !module.instruction(best).op_name.is_empty();
    Maker {
        instruction: if named { best } else { value },
        stacked_by: stacked,
        value: read_at,
    }
}

fn makes(opcode: &str) -> bool {
    !matches!(
        opcode,
        "parameter" | "get-tuple-element" | "tuple" | "bitcast" | "opt-barrier" | "while"
    )
}

/// Of a loop body that writes one slice of carried part `path` each time: the slice's value.
fn stacked_slice(
    program: &Program<'_>,
    graph: &Graph,
    body: ComputationId,
    path: &[u32],
) -> Option<(InstructionId, Path)> {
    let module = &program.module;
    let root = module.computation(body).root?;
    let (id, path) = names_of(program, graph, root, path, 6)
        .into_iter()
        .find(|n| makes(module.instruction(n.0).opcode))?;
    match module.instruction(id).opcode {
        "dynamic-update-slice" => Some((*module.operands(id).get(1)?, Path::new())),
        "fusion" => {
            let &fused = module.called(id).first()?;
            slice_in_fusion(program, graph, id, fused, &path)
        }
        _ => None,
    }
}

/// Of a fusion whose part `path` is an in-place update: the value of the slice it writes, inside
/// the fusion or, where it comes from outside, the operand.
fn slice_in_fusion(
    program: &Program<'_>,
    graph: &Graph,
    fusion: InstructionId,
    fused: ComputationId,
    path: &[u32],
) -> Option<(InstructionId, Path)> {
    let module = &program.module;
    let mut at = module.computation(fused).root?;
    if let [element] = path {
        at = *module.operands(at).get(*element as usize)?;
    }
    let mut is_update = false;
    for _ in 0..MAX_STEPS {
        let i = module.instruction(at);
        let operand = |n: usize| module.operands(at).get(n).copied();
        match i.opcode {
            "dynamic-update-slice" => {
                is_update = true;
                at = operand(1)?;
            }
            "bitcast" | "reshape" | "copy" | "transpose" | "reduce-precision" => at = operand(0)?,
            "convert" if i.op_name.is_empty() || i.op_name.ends_with("reduce_precision") => {
                at = operand(0)?;
            }
            "parameter" => {
                let outer = *module.operands(fusion).get(i.parameter_number as usize)?;
                return names_of(program, graph, outer, &[], 1)
                    .pop()
                    .filter(|_| is_update);
            }
            _ => break,
        }
    }
    is_update.then_some((at, Path::new()))
}

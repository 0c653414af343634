//! What computed a value, seen through copies, loops, fusions and in-place updates: the operation
//! whose name tells people what a buffer is. The only such search: tables, charts, origins and
//! findings all go by it.
//!
//! In: a program and part of an instruction's result, a logical buffer or a block at the peak.
//! Out: the instruction that computed it, and the loop that stacked it.

use super::flow::{names_of, Path};
use crate::hlo::{BufferId, ComputationId, HloModule, InstructionId, Opcode, Program};

/// Steps back at most.
const MAX_STEPS: usize = 40;

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

/// Finds what computed a logical buffer; `None` if no instruction is known to define it.
pub fn maker_of_buffer(program: &Program<'_>, id: BufferId) -> Option<Maker> {
    let assignment = program.assignment.as_ref()?;
    let defined_by = assignment.buffer(id).instruction?;
    let path: Path = assignment
        .shape_index(id)
        .iter()
        .map(|&i| u32::try_from(i).unwrap_or(u32::MAX))
        .collect();
    Some(maker_of(program, defined_by, &path))
}

/// Finds what computed part `path` of `value`: the last instruction with a telling name on the
/// way back to where it is computed.
pub fn maker_of(program: &Program<'_>, value: InstructionId, path: &[u32]) -> Maker {
    let mut walk = Walk {
        program,
        at: (value, path.to_vec()),
        stacked: None,
        read_at: (value, path.to_vec()),
        fusions: Vec::new(),
    };
    let module = &program.module;
    let mut named = None;
    for _ in 0..MAX_STEPS {
        let i = module.instruction(walk.at.0);
        if is_telling(i.op_name) && !is_carrier(i.opcode) {
            named = Some(walk.at.0);
        }
        match walk.step() {
            Some(next) if next != walk.at => walk.at = next,
            _ => break,
        }
    }
    let last = walk.at.0;
    let has_name = |i: &InstructionId| !module.instruction(*i).op_name.is_empty();
    Maker {
        instruction: named.or(Some(last).filter(has_name)).unwrap_or(value),
        stacked_by: walk.stacked,
        value: walk.read_at,
    }
}

/// Whether a name says what is computed rather than where it is put.
pub(crate) fn is_telling(op_name: &str) -> bool {
    let last = op_name.rsplit('/').next().unwrap_or_default();
    !matches!(
        last,
        "" | "while" | "body" | "dynamic_update_slice" | "broadcast_in_dim" | "copy"
    )
}

/// Opcodes that hand values on, whatever their name.
fn is_carrier(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::While
            | Opcode::Call
            | Opcode::Conditional
            | Opcode::Tuple
            | Opcode::GetTupleElement
    )
}

/// Opcodes whose result is computed, not another name of something.
fn makes(opcode: Opcode) -> bool {
    !is_carrier(opcode)
        && !matches!(
            opcode,
            Opcode::Parameter | Opcode::Bitcast | Opcode::OptBarrier
        )
}

struct Walk<'w, 'a> {
    program: &'w Program<'a>,
    at: (InstructionId, Path),
    stacked: Option<InstructionId>,
    read_at: (InstructionId, Path),
    /// Fusions entered: their parameters are their operands.
    fusions: Vec<InstructionId>,
}

impl Walk<'_, '_> {
    fn step(&mut self) -> Option<(InstructionId, Path)> {
        let (id, path) = self.at.clone();
        let program = self.program;
        let module = &program.module;
        let i = module.instruction(id);
        let operand = |n: usize| module.operands(id).get(n).map(|&o| (o, Path::new()));
        let other_name = |steps| {
            let names = names_of(program, id, &path, steps);
            names.into_iter().last().filter(|n| n.0 != id)
        };
        match i.opcode {
            Opcode::While => self.through_loop(id, &path),
            Opcode::Call => {
                let &body = module.called(id).first()?;
                Some((module.computation(body).root?, path))
            }
            Opcode::Parameter if module.computation(i.computation).is_fusion => {
                let fusion = self.fusions.pop()?;
                let &o = module.operands(fusion).get(i.parameter_number as usize)?;
                Some((o, path))
            }
            Opcode::Parameter => module.caller_of(i.computation).and_then(|_| other_name(2)),
            Opcode::GetTupleElement | Opcode::Tuple | Opcode::Bitcast | Opcode::OptBarrier => {
                other_name(2)
            }
            Opcode::Copy
            | Opcode::CopyStart
            | Opcode::CopyDone
            | Opcode::Reshape
            | Opcode::Transpose
            | Opcode::ReducePrecision => operand(0),
            Opcode::SliceStart | Opcode::SliceDone | Opcode::AsyncDone if i.op_name.is_empty() => {
                operand(0)
            }
            // In a loop's body, a slice written in place stays in what the loop carries.
            Opcode::DynamicUpdateSlice => {
                let looping = loop_around(module, id)?;
                self.stacked = self.stacked.or(Some(looping));
                operand(1)
            }
            Opcode::Fusion => self.through_fusion(id, &path),
            _ => None,
        }
    }

    fn through_loop(&mut self, id: InstructionId, path: &[u32]) -> Option<(InstructionId, Path)> {
        let module = &self.program.module;
        self.fusions.clear();
        let before = || {
            let &o = module.operands(id).first()?;
            Some((o, path.to_vec()))
        };
        let made = module.called(id).first().and_then(|&body| {
            let root = module.computation(body).root?;
            let names = names_of(self.program, root, path, 6);
            names
                .into_iter()
                .find(|n| makes(module.instruction(n.0).opcode))
        });
        // What the body only hands on was there before.
        let Some((at, part)) = made else {
            return before();
        };
        let slice = match module.instruction(at).opcode {
            Opcode::DynamicUpdateSlice => module.operands(at).get(1).map(|&o| (o, Path::new())),
            Opcode::Fusion => self.slice_in_fusion(at, &part),
            _ => None,
        };
        if slice.is_some() {
            self.stacked = Some(id);
            self.read_at = (id, path.to_vec());
        }
        slice.or(Some((at, part)))
    }

    fn through_fusion(&mut self, id: InstructionId, path: &[u32]) -> Option<(InstructionId, Path)> {
        let module = &self.program.module;
        if let Some(slice) = self.slice_in_fusion(id, path) {
            self.stacked = self.stacked.or(loop_around(module, id));
            return Some(slice);
        }
        if is_telling(module.instruction(id).op_name) {
            return None;
        }
        let &fused = module.called(id).first()?;
        self.fusions.push(id);
        Some((module.computation(fused).root?, path.to_vec()))
    }

    /// Of a fusion whose part `path` is an in-place update: the value of the slice it writes,
    /// inside the fusion or, where it comes from outside, the operand.
    fn slice_in_fusion(
        &mut self,
        fusion: InstructionId,
        path: &[u32],
    ) -> Option<(InstructionId, Path)> {
        let module = &self.program.module;
        let &fused = module.called(fusion).first()?;
        let mut at = module.computation(fused).root?;
        if let [element] = path {
            at = *module.operands(at).get(*element as usize)?;
        }
        let mut is_update = false;
        for _ in 0..MAX_STEPS {
            let i = module.instruction(at);
            let operand = |n: usize| module.operands(at).get(n).copied();
            match i.opcode {
                Opcode::DynamicUpdateSlice => {
                    is_update = true;
                    at = operand(1)?;
                }
                Opcode::Bitcast
                | Opcode::Reshape
                | Opcode::Copy
                | Opcode::Transpose
                | Opcode::ReducePrecision => {
                    at = operand(0)?;
                }
                Opcode::Convert
                    if i.op_name.is_empty() || i.op_name.ends_with("reduce_precision") =>
                {
                    at = operand(0)?;
                }
                Opcode::Parameter => {
                    let outer = *module.operands(fusion).get(i.parameter_number as usize)?;
                    return is_update.then_some((outer, Path::new()));
                }
                _ => break,
            }
        }
        if is_update {
            self.fusions.push(fusion);
        }
        is_update.then_some((at, Path::new()))
    }
}

/// The loop in whose body an instruction is.
fn loop_around(module: &HloModule<'_>, id: InstructionId) -> Option<InstructionId> {
    let computation: ComputationId = module.instruction(id).computation;
    module
        .caller_of(computation)
        .filter(|&c| module.instruction(c).opcode == Opcode::While)
}

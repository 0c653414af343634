//! What computed a value, seen through copies, loops, fusions and in-place updates: the operation
//! whose name tells people what a buffer is. The only such search: tables, charts, origins and
//! findings all go by it.
//!
//! In: a program and part of an instruction's result, a logical buffer or a block at the peak.
//! Out: the instruction that computed it, and the loop that stacked it.

use super::flow::names_of;
use super::step::{back, passed_to, Path, Through, Value};
use crate::hlo::{BufferId, HloModule, InstructionId, Opcode, Program};

/// Steps back at most.
const MAX_STEPS: usize = 40;

/// What computed a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// The instruction; may be inside a fusion. The value itself if nothing better is found.
    pub instruction: InstructionId,
    /// The loop that filled the value slice by slice, if one did.
    pub stacked_by: Option<InstructionId>,
    /// Where the value's readers are to be looked for: the loop's result, or the value itself.
    pub value: Value,
}

/// Finds what computed a logical buffer; `None` if no instruction is known to define it.
pub fn producer_of_buffer(program: &Program<'_>, id: BufferId) -> Option<Producer> {
    let value = program.assignment.as_ref()?.value(id)?;
    Some(producer_of_value(program, &value))
}

/// Finds what computed `value`: the last instruction with a telling name on the
/// way back to where it is computed.
pub fn producer_of_value(program: &Program<'_>, value: &Value) -> Producer {
    let mut walk = Walk {
        program,
        at: value.clone(),
        stacked: None,
        read_at: value.clone(),
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
    Producer {
        instruction: named.or(Some(last).filter(has_name)).unwrap_or(value.0),
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
    opcode.runs_computations() || matches!(opcode, Opcode::Tuple | Opcode::GetTupleElement)
}

struct Walk<'w, 'a> {
    program: &'w Program<'a>,
    at: Value,
    stacked: Option<InstructionId>,
    read_at: Value,
}

impl Walk<'_, '_> {
    fn step(&mut self) -> Option<Value> {
        let (id, path) = self.at.clone();
        let module = &self.program.module;
        let i = module.instruction(id);
        let operand = |n: usize| module.operands(id).get(n).map(|&o| (o, Path::new()));
        match i.opcode {
            Opcode::While => self.through_loop(id, &path),
            Opcode::Conditional => None,
            Opcode::Parameter => Some((passed_to(module, id)?, path)),
            Opcode::ReducePrecision => operand(0),
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
            _ => {
                let mut before = Vec::new();
                back(module, &self.at, Through::Copies, &mut before);
                before.into_iter().next()
            }
        }
    }

    fn through_loop(&mut self, id: InstructionId, path: &[i64]) -> Option<Value> {
        let module = &self.program.module;
        let before = || {
            let &o = module.operands(id).first()?;
            Some((o, path.to_vec()))
        };
        let made = module.called(id).first().and_then(|&body| {
            let root = module.computation(body).root?;
            let names = names_of(self.program, &(root, path.to_vec()), Through::Names, 6);
            names
                .into_iter()
                .find(|n| !module.instruction(n.0).opcode.hands_on())
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

    fn through_fusion(&mut self, id: InstructionId, path: &[i64]) -> Option<Value> {
        let module = &self.program.module;
        if let Some(slice) = self.slice_in_fusion(id, path) {
            self.stacked = self.stacked.or(loop_around(module, id));
            return Some(slice);
        }
        if is_telling(module.instruction(id).op_name) {
            return None;
        }
        let &fused = module.called(id).first()?;
        Some((module.computation(fused).root?, path.to_vec()))
    }

    /// Of a fusion whose part `path` is an in-place update: the value of the slice it writes,
    /// inside the fusion or, where it comes from outside, the operand.
    fn slice_in_fusion(&self, fusion: InstructionId, path: &[i64]) -> Option<Value> {
        let module = &self.program.module;
        let &fused = module.called(fusion).first()?;
        let mut at = module.computation(fused).root?;
        if let [element] = path {
            let element = usize::try_from(*element).ok()?;
            at = *module.operands(at).get(element)?;
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
                Opcode::ReducePrecision => at = operand(0)?,
                opcode if opcode.keeps_elements() => at = operand(0)?,
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
        is_update.then_some((at, Path::new()))
    }
}

/// The loop in whose body an instruction is.
fn loop_around(module: &HloModule<'_>, id: InstructionId) -> Option<InstructionId> {
    let caller = module.caller_of(module.instruction(id).computation);
    caller.filter(|&c| module.instruction(c).opcode == Opcode::While)
}

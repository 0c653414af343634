//! Whether a whole tensor is an argument that was sharded and gathered for use: then its copies
//! are how the program was meant to run, and sharding it again is no advice.

use rustc_hash::FxHashMap;

use crate::hlo::{ComputationId, HloModule, InstructionId, Opcode};

/// Steps followed at most from one value to where it comes from.
const MAX_STEPS: usize = 256;

/// Finds where values come from. Built once a module.
#[derive(Debug)]
pub(crate) struct Provenance<'m, 'a> {
    module: &'m HloModule<'a>,
    /// The only caller of a computation; `None` where there are several.
    callers: FxHashMap<ComputationId, Option<InstructionId>>,
}

impl<'m, 'a> Provenance<'m, 'a> {
    pub(crate) fn new(module: &'m HloModule<'a>) -> Self {
        let mut callers: FxHashMap<ComputationId, Option<InstructionId>> = FxHashMap::default();
        for k in 0..module.instructions.len() as u32 {
            let i = InstructionId(k);
            for &c in module.called(i) {
                callers
                    .entry(c)
                    .and_modify(|x| *x = x.filter(|&x| x == i))
                    .or_insert(Some(i));
            }
        }
        Provenance { module, callers }
    }

    /// The instruction that calls a computation, if there is only one.
    pub(crate) fn caller(&self, c: ComputationId) -> Option<InstructionId> {
        self.callers.get(&c).copied().flatten()
    }

    /// The entry parameter of which a value is a gathered, perhaps converted, whole; `None` if it
    /// is not one, or was not gathered.
    pub(crate) fn gathered_argument(
        &self,
        i: InstructionId,
        index: &[i64],
    ) -> Option<InstructionId> {
        let module = self.module;
        let mut at = i;
        let mut element: Option<u32> = index.first().and_then(|&x| u32::try_from(x).ok());
        let mut gathered = false;
        for _ in 0..MAX_STEPS {
            let inst = module.instruction(at);
            let operands = module.operands(at);
            match inst.opcode {
                Opcode::AllGather | Opcode::AllGatherStart | Opcode::AllGatherDone => {
                    gathered = true
                }
                Opcode::GetTupleElement => element = Some(inst.tuple_index),
                Opcode::Tuple => {
                    at = *operands.get(element.take()? as usize)?;
                    continue;
                }
                Opcode::Parameter if Some(inst.computation) == module.entry => {
                    return gathered.then_some(at);
                }
                Opcode::Parameter => {
                    let caller = self.caller(inst.computation)?;
                    at = *module
                        .operands(caller)
                        .get(inst.parameter_number as usize)?;
                    continue;
                }
                Opcode::Fusion | Opcode::Call | Opcode::AsyncStart => {
                    // Into the computation, at its root; its parameters lead back out.
                    let [c] = module.called(at) else {
                        return None;
                    };
                    at = module.computation(*c).root?;
                    continue;
                }
                Opcode::While => {}
                // An asynchronous collective inside a fusion, among its flags.
                Opcode::CustomCall if inst.custom_call_target().starts_with("AsyncCollective") => {
                    let found = operands.iter().copied().find(|&o| {
                        matches!(
                            module.instruction(o).opcode,
                            Opcode::AllGather | Opcode::AllGatherStart
                        )
                    });
                    at = found?;
                    element = None;
                    continue;
                }
                Opcode::CopyStart | Opcode::CopyDone | Opcode::AsyncDone => element = None,
                Opcode::Copy
                | Opcode::Bitcast
                | Opcode::Reshape
                | Opcode::Transpose
                | Opcode::Convert
                | Opcode::Slice
                | Opcode::DynamicSlice
                | Opcode::Concatenate
                | Opcode::Pad
                | Opcode::OptBarrier
                | Opcode::CustomCall => {}
                _ => return None,
            }
            at = *operands.first()?;
        }
        None
    }
}

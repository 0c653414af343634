//! Whether a whole tensor is an argument that was sharded and gathered for use: then its copies
//! are how the program was meant to run, and sharding it again is no advice.

use crate::dataflow::step::{back, Through, Value};
use crate::hlo::{HloModule, InstructionId, Opcode};

/// Steps followed at most from one value to where it comes from.
const MAX_STEPS: usize = 256;

/// The entry parameter of which a value is a gathered, perhaps converted, whole; `None` if it
/// is not one, or was not gathered.
pub(crate) fn gathered_argument(module: &HloModule<'_>, value: Value) -> Option<InstructionId> {
    let mut at = value;
    let mut gathered = false;
    for _ in 0..MAX_STEPS {
        let i = module.instruction(at.0);
        gathered |= i.opcode.synchronous() == Opcode::AllGather;
        if i.opcode == Opcode::Parameter && Some(i.computation) == module.entry {
            return gathered.then_some(at.0);
        }
        let mut before = Vec::new();
        back(module, &at, Through::Parts, &mut before);
        // Of a loop, what went in.
        at = match before.pop() {
            Some(value) => value,
            None => (handed_to(module, at.0)?, Vec::new()),
        };
    }
    None
}

/// What a custom call hands on: an asynchronous collective inside a fusion stands among its flags.
fn handed_to(module: &HloModule<'_>, call: InstructionId) -> Option<InstructionId> {
    let i = module.instruction(call);
    if i.opcode != Opcode::CustomCall {
        return None;
    }
    let mut operands = module.operands(call).iter().copied();
    if i.custom_call_target().starts_with("AsyncCollective") {
        operands.find(|&o| module.instruction(o).opcode.synchronous() == Opcode::AllGather)
    } else {
        operands.next()
    }
}

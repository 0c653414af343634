//! What really made a value. A buffer that belongs to a loop's result, a tuple element, an
//! in-place update or a bare copy carries the carrier's name; people look for the operation
//! inside.

use crate::model::{HloModule, InstructionId};

/// Carriers followed before giving up.
const MAX_HOPS: usize = 40;

/// The instruction that computes part `index` of `of`'s result: through loops into their bodies,
/// through tuples, copies, in-place updates and the fusions that hold them. The last instruction
/// with a telling name on that way; `of` itself where it is no carrier.
pub fn producer(module: &HloModule<'_>, of: InstructionId, index: &[i64]) -> InstructionId {
    let mut walk = Walk {
        module,
        at: of,
        path: index.to_vec(),
        callers: Vec::new(),
    };
    let mut named = of;
    for _ in 0..MAX_HOPS {
        let i = module.instruction(walk.at);
        let carries = is_carrier(i.opcode) || !is_telling(i.op_name);
        if is_telling(i.op_name) && !matches!(i.opcode, "while" | "call" | "tuple") {
            named = walk.at;
        }
        if !carries || !walk.step() {
            break;
        }
    }
    named
}

fn is_carrier(opcode: &str) -> bool {
    matches!(
        opcode,
        "while"
            | "tuple"
            | "get-tuple-element"
            | "optimization-barrier"
            | "call"
            | "copy-done"
            | "copy-start"
            | "dynamic-update-slice"
    )
}

/// Whether a name says what is computed rather than where it is put.
fn is_telling(op_name: &str) -> bool {
    let last = op_name.rsplit('/').next().unwrap_or_default();
    !matches!(
        last,
        "" | "while" | "body" | "dynamic_update_slice" | "broadcast_in_dim" | "copy"
    )
}

struct Walk<'w, 'a> {
    module: &'w HloModule<'a>,
    at: InstructionId,
    path: Vec<i64>,
    /// Fusions and calls entered: their computation's parameters are their operands.
    callers: Vec<InstructionId>,
}

impl Walk<'_, '_> {
    fn operand(&self, of: InstructionId, n: usize) -> Option<InstructionId> {
        self.module.operands(of).get(n).copied()
    }

    fn enter(&self) -> Option<InstructionId> {
        self.module
            .computation(*self.module.called(self.at).first()?)
            .root
    }

    /// One step towards the producer; false at the end of the way.
    fn step(&mut self) -> bool {
        let at = self.at;
        let i = self.module.instruction(at);
        let next = match i.opcode {
            "while" => {
                self.callers.clear();
                self.enter()
            }
            "call" | "fusion" => {
                self.callers.push(at);
                self.enter()
            }
            "tuple" if !self.path.is_empty() => {
                let element = self.path.remove(0);
                usize::try_from(element)
                    .ok()
                    .and_then(|n| self.operand(at, n))
            }
            "get-tuple-element" => {
                self.path.insert(0, i64::from(i.tuple_index));
                self.operand(at, 0)
            }
            // What is written, not what it is written into.
            "dynamic-update-slice" => self.operand(at, 1),
            "copy-start" => {
                self.path.clear();
                self.operand(at, 0)
            }
            "parameter" => self
                .callers
                .pop()
                .and_then(|c| self.operand(c, i.parameter_number as usize)),
            "copy"
            | "copy-done"
            | "bitcast"
            | "convert"
            | "reshape"
            | "transpose"
            | "optimization-barrier" => self.operand(at, 0),
            _ => None,
        };
        match next {
            Some(next) if next != at => {
                self.at = next;
                true
            }
            _ => false,
        }
    }
}

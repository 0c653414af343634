//! What really made a value. A buffer that belongs to a loop's result, a tuple element or a bare
//! copy carries the carrier's name; people look for the operation inside.

use crate::model::{HloModule, InstructionId};

/// Carriers followed before giving up.
const MAX_HOPS: usize = 24;

/// The instruction that computes part `index` of `of`'s result: through loops into their bodies,
/// through tuples, copies and in-place updates. `of` itself where it is no carrier, or where the
/// way ends at something without a name.
pub fn producer(module: &HloModule<'_>, of: InstructionId, index: &[i64]) -> InstructionId {
    let mut at = of;
    let mut path: Vec<i64> = index.to_vec();
    let mut named = of;
    for hop in 0..MAX_HOPS {
        let i = module.instruction(at);
        let carrier = matches!(
            i.opcode,
            "while" | "tuple" | "get-tuple-element" | "optimization-barrier" | "call" | "copy-done"
        ) || (i.op_name.is_empty()
            && matches!(
                i.opcode,
                "copy" | "copy-start" | "bitcast" | "convert" | "fusion"
            ))
            || matches!(i.opcode, "dynamic-update-slice");
        if !carrier {
            if !i.op_name.is_empty() || hop == 0 {
                named = at;
            }
            break;
        }
        if !i.op_name.is_empty() && i.opcode != "while" && i.opcode != "call" {
            named = at;
        }
        match step(module, at, &mut path) {
            Some(next) if next != at => at = next,
            _ => break,
        }
    }
    named
}

/// One step towards the producer of part `path` of `at`.
fn step(module: &HloModule<'_>, at: InstructionId, path: &mut Vec<i64>) -> Option<InstructionId> {
    let i = module.instruction(at);
    let operand = |n: usize| module.operands(at).get(n).copied();
    match i.opcode {
        "while" => root_of(module, at, 0),
        "call" | "fusion" => root_of(module, at, 0),
        "tuple" => {
            if path.is_empty() {
                return None;
            }
            let element = usize::try_from(path.remove(0)).ok()?;
            operand(element)
        }
        "get-tuple-element" => {
            path.insert(0, i64::from(i.tuple_index));
            operand(0)
        }
        // What is written, not what it is written into.
        "dynamic-update-slice" => operand(1),
        "copy-start" => {
            path.clear();
            operand(0)
        }
        _ => operand(0),
    }
}

fn root_of(module: &HloModule<'_>, at: InstructionId, called: usize) -> Option<InstructionId> {
    module.computation(*module.called(at).get(called)?).root
}

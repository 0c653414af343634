//! Calls replaced by what they call, as every compiler does first: what belongs to one value then
//! stands in one computation.

use rustc_hash::FxHashMap;

use crate::compiler::rewrite::module::Editable;
use crate::compiler::rewrite::record::Record;
use crate::error::{Error, Result};
use crate::hlo::decode::schema::{
    frontend_attributes, hlo_computation, hlo_instruction, op_metadata,
};

/// More instructions than this are not made: calls within calls can double them each time.
const MOST: usize = 1 << 21;

/// Replaces calls in every computation, and drops the computations that nothing calls any more.
///
/// # Errors
/// The program would grow beyond all measure.
pub(crate) fn inline_calls(module: &mut Editable) -> Result<()> {
    let ids = module.computations.iter();
    let place: FxHashMap<u64, usize> = ids
        .enumerate()
        .map(|(at, c)| (c.head.number(hlo_computation::ID), at))
        .collect();
    let mut made = 0usize;
    // Files have what is called before what calls it.
    for at in 0..module.computations.len() {
        let old = std::mem::take(&mut module.computations[at].instructions);
        let mut out = Flat::default();
        for i in old {
            let callee = callee(&i).and_then(|id| place.get(&id).copied());
            match callee.filter(|&c| c < at) {
                None => out.emit(i),
                Some(c) => {
                    made += module.computations[c].instructions.len();
                    if made > MOST {
                        let what = "instructions with every call written out".to_owned();
                        return Err(Error::Limit {
                            what,
                            limit: MOST as u64,
                            got: made as u64,
                        });
                    }
                    write_out(module, &mut out, at, c, &i);
                }
            }
        }
        let head = &mut module.computations[at].head;
        let root = head.number(hlo_computation::ROOT_ID);
        head.set_number(hlo_computation::ROOT_ID, out.now(root));
        module.computations[at].instructions = out.instructions;
    }
    module.retain_reachable();
    Ok(())
}

/// What a call calls; `None` for other instructions, and for calls with a meaning of their own.
fn callee(i: &Record) -> Option<u64> {
    if i.bytes(hlo_instruction::OPCODE) != b"call" {
        return None;
    }
    let attributes = Record::read(i.bytes(hlo_instruction::FRONTEND_ATTRIBUTES)).ok()?;
    if attributes.all(frontend_attributes::MAP).next().is_some() {
        return None;
    }
    let called = i.numbers(hlo_instruction::CALLED_COMPUTATION_IDS);
    called.first().copied()
}

/// Instructions of a computation without calls, so far.
#[derive(Debug, Default)]
struct Flat {
    instructions: Vec<Record>,
    /// What stands for an instruction that is no longer there.
    instead: FxHashMap<u64, u64>,
    /// Elements of tuples.
    tuples: FxHashMap<u64, Vec<u64>>,
}

impl Flat {
    fn now(&self, id: u64) -> u64 {
        self.instead.get(&id).copied().unwrap_or(id)
    }

    fn emit(&mut self, mut i: Record) {
        for field in [
            hlo_instruction::OPERAND_IDS,
            hlo_instruction::CONTROL_PREDECESSOR_IDS,
        ] {
            let ids = i.numbers(field);
            if ids.iter().any(|id| self.instead.contains_key(id)) {
                i.set_numbers(field, ids.into_iter().map(|id| self.now(id)));
            }
        }
        let id = i.number(hlo_instruction::ID);
        let operands = i.numbers(hlo_instruction::OPERAND_IDS);
        match i.bytes(hlo_instruction::OPCODE) {
            b"get-tuple-element" => {
                let index = i.number(hlo_instruction::TUPLE_INDEX) as usize;
                let of = operands.first().and_then(|o| self.tuples.get(o));
                if let Some(&element) = of.and_then(|t| t.get(index)) {
                    self.instead.insert(id, element);
                    return;
                }
            }
            b"tuple" => drop(self.tuples.insert(id, operands)),
            _ => {}
        }
        self.instructions.push(i);
    }
}

fn write_out(module: &mut Editable, out: &mut Flat, at: usize, callee: usize, call: &Record) {
    let operands: Vec<u64> = call
        .numbers(hlo_instruction::OPERAND_IDS)
        .into_iter()
        .map(|o| out.now(o))
        .collect();
    let path = op_name(call);
    let mut own: FxHashMap<u64, u64> = FxHashMap::default();
    let body = module.computations[callee].instructions.clone();
    let root = module.computations[callee]
        .head
        .number(hlo_computation::ROOT_ID);
    for mut i in body {
        let old = i.number(hlo_instruction::ID);
        if i.bytes(hlo_instruction::OPCODE) == b"parameter" {
            let number = i.number(hlo_instruction::PARAMETER_NUMBER) as usize;
            own.extend(operands.get(number).map(|&o| (old, o)));
            continue;
        }
        let id = module.computations[at].fresh_id();
        i.set_number(hlo_instruction::ID, id);
        let name = format!("{}.i{id}", i.text(hlo_instruction::NAME));
        i.set_bytes(hlo_instruction::NAME, name.into_bytes());
        for field in [
            hlo_instruction::OPERAND_IDS,
            hlo_instruction::CONTROL_PREDECESSOR_IDS,
        ] {
            let ids = i.numbers(field).into_iter();
            let ids: Vec<u64> = ids.map(|o| own.get(&o).copied().unwrap_or(o)).collect();
            i.set_numbers(field, ids);
        }
        prefix(&mut i, &path);
        out.emit(i);
        own.insert(old, out.now(id));
    }
    if let Some(&result) = own.get(&root) {
        out.instead.insert(call.number(hlo_instruction::ID), result);
    }
}

fn op_name(i: &Record) -> String {
    let metadata = Record::read(i.bytes(hlo_instruction::METADATA)).unwrap_or_default();
    metadata.text(op_metadata::OP_NAME).to_owned()
}

/// Puts the caller's path before a name that does not begin with one.
fn prefix(i: &mut Record, path: &str) {
    let name = op_name(i);
    let begin = path.split('/').next().unwrap_or_default();
    if path.is_empty() || name.split('/').next() == Some(begin) && name.starts_with("jit(") {
        return;
    }
    let mut metadata = Record::read(i.bytes(hlo_instruction::METADATA)).unwrap_or_default();
    let whole = match name.is_empty() {
        true => path.to_owned(),
        false => format!("{path}/{name}"),
    };
    metadata.set_bytes(op_metadata::OP_NAME, whole.into_bytes());
    i.set_bytes(hlo_instruction::METADATA, metadata.bytes_out());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::wire_out::Message;

    fn instruction(m: &mut Message, id: u64, opcode: &str, operands: &[u64], extra: (u32, u64)) {
        m.message(hlo_computation::INSTRUCTIONS, |i| {
            i.number(hlo_instruction::ID, id);
            i.bytes(hlo_instruction::NAME, format!("{opcode}.{id}").as_bytes());
            i.bytes(hlo_instruction::OPCODE, opcode.as_bytes());
            i.packed(hlo_instruction::OPERAND_IDS, operands.iter().copied());
            if extra.0 != 0 {
                i.number(extra.0, extra.1);
            }
            i.message(hlo_instruction::METADATA, |m| {
                m.bytes(op_metadata::OP_NAME, b"f");
            });
        });
    }

    #[test]
    fn a_call_is_written_out() {
        use crate::hlo::decode::schema::hlo_module;
        let mut module = Message::default();
        let none = (0, 0);
        module.number(hlo_module::ENTRY_COMPUTATION_ID, 2);
        module.message(hlo_module::COMPUTATIONS, |c| {
            c.number(hlo_computation::ID, 1);
            c.number(hlo_computation::ROOT_ID, 3);
            instruction(c, 1, "parameter", &[], none);
            instruction(c, 2, "negate", &[1], none);
            instruction(c, 3, "tuple", &[2, 1], none);
        });
        module.message(hlo_module::COMPUTATIONS, |c| {
            c.number(hlo_computation::ID, 2);
            c.number(hlo_computation::ROOT_ID, 14);
            instruction(c, 10, "parameter", &[], none);
            let called = (hlo_instruction::CALLED_COMPUTATION_IDS, 1);
            instruction(c, 11, "call", &[10], called);
            let second = (hlo_instruction::TUPLE_INDEX, 1);
            instruction(c, 12, "get-tuple-element", &[11], none);
            instruction(c, 13, "get-tuple-element", &[11], second);
            instruction(c, 14, "add", &[12, 13], none);
        });
        let mut module = Editable::read(&module.0).unwrap();
        inline_calls(&mut module).unwrap();
        assert_eq!(module.computations.len(), 1);
        let entry = module.entry_ref().unwrap();
        let opcodes = entry.instructions.iter();
        let opcodes: Vec<&str> = opcodes.map(|i| i.text(hlo_instruction::OPCODE)).collect();
        assert_eq!(opcodes, ["parameter", "negate", "tuple", "add"]);
        let sum = &entry.instructions[3];
        let negated = entry.instructions[1].number(hlo_instruction::ID);
        assert_eq!(sum.numbers(hlo_instruction::OPERAND_IDS), [negated, 10]);
        assert_eq!(op_name(&entry.instructions[1]), "f/f");
    }
}

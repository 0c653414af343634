//! `--no-debug`: the transfers and calls of debugging callbacks go, and tokens that they passed on
//! come from nowhere.

use rustc_hash::FxHashSet;

use super::module::{Computation, Editable};
use super::record::Record;
use crate::error::{Error, Result};
use crate::hlo::decode::schema::{hlo_computation, hlo_instruction, op_metadata, shape};
use crate::hlo::op_name::base_name;

/// Primitives of JAX that are for debugging.
const PRIMITIVES: [&str; 3] = ["debug_print", "debug_callback", "inspect_sharding"];
/// Element type of tokens.
const TOKEN: u64 = 17;

pub(crate) fn remove(module: &mut Editable) -> Result<String> {
    let mut gone = 0;
    for c in &mut module.computations {
        gone += remove_from(c)?;
    }
    if gone == 0 {
        return Err(Error::usage(
            "--no-debug: the unoptimised module has no debugging callback",
            "what is looked for: jax.debug.print, jax.debug.callback",
        ));
    }
    Ok(format!("{gone} debugging instructions removed"))
}

fn remove_from(c: &mut Computation) -> Result<usize> {
    let id = |i: &Record| i.number(hlo_instruction::ID);
    let gone: FxHashSet<u64> = c
        .instructions
        .iter()
        .filter(|i| is_debug(i))
        .map(id)
        .collect();
    if gone.is_empty() {
        return Ok(0);
    }
    let mut tokens = FxHashSet::default();
    for i in &c.instructions {
        if gone.contains(&id(i)) {
            if is_token(i) {
                tokens.insert(id(i));
            }
            continue;
        }
    }
    let root = c.head.number(hlo_computation::ROOT_ID);
    let used = |i: &Record| {
        let operands = i.numbers(hlo_instruction::OPERAND_IDS);
        operands
            .into_iter()
            .any(|o| gone.contains(&o) && !tokens.contains(&o))
    };
    let kept = || c.instructions.iter().filter(|i| !gone.contains(&id(i)));
    if gone.contains(&root) || kept().any(used) {
        return Err(Error::usage(
            "--no-debug: something else reads what a debugging callback gives",
            "a callback whose result is used is no debugging code",
        ));
    }
    let needs = kept().any(|i| {
        let operands = i.numbers(hlo_instruction::OPERAND_IDS);
        operands.iter().any(|o| tokens.contains(o))
    });
    let fresh = c.fresh_id();
    c.instructions
        .retain(|i| !gone.contains(&i.number(hlo_instruction::ID)));
    for i in &mut c.instructions {
        let mut operands = i.numbers(hlo_instruction::OPERAND_IDS);
        if operands.iter().any(|o| tokens.contains(o)) {
            let moved = operands.iter_mut().filter(|o| tokens.contains(o));
            moved.for_each(|o| *o = fresh);
            i.set_numbers(hlo_instruction::OPERAND_IDS, operands);
        }
        let mut controls = i.numbers(hlo_instruction::CONTROL_PREDECESSOR_IDS);
        if controls.iter().any(|o| gone.contains(o)) {
            controls.retain(|o| !gone.contains(o));
            i.set_numbers(hlo_instruction::CONTROL_PREDECESSOR_IDS, controls);
        }
    }
    if needs {
        c.instructions.insert(0, token(fresh));
    }
    Ok(gone.len())
}

/// By its primitive: an instruction's own, not that of the scopes around it.
fn is_debug(i: &Record) -> bool {
    let metadata = Record::read(i.bytes(hlo_instruction::METADATA)).unwrap_or_default();
    let name = metadata.text(op_metadata::OP_NAME);
    let last = name.rsplit('/').next().unwrap_or_default();
    let kind = metadata.text(op_metadata::OP_TYPE);
    // What it prints is computed by other instructions, which go unless others need them.
    let acts = matches!(
        i.text(hlo_instruction::OPCODE),
        "send"
            | "send-done"
            | "recv"
            | "recv-done"
            | "outfeed"
            | "custom-call"
            | "after-all"
            | "tuple"
            | "get-tuple-element"
    );
    acts && PRIMITIVES
        .iter()
        .any(|&p| base_name(last) == p || kind == p)
}

fn is_token(i: &Record) -> bool {
    let s = Record::read(i.bytes(hlo_instruction::SHAPE)).unwrap_or_default();
    s.number(shape::ELEMENT_TYPE) == TOKEN
}

fn token(id: u64) -> Record {
    let mut of = Record::default();
    of.set_number(shape::ELEMENT_TYPE, TOKEN);
    let mut out = Record::default();
    out.set_bytes(hlo_instruction::NAME, b"no_debug".to_vec());
    out.set_bytes(hlo_instruction::OPCODE, b"after-all".to_vec());
    out.set_bytes(hlo_instruction::SHAPE, of.bytes_out());
    out.set_number(hlo_instruction::ID, id);
    out
}

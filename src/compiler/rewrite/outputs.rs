//! `--drop` of outputs: the step returns them no more, and the compiler finds out what only they
//! needed.

use super::arguments::outputs;
use super::context::{nothing, Context};
use super::module::Editable;
use super::record::Record;
use super::shape;
use crate::error::Result;
use crate::hlo::decode::schema::{
    hlo_input_output_alias, hlo_instruction, hlo_module, op_sharding,
};
use crate::whatif::selector::{plain_shape, select};

/// Lists in the module's attributes that have one entry for each output.
const LISTS: [&str; 2] = ["out_layout_modes", "out_memory_spaces"];

pub(crate) fn drop(
    module: &mut Editable,
    context: &Context<'_, '_>,
    value: &str,
) -> Result<String> {
    let gone = outputs_of(context, value);
    let tuple = module
        .entry_ref()
        .and_then(|e| e.root().map(|r| &e.instructions[r]));
    let is_tuple = tuple.is_some_and(|r| r.bytes(hlo_instruction::OPCODE) == b"tuple");
    if gone.is_empty() || !is_tuple {
        return Err(nothing(
            "drop",
            value,
            "no output; the compiler can be asked about outputs that are no longer returned",
        ));
    }
    remove(module, &gone);
    Ok(format!("{} outputs are no longer returned", gone.len()))
}

/// Places of the outputs that a selector means: by shape on a device or before it was split, or
/// by the operation that makes them.
fn outputs_of(context: &Context<'_, '_>, selector: &str) -> Vec<usize> {
    let mut out = Vec::new();
    for program in [context.after, context.before] {
        let chosen = select(program, context.findings, selector);
        let results = outputs(program);
        let by_shape = |at: usize| {
            let root = program.module.entry_root()?;
            let shape = program.module.shape(root);
            let part = shape.tuple.get(at)?;
            Some(chosen.shape.as_deref() == Some(plain_shape(part).as_str()))
        };
        for (at, i) in results.iter().enumerate() {
            let hit = match chosen.shape {
                Some(_) => by_shape(at).unwrap_or(false),
                None => chosen.instructions.binary_search(i).is_ok(),
            };
            if hit && !out.contains(&at) && selector != "all" {
                out.push(at);
            }
        }
    }
    out.sort_unstable();
    out
}

/// Takes outputs out of the result and of every list about results.
pub(crate) fn remove(module: &mut Editable, gone: &[usize]) {
    let kept = |at: usize| !gone.contains(&at);
    module.set_result_shape(&|result| {
        shape::map_parts(result, |at, part| kept(at).then(|| part.to_vec()));
    });
    for name in LISTS {
        let list = module.list(name);
        if !list.is_empty() {
            let rest: Vec<String> = keep(list, &kept);
            module.set_list(name, &rest);
        }
    }
    if let Some(entry) = module.entry() {
        if let Some(root) = entry.root() {
            let root = &mut entry.instructions[root];
            let operands = keep(root.numbers(hlo_instruction::OPERAND_IDS), &kept);
            root.set_numbers(hlo_instruction::OPERAND_IDS, operands);
            let mut sharding =
                Record::read(root.bytes(hlo_instruction::SHARDING)).unwrap_or_default();
            let parts: Vec<Vec<u8>> = sharding
                .all(op_sharding::TUPLE_SHARDINGS)
                .map(<[u8]>::to_vec)
                .collect();
            if !parts.is_empty() {
                sharding.set_all(op_sharding::TUPLE_SHARDINGS, keep(parts, &kept));
                root.set_bytes(hlo_instruction::SHARDING, sharding.bytes_out());
            }
        }
    }
    renumber_aliases(module, gone);
}

fn keep<T>(list: Vec<T>, kept: &dyn Fn(usize) -> bool) -> Vec<T> {
    let numbered = list.into_iter().enumerate();
    numbered
        .filter(|(at, _)| kept(*at))
        .map(|(_, v)| v)
        .collect()
}

fn renumber_aliases(module: &mut Editable, gone: &[usize]) {
    use hlo_input_output_alias::alias_entry as entry;
    let mut table =
        Record::read(module.head.bytes(hlo_module::INPUT_OUTPUT_ALIAS)).unwrap_or_default();
    let mut entries = Vec::new();
    for bytes in table.all(hlo_input_output_alias::ENTRIES) {
        let Ok(mut e) = Record::read(bytes) else {
            continue;
        };
        let mut index = e.numbers(entry::OUTPUT_SHAPE_INDEX);
        if let Some(first) = index.first_mut() {
            let at = usize::try_from(*first).unwrap_or(usize::MAX);
            if gone.contains(&at) {
                continue;
            }
            *first -= gone.iter().filter(|g| **g < at).count() as u64;
            e.set_numbers(entry::OUTPUT_SHAPE_INDEX, index);
        }
        entries.push(e.bytes_out());
    }
    table.set_all(hlo_input_output_alias::ENTRIES, entries);
    module
        .head
        .set_bytes(hlo_module::INPUT_OUTPUT_ALIAS, table.bytes_out());
}

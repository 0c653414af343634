//! `--offload` of arguments: they come and go in host memory, and are copied to the device where they
//! are used.

use super::arguments::{parameters, returned};
use super::context::{nothing, Context};
use super::module::{with_attribute, Editable};
use super::record::Record;
use super::shape;
use super::shard::custom_call;
use crate::error::Result;
use crate::hlo::decode::schema::{hlo_instruction, hlo_module, program_shape};

/// Host memory's number on a TPU.
const HOST: u64 = 5;
const PLACEMENT: &str = "_xla_buffer_placement";

pub(crate) fn offload(
    module: &mut Editable,
    context: &Context<'_, '_>,
    value: &str,
) -> Result<String> {
    let numbers = parameters(context, "offload", value, value)?;
    let returned = returned(context.after, &numbers);
    let mut done = 0;
    for &number in &numbers {
        let Some(entry) = module.entry() else { break };
        let Some(at) = entry.parameter(number) else {
            continue;
        };
        let call = placed(&entry.instructions[at].clone(), "device");
        entry.insert_behind(at, call);
        done += 1;
    }
    if done == 0 {
        return Err(nothing("offload", value, "no argument to move"));
    }
    let outputs: Vec<usize> = returned.values().copied().collect();
    for &output in &outputs {
        let Some(entry) = module.entry() else { break };
        let Some(root) = entry.root() else { break };
        let operands = entry.instructions[root].numbers(hlo_instruction::OPERAND_IDS);
        let Some(of) = operands.get(output).and_then(|&id| entry.position(id)) else {
            continue;
        };
        let call = placed(&entry.instructions[of].clone(), "pinned_host");
        entry.insert_before_root(output, call);
    }
    let parameters: Vec<usize> = numbers
        .iter()
        .filter_map(|&n| usize::try_from(n).ok())
        .collect();
    let (arguments, results) = counts(context);
    mark(module, "arg_memory_spaces", &parameters, arguments);
    mark(module, "out_memory_spaces", &outputs, results);
    in_program_shape(module, &parameters, &outputs);
    Ok(format!(
        "{done} arguments in host memory, and {} outputs that take their place",
        outputs.len()
    ))
}

fn counts(context: &Context<'_, '_>) -> (usize, usize) {
    let module = &context.before.module;
    let outputs = super::arguments::outputs(context.before).len();
    (module.entry_parameters().len(), outputs)
}

fn placed(of: &Record, where_: &str) -> Record {
    let mut out = custom_call(of, b"annotate_device_placement", true);
    let attributes = with_attribute(&[], PLACEMENT, where_);
    out.set_bytes(hlo_instruction::FRONTEND_ATTRIBUTES, attributes);
    out
}

/// Marks places of a list, which is made where it is missing.
fn mark(module: &mut Editable, name: &str, places: &[usize], count: usize) {
    let mut list = module.list(name);
    if list.len() != count {
        list = vec!["0".to_owned(); count];
    }
    for &at in places {
        if let Some(entry) = list.get_mut(at) {
            *entry = HOST.to_string();
        }
    }
    module.set_list(name, &list);
}

/// The module's own shape has the memory spaces in its layouts.
fn in_program_shape(module: &mut Editable, parameters: &[usize], outputs: &[usize]) {
    let Ok(mut program) = Record::read(module.head.bytes(hlo_module::HOST_PROGRAM_SHAPE)) else {
        return;
    };
    let host = |part: &[u8]| shape::changed(part, &|s| shape::set_space(s, HOST));
    let all: Vec<Vec<u8>> = program
        .all(program_shape::PARAMETERS)
        .enumerate()
        .map(|(at, p)| match parameters.contains(&at) {
            true => host(p).unwrap_or_else(|| p.to_vec()),
            false => p.to_vec(),
        })
        .collect();
    program.set_all(program_shape::PARAMETERS, all);
    let result = shape::changed(program.bytes(program_shape::RESULT), &|result| {
        shape::map_parts(result, |at, part| match outputs.contains(&at) {
            true => host(part),
            false => Some(part.to_vec()),
        });
    });
    if let Some(result) = result {
        program.set_bytes(program_shape::RESULT, result);
    }
    module
        .head
        .set_bytes(hlo_module::HOST_PROGRAM_SHAPE, program.bytes_out());
}

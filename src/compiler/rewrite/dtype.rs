//! `--dtype` of arguments: they come in the new type and are converted where they are used; what the
//! step returns in their place is converted back.

use super::arguments::{parameters, returned};
use super::context::{nothing, Context};
use super::module::Editable;
use super::record::Record;
use super::shape;
use crate::error::Result;
use crate::hlo::decode::schema::{hlo_instruction, shape as shape_field};
use crate::hlo::ElementType;

pub(crate) fn dtype(
    module: &mut Editable,
    context: &Context<'_, '_>,
    value: &str,
) -> Result<String> {
    let (selector, to) = value.rsplit_once('=').unwrap_or((value, ""));
    let to = ElementType::from_name(to).ok_or_else(|| nothing("dtype", value, "no such type"))?;
    let element = u64::from(to.0);
    let mut numbers = parameters(context, "dtype", value, selector)?;
    let program = context.after;
    let is_other_float = |n: &u64| {
        let at = program
            .module
            .entry_parameters()
            .iter()
            .copied()
            .find(|&p| u64::from(program.module.instruction(p).parameter_number) == *n);
        at.is_some_and(|p| {
            let shape = program.module.shape(p);
            shape.tuple.is_empty()
                && shape.element_type.is_float()
                && shape.element_type != to
                && shape.dimensions.iter().any(|&d| d > 1)
        })
    };
    numbers.retain(is_other_float);
    if numbers.is_empty() {
        return Err(nothing(
            "dtype",
            value,
            "no argument of it is a float of another type",
        ));
    }
    let returned = returned(program, &numbers);
    for &number in &numbers {
        let Some(entry) = module.entry() else { break };
        let Some(at) = entry.parameter(number) else {
            continue;
        };
        let parameter = entry.instructions[at].clone();
        let convert = convert(
            &parameter,
            parameter.bytes(hlo_instruction::SHAPE).to_vec(),
            "in",
        );
        entry.insert_behind(at, convert);
        module.set_parameter_shape(number, &|s| shape::set_element(s, element));
    }
    for &output in returned.values() {
        convert_output(module, output, element);
    }
    Ok(format!(
        "{} arguments as {to}, and {} outputs that take their place",
        numbers.len(),
        returned.len()
    ))
}

fn convert(of: &Record, shape: Vec<u8>, mark: &str) -> Record {
    let mut out = Record::default();
    let name = format!("{}.{mark}", of.text(hlo_instruction::NAME));
    out.set_bytes(hlo_instruction::NAME, name.into_bytes());
    out.set_bytes(hlo_instruction::OPCODE, b"convert".to_vec());
    out.set_bytes(hlo_instruction::SHAPE, shape);
    let metadata = of.bytes(hlo_instruction::METADATA).to_vec();
    out.set_bytes(hlo_instruction::METADATA, metadata);
    out
}

/// Converts one element of the result, which has the same name and sharding as before.
fn convert_output(module: &mut Editable, output: usize, element: u64) {
    let Some(entry) = module.entry() else { return };
    let Some(root) = entry.root() else { return };
    let operands = entry.instructions[root].numbers(hlo_instruction::OPERAND_IDS);
    let Some(of) = operands.get(output).and_then(|&id| entry.position(id)) else {
        return;
    };
    let of = entry.instructions[of].clone();
    let new = shape::changed(of.bytes(hlo_instruction::SHAPE), &|s| {
        shape::set_element(s, element);
    });
    let Some(new) = new else { return };
    entry.insert_before_root(output, convert(&of, new, "out"));
    module.set_result_shape(&|result| {
        shape::map_parts(result, |at, part| match at == output {
            true => shape::changed(part, &|s| shape::set_element(s, element)),
            false => Some(part.to_vec()),
        });
        // A result that is no tuple.
        if result.number(shape_field::ELEMENT_TYPE) != 13 {
            shape::set_element(result, element);
        }
    });
}

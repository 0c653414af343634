//! `--donate`: entries in the alias table, argument by argument, as a framework would pair them.

use super::arguments::{pairs, parameters, returned};
use super::context::{nothing, Context};
use super::module::Editable;
use super::record::Record;
use crate::compiler::wire_out::Message;
use crate::error::Result;
use crate::hlo::decode::schema::{hlo_buffer_donor, hlo_input_output_alias, hlo_module};

/// Outputs may, and need not, take the argument's memory.
const MAY_ALIAS: u64 = 1;

pub(crate) fn donate(
    module: &mut Editable,
    context: &Context<'_, '_>,
    value: &str,
) -> Result<String> {
    use hlo_input_output_alias::alias_entry as entry;
    let mut numbers = parameters(context, "donate", value, value)?;
    let mut table =
        Record::read(module.head.bytes(hlo_module::INPUT_OUTPUT_ALIAS)).unwrap_or_default();
    let mut entries: Vec<Vec<u8>> = Vec::new();
    let mut taken = Vec::new();
    for bytes in table.all(hlo_input_output_alias::ENTRIES) {
        entries.push(bytes.to_vec());
        if let Ok(e) = Record::read(bytes) {
            let number = e.number(entry::PARAMETER_NUMBER);
            numbers.retain(|n| *n != number);
            let output = e.numbers(entry::OUTPUT_SHAPE_INDEX);
            taken.extend(output.first().and_then(|&o| usize::try_from(o).ok()));
        }
    }
    let donors = Record::read(module.head.bytes(hlo_module::BUFFER_DONOR)).unwrap_or_default();
    for bytes in donors.all(hlo_buffer_donor::ENTRIES) {
        let number = Record::read(bytes)
            .unwrap_or_default()
            .number(hlo_buffer_donor::buffer_donor_entry::PARAMETER_NUMBER);
        numbers.retain(|n| *n != number);
    }
    taken.extend(
        returned(context.after, &every(context))
            .into_iter()
            .filter_map(|(number, output)| is_aliased(context, number).then_some(output)),
    );
    let paired = pairs(context.after, &numbers, &taken);
    if paired.is_empty() {
        return Err(nothing(
            "donate",
            value,
            "no output has the shape of these arguments, or all are donated already",
        ));
    }
    let tuple = super::arguments::outputs(context.after).len() != 1;
    let mut in_order: Vec<_> = paired.iter().collect();
    in_order.sort_unstable();
    for (&number, &output) in &in_order {
        let mut e = Message::default();
        if tuple || is_tuple(context) {
            e.packed(entry::OUTPUT_SHAPE_INDEX, [output as u64]);
        }
        e.number(entry::PARAMETER_NUMBER, number);
        e.number(entry::KIND, MAY_ALIAS);
        entries.push(e.0);
    }
    table.set_all(hlo_input_output_alias::ENTRIES, entries);
    module
        .head
        .set_bytes(hlo_module::INPUT_OUTPUT_ALIAS, table.bytes_out());
    let left = numbers.len() - in_order.len();
    let unusable = match left {
        0 => String::new(),
        n => format!("; {n} fit no output"),
    };
    Ok(format!(
        "{} arguments give their memory to outputs{unusable}",
        in_order.len()
    ))
}

fn every(context: &Context<'_, '_>) -> Vec<u64> {
    (0..context.after.module.entry_parameters().len() as u64).collect()
}

/// Whether the program as compiled gives an argument's memory to an output already.
fn is_aliased(context: &Context<'_, '_>, number: u64) -> bool {
    let mut aliases = context.after.module.input_output_alias.iter();
    aliases.any(|a| u64::from(a.parameter_number) == number)
}

fn is_tuple(context: &Context<'_, '_>) -> bool {
    let module = &context.after.module;
    let root = module.entry_root();
    root.is_some_and(|r| !module.shape(r).tuple.is_empty())
}

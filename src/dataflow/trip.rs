//! How often a loop runs, where the file says: in the back end's configuration, or as a counter
//! that is compared with a constant.

use super::flow::source_of;
use super::step::{Path, Through, Value};
use crate::hlo::decode::schema::{hlo_instruction, literal};
use crate::hlo::decode::wire::{bytes_of, fields, numbers, Value as Field};
use crate::hlo::{InstructionId, Opcode, Program};

/// Number of times that a while's body runs; `None` where that cannot be told.
pub fn trip_count(program: &Program<'_>, id: InstructionId) -> Option<u64> {
    let i = program.module.instruction(id);
    if i.opcode != Opcode::While {
        return None;
    }
    let config = String::from_utf8_lossy(i.attributes().backend_config).into_owned();
    known_trip_count(&config).or_else(|| counted(program, id))
}

/// `"known_trip_count":{"n":"8"}`, spaces allowed.
fn known_trip_count(config: &str) -> Option<u64> {
    let (_, rest) = config.split_once("\"known_trip_count\"")?;
    let (_, rest) = rest.split_once("\"n\"")?;
    let digits = rest.trim_start_matches([' ', ':', '"']);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// `for (i = start; i < bound; i += 1)`: the condition compares an element of the carried tuple
/// with a constant, that element starts as a constant, and the body adds one to it.
fn counted(program: &Program<'_>, id: InstructionId) -> Option<u64> {
    let module = &program.module;
    let &[body, condition] = module.called(id) else {
        return None;
    };
    let root = module.computation(condition).root?;
    if module.instruction(root).opcode != Opcode::Compare || !is_less_than(program, root) {
        return None;
    }
    let &[counter, bound] = module.operands(root) else {
        return None;
    };
    let element = carried_element(program, counter)?;
    let bound = constant(program, (bound, Path::new()))?;
    let init = *module.operands(id).first()?;
    let start = constant(program, (init, vec![element.into()]))?;
    // The body's new counter is the old one plus one.
    let next = module.computation(body).root?;
    let next = *module.operands(next).get(element as usize)?;
    let &[a, b] = module.operands(next) else {
        return None;
    };
    let is_step = |old, step| {
        carried_element(program, old) == Some(element)
            && constant(program, (step, Path::new())) == Some(1)
    };
    if module.instruction(next).opcode != Opcode::Add || !(is_step(a, b) || is_step(b, a)) {
        return None;
    }
    u64::try_from(bound.checked_sub(start)?.max(0)).ok()
}

/// The element of its computation's only parameter that an instruction takes.
fn carried_element(program: &Program<'_>, id: InstructionId) -> Option<u32> {
    let module = &program.module;
    let i = module.instruction(id);
    let &tuple = module.operands(id).first()?;
    let is_carried = i.opcode == Opcode::GetTupleElement
        && module.instruction(tuple).opcode == Opcode::Parameter;
    is_carried.then_some(i.tuple_index)
}

/// An integer constant behind tuples, copies and bitcasts.
fn constant(program: &Program<'_>, value: Value) -> Option<i64> {
    let (id, path) = source_of(program, &value, Through::Copies);
    let i = program.module.instruction(id);
    (i.opcode == Opcode::Constant && path.is_empty()).then(|| scalar_literal(i.raw))?
}

/// The value of an integer scalar's literal.
fn scalar_literal(raw: &[u8]) -> Option<i64> {
    const INTEGERS: [u32; 4] = [literal::S32S, literal::S64S, literal::U32S, literal::U64S];
    let mut found: Vec<i64> = Vec::new();
    let values = bytes_of(raw, hlo_instruction::LITERAL)?;
    for (n, value) in fields(values).filter_map(Result::ok) {
        // More than a few values are no scalar.
        let small = !matches!(value, Field::Bytes(b) if b.len() > 16);
        if INTEGERS.contains(&n) && small {
            drop(numbers(value, |v| {
                let v = if n == literal::S32S {
                    i64::from(v as i32)
                } else {
                    v as i64
                };
                found.push(v);
            }));
        }
    }
    match found[..] {
        [v] => Some(v),
        _ => None,
    }
}

/// Whether a compare's direction is "less than".
fn is_less_than(program: &Program<'_>, id: InstructionId) -> bool {
    let raw = program.module.instruction(id).raw;
    bytes_of(raw, hlo_instruction::COMPARISON_DIRECTION) == Some(b"LT")
}

#[cfg(test)]
mod tests {
    use super::known_trip_count;

    #[test]
    fn the_back_ends_count_is_read() {
        let text = r#"{"known_trip_count":{"n":"12"},"known_init_step":{"init":"0"}}"#;
        assert_eq!(known_trip_count(text), Some(12));
        assert_eq!(
            known_trip_count(r#"{"known_trip_count": {"n": 3}}"#),
            Some(3)
        );
        assert_eq!(known_trip_count(r#"{"known_trip_count":{"n":"x"}}"#), None);
        assert_eq!(known_trip_count("{}"), None);
    }
}

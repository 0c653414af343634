//! Which arguments an edit means, and which output takes an argument's place in the next step.

use rustc_hash::FxHashMap;

use super::context::{nothing, Context};
use crate::error::Result;
use crate::hlo::{InstructionId, Opcode, Program};
use crate::whatif::selector::{plain_shape, select};

/// Numbers of the entry parameters that a selector means, ascending.
///
/// # Errors
/// It means no argument.
pub(crate) fn parameters(
    context: &Context<'_, '_>,
    edit: &str,
    value: &str,
    selector: &str,
) -> Result<Vec<u64>> {
    let out = parameters_of(context, selector);
    match out.is_empty() {
        true => Err(nothing(edit, value, "no argument has that name")),
        false => Ok(out),
    }
}

/// The same; empty where it means none.
pub(crate) fn parameters_of(context: &Context<'_, '_>, selector: &str) -> Vec<u64> {
    // The optimised program has the same parameters, and is what findings speak of.
    for program in [context.after, context.before] {
        let chosen = select(program, context.findings, selector);
        let mut out: Vec<u64> = chosen
            .instructions
            .iter()
            .filter(|&&i| is_entry_parameter(program, i))
            .map(|&i| program.module.instruction(i).parameter_number.into())
            .collect();
        out.sort_unstable();
        out.dedup();
        if !out.is_empty() {
            return out;
        }
    }
    Vec::new()
}

pub(crate) fn is_entry_parameter(program: &Program<'_>, id: InstructionId) -> bool {
    let i = program.module.instruction(id);
    i.opcode == Opcode::Parameter && Some(i.computation) == program.module.entry
}

/// The entry's results, one for each output: shapes by instruction.
pub(crate) fn outputs(program: &Program<'_>) -> Vec<InstructionId> {
    let module = &program.module;
    match module.entry_root() {
        Some(root) if module.instruction(root).opcode == Opcode::Tuple => {
            module.operands(root).to_vec()
        }
        Some(root) => vec![root],
        None => Vec::new(),
    }
}

/// For arguments to be donated, the output that has the same shape on a device, in the order of both:
/// what a framework pairs. `taken` are outputs that have an argument already.
pub(crate) fn pairs(
    program: &Program<'_>,
    numbers: &[u64],
    taken: &[usize],
) -> FxHashMap<u64, usize> {
    let module = &program.module;
    let mut of_shape: FxHashMap<String, std::collections::VecDeque<usize>> = FxHashMap::default();
    for (at, shape) in output_shapes(program).into_iter().enumerate() {
        if !taken.contains(&at) {
            of_shape.entry(shape).or_default().push_back(at);
        }
    }
    let mut out = FxHashMap::default();
    for &p in module.entry_parameters() {
        let number = u64::from(module.instruction(p).parameter_number);
        if numbers.contains(&number) {
            let shape = plain_shape(&module.shape(p));
            if let Some(at) = of_shape.get_mut(&shape).and_then(|q| q.pop_front()) {
                out.insert(number, at);
            }
        }
    }
    out
}

/// The output that takes each of these arguments' place in the next step: by the program's alias
/// table, else as if every argument were donated, since a step returns its state in order.
pub(crate) fn returned(program: &Program<'_>, numbers: &[u64]) -> FxHashMap<u64, usize> {
    let module = &program.module;
    let aliases = module.input_output_alias.iter();
    let mut all: FxHashMap<u64, usize> = aliases
        .filter_map(|a| {
            let output = a.output_index.first().copied().unwrap_or(0);
            Some((a.parameter_number.into(), usize::try_from(output).ok()?))
        })
        .collect();
    let taken: Vec<usize> = all.values().copied().collect();
    let parameters = module.entry_parameters();
    let parameters = parameters
        .iter()
        .map(|&p| module.instruction(p).parameter_number);
    let rest: Vec<u64> = parameters
        .map(u64::from)
        .filter(|n| !all.contains_key(n))
        .collect();
    all.extend(pairs(program, &rest, &taken));
    all.retain(|n, _| numbers.contains(n));
    all
}

/// Shapes of the outputs on a device, as they stand in the root's.
fn output_shapes(program: &Program<'_>) -> Vec<String> {
    let module = &program.module;
    let Some(root) = module.entry_root() else {
        return Vec::new();
    };
    let shape = module.shape(root);
    match shape.tuple.is_empty() {
        true => vec![plain_shape(&shape)],
        false => shape.tuple.iter().map(plain_shape).collect(),
    }
}

//! Names of entry arguments as the framework gives them: `state[0]['mlp']['up']` is part of the
//! argument `state`.

use crate::hlo::{InstructionId, Program};

/// Name of an entry parameter: the framework's, or the instruction's where there is none.
pub fn argument_name<'a>(program: &Program<'a>, parameter: InstructionId) -> &'a str {
    let i = program.module.instruction(parameter);
    if i.op_name.is_empty() {
        i.name
    } else {
        i.op_name
    }
}

/// The top-level argument that `name` is part of.
pub fn top_level(name: &str) -> &str {
    name.split(['[', '.']).next().unwrap_or(name)
}

/// Top-level arguments in the order of the entry's parameters. The framework leaves out arguments
/// that the program does not use, so a position here is at most the position in the call.
pub fn top_level_arguments<'a>(program: &Program<'a>) -> Vec<&'a str> {
    let mut out: Vec<&str> = Vec::new();
    for &p in program.module.entry_parameters() {
        let i = program.module.instruction(p);
        if i.op_name.is_empty() {
            continue;
        }
        let top = top_level(i.op_name);
        // Parts of one argument stand together, so looking at the last is enough.
        if out.last() != Some(&top) {
            out.push(top);
        }
    }
    out
}

/// Words that Python keeps for itself and that arguments could be called.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Whether `name` can be written in Python as a name: in `donate_argnames=(...)`.
pub fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
}

//! Python as text: comments, names.

use crate::peak::{is_identifier, top_level};

/// `text` as comment lines of Python.
pub(crate) fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            if line.len() == 1 || line.chars().count() + word.chars().count() < 72 {
                line.push(' ');
                line.push_str(word);
                continue;
            }
        }
        lines.push(format!("# {word}"));
    }
    lines.join("\n")
}

/// A variable for what a selector means: the argument's name, or `x`.
pub(crate) fn variable(selector: &str) -> &str {
    let name = top_level(selector);
    if is_identifier(name) {
        name
    } else {
        "x"
    }
}

/// The function that a module was compiled from: `train_step` of `jit_train_step`.
pub(crate) fn function_name(module: &str) -> &str {
    let name = module.strip_prefix("jit_").unwrap_or(module);
    if is_identifier(name) {
        name
    } else {
        "step"
    }
}

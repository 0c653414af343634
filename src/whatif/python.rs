//! Python as text: comments, names.

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
    let name = selector.split(['[', '.']).next().unwrap_or_default();
    if is_identifier(name) {
        name
    } else {
        "x"
    }
}

/// Words that Python keeps for itself and that arguments could be called.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
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

//! Numbers in names: layers and copies differ by them, and fold together without. Shapes in brief.
//!
//! In: names of scopes, operations and arguments, shapes. Out: names with `*` for numbers, shapes
//! without layouts.

/// Letters that make a word, whose number at its end counts repeats.
const WORD: usize = 4;

/// A name with `*` for each number that tells repeats apart: `layers_12/mlp[3]` → `layers_*/mlp[*]`.
///
/// Such a number stands alone between separators, or ends a word of four letters or more
/// (`layer12`, `block3`). One within a word (`conv2d`) or after a letter or two (`w1`, `fc2`) is
/// part of a name; one in brackets with something else (`dot[dims=(3,)]`) is a dimension or a
/// parameter.
pub fn stars(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let (mut before, mut depth, mut letters) = (None, 0usize, 0usize);
    for piece in pieces(text) {
        let after = rest.get(piece.len()..).unwrap_or_default();
        let next = after.chars().next();
        let alone = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        let index = before == Some('[') && next == Some(']') && depth == 1;
        let starts = alone(before) || letters >= WORD;
        let folds = is_number(piece) && starts && alone(next) && (depth == 0 || index);
        out.push_str(if folds { "*" } else { piece });
        for c in piece.chars() {
            depth = match c {
                '[' => depth + 1,
                ']' => depth.saturating_sub(1),
                _ => depth,
            };
            letters = if c.is_alphabetic() { letters + 1 } else { 0 };
            before = Some(c);
        }
        rest = after;
    }
    out
}

/// One name for two that differ in numbers only: what differs reads `*`.
pub fn merged(a: &str, b: &str) -> String {
    if a == b {
        return a.to_owned();
    }
    let mut others = pieces(b);
    pieces(a)
        .map(|x| match others.next() {
            Some(y) if x == y => x,
            _ => "*",
        })
        .collect()
}

/// Text cut before and after each run of digits; a `*` stands for one.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match first {
            '*' => 1,
            c if c.is_ascii_digit() => rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len()),
            _ => rest
                .find(|c: char| c == '*' || c.is_ascii_digit())
                .unwrap_or(rest.len()),
        };
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

/// A shape without layouts: `f32[8,128]{1,0:T(8,128)}` → `f32[8,128]`.
pub fn without_layout(shape: &str) -> String {
    let mut out = String::with_capacity(shape.len());
    let mut depth = 0usize;
    for c in shape.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

fn is_number(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_stars() {
        assert_eq!(stars("jit(f)/layer_12/dot"), "jit(f)/layer_*/dot");
        assert_eq!(stars("state[0]['mlp'][12]"), "state[*]['mlp'][*]");
        assert_eq!(stars("x[ab]*é7/7"), "x[ab]*é7/*");
        assert_eq!(stars("fusion.12"), "fusion.*");
        assert_eq!(stars(""), "");
    }

    #[test]
    fn numbers_within_names_and_parameters_stay() {
        for name in [
            "conv2d/w1",
            "jit(f)/dot[dims=(3,)]",
            "reduce[axes=(0, 1)]",
            "x[2,3]",
            "log1p",
            "3d/x",
        ] {
            assert_eq!(stars(name), name);
        }
        assert_eq!(
            stars("jit(f)/layers/12/dot[dims=(3,)]"),
            "jit(f)/layers/*/dot[dims=(3,)]"
        );
    }

    #[test]
    fn what_differs_is_folded() {
        assert_eq!(merged("p[0][3]", "p[0][4]"), "p[0][*]");
        assert_eq!(merged("p[0][*]", "p[0][5]"), "p[0][*]");
        assert_eq!(merged("p[1]['w']", "p[0]['w']"), "p[*]['w']");
        assert_eq!(merged("layer_3/dot", "layer_12/dot"), "layer_*/dot");
    }
}

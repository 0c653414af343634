//! Numbers in names: layers and copies differ by them, and fold together without.
//!
//! In: names of scopes, operations and arguments. Out: the same with `*` for numbers.

/// The text with every run of digits as one `*`: `layers_12/mlp[3]` → `layers_*/mlp[*]`.
pub fn stars(text: &str) -> String {
    pieces(text)
        .map(|p| if is_number(p) { "*" } else { p })
        .collect()
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
        assert_eq!(stars("x[ab]*é7"), "x[ab]*é*");
        assert_eq!(stars(""), "");
    }

    #[test]
    fn what_differs_is_folded() {
        assert_eq!(merged("p[0][3]", "p[0][4]"), "p[0][*]");
        assert_eq!(merged("p[0][*]", "p[0][5]"), "p[0][*]");
        assert_eq!(merged("p[1]['w']", "p[0]['w']"), "p[*]['w']");
        assert_eq!(merged("layer_3/dot", "layer_12/dot"), "layer_*/dot");
    }
}

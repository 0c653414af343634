//! Names and texts come from files: what a terminal would obey, and what a format would take for
//! its own marks, is made harmless here and nowhere else.

/// Text that is only seen: characters that steer a terminal, break a line or turn the direction of
/// reading become `\u{fffd}`.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if steers(c) { '\u{fffd}' } else { c })
        .collect()
}

/// Control characters of both sets, separators of lines, marks of direction.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
        )
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text for Markdown that must not turn into markup.
pub(super) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        if matches!(
            c,
            '|' | '*' | '_' | '`' | '<' | '>' | '#' | '[' | ']' | '\\'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Text between backticks; in a table a pipe would end the cell.
pub(super) fn markdown_code(text: &str, in_table: bool) -> String {
    let text = clean(text).replace('`', "'");
    match text.trim().is_empty() {
        true => String::new(),
        false if in_table => format!("`{}`", text.replace('|', "\\|")),
        false => format!("`{text}`"),
    }
}

/// Text for a page.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text for a cell that a spreadsheet must not take for a formula.
pub(super) fn csv(text: &str) -> String {
    let text = clean(text);
    match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_gone() {
        assert_eq!(
            clean("a\x1b[31m\nb\r\u{9b}"),
            "a\u{fffd}[31m\u{fffd}b\u{fffd}\u{fffd}"
        );
        assert_eq!(
            clean("x\u{202e}y\u{2066}z\u{200f}"),
            "x\u{fffd}y\u{fffd}z\u{fffd}"
        );
        assert_eq!(clean("日本語 – fine"), "日本語 – fine");
    }

    #[test]
    fn names_do_not_become_markup() {
        assert_eq!(markdown("a|b*c"), "a\\|b\\*c");
        assert_eq!(markdown_code("a`b|c", true), "`a'b\\|c`");
        assert_eq!(markdown_code("a`b|c", false), "`a'b|c`");
        assert_eq!(markdown_code(" ", false), "");
        assert_eq!(html("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
    }

    #[test]
    fn formulas_are_text() {
        assert_eq!(csv("=1+1"), "'=1+1");
        assert_eq!(csv("f32[2]"), "f32[2]");
    }
}

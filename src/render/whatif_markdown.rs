//! What-ifs and plans as Markdown.
//!
//! In: results. Out: text.

use std::fmt::Write as _;

use super::whatif_text::{change, largest_name, rows, safety};
use crate::units;
use crate::whatif::Outcome;
use crate::whatif::Plan;
use crate::whatif::WhatIf;

/// A what-if, before and after.
pub fn whatif(w: &WhatIf) -> String {
    let mut out = format!("# What if: {}, {}\n\n", escaped(&w.module), w.space.name);
    for e in &w.edits {
        let _ = writeln!(out, "- {}: {}", code(&e.edit), escaped(&e.note));
    }
    out.push_str("\n| | before | after | change |\n|---|---:|---:|---:|\n");
    for (label, b, a) in rows(&w.before, &w.after) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            label.trim(),
            units::bytes(b),
            units::bytes(a),
            change(b, a)
        );
    }
    let _ = writeln!(
        out,
        "\nThe peak moves from {} to {}.\n\nConfidence: **{}**.\n",
        code(&w.before.peak_instruction),
        code(&w.after.peak_instruction),
        w.confidence.name().replace('_', " ")
    );
    for c in &w.caveats {
        let _ = writeln!(out, "- {}", escaped(c));
    }
    largest(&mut out, &w.after);
    out
}

/// A plan, step by step.
pub fn plan(p: &Plan) -> String {
    let mut out = format!("# Plan: {}, {}\n\n", escaped(&p.module), p.space.name);
    let _ = writeln!(
        out,
        "Needs {}, has {}, of which {} are kept in reserve.\n",
        units::bytes(p.before.allocated_bytes),
        units::bytes(p.capacity_bytes),
        units::bytes(p.reserve_bytes)
    );
    if p.steps.is_empty() && p.fits {
        out.push_str("It fits as it is.\n");
        return out;
    }
    out.push_str("| step | edit | saves | leaves | risk |\n|---:|---|---:|---:|---|\n");
    for (n, s) in p.steps.iter().enumerate() {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            n + 1,
            code(&s.edit),
            units::bytes(s.saving_bytes),
            units::bytes(s.after.allocated_bytes),
            safety(s.safety)
        );
    }
    for (n, s) in p.steps.iter().enumerate() {
        let _ = writeln!(out, "\n## {}. {}\n", n + 1, code(&s.edit));
        if let Some(reason) = &s.reason {
            let _ = writeln!(out, "{}.\n", escaped(reason));
        }
        let _ = writeln!(out, "```python\n{}\n```\n", s.jax.replace("```", "'''"));
        let _ = writeln!(out, "Verify: {}.", escaped(&s.verify));
    }
    let end = p.steps.last().map_or(&p.before, |s| &s.after);
    if p.fits {
        let free = p.capacity_bytes.saturating_sub(end.allocated_bytes);
        let _ = writeln!(out, "\n**Fits**, {} free.", units::bytes(free));
    } else {
        let _ = writeln!(
            out,
            "\n**Does not fit.** Arguments and results alone take {}.\n",
            units::bytes(p.floor_bytes)
        );
        for o in &p.otherwise {
            let _ = writeln!(out, "- {}", escaped(o));
        }
    }
    let _ = writeln!(
        out,
        "\nConfidence: {}.",
        p.confidence.name().replace('_', " ")
    );
    for c in &p.caveats {
        let _ = writeln!(out, "- {}", escaped(c));
    }
    out
}

fn largest(out: &mut String, after: &Outcome) {
    if after.largest.is_empty() {
        return;
    }
    out.push_str("\n| largest then | kind | buffer |\n|---:|---|---|\n");
    for b in &after.largest {
        let count = match b.count {
            1 => String::new(),
            n => format!("{n} x "),
        };
        let _ = writeln!(
            out,
            "| {count}{} | {} | {} |",
            units::bytes(b.size_bytes),
            b.kind,
            code(&largest_name(b))
        );
    }
}

/// Text in a table cell or paragraph.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '<' | '[' | '`' | '\\' => out.extend(['\\', c]),
            '\n' | '\r' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// A code span that survives in a table.
fn code(text: &str) -> String {
    let plain = text
        .replace('`', "'")
        .replace(['\n', '\r'], " ")
        .replace('|', "\\|");
    if plain.is_empty() {
        return "-".to_owned();
    }
    format!("`{plain}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_a_table() {
        assert_eq!(code("a|b`c\n"), "`a\\|b'c `");
        assert_eq!(escaped("a|b_c"), "a\\|b\\_c");
        assert_eq!(code(""), "-");
    }
}

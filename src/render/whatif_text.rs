//! What-ifs and plans for the terminal, 80 columns wide, without colour.
//!
//! In: results. Out: text. Nothing is computed here but differences.

use std::fmt::Write as _;

use crate::findings::Safety;
use crate::units;
use crate::whatif::Plan;
use crate::whatif::WhatIf;
use crate::whatif::{LargeBuffer, Outcome};

const WIDTH: usize = 80;

/// A what-if, before and after.
pub fn whatif(w: &WhatIf) -> String {
    let mut out = format!("What if: {}, {}\n", w.module, w.space.name);
    for e in &w.edits {
        let _ = writeln!(out, "  {}", e.edit);
        wrapped(&mut out, "      ", &e.note);
    }
    out.push('\n');
    table(&mut out, &w.before, &w.after);
    let _ = writeln!(
        out,
        "\nConfidence: {}",
        w.confidence.name().replace('_', " ")
    );
    for c in &w.caveats {
        bullet(&mut out, c);
    }
    largest(&mut out, &w.after);
    out
}

/// A plan, step by step.
pub fn plan(p: &Plan) -> String {
    let mut out = format!("Plan: {}, {}\n", p.module, p.space.name);
    let _ = writeln!(
        out,
        "  needs {}, has {}, of which {} are kept in reserve",
        units::bytes(p.before.allocated_bytes),
        units::bytes(p.capacity_bytes),
        units::bytes(p.reserve_bytes)
    );
    let limit = p.capacity_bytes.saturating_sub(p.reserve_bytes);
    if p.before.allocated_bytes <= limit {
        out.push_str("  It fits as it is.\n");
        return out;
    }
    for (n, s) in p.steps.iter().enumerate() {
        let _ = writeln!(
            out,
            "\n{}. {}\n     saves {}, leaves {}; {}",
            n + 1,
            s.edit,
            units::bytes(s.saving_bytes),
            units::bytes(s.after.allocated_bytes),
            safety(s.safety)
        );
        if let Some(reason) = &s.reason {
            wrapped(&mut out, "     ", &format!("Why: {reason}"));
        }
        for line in s.jax.lines() {
            let _ = writeln!(out, "       {line}");
        }
        wrapped(&mut out, "     ", &format!("Verify: {}", s.verify));
    }
    out.push('\n');
    let end = p.steps.last().map_or(&p.before, |s| &s.after);
    if p.fits {
        let _ = writeln!(
            out,
            "Fits: {} of {}, {} free.",
            units::bytes(end.allocated_bytes),
            units::bytes(p.capacity_bytes),
            units::bytes(p.capacity_bytes.saturating_sub(end.allocated_bytes))
        );
    } else {
        let _ = writeln!(
            out,
            "Does not fit: {} over; arguments and results alone take {}.",
            units::bytes(end.allocated_bytes.saturating_sub(limit)),
            units::bytes(p.floor_bytes)
        );
        for o in &p.otherwise {
            bullet(&mut out, o);
        }
    }
    if !p.steps.is_empty() {
        let _ = writeln!(out, "Confidence: {}", p.confidence.name().replace('_', " "));
        for c in &p.caveats {
            bullet(&mut out, c);
        }
    }
    out
}

/// What a step may change, in words.
pub(crate) fn safety(s: Safety) -> &'static str {
    match s {
        Safety::Safe => "changes nothing else",
        Safety::ChangesSpeed => "a step may take longer",
        Safety::ChangesNumerics => "results are rounded differently",
        Safety::ChangesTraining => "training goes differently",
        Safety::ChangesModel => "changes the model",
    }
}

/// The rows both renderers show: label, before, after.
pub(crate) fn rows(before: &Outcome, after: &Outcome) -> [(&'static str, u64, u64); 5] {
    [
        (
            "must fit (allocated)",
            before.allocated_bytes,
            after.allocated_bytes,
        ),
        ("peak", before.peak_bytes, after.peak_bytes),
        (
            "  arguments, results",
            before.indefinite_bytes,
            after.indefinite_bytes,
        ),
        (
            "  temporaries",
            before.heap_peak_bytes,
            after.heap_peak_bytes,
        ),
        (
            "fragmentation",
            before.fragmentation_bytes,
            after.fragmentation_bytes,
        ),
    ]
}

/// `after` less `before` in words.
pub(crate) fn change(before: u64, after: u64) -> String {
    let delta = i128::from(after) - i128::from(before);
    let clamped = delta.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    units::delta(clamped as i64)
}

fn table(out: &mut String, before: &Outcome, after: &Outcome) {
    let _ = writeln!(
        out,
        "{:24}{:>14}{:>14}{:>14}",
        "", "before", "after", "change"
    );
    for (label, b, a) in rows(before, after) {
        let _ = writeln!(
            out,
            "{label:24}{:>14}{:>14}{:>14}",
            units::bytes(b),
            units::bytes(a),
            change(b, a)
        );
    }
    let at = |o: &Outcome| clip(&o.peak_instruction, 26);
    let _ = writeln!(
        out,
        "peak at                 {} -> {}",
        at(before),
        at(after)
    );
}

fn largest(out: &mut String, after: &Outcome) {
    if after.largest.is_empty() {
        return;
    }
    out.push_str("\nLargest then:\n");
    for b in &after.largest {
        let count = match b.count {
            1 => String::new(),
            n => format!("{n} x "),
        };
        let size = format!("{count}{}", units::bytes(b.size_bytes));
        let name = largest_name(b);
        let left = WIDTH.saturating_sub(30);
        let _ = writeln!(out, "{size:>17}  {:9}  {}", b.kind, clip(&name, left));
    }
}

/// Shape and what computes it.
pub(crate) fn largest_name(b: &LargeBuffer) -> String {
    let name = if b.op_name.is_empty() {
        &b.name
    } else {
        &b.op_name
    };
    if b.shape.is_empty() {
        name.clone()
    } else {
        format!("{name} {}", b.shape)
    }
}

fn bullet(out: &mut String, text: &str) {
    let mut lines = String::new();
    wrapped(&mut lines, "    ", text);
    lines.replace_range(2..3, "-");
    out.push_str(&lines);
}

/// `text` in lines of at most 80 columns, each behind `indent`.
fn wrapped(out: &mut String, indent: &str, text: &str) {
    let mut line = indent.to_owned();
    for word in text.split_whitespace() {
        let used = line.chars().count();
        if used > indent.len() && used + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = indent.to_owned();
        }
        if line.len() > indent.len() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

/// The end of `text`, the more telling part of an operation path.
fn clip(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(count - width + 1).collect();
    format!("…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_the_width() {
        let mut out = String::new();
        wrapped(&mut out, "    ", &"words and more ".repeat(20));
        assert!(out.lines().count() > 3);
        assert!(
            out.lines()
                .all(|l| l.chars().count() <= WIDTH && l.starts_with("    w")
                    || l.starts_with("    "))
        );
        bullet(&mut out, "é");
        assert!(out.ends_with("  - é\n"));
        assert_eq!(clip("abcdef", 4), "…def");
        assert_eq!(change(u64::MAX, 0), units::delta(i64::MIN));
    }
}

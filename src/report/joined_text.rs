//! A joined triage in words: what the dump adds to the text.

use super::join::Joined;
use super::table::{elide, without_layout};
use super::terminal::{wrap, Style};
use crate::units;

/// For a terminal of `width` columns.
pub fn render_joined(joined: &Joined, width: usize, style: Style) -> String {
    let mut out = style.bold(&format!("From the dump: {}\n", joined.module));
    let mut say = |text: String| {
        for line in wrap(&text, width.saturating_sub(2)) {
            out.push_str(&format!("  {line}\n"));
        }
    };
    if joined.same_module == Some(false) {
        say("The text names another module: this may not be its dump.".to_owned());
    }
    let t = &joined.total;
    say(match t.text_bytes {
        Some(text) if t.agrees => format!(
            "The text's {} is {}: {} bytes in the dump.",
            units::bytes(text),
            t.dump_figure,
            units::count(t.dump_bytes)
        ),
        Some(text) => format!(
            "The text's {} is not the dump's {} ({}): perhaps another compile of it.",
            units::bytes(text),
            units::bytes(t.dump_bytes),
            t.dump_figure
        ),
        None => format!("Must fit: {}.", units::bytes(t.dump_bytes)),
    });
    if let Some(s) = joined.scenario {
        say(format!(
            "Scenario {}: {}.",
            s.as_str(),
            crate::oom::text::meaning(s)
        ));
    }
    out.push_str(&style.bold("\nLargest at the peak\n"));
    for g in &joined.groups {
        let count = match g.group.count {
            1 => String::new(),
            n => format!("{n} × "),
        };
        let copies = match g.distinct_copies {
            Some(1) if g.devices > 1 => format!(" [same on all {} devices]", g.devices),
            Some(c) if c < g.devices => format!(" [{c} distinct of {}]", g.devices),
            _ => String::new(),
        };
        let shape = without_layout(&g.group.shape);
        let head = format!(
            "  {:>10}  {count}{shape}{copies}",
            units::bytes(g.group.size_bytes)
        );
        out.push_str(&format!("{}\n", elide(&head, width)));
        let place = g
            .source
            .as_ref()
            .map_or_else(String::new, |s| format!("  {s}"));
        let what = elide(
            &g.group.label,
            width.saturating_sub(16 + place.len()).max(20),
        );
        out.push_str(&style.dim(&format!("              {what}{place}\n")));
    }
    if !joined.advice.is_empty() {
        out.push_str(&style.bold("\nNext steps\n"));
        for (i, s) in joined.advice.iter().enumerate() {
            let lead = format!("{:>2}. ", i + 1);
            for (n, line) in wrap(&s.title, width.saturating_sub(4)).iter().enumerate() {
                out.push_str(&format!(
                    "{}{line}\n",
                    if n == 0 { lead.as_str() } else { "    " }
                ));
            }
            for text in [&s.detail, &s.trade_off] {
                if !text.is_empty() {
                    for line in wrap(text, width.saturating_sub(4)) {
                        out.push_str(&format!("    {line}\n"));
                    }
                }
            }
        }
    }
    if !joined.flags.is_empty() {
        out.push_str(&style.bold("\nFlags in force\n"));
        for f in &joined.flags {
            let measured = match f.measured {
                "" => String::new(),
                m => format!("; {m}"),
            };
            let text = format!(
                "{} is {} (documented: {}{measured})",
                f.name, f.value, f.suggested
            );
            for (n, line) in wrap(&text, width.saturating_sub(4)).iter().enumerate() {
                out.push_str(&format!("{}{line}\n", if n == 0 { "  " } else { "    " }));
            }
        }
    }
    out
}

/// For a ticket.
pub fn render_joined_markdown(joined: &Joined) -> String {
    let mut out = format!(
        "\n## From the dump of `{}`\n\n",
        joined.module.replace('`', "'")
    );
    let t = &joined.total;
    let agrees = if t.agrees {
        "agrees with"
    } else {
        "differs from"
    };
    if let Some(text) = t.text_bytes {
        out.push_str(&format!(
            "The text's {} {agrees} the dump's {} ({}).\n\n",
            units::bytes(text),
            units::bytes(t.dump_bytes),
            t.dump_figure
        ));
    }
    out.push_str("| size | count | shape | what | where |\n|---:|---:|---|---|---|\n");
    for g in &joined.groups {
        let code = |s: &str| s.replace('`', "'").replace('|', "\\|");
        out.push_str(&format!(
            "| {} | {} | `{}` | `{}` | {} |\n",
            units::bytes(g.group.size_bytes),
            g.group.count,
            code(&g.group.shape),
            code(&g.group.label),
            g.source
                .as_deref()
                .map_or_else(String::new, |s| format!("`{}`", code(s)))
        ));
    }
    out.push_str("\n### Next steps\n\n");
    for s in &joined.advice {
        out.push_str(&format!("1. **{}** {}\n", s.title, s.detail));
    }
    out
}

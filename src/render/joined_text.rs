//! A joined triage in words: what the dump adds to the text.

use super::table::{elide, without_layout};
use crate::oom::size::human;
use crate::render::terminal::{wrap, Style};
use crate::triage::Joined;
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
            "The text's {} is {}: {} bytes in the dump{}.",
            human(text),
            t.dump_figure,
            units::count(t.dump_bytes),
            match human(t.dump_bytes) {
                same if same == human(text) => String::new(),
                other => format!(" ({other}; the text rounds)"),
            }
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
            super::triage_text::meaning(s)
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
            .group
            .source
            .as_ref()
            .map_or_else(String::new, |s| format!("  {}:{}", s.file, s.line));
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
            for text in [Some(s.detail.clone()), s.cost()].into_iter().flatten() {
                for line in wrap(&text, width.saturating_sub(4)) {
                    out.push_str(&format!("    {line}\n"));
                }
            }
        }
    }
    let flags: Vec<String> = flags(joined);
    if !flags.is_empty() {
        out.push_str(&style.bold(&format!("\n{FLAGS_TITLE}\n")));
        for f in flags {
            out.push_str(&format!("  {}\n", elide(&f, width.saturating_sub(2))));
        }
    }
    out
}

/// What stands over the flags.
const FLAGS_TITLE: &str = "Last resort: flags not set so, measured on a 4-layer transformer here";

/// Flags worth trying, a line each.
fn flags(joined: &Joined) -> Vec<String> {
    let worth = joined.flags.iter().filter(|f| f.worth_trying);
    worth
        .map(|f| {
            let did = f.measured.strip_prefix(f.suggested).unwrap_or(f.measured);
            let did = did.trim_start_matches([':', ' ']);
            format!("{}={}: {did}", f.name, f.suggested)
        })
        .collect()
}

/// For a ticket.
pub fn render_joined_markdown(joined: &Joined) -> String {
    let mut out = format!(
        "\n## From the dump of `{}`\n\n",
        joined.module.replace('`', "'")
    );
    if joined.same_module == Some(false) {
        out.push_str("The text names another module: this may not be its dump.\n\n");
    }
    if let Some(s) = joined.scenario {
        out.push_str(&format!(
            "- Scenario: `{}`, {}\n\n",
            s.as_str(),
            super::triage_text::meaning(s)
        ));
    }
    let t = &joined.total;
    let agrees = if t.agrees {
        "agrees with"
    } else {
        "differs from"
    };
    if let Some(text) = t.text_bytes {
        out.push_str(&format!(
            "The text's {} {agrees} the dump's {} ({}).\n\n",
            human(text),
            human(t.dump_bytes),
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
            g.group
                .source
                .as_ref()
                .map_or_else(String::new, |s| format!("`{}:{}`", code(&s.file), s.line))
        ));
    }
    if !joined.advice.is_empty() {
        out.push_str("\n### Next steps\n\n");
    }
    super::triage_markdown::steps(&mut out, &joined.advice);
    let flags = flags(joined);
    if !flags.is_empty() {
        out.push_str(&format!("\n### {FLAGS_TITLE}\n\n"));
        for f in flags {
            out.push_str(&format!("- `{}`\n", f.replace('`', "'")));
        }
    }
    out
}

//! In: a triage report. Out: Markdown, for an issue or a chat.

use super::triage_text::{headline, meaning};
use crate::oom::size::human;
use crate::oom::OomReport;
use crate::triage::{Step, Triage, TriageReport};

/// Groups shown for each report.
const MAX_GROUPS: usize = 10;

/// The whole report.
pub fn render(report: &TriageReport) -> String {
    if report.reports.is_empty() {
        return "No out-of-memory text found.\n".to_string();
    }
    let mut out = String::from("# Out-of-memory triage\n");
    for r in &report.reports {
        one(&mut out, r);
    }
    out
}

fn one(out: &mut String, t: &Triage) {
    let r = &t.report;
    out.push_str(&format!("\n## {}\n\n", escape(&headline(r))));
    if let Some(s) = r.scenario {
        out.push_str(&format!("- Scenario: `{}`, {}\n", s.as_str(), meaning(s)));
    }
    if let Some(i) = &r.instruction {
        out.push_str(&format!("- Instruction: {}\n", code(i)));
    }
    if let Some(g) = &r.device_guess {
        out.push_str(&format!(
            "- Device: {} (guess, from {})\n",
            g.device, g.from
        ));
    }
    for w in &r.warnings {
        out.push_str(&format!(
            "- Warning: `{}`, {}\n",
            w.kind,
            escape(&w.message)
        ));
    }
    for u in &r.usages {
        let size = |b: Option<u64>| b.map_or_else(|| "?".to_string(), human);
        out.push_str(&format!(
            "- {}: {} of {}\n",
            u.space,
            size(u.used_bytes),
            size(u.limit_bytes)
        ));
    }
    for f in &r.accounting {
        out.push_str(&format!("- {}: {}\n", escape(&f.name), escape(&f.text)));
    }
    for n in &r.notes {
        out.push_str(&format!("- Note: {}\n", escape(n)));
    }
    table(out, r);
    if !t.advice.is_empty() {
        out.push_str("\n### Next steps\n\n");
    }
    steps(out, &t.advice);
}

/// Steps as a numbered list.
pub(crate) fn steps(out: &mut String, steps: &[Step]) {
    for (n, s) in steps.iter().enumerate() {
        out.push_str(&format!(
            "{}. **{}** {}",
            n + 1,
            escape(&s.title),
            escape(&s.detail)
        ));
        if !s.trade_off.is_empty() {
            out.push_str(&format!(" *Cost:* {}", escape(&s.trade_off)));
        }
        out.push_str(&format!(" *Results:* {}.", s.safety.words()));
        if !s.verify.is_empty() {
            out.push_str(&format!(" *Verify:* {}", escape(&s.verify)));
        }
        out.push('\n');
    }
}

fn table(out: &mut String, r: &OomReport) {
    if r.groups.is_empty() {
        return;
    }
    out.push_str("\n| bytes | count | shape | padding | operation | source |\n|---:|---:|---|---:|---|---|\n");
    for g in r.groups.iter().take(MAX_GROUPS) {
        let source = g
            .source
            .as_ref()
            .map_or_else(String::new, |s| match s.line {
                Some(line) => format!("{}:{line}", s.file),
                None => s.file.clone(),
            });
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            human(g.bytes),
            g.count,
            g.shape.as_deref().map_or_else(String::new, code),
            g.padding_bytes.map_or_else(String::new, human),
            code(&g.label),
            escape(&source)
        ));
    }
    let more = r.groups.len().saturating_sub(MAX_GROUPS);
    if more > 0 {
        out.push_str(&format!("\n{more} more groups are listed.\n"));
    }
    if let (Some(listed), Some(unlisted)) = (r.listed_bytes, r.unlisted_bytes) {
        let line = format!(
            "\nListed {}, not listed {}.\n",
            human(listed),
            human(unlisted)
        );
        out.push_str(&line);
    }
}

/// Text of a log is not markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '|' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Text as code, safe inside a table.
fn code(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| match c {
            '`' => '\'',
            '|' => '/',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    if clean.is_empty() {
        clean
    } else {
        format!("`{clean}`")
    }
}

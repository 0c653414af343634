//! Findings as a list: what, what it saves, what to do; evidence on request.

use crate::findings::{Finding, FindingSeverity, SavingKind};
use crate::render::document::{Block, Item, Mark};
use crate::render::words::{Tone, Words};
use crate::units;

/// `saves up to 1.51 GiB`; `None` where it saves nothing.
fn saving(f: &Finding) -> Option<String> {
    let how = match f.saving {
        SavingKind::Exact => "saves",
        SavingKind::Simulated => "saves about",
        SavingKind::UpperBound => "saves up to",
    };
    (f.saving_bytes > 0).then(|| format!("{how} {}", units::bytes(f.saving_bytes)))
}

/// Findings in order, numbered from 1.
pub(super) fn items(findings: &[Finding]) -> Vec<Item> {
    let entry = |(i, f): (usize, &Finding)| {
        let tone = match f.severity {
            FindingSeverity::High => Tone::Strong,
            _ => Tone::Plain,
        };
        let title = Words::toned(tone, &f.title);
        let saving = saving(f).map_or_else(Words::new, |text| {
            Words::new().with(Tone::Good, text).quiet(" · ")
        });
        let mut item = Item::of(Mark::Number(i + 1), title);
        item.blocks
            .push(Block::Paragraph(saving.quiet(f.kind.name())));
        if !f.action.is_empty() {
            let action = Words::from(format!("→ {}", f.action));
            item.blocks.push(Block::Paragraph(action));
        }
        item
    };
    findings.iter().enumerate().map(entry).collect()
}

/// What each finding rests on, and where to read on; of those after the first `listed`, also what
/// to do.
pub(super) fn evidence(findings: &[Finding], listed: usize) -> Vec<Block> {
    let mut out = Vec::new();
    for (n, f) in findings.iter().enumerate() {
        if f.evidence.is_empty() && n < listed {
            continue;
        }
        out.push(Block::Paragraph(
            Words::toned(Tone::Strong, &f.title)
                .plain(" (")
                .code(f.kind.name())
                .plain(")"),
        ));
        let evidence = f.evidence.iter().map(|e| Words::from(e.as_str()));
        let links = f.links.iter().map(|l| Words::new().with(Tone::Link, l));
        let action = (n >= listed && !f.action.is_empty()).then(|| format!("→ {}", f.action));
        let action = action.into_iter().map(Words::from);
        let items = evidence
            .chain(action)
            .chain(links)
            .map(|w| Item::of(Mark::Bullet, w));
        out.push(Block::List(items.collect()));
    }
    out
}

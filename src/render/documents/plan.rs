//! A plan: whether it fits, its steps with the code to write, how sure.

use super::whatif::confidence;
use crate::render::document::{Block, Document, Item, Mark};
use crate::render::words::{Tone, Words};
use crate::render::{Cell, Column, Table};
use crate::units;
use crate::whatif::{Plan, PlanStep};

/// The verdict, the steps at a glance, each step in full.
pub fn plan(p: &Plan) -> Document {
    let mut out = Document::new(format!("Plan: {}", p.module));
    let title = Words::from("Plan: ").code(&p.module);
    out.heading(1, title.plain(format!(", {}", p.space.name)));
    out.paragraph(format!(
        "Needs {}, has {}, of which {} are kept in reserve.",
        units::bytes(p.before.allocated_bytes),
        units::bytes(p.capacity_bytes),
        units::bytes(p.reserve_bytes)
    ));
    if p.steps.is_empty() && p.fits {
        out.paragraph(Words::new().with(Tone::Good, "It fits as it is."));
        return out;
    }
    verdict(&mut out, p);
    out.table(overview(&p.steps));
    out.list(p.steps.iter().enumerate().map(step).collect());
    if !p.steps.is_empty() {
        out.paragraph(confidence(p.confidence.name()));
        out.bullets(p.caveats.iter().map(String::as_str));
    }
    out
}

fn verdict(out: &mut Document, p: &Plan) {
    let end = p.steps.last().map_or(&p.before, |s| &s.after);
    let capacity = units::bytes(p.capacity_bytes);
    if p.fits {
        let fits = match p.steps.len() {
            1 => "Fits after this change".to_owned(),
            n => format!("Fits after {n} changes"),
        };
        out.paragraph(Words::new().with(Tone::Good, fits).plain(format!(
            ": {} of {capacity}, {} free.",
            units::bytes(end.allocated_bytes),
            units::bytes(p.capacity_bytes.saturating_sub(end.allocated_bytes))
        )));
        return;
    }
    let limit = p.capacity_bytes.saturating_sub(p.reserve_bytes);
    let text = Words::new().with(Tone::Bad, "Does not fit").plain(format!(
        ": {} over; arguments and results alone take {}.",
        units::bytes(end.allocated_bytes.saturating_sub(limit)),
        units::bytes(p.floor_bytes)
    ));
    out.paragraph(text);
    out.bullets(p.otherwise.iter().map(String::as_str));
}

/// The steps, a row each.
pub fn overview(steps: &[PlanStep]) -> Table {
    let row = |(n, s): (usize, &PlanStep)| {
        vec![
            Cell::Count(n as u64 + 1),
            Cell::Bytes(s.saving_bytes),
            Cell::Bytes(s.after.allocated_bytes),
            Cell::of(s.safety.changes()),
            Cell::Code(s.edit.clone()),
        ]
    };
    Table {
        columns: vec![
            Column::right("step"),
            Column::right("saves"),
            Column::right("leaves"),
            Column::left("may change"),
            Column::flexible("edit"),
        ],
        rows: steps.iter().enumerate().map(row).collect(),
        ..Table::default()
    }
}

fn step((n, s): (usize, &PlanStep)) -> Item {
    let mut item = Item::of(Mark::Number(n + 1), Words::new().code(&s.edit));
    if let Some(reason) = &s.reason {
        let reason = Words::from(format!("Why: {reason}."));
        item.blocks.push(Block::Paragraph(reason));
    }
    item.blocks.push(Block::Code {
        language: "python",
        text: s.jax.clone(),
    });
    let verify = Words::from(format!("Verify: {}.", s.verify));
    item.blocks.push(Block::Paragraph(verify));
    item
}

//! A what-if: before and after, how sure, what is largest then.

use super::rankings::cells::repeats;
use crate::render::document::{Block, Document, Item, Mark};
use crate::render::words::Words;
use crate::render::{Cell, Column, Table};
use crate::whatif::{LargeBuffer, Outcome, WhatIf};

/// The change, its figures and caveats.
pub fn whatif(w: &WhatIf) -> Document {
    let mut out = Document::new(format!("What if: {}", w.module));
    let title = Words::from("What if: ").code(&w.module);
    out.heading(1, title.plain(format!(", {}", w.space.name)));
    let edits = w.edits.iter().map(|e| {
        let mut item = Item::of(Mark::Bullet, Words::new().code(&e.edit));
        item.blocks.push(Block::Paragraph(e.note.as_str().into()));
        item
    });
    out.list(edits.collect());
    out.table(figures(&w.before, &w.after));
    let (before, after) = (&w.before.peak_instruction, &w.after.peak_instruction);
    out.paragraph(match before == after {
        true => Words::from("The peak stays at ").code(before).plain("."),
        false => Words::from("The peak moves from ")
            .code(before)
            .plain(" to ")
            .code(after)
            .plain("."),
    });
    out.paragraph(confidence(w.confidence.name()));
    out.bullets(w.caveats.iter().map(String::as_str));
    out.table(largest(&w.after.largest));
    out
}

/// How sure the figures are.
pub(super) fn confidence(name: &str) -> Words {
    Words::from("Confidence: ")
        .strong(name.replace('_', " "))
        .plain(".")
}

/// The figures before and after.
pub fn figures(before: &Outcome, after: &Outcome) -> Table {
    let row = |name: &str, figure: fn(&Outcome) -> u64| {
        let (b, a) = (figure(before), figure(after));
        vec![
            Cell::of(name),
            Cell::Bytes(b),
            Cell::Bytes(a),
            Cell::Change(b, a),
        ]
    };
    Table {
        columns: vec![
            Column::left(""),
            Column::right("before"),
            Column::right("after"),
            Column::right("change"),
        ],
        rows: vec![
            row("must fit (allocated)", |o| o.allocated_bytes),
            row("peak", |o| o.peak_bytes),
            row("  arguments, results", |o| o.indefinite_bytes),
            row("  temporaries", |o| o.heap_peak_bytes),
            row("fragmentation", |o| o.fragmentation_bytes),
        ],
        ..Table::default()
    }
}

fn largest(buffers: &[LargeBuffer]) -> Table {
    let total = |b: &LargeBuffer| b.size_bytes.saturating_mul(b.count);
    let row = |b: &LargeBuffer| {
        let name = match b.op_name.as_str() {
            "" => &b.name,
            op_name => op_name,
        };
        vec![
            Cell::Bytes(total(b)),
            Cell::of(repeats(b.count as usize, total(b))),
            Cell::of(b.kind),
            Cell::Shape(b.shape.clone()),
            Cell::Code(name.to_owned()),
        ]
    };
    Table {
        title: "Largest then".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("count"),
            Column::left("kind"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: buffers.iter().map(row).collect(),
        ..Table::default()
    }
}

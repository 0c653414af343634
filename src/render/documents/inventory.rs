//! What is in some paths, file by file.

use crate::render::document::{Document, Item, Mark};
use crate::render::words::{Tone, Words};
use crate::render::{Cell, Column, Table};
use crate::report::{FileEntry, Inventory, ModuleEntry};
use crate::units;

/// Files with their programs and what each can and cannot answer.
pub fn inventory(found: &Inventory) -> Document {
    let mut out = Document::new("What is here");
    let several = found.files.len() > 1;
    let (silent, shown): (Vec<_>, Vec<_>) =
        found.files.iter().partition(|f| several && says_nothing(f));
    for f in shown {
        file(&mut out, f);
    }
    if !silent.is_empty() {
        let text = format!("{} other files say nothing about memory", silent.len());
        out.paragraph(Words::new().quiet(text));
    }
    out
}

/// A dump folder holds many small files that say nothing about memory.
fn says_nothing(f: &FileEntry) -> bool {
    let dull = |c: &String| c.starts_with("a part of a dump") || c.starts_with("not a");
    f.modules.is_empty() && f.answers.is_empty() && f.cannot.iter().all(dull)
}

fn file(out: &mut Document, f: &FileEntry) {
    out.heading(2, Words::new().with(Tone::Path, &f.path));
    let mut facts = vec![f.kind.to_owned(), units::bytes(f.size_bytes)];
    facts.extend(f.run.as_ref().map(|r| format!("run {r}")));
    facts.extend(f.host.as_ref().map(|h| format!("host {h}")));
    facts.extend(f.devices.clone());
    out.paragraph(Words::new().quiet(facts.join(" · ")));
    out.table(modules(&f.modules));
    let answers = f.answers.iter().map(|a| (Mark::Yes, Tone::Good, a));
    let cannot = f.cannot.iter().map(|c| (Mark::No, Tone::Warning, c));
    let items = answers.chain(cannot);
    let items = items.map(|(mark, tone, text)| Item::of(mark, Words::new().with(tone, text)));
    let items: Vec<Item> = items.collect();
    out.list(items);
}

/// Programs, the largest peak first.
fn modules(modules: &[ModuleEntry]) -> Table {
    let mut modules: Vec<&ModuleEntry> = modules.iter().collect();
    modules.sort_by(|a, b| (b.peak_bytes, &a.name).cmp(&(a.peak_bytes, &b.name)));
    let row = |m: &&ModuleEntry| {
        vec![
            match (m.peak_bytes, &m.error) {
                (_, Some(_)) => Cell::of("damaged"),
                (Some(peak), _) => Cell::Bytes(peak),
                (None, _) => Cell::of("no assignment"),
            },
            Cell::Count(m.instruction_count as u64),
            Cell::Code(match m.program_id {
                Some(id) => format!("{}({id})", m.name),
                None => m.name.clone(),
            }),
            Cell::of(m.error.clone().unwrap_or_default()),
        ]
    };
    Table {
        columns: vec![
            Column::right("peak"),
            Column::right("instructions"),
            Column::flexible("module"),
            Column::flexible("damage"),
        ],
        rows: modules.iter().map(row).collect(),
        ..Table::default()
    }
}

/// All programs of all files, a row each: for spreadsheets.
pub fn modules_of_files(found: &Inventory) -> Table {
    let rows = found.files.iter().flat_map(|f| {
        modules(&f.modules).rows.into_iter().map(|mut row| {
            row.insert(0, Cell::of(&f.path));
            row
        })
    });
    let mut columns = modules(&[]).columns;
    columns.insert(0, Column::left("file"));
    Table {
        columns,
        rows: rows.collect(),
        ..Table::default()
    }
}

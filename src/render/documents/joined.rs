//! What a dump adds to an out-of-memory text.

use super::rankings::cells::{arrays, repeats, what};
use super::steps::{next_steps, scenario};
use crate::render::document::{Document, Fact};
use crate::render::words::Words;
use crate::render::{Cell, Column, Table};
use crate::triage::{FlagInForce, FromDump, Joined, JoinedGroup, JoinedShapes};
use crate::units;

pub(super) fn from_dump(out: &mut Document, dump: &FromDump) {
    match dump {
        FromDump::Joined(joined) => program(out, joined),
        FromDump::Shapes(shapes) => shapes_alone(out, shapes),
    }
}

fn title(out: &mut Document, module: &str, same: Option<bool>) {
    out.heading(2, Words::from("From the dump: ").code(module));
    if same == Some(false) {
        out.paragraph("The text names another module: this may not be its dump.");
    }
}

fn program(out: &mut Document, joined: &Joined) {
    title(out, &joined.module, joined.same_module);
    out.paragraph(total(joined));
    if let Some(s) = joined.scenario {
        out.facts(vec![Fact {
            name: "Scenario",
            value: scenario(s),
        }]);
    }
    out.table(largest(joined));
    next_steps(out, &joined.advice);
    let flags: Vec<Words> = joined.flags.iter().filter_map(flag).collect();
    if !flags.is_empty() {
        let title = "Last resort: flags not set so, measured on a 4-layer transformer here";
        out.heading(2, title);
        out.bullets(flags);
    }
}

/// The text's total against the dump's.
fn total(joined: &Joined) -> String {
    let t = &joined.total;
    match t.text_bytes {
        Some(text) if t.agrees => format!(
            "The text's {} is {}: {} bytes in the dump{}.",
            units::bytes(text),
            t.dump_figure,
            units::count(t.dump_bytes),
            match units::bytes(t.dump_bytes) {
                same if same == units::bytes(text) => String::new(),
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
    }
}

fn largest(joined: &Joined) -> Table {
    let row = |g: &JoinedGroup| {
        vec![
            Cell::Bytes(g.group.size_bytes),
            Cell::of(repeats(g.group.count, g.group.size_bytes)),
            Cell::of(match g.distinct_copies {
                Some(1) if g.devices > 1 => format!("same on all {}", g.devices),
                Some(c) if c < g.devices => format!("{c} distinct of {}", g.devices),
                _ => String::new(),
            }),
            Cell::Shape(g.group.shape.clone()),
            what(&g.group),
        ]
    };
    Table {
        title: "Largest at the peak".to_owned(),
        columns: vec![
            Column::right("size"),
            Column::right("count"),
            Column::left("devices"),
            Column::flexible("shape"),
            Column::flexible("what"),
        ],
        rows: joined.groups.iter().map(row).collect(),
        ..Table::default()
    }
}

/// A flag worth trying.
fn flag(f: &FlagInForce) -> Option<Words> {
    let did = f.measured.strip_prefix(f.suggested).unwrap_or(f.measured);
    let did = did.trim_start_matches([':', ' ']);
    let setting = format!("{}={}", f.name, f.suggested);
    f.worth_trying
        .then(|| Words::new().code(setting).plain(format!(": {did}")))
}

fn shapes_alone(out: &mut Document, s: &JoinedShapes) {
    title(out, &s.module, s.same_module);
    let mut text = format!(
        "It has no buffer assignment: arguments {}, results {}, temporaries unknown.",
        units::bytes(s.parameter_bytes),
        units::bytes(s.output_bytes)
    );
    if s.shapes_are_global && s.num_partitions > 1 {
        text.push_str(&format!(
            " Shapes are of the whole program, before it is split over {} devices.",
            s.num_partitions
        ));
    }
    out.paragraph(text);
    out.table(Table {
        title: "Largest arguments and results".to_owned(),
        ..arrays(&s.arrays)
    });
}

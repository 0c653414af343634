//! The catalogue of terms, findings, interventions and flags: an entry, the list, the whole page.

use crate::render::document::{Document, Fact, Item, Mark};
use crate::render::words::Words;
use crate::render::{Cell, Column, Table};
use crate::triage::catalogue::{Flag, Intervention, Term, FLAGS, INTERVENTIONS, TERMS};
use crate::triage::{finding_terms, topics, Topic};

/// Entries in full.
pub fn explanation(entries: &[Topic]) -> Document {
    let mut out = Document::new("xpeak explain");
    for entry in entries {
        match entry {
            Topic::Term(t) => term(&mut out, t),
            Topic::Intervention(i) => intervention(&mut out, i),
            Topic::Flag(f) => flag(&mut out, f),
        }
    }
    out
}

fn facts(rows: &[(&'static str, &str)]) -> Vec<Fact> {
    let fact = |&(name, value): &(&'static str, &str)| Fact {
        name,
        value: value.into(),
    };
    rows.iter().map(fact).collect()
}

fn term(out: &mut Document, t: &Term) {
    out.heading(2, Words::new().code(t.id));
    out.paragraph(t.text);
}

fn intervention(out: &mut Document, i: &Intervention) {
    let title = Words::from(i.name).plain(" (").code(i.id.name()).plain(")");
    out.heading(2, title);
    out.paragraph(i.what);
    out.facts(facts(&[
        ("Gain", i.gain),
        ("Trade-off", i.trade_off),
        ("Results", i.safety.words()),
        ("Fits when", i.fits_when),
        ("How", i.how),
        ("Verify", i.verify),
    ]));
}

fn flag(out: &mut Document, f: &Flag) {
    out.heading(2, Words::new().code(f.name));
    out.paragraph(f.what);
    let measured = match f.measured {
        "" => "not measured".to_owned(),
        text => format!("on a 4-layer transformer here: {text}"),
    };
    out.facts(facts(&[
        ("Default", f.default),
        ("Suggested", f.suggested),
        ("Trade-off", f.trade_off),
        ("Results", f.safety.words()),
        ("Measured", &measured),
    ]));
}

/// Every topic with what it is in a few words.
pub fn topic_list() -> Document {
    let mut out = Document::new("xpeak explain");
    out.paragraph("Topics (`xpeak explain TOPIC`):");
    for (title, rows) in topics() {
        out.heading(2, title);
        // Flags have long names: what they do stands below.
        if rows.iter().any(|(id, _)| id.starts_with("xla_")) {
            let item = |(id, text): &(&str, &str)| {
                let words = Words::new().code(*id).plain(format!("\n{text}"));
                Item::of(Mark::Bullet, words)
            };
            out.list(rows.iter().map(item).collect());
        } else {
            out.facts(facts(&rows));
        }
    }
    out
}

/// Everything, for `docs/advice.md`.
pub fn catalogue() -> Document {
    let mut out = Document::new("What to change");
    out.heading(1, "What to change");
    out.paragraph(
        "Made from `src/triage/catalogue.rs`; `BLESS=1 cargo test --test golden` rewrites it. \
         `xpeak explain` prints the same.",
    );
    out.table(interventions());
    out.heading(2, "Flags");
    out.paragraph(
        "A last resort, after the interventions. Pass them as \
         `your_jitted_function.lower(*args).compile(compiler_options={name: value})` or in \
         `LIBTPU_INIT_ARGS`; the values in force are in a dump's `flagfile`. Measured with libtpu \
         0.0.52 on a 4-layer transformer step with a peak of 7.438 GiB; `tools/measure_flags.py` \
         measures again.",
    );
    out.table(flags());
    let found: Vec<Term> = finding_terms().collect();
    for (title, terms) in [("Findings", &found[..]), ("Terms", TERMS)] {
        out.heading(2, title);
        out.bullets(
            terms
                .iter()
                .map(|t| Words::new().strong(t.id).plain(": ").sentence(t.text)),
        );
    }
    out
}

fn interventions() -> Table {
    let row = |i: &Intervention| {
        vec![
            Cell::of(i.name),
            Cell::Code(i.id.name().to_owned()),
            Cell::of(i.what),
            Cell::of(i.safety.words()),
            Cell::of(i.gain),
            Cell::of(i.trade_off),
            Cell::of(i.fits_when),
            Cell::of(i.how),
            Cell::of(i.verify),
        ]
    };
    let columns = [
        "",
        "name",
        "what it does",
        "results",
        "gain",
        "trade-off",
        "fits when",
        "how",
        "verify",
    ];
    Table {
        title: "Interventions".to_owned(),
        columns: columns.map(Column::flexible).to_vec(),
        rows: INTERVENTIONS.iter().map(row).collect(),
        ..Table::default()
    }
}

fn flags() -> Table {
    let row = |f: &Flag| {
        vec![
            Cell::Code(f.name.to_owned()),
            Cell::of(f.what),
            Cell::of(f.default),
            Cell::of(f.suggested),
            Cell::of(f.safety.words()),
            Cell::of(f.trade_off),
            Cell::of(match f.measured {
                "" => "not measured",
                text => text,
            }),
        ]
    };
    let columns = [
        "flag",
        "what it does",
        "default",
        "suggested",
        "results",
        "trade-off",
        "measured",
    ];
    Table {
        columns: columns.map(Column::flexible).to_vec(),
        rows: FLAGS.iter().map(row).collect(),
        ..Table::default()
    }
}

//! What-if against the compiler: every pair of programs that were compiled before and after a
//! change, predicted again, beside what is on record. A prediction that gets worse shows as a
//! difference; `BLESS=1` records the new one.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fmt::Write;
use std::path::Path;

use xpeak::hlo::{decode_program, HloContainer};
use xpeak::whatif::{whatif, Edit, WhatIfOptions};

#[derive(serde::Deserialize)]
struct Pair {
    pair: String,
    base: String,
    edit: String,
    base_allocated: u64,
    edited_allocated: u64,
}

#[test]
fn predictions_are_as_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("samples/pairs/pairs.json")).unwrap();
    let pairs: Vec<Pair> = serde_json::from_str(&text).unwrap();
    let mut table = String::new();
    let mut errors = Vec::new();
    for p in &pairs {
        let own = root.join("samples/pairs").join(&p.base);
        let bytes = match own.is_dir() {
            true => common::bytes_of(&own),
            false => common::read(&p.base),
        };
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let words: Vec<&str> = p.edit.split_whitespace().collect();
        let options = WhatIfOptions::new(Edit::parse_words(&words).unwrap());
        let (w, _) = whatif(&program, &options).unwrap();
        assert_eq!(w.before.allocated_bytes, p.base_allocated, "{}", p.pair);
        let ours = w.after.allocated_bytes;
        let truth = p.edited_allocated as f64;
        let error = (ours as f64 - truth) / truth * 100.0;
        errors.push(error.abs());
        writeln!(
            table,
            "{} {}: predicted {ours}, compiled {}, {error:+.1} %, {}",
            p.pair,
            p.edit,
            p.edited_allocated,
            w.confidence.name()
        )
        .unwrap();
    }
    errors.sort_by(f64::total_cmp);
    assert_eq!(errors.len(), 32);
    let median = errors[errors.len() / 2];
    writeln!(table, "median error {median:.1} %").unwrap();
    assert!(median <= 1.0, "{table}");
    let kept = root.join("tests/expected/pairs.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&kept, &table).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), table);
}

//! The same promises on a wider collection of programs, which is not part of the repository:
//! `XPEAK_CORPUS=DIR cargo test --test corpus`. Not run without being asked for; fails where there
//! is nothing to look at.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/agree.rs"]
mod agree;
mod common;

use std::path::PathBuf;

use xpeak::hlo::MemorySpace;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::whatif::{whatif, Base, Edit, WhatIfOptions};

fn corpus() -> PathBuf {
    let dir = std::env::var_os("XPEAK_CORPUS").expect("XPEAK_CORPUS names the collection's folder");
    PathBuf::from(dir)
}

#[test]
fn findings_and_edits_agree() {
    let mut folders = common::folders_in(&corpus().join("programs"));
    folders.extend(common::folders_in(&corpus().join("pairs2/programs")));
    let seen = agree::findings_and_edits(&folders);
    println!("{} programs: {seen:#?}", folders.len());
    assert!(agree::looked_at_all(&seen, 3));
}

/// The collection's pairs, whose bases are programs unlike the samples: how far predictions are
/// off. The bounds are what was reached, and only ever get tighter.
#[test]
fn predictions_are_no_worse_than_recorded() {
    #[derive(serde::Deserialize)]
    struct Pair {
        pair: String,
        base: String,
        edit: String,
        edited_allocated: u64,
    }
    let folder = corpus().join("pairs2");
    let text = std::fs::read_to_string(folder.join("pairs.json")).unwrap();
    let pairs: Vec<Pair> = serde_json::from_str(&text).unwrap();
    let mut errors = Vec::new();
    for p in &pairs {
        let bytes = common::bytes_of(&folder.join("programs").join(&p.base));
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        assert!(Base::new(&program, MemorySpace::HBM).is_ok(), "{}", p.pair);
        let words: Vec<&str> = p.edit.split_whitespace().collect();
        let options = WhatIfOptions::new(Edit::parse_words(&words).unwrap());
        let error = match whatif(&program, &options) {
            Ok((w, _)) => {
                let truth = p.edited_allocated as f64;
                (w.after.allocated_bytes as f64 - truth).abs() / truth * 100.0
            }
            Err(_) => f64::INFINITY,
        };
        println!("{:8.1} %  {} {}", error, p.pair, p.edit);
        errors.push(error);
    }
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|e| **e <= 8.0).count();
    let median = errors[errors.len() / 2];
    println!(
        "{} pairs, median {median:.1} %, {within} within 8 %",
        errors.len()
    );
    assert!(errors.len() >= 40);
    assert!(
        median <= 6.5 && within >= 25,
        "median {median}, {within} within 8 %"
    );
}

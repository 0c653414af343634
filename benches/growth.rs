//! How the cost of a plan and of each edit grows with arguments and with instructions: linearly.
//!
//! `cargo bench --bench growth`

#![allow(clippy::unwrap_used)]

mod programs;

use std::hint::black_box;

use xpeak::hlo::{decode_program, HloContainer};
use xpeak::whatif::{plan, whatif, Edit, PlanOptions, WhatIfOptions};

fn main() {
    divan::main();
}

const ARGUMENTS: [usize; 5] = [500, 1000, 2000, 4000, 8000];
const INSTRUCTIONS: [usize; 3] = [40_000, 120_000, 400_000];
const EDITS: [&str; 10] = [
    "--donate all",
    "--shard params=2",
    "--batch 256:128",
    "--microbatch 2",
    "--dtype opt_state=bf16",
    "--checkpoint all",
    "--drop opt_state",
    "--offload opt_state",
    "--pad-free",
    "--no-debug",
];

fn planned(bytes: &[u8]) {
    let program = decode_program(bytes, HloContainer::Proto).unwrap();
    let options = PlanOptions::new(64 << 20);
    black_box(plan(&program, &options).unwrap());
}

fn edited(bytes: &[u8], line: &str) {
    let program = decode_program(bytes, HloContainer::Proto).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let options = WhatIfOptions::new(Edit::parse_words(&words).unwrap());
    // An edit that finds nothing to change is an answer too.
    drop(black_box(whatif(&program, &options)));
}

#[divan::bench(args = ARGUMENTS, sample_count = 1, sample_size = 1)]
fn plan_by_arguments(bencher: divan::Bencher<'_, '_>, arguments: usize) {
    let bytes = programs::training_step(arguments, 20 * arguments);
    bencher.bench_local(|| planned(&bytes));
}

#[divan::bench(args = INSTRUCTIONS, sample_count = 1, sample_size = 1)]
fn plan_by_instructions(bencher: divan::Bencher<'_, '_>, instructions: usize) {
    let bytes = programs::training_step(300, instructions);
    bencher.bench_local(|| planned(&bytes));
}

#[divan::bench(args = EDITS, sample_count = 1, sample_size = 1)]
fn edit_of_4000_arguments(bencher: divan::Bencher<'_, '_>, edit: &str) {
    let bytes = programs::training_step(4000, 80_000);
    bencher.bench_local(|| edited(&bytes, edit));
}

#[divan::bench(args = EDITS, sample_count = 1, sample_size = 1)]
fn edit_of_400000_instructions(bencher: divan::Bencher<'_, '_>, edit: &str) {
    let bytes = programs::training_step(300, 400_000);
    bencher.bench_local(|| edited(&bytes, edit));
}

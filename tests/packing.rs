//! The simulator's packing against the compiler's own arenas.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use xpeak::hlo::MemorySpace;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::whatif::Base;

/// Half of all arenas come out within half a per cent of the compiler's. `--nocapture` prints the
/// table.
#[test]
fn packing_reproduces_the_compilers_arenas() {
    let mut errors = Vec::new();
    let mut table = String::new();
    for folder in common::folders() {
        let (name, bytes) = (common::name_of(&folder), common::bytes_of(&folder));
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let Ok(base) = Base::new(&program, MemorySpace::HBM) else {
            continue;
        };
        let (compiled, packed, live) = base.packing_check();
        if compiled < 1 << 20 {
            continue;
        }
        let error = (packed as f64 - compiled as f64) / compiled as f64;
        errors.push(error.abs());
        table += &format!(
            "{name:36} {:10.2} {:10.2} {:10.2} {:+7.2} %\n",
            live as f64 / 1048576.0,
            compiled as f64 / 1048576.0,
            packed as f64 / 1048576.0,
            error * 100.0
        );
    }
    assert!(!errors.is_empty());
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    println!(
        "program, MiB alive at the peak, arena, ours, error\n{table}median {:.3} %",
        median * 100.0
    );
    assert!(median < 0.005, "{table}median {median}");
}

//! debug
#![allow(clippy::print_stdout, missing_docs, clippy::unwrap_used)]
use xpeak::decode::{decode_program, HloContainer};
use xpeak::simulate::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&a[1]).unwrap();
    let p = decode_program(&bytes, HloContainer::Proto)
        .map_err(|e| e.field())
        .unwrap();
    let base = Base::new(&p, Default::default()).unwrap();
    let ap = apply(&base, &[], &Edit::parse_words(&a[2..]).unwrap()).unwrap();
    for n in &ap.notes {
        println!("{n:?}");
    }
    let mut rows = vec![];
    for (s, i) in base.arenas[0]
        .slots
        .iter()
        .zip(&ap.scenario.arenas[0].items)
    {
        let inst = p
            .module
            .instruction(base.assignment.buffer(s.buffer).instruction.unwrap());
        let names: Vec<String> = s
            .names
            .iter()
            .skip(1)
            .take(5)
            .map(|b| {
                p.module
                    .instruction(base.assignment.buffer(*b).instruction.unwrap())
                    .name
                    .to_string()
            })
            .collect();
        rows.push((
            s.item.size_bytes,
            i.size_bytes,
            format!(
                "{:?} -> {:?} {} {} {} {names:?}",
                s.item.ranges,
                i.ranges,
                inst.name,
                base.content(s.buffer)
                    .map(|c| c.1.to_string())
                    .unwrap_or_default(),
                inst.op_name
                    .chars()
                    .rev()
                    .take(50)
                    .collect::<String>()
                    .chars()
                    .rev()
                    .collect::<String>()
            ),
        ));
    }
    rows.sort_by(|a, b| b.0.cmp(&a.0));
    for r in rows.iter().take(60) {
        println!(
            "{:9.2} {:9.2} {}",
            r.0 as f64 / 1048576.,
            r.1 as f64 / 1048576.,
            r.2
        );
    }
    for (i, l) in ap.scenario.arenas[0]
        .items
        .iter()
        .skip(base.arenas[0].slots.len())
        .zip(&ap.scenario.arenas[0].added)
    {
        println!(
            "+ {:9.2} {:?} {l}",
            i.size_bytes as f64 / 1048576.,
            i.ranges
        );
    }
    for (b, n) in base.blocks.iter().zip(&ap.scenario.blocks) {
        if b.size_bytes != *n {
            println!(
                "block {:?} {:?} {:.2} -> {:.2}",
                b.kind,
                b.parameter,
                b.size_bytes as f64 / 1048576.,
                *n as f64 / 1048576.
            );
        }
    }
    let o = measure(&base, &ap.scenario);
    println!("{o:#?}");
}

//! Cost of each stage on a real program, and on the same program made larger: throughput should
//! not fall as programs grow.
//!
//! `cargo bench --bench stages`

#![allow(clippy::unwrap_used)]

use std::path::Path;

use divan::counter::BytesCount;
use prost::Message;
use xpeak::hlo::MemorySpace;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::report::{space_report, SpaceAnalysis};
use xpeak::source::decode_xspace;
use xpeak::source::FileBytes;
use xpeak_protos::{hlo, xplane};

fn main() {
    divan::main();
}

/// How many times larger.
const TIMES: [i64; 3] = [1, 10, 30];

/// A real training step, its computations and buffers repeated `times` over with ids of their own.
fn program(times: i64) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/lm_v6e");
    let file = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.to_string_lossy().contains("after_optimizations.hlo.pb"))
        .unwrap();
    let one = hlo::HloProto::decode(&FileBytes::open(&file).unwrap()[..]).unwrap();
    let mut all = one.clone();
    let (module, assignment) = (
        all.hlo_module.as_mut().unwrap(),
        all.buffer_assignment.as_mut().unwrap(),
    );
    for k in 1..times {
        let shift = k << 40;
        for c in &one.hlo_module.as_ref().unwrap().computations {
            let mut c = c.clone();
            c.id += shift;
            c.root_id += shift;
            for i in &mut c.instructions {
                i.id += shift;
                i.operand_ids.iter_mut().for_each(|o| *o += shift);
                i.called_computation_ids
                    .iter_mut()
                    .for_each(|o| *o += shift);
            }
            module.computations.insert(0, c);
        }
        let theirs = one.buffer_assignment.as_ref().unwrap();
        let ids = k * 1_000_000;
        for b in &theirs.logical_buffers {
            let mut b = b.clone();
            b.id += ids;
            assignment.logical_buffers.push(b);
        }
        for a in &theirs.buffer_allocations {
            let mut a = a.clone();
            a.assigned
                .iter_mut()
                .for_each(|x| x.logical_buffer_id += ids);
            assignment.buffer_allocations.push(a);
        }
        for t in &theirs.heap_simulator_traces {
            let mut t = t.clone();
            for e in &mut t.events {
                e.buffer_id += ids;
                e.share_with_canonical_id += ids;
            }
            assignment.heap_simulator_traces.push(t);
        }
    }
    all.encode_to_vec()
}

#[divan::bench(args = TIMES)]
fn decode(bencher: divan::Bencher<'_, '_>, times: i64) {
    let bytes = program(times);
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| decode_program(divan::black_box(&bytes), HloContainer::Proto).unwrap());
}

#[divan::bench(args = TIMES)]
fn decode_with_prost(bencher: divan::Bencher<'_, '_>, times: i64) {
    let bytes = program(times);
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| hlo::HloProto::decode(divan::black_box(&bytes[..])).unwrap());
}

#[divan::bench(args = TIMES)]
fn analyse_hbm(bencher: divan::Bencher<'_, '_>, times: i64) {
    let bytes = program(times);
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| SpaceAnalysis::new(divan::black_box(&program), MemorySpace::HBM).unwrap());
}

#[divan::bench(args = TIMES)]
fn report_hbm(bencher: divan::Bencher<'_, '_>, times: i64) {
    let bytes = program(times);
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let analysis = SpaceAnalysis::new(&program, MemorySpace::HBM).unwrap();
    bencher.bench(|| space_report(divan::black_box(&program), &analysis, true));
}

/// A profile whose device events outweigh its programs.
#[divan::bench(args = [1usize, 100])]
fn walk_profile(bencher: divan::Bencher<'_, '_>, lines: usize) {
    let event = xplane::XEvent {
        metadata_id: 7,
        offset_ps: 1 << 40,
        ..Default::default()
    };
    let line = xplane::XLine {
        events: vec![event; 10_000],
        ..Default::default()
    };
    let space = xplane::XSpace {
        planes: vec![xplane::XPlane {
            name: b"/device:TPU:0".to_vec(),
            lines: vec![line; lines],
            ..Default::default()
        }],
        ..Default::default()
    };
    let bytes = space.encode_to_vec();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| decode_xspace(divan::black_box(&bytes)).unwrap());
}

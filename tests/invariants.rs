//! What must hold for every input.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use proptest::prelude::*;
use prost::Message;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::memory::space_usage;
use xpeak::peak::{buffer_groups, peak_snapshot, rank_by_opcode, Context};
use xpeak::report::SpaceAnalysis;
use xpeak::source::FileBytes;
use xpeak_protos::hlo;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    /// Parts sum to the whole, nothing is negative, and the order is total.
    #[test]
    fn parts_sum_to_the_peak(program in common::any_program()) {
        let bytes = common::bytes(&program);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let Some(assignment) = &program.assignment else { return Ok(()) };
        for space in assignment.spaces() {
            let usage = space_usage(assignment, space);
            let peak = peak_snapshot(&program, &usage);
            let ctx = Context {
                program: &program, usage: &usage, peak: &peak, capacity_bytes: None,
            };
            let sum: u64 = peak.buffers.iter().map(|b| b.counted_bytes).sum();
            prop_assert!(sum >= usage.peak_bytes());
            // A trace may claim more than its arena holds; buffers then still add up.
            let arenas: u64 = usage.arenas.iter().map(|a| a.peak_bytes).sum();
            prop_assert_eq!(arenas, usage.heap_peak_bytes);
            prop_assert_eq!(sum, usage.peak_bytes());
            for b in &peak.buffers {
                prop_assert!(b.unpadded_bytes <= b.counted_bytes);
                prop_assert!(b.counted_bytes <= b.size_bytes);
                if let Some((start, end)) = b.live {
                    prop_assert!(start < end);
                }
            }
            let groups = buffer_groups(&ctx);
            prop_assert_eq!(groups.iter().map(|g| g.size_bytes).sum::<u64>(), sum);
            let ranked = rank_by_opcode(&ctx);
            prop_assert_eq!(ranked.iter().map(|r| r.bytes).sum::<u64>(), sum);
            let parts = usage.parameter_bytes + usage.output_bytes + usage.donated_bytes
                + usage.constant_bytes;
            prop_assert_eq!(parts, usage.indefinite_bytes);
            for t in usage.timeline() {
                prop_assert!(t <= usage.peak_bytes());
            }
        }
    }

    /// The walker reads what the generated decoder reads.
    #[test]
    fn the_walker_agrees_with_prost(program in common::any_program()) {
        agree(&common::bytes(&program));
    }
}

#[test]
fn the_walker_agrees_with_prost_on_samples() {
    let files = common::sample_files("optimizations.hlo.pb");
    assert!(files.len() >= 6);
    for f in files {
        agree(&FileBytes::open(&f).unwrap());
    }
}

/// Compares every table with prost's reading of the same bytes.
fn agree(bytes: &[u8]) {
    let theirs = hlo::HloProto::decode(bytes).unwrap();
    let ours = decode_program(bytes, HloContainer::Proto).unwrap();
    let module = theirs.hlo_module.unwrap();
    assert_eq!(ours.module.name.as_bytes(), module.name);
    assert_eq!(ours.module.computations.len(), module.computations.len());
    let instructions: Vec<_> = module
        .computations
        .iter()
        .flat_map(|c| &c.instructions)
        .collect();
    assert_eq!(ours.module.instructions.len(), instructions.len());
    for ((id, a), b) in ours.module.with_ids().zip(&instructions) {
        assert_eq!(a.name.as_bytes(), b.name);
        assert_eq!(a.opcode_name().as_bytes(), b.opcode);
        assert_eq!(a.wire_id, b.id);
        let meta = b.metadata.clone().unwrap_or_default();
        assert_eq!(a.op_name.as_bytes(), meta.op_name);
        assert_eq!(a.stack_frame_id as i32, meta.stack_frame_id);
        let operands: Vec<i64> = ours
            .module
            .operands(id)
            .iter()
            .map(|&o| ours.module.instruction(o).wire_id)
            .collect();
        assert_eq!(operands, b.operand_ids);
        let shape = ours.module.shape(id);
        let dims: Vec<i64> = shape.dimensions.iter().map(|&d| d as i64).collect();
        assert_eq!(dims, b.shape.clone().unwrap_or_default().dimensions);
        assert_eq!(a.custom_call_target().as_bytes(), b.custom_call_target);
    }
    let Some(theirs) = theirs.buffer_assignment else {
        assert!(ours.assignment.is_none());
        return;
    };
    let Some(ours) = ours.assignment else {
        assert!(theirs.buffer_allocations.is_empty());
        return;
    };
    assert_eq!(ours.logical_buffers.len(), theirs.logical_buffers.len());
    for (a, b) in ours.logical_buffers.iter().zip(&theirs.logical_buffers) {
        assert_eq!(
            (a.id, a.size_bytes as i64, a.space.0),
            (b.id, b.size, b.color)
        );
    }
    for (a, b) in ours.allocations.iter().zip(&theirs.buffer_allocations) {
        assert_eq!(
            (a.index, a.size_bytes as i64, a.space.0),
            (b.index, b.size, b.color)
        );
        assert_eq!(a.maybe_live_out, b.maybe_live_out);
    }
    assert_eq!(ours.traces.len(), theirs.heap_simulator_traces.len());
    for (a, b) in ours.traces.iter().zip(&theirs.heap_simulator_traces) {
        assert_eq!(a.events.len(), b.events.len());
        for (x, y) in a.events.iter().zip(&b.events) {
            assert_eq!(x.instruction_name.as_bytes(), y.instruction_name);
            if let Some(id) = x.buffer {
                assert_eq!(ours.buffer(id).id, y.buffer_id);
            }
        }
    }
}

/// Files cut at any byte, and with any byte changed, are errors or are used; never a panic.
#[test]
fn damaged_samples_never_panic() {
    let file = common::sample_files("mlp_scan_v4").into_iter().next();
    let file = file.or_else(|| {
        common::sample_files("after_optimizations.hlo.pb")
            .into_iter()
            .next()
    });
    let bytes = FileBytes::open(&file.unwrap()).unwrap().to_vec();
    let step = (bytes.len() / 60).max(1);
    for at in (0..bytes.len()).step_by(step) {
        exercise(&bytes[..at]);
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        exercise(&changed);
    }
}

fn exercise(bytes: &[u8]) {
    for container in [
        HloContainer::Proto,
        HloContainer::Module,
        HloContainer::Snapshot,
    ] {
        if let Ok(program) = decode_program(bytes, container) {
            let spaces = program
                .assignment
                .as_ref()
                .map(|a| a.spaces())
                .unwrap_or_default();
            for space in spaces {
                if let Some(a) = SpaceAnalysis::new(&program, space) {
                    xpeak::report::space_report(&program, &a, true).unwrap();
                }
            }
        }
    }
    let _ = xpeak::source::decode_xspace(bytes);
    xpeak::source::sniff(bytes);
}

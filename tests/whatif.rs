//! What-ifs against compiled truth, and what must hold of every one of them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;
#[allow(dead_code)]
#[path = "common/work.rs"]
mod work;

use work::work;
use xpeak::hlo::MemorySpace;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::whatif::{
    apply, measure, plan, whatif, whatif_with, Base, Confidence, Edit, PlanOptions, WhatIfOptions,
};

fn corpus(name: &str) -> Vec<u8> {
    common::read(name)
}

/// Every dump in the samples and the corpus.
fn all() -> Vec<(String, Vec<u8>)> {
    let read = |f: &std::path::PathBuf| (common::name_of(f), common::bytes_of(f));
    common::folders().iter().map(read).collect()
}

fn edits(line: &str) -> Vec<Edit> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Edit::parse_words(&words).unwrap()
}

fn options(line: &str) -> WhatIfOptions<'static> {
    WhatIfOptions::new(edits(line))
}

/// `(base, edit, compiled, largest error in per cent)`: pairs that differ in one thing.
#[test]
fn predictions_agree_with_what_the_compiler_did() {
    let pairs = [
        ("lm_v6e", "--donate all", "lm_v6e_donated", 0.05),
        (
            "lm_v6e_donated",
            "--checkpoint all",
            "lm_v6e_checkpoint",
            25.0,
        ),
        ("serve_v6e", "--donate all", "serve_v6e_donated", 0.05),
        (
            "transformer_v6e_base",
            "--donate all",
            "transformer_v6e_donate",
            0.01,
        ),
        (
            "decode_v6e_nodonate",
            "--donate all",
            "decode_v6e_donate",
            0.01,
        ),
        (
            "transformer_v6e_donate",
            "--dtype state=bf16",
            "transformer_v6e_bf16",
            5.0,
        ),
        (
            "transformer_v6e_donate",
            "--batch 16:8",
            "transformer_v6e_halfbatch",
            5.0,
        ),
        (
            "transformer_v6e_donate",
            "--microbatch 4",
            "transformer_v6e_microbatch4",
            15.0,
        ),
        (
            "transformer_v6e_donate",
            "--checkpoint all",
            "transformer_v6e_remat_full",
            25.0,
        ),
        (
            "transformer_v6e_donate",
            "--checkpoint all:dots",
            "transformer_v6e_remat_dots",
            25.0,
        ),
        (
            "transformer_v6e_unsharded_embed",
            "--shard embed=4",
            "transformer_v6e_remat_full",
            10.0,
        ),
        (
            "transformer_v6e_unsharded_logits",
            "--shard f32[16,2048,32000]=4",
            "transformer_v6e_remat_full",
            15.0,
        ),
        (
            "transformer_v6e_debug_print",
            "--no-debug",
            "transformer_v6e_remat_full",
            20.0,
        ),
        (
            "mlp_train_v5e",
            "--shard params=4 --donate all",
            "mlp_train_sharded_v5e",
            15.0,
        ),
    ];
    let mut errors = Vec::new();
    for (base, line, edited, allowed) in pairs {
        let (from, to) = (corpus(base), corpus(edited));
        let from = decode_program(&from, HloContainer::Proto).unwrap();
        let to = decode_program(&to, HloContainer::Proto).unwrap();
        let truth = Base::new(&to, MemorySpace::HBM)
            .unwrap()
            .usage
            .allocated_bytes;
        let (w, _) = whatif(&from, &options(line)).unwrap();
        let ours = w.after.allocated_bytes;
        let error = (ours as f64 - truth as f64) / truth as f64 * 100.0;
        assert!(
            error.abs() <= allowed,
            "{base} {line}: {ours}, compiled {truth}: {error:+.2} %"
        );
        errors.push(error.abs());
    }
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    assert!(median < 4.0, "median {median}");
}

#[test]
fn no_edit_changes_nothing() {
    for (name, bytes) in all() {
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        for space in [0, 1, 5] {
            let mut o = WhatIfOptions::default();
            o.space = MemorySpace(space);
            let Ok((w, chart)) = whatif(&program, &o) else {
                continue;
            };
            assert_eq!(w.before, w.after, "{name}");
            assert_eq!(
                w.confidence == Confidence::Exact,
                w.caveats.is_empty(),
                "{name}"
            );
            assert!(chart.before.len() == chart.after.len() || chart.after.is_empty());
            if space == 0 {
                assert_eq!(chart.before, chart.after, "{name}");
            }
        }
    }
}

/// Edits that the programs of the corpus know, applied wherever they match.
const LINES: [&str; 12] = [
    "--donate all",
    "--dtype all=bf16",
    "--microbatch 2",
    "--checkpoint all",
    "--checkpoint all:dots",
    "--pad-free",
    "--no-debug",
    "--shard all=4",
    "--offload params",
    "--drop all-gather",
    "--batch 16:8",
    "--batch 16:1024",
];

#[test]
fn every_outcome_is_consistent() {
    for (name, bytes) in all() {
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let Ok(base) = Base::new(&program, MemorySpace::HBM) else {
            continue;
        };
        for line in LINES {
            let Ok((w, _)) = whatif_with(&base, &options(line)) else {
                continue;
            };
            let o = &w.after;
            assert!(o.allocated_bytes >= o.peak_bytes, "{name} {line}: {o:?}");
            assert_eq!(
                o.peak_bytes,
                o.indefinite_bytes + o.heap_peak_bytes,
                "{name} {line}"
            );
            assert_eq!(o.fragmentation_bytes, o.allocated_bytes - o.peak_bytes);
            for pair in o.largest.windows(2) {
                let total = |b: &xpeak::whatif::LargeBuffer| b.count * b.size_bytes;
                assert!(total(&pair[0]) >= total(&pair[1]), "{name} {line}");
            }
            let text = xpeak::render::render_terminal(
                &xpeak::render::documents::whatif(&w),
                80,
                Default::default(),
            );
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        }
    }
}

#[test]
fn the_order_of_edits_does_not_matter() {
    for name in ["transformer_v6e_donate", "mlp_train_v5e"] {
        let bytes = corpus(name);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let base = Base::new(&program, MemorySpace::HBM).unwrap();
        let mut some: Vec<Edit> = Vec::new();
        for line in LINES.iter().take(8) {
            if apply(&base, &[], &edits(line)).is_ok() {
                some.extend(edits(line));
            }
        }
        assert!(some.len() > 3);
        let outcome = |e: &[Edit]| {
            apply(&base, &[], e)
                .map(|a| measure(&base, &a.scenario))
                .ok()
        };
        for a in &some {
            for b in &some {
                let (ab, ba) = ([a.clone(), b.clone()], [b.clone(), a.clone()]);
                assert_eq!(outcome(&ab), outcome(&ba), "{a} {b}");
            }
        }
        let mut reversed = some.clone();
        reversed.reverse();
        assert_eq!(outcome(&some), outcome(&reversed));
    }
}

#[test]
fn an_edit_that_matches_nothing_is_refused() {
    let bytes = corpus("decode_v6e_donate");
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    for line in [
        "--donate nobody",
        "--shard nobody=2",
        "--shard params=noaxis",
        "--batch 17:8",
        "--no-debug",
        "--checkpoint all",
        "--drop donation:1",
    ] {
        let e = whatif(&program, &options(line)).unwrap_err();
        assert_eq!(e.exit_code(), 2, "{line}: {e}");
    }
}

/// Hundreds of edits are tried on one base: each is little work beside making it.
#[test]
fn an_edit_is_little_work() {
    let bytes = corpus("transformer_v6e_donate");
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let mut base = None;
    let made = work(|| base = Base::new(&program, MemorySpace::HBM).ok());
    let base = base.unwrap();
    for line in LINES {
        let edited = work(|| drop(whatif_with(&base, &options(line))));
        println!("{line}: {edited} of {made}");
        assert!(
            edited <= made,
            "{line}: {edited} bytes, {made} for the base"
        );
    }
}

#[test]
fn plans_for_programs_that_ran_out_of_memory_fit() {
    for name in ["transformer_oom_v5e", "mlp_oom_v5e"] {
        let bytes = corpus(name);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let capacity_bytes = xpeak::units::parse_size("15.75G").unwrap();
        let o = PlanOptions::new(capacity_bytes);
        let p = plan(&program, &o).unwrap();
        assert!(p.fits && !p.steps.is_empty(), "{p:?}");
        let last = &p.steps.last().unwrap().after;
        assert!(last.allocated_bytes + p.reserve_bytes <= capacity_bytes);
        let saved: u64 = p.steps.iter().map(|s| s.saving_bytes).sum();
        assert_eq!(p.before.allocated_bytes - saved, last.allocated_bytes);
        // The smallest: no step can be left out.
        let words: Vec<String> = p.steps.iter().map(|s| s.edit.clone()).collect();
        for skip in 0..words.len() {
            // Kept even where it saves nothing: it pins what the compiler does on its own. And
            // what is safe stays before what is not.
            if words[skip].starts_with("--checkpoint") || words[skip].starts_with("--donate") {
                continue;
            }
            let mut rest = words.clone();
            rest.remove(skip);
            let (w, _) = whatif(&program, &options(&rest.join(" "))).unwrap();
            assert!(
                w.after.allocated_bytes + p.reserve_bytes > capacity_bytes,
                "{rest:?}"
            );
        }
        let tiny = PlanOptions::new(1 << 20);
        let p = plan(&program, &tiny).unwrap();
        assert!(!p.fits && p.floor_bytes > 1 << 20 && !p.otherwise.is_empty());
        let big = PlanOptions::new(1 << 40);
        assert!(plan(&program, &big).unwrap().steps.is_empty());
    }
}

/// Damaged programs give an answer or an error, never a panic.
#[test]
fn damage_does_no_harm() {
    for name in ["mlp_train_v5e", "decode_v6e_nodonate"] {
        let bytes = corpus(name);
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for round in 0..60 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + round % 8 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let at = (state % damaged.len() as u64) as usize;
                damaged[at] ^= 1 << (state >> 60 & 7);
            }
            let Ok(program) = decode_program(&damaged, HloContainer::Proto) else {
                continue;
            };
            let Ok(base) = Base::new(&program, MemorySpace::HBM) else {
                continue;
            };
            for line in LINES {
                let _ = whatif_with(&base, &options(line));
            }
        }
    }
}

/// A program of parameters `(name, element type, dimensions)`, the last two multiplied.
fn product_of(parameters: &[(&str, i32, &[i64])]) -> Vec<u8> {
    use prost::Message;
    use xpeak_protos::hlo::*;
    let shape = |element_type: i32, dimensions: &[i64]| ShapeProto {
        element_type,
        dimensions: dimensions.to_vec(),
        layout: Some(LayoutProto {
            minor_to_major: (0..dimensions.len() as i64).rev().collect(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut proto = HloProto::default();
    let assignment = proto.buffer_assignment.get_or_insert_default();
    let mut computation = HloComputationProto {
        name: b"main".to_vec(),
        id: 1,
        ..Default::default()
    };
    let mut place = |id: i64, size: i64, number: Option<i64>| {
        assignment.logical_buffers.push(LogicalBufferProto {
            id,
            size,
            defined_at: Some(logical_buffer_proto::Location {
                instruction_id: id,
                ..Default::default()
            }),
            ..Default::default()
        });
        assignment.buffer_allocations.push(BufferAllocationProto {
            index: id,
            size,
            is_entry_computation_parameter: number.is_some(),
            parameter_number: number.unwrap_or(0),
            maybe_live_out: number.is_none(),
            assigned: vec![buffer_allocation_proto::Assigned {
                logical_buffer_id: id,
                offset: 0,
                size,
            }],
            ..Default::default()
        });
    };
    for (n, (name, element_type, dimensions)) in parameters.iter().enumerate() {
        let id = n as i64 + 1;
        computation.instructions.push(HloInstructionProto {
            name: format!("p{n}").into_bytes(),
            opcode: b"parameter".to_vec(),
            parameter_number: n as i64,
            id,
            shape: Some(shape(*element_type, dimensions)),
            metadata: Some(OpMetadata {
                op_name: name.as_bytes().to_vec(),
                ..Default::default()
            }),
            ..Default::default()
        });
        place(id, 4 * dimensions.iter().product::<i64>(), Some(n as i64));
    }
    let id = parameters.len() as i64 + 1;
    let (x, w) = (parameters[id as usize - 3].2, parameters[id as usize - 2].2);
    computation.instructions.push(HloInstructionProto {
        name: b"dot".to_vec(),
        opcode: b"dot".to_vec(),
        id,
        operand_ids: vec![id - 2, id - 1],
        shape: Some(shape(11, &[x[0], w[1]])),
        ..Default::default()
    });
    place(id, 4 * x[0] * w[1], None);
    computation.root_id = id;
    proto.hlo_module = Some(HloModuleProto {
        name: b"jit_f".to_vec(),
        entry_computation_id: 1,
        computations: vec![computation],
        ..Default::default()
    });
    proto.encode_to_vec()
}

#[test]
fn a_random_key_is_no_batch() {
    let (u32, f32) = (8, 11);
    for key in [&[2][..], &[4]] {
        let bytes = product_of(&[
            ("rng", u32, key),
            ("images", f32, &[16, 8]),
            ("weights['w']", f32, &[8, 64]),
        ]);
        let program = decode_program(&bytes, HloContainer::Proto).unwrap();
        let (w, _) = whatif(&program, &options("--microbatch 2")).unwrap();
        let note = &w.edits[0].note;
        assert!(note.contains("images dimension 0 (16"), "{note}");
        assert!(!note.contains("rng"), "{note}");
    }
    // Tokens are u32 too: more of them than a key has words.
    let bytes = product_of(&[
        ("tokens", u32, &[16, 8]),
        ("x", f32, &[16, 8]),
        ("weights['w']", f32, &[8, 64]),
    ]);
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let (w, _) = whatif(&program, &options("--microbatch 2")).unwrap();
    assert!(w.edits[0].note.contains("tokens dimension 0 (16"));
}

/// The compiler packed this program's temporaries badly. That our packing is better is no saving
/// of an edit that leaves the peak as it is.
#[test]
fn better_packing_is_no_saving() {
    let bytes = common::read("lm_v5p_whole_logits");
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let base = Base::new(&program, MemorySpace::HBM).unwrap();
    let (compiled, packed, _) = base.packing_check();
    assert!(compiled > packed + packed / 5, "{compiled} {packed}");
    let (w, _) = whatif_with(&base, &options("--checkpoint all")).unwrap();
    assert!(w.edits[0].matched > 0);
    assert_eq!(w.after.peak_bytes, w.before.peak_bytes);
    assert_eq!(w.after.allocated_bytes, w.before.allocated_bytes);
}

#[test]
fn the_reserve_follows_the_confidence() {
    let gib = 100u64 << 30;
    let reserves = [
        Confidence::Exact,
        Confidence::Simulated,
        Confidence::UpperBound,
    ]
    .map(|c| c.reserve(gib) >> 30);
    assert_eq!(reserves, [1, 5, 10]);
}

//! Each kind of finding on programs that show it and on programs that must not.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use xpeak::facts::Facts;
use xpeak::findings::{all_findings, Finding, FindingKind, FindingSeverity};
use xpeak::hlo::MemorySpace;
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::memory::{space_usage, SpaceUsage};
use xpeak::peak::{peak_snapshot, Context};

fn sample(name: &str) -> Vec<u8> {
    common::read(name)
}

fn findings(bytes: &[u8], capacity: Option<u64>) -> Vec<Finding> {
    common::look(bytes, capacity, all_findings)
}

fn of_kind(name: &str, kind: FindingKind) -> Vec<Finding> {
    let mut found = findings(&sample(name), None);
    found.retain(|f| f.kind == kind);
    found
}

fn usage(name: &str) -> SpaceUsage {
    common::look(&sample(name), None, |ctx| ctx.usage.clone())
}

#[test]
fn every_finding_is_well_formed_and_in_order() {
    for folder in common::folders() {
        let name = common::name_of(&folder);
        let bytes = common::bytes_of(&folder);
        let found = findings(&bytes, Some(16 << 30));
        assert_eq!(found, findings(&bytes, Some(16 << 30)), "{name}");
        let peak = common::look(&bytes, None, |ctx| ctx.usage.peak_bytes());
        for f in &found {
            assert!(!f.evidence.is_empty(), "{name}: {f:?}");
            assert!(!f.title.is_empty() && !f.action.is_empty() && !f.links.is_empty());
            assert!(f.bytes >= peak / 100, "{name}: too small: {f:?}");
            assert!(
                f.saving_bytes <= f.bytes,
                "{name}: saves more than there is: {f:?}"
            );
            let ids: BTreeSet<i64> = f.buffer_ids.iter().copied().collect();
            assert_eq!(ids.len(), f.buffer_ids.len(), "{name}: {f:?}");
        }
        let rest = usize::from(
            found
                .first()
                .is_some_and(|f| f.kind == FindingKind::CAPACITY),
        );
        assert!(
            found[rest..]
                .windows(2)
                .all(|w| w[0].saving_bytes >= w[1].saving_bytes),
            "{name}"
        );
    }
}

#[test]
fn on_chip_memory_has_no_findings_of_its_own() {
    let bytes = sample("lm_v6e");
    let program = decode_program(&bytes, HloContainer::Proto).unwrap();
    let usage = space_usage(program.assignment.as_ref().unwrap(), MemorySpace(1));
    let peak = peak_snapshot(&program, &usage);
    assert!(usage.peak_bytes() > 0);
    let ctx = Context {
        program: &program,
        usage: &usage,
        peak: &peak,
        capacity_bytes: Some(1),
    };
    assert!(all_findings(&Facts::new(ctx, Vec::new())).is_empty());
}

#[test]
fn a_scans_saved_activations_come_with_their_iterations() {
    let found = of_kind("lm_v6e", FindingKind::SAVED_ACTIVATIONS);
    let scan = &found[0];
    assert!(
        scan.title.contains("a loop of 4 iterations"),
        "{}",
        scan.title
    );
    assert!(
        scan.evidence.iter().any(|e| e.contains(" = 4 x ")),
        "{:?}",
        scan.evidence
    );
    assert!(scan.evidence.iter().any(|e| e.contains("train.py:")));
    assert!(scan.action.contains("jax.checkpoint"));
    // The compiler freed less than the bound, and more than half of it, when it was asked to.
    let freed =
        usage("lm_v6e_donated").allocated_bytes - usage("lm_v6e_checkpoint").allocated_bytes;
    assert!(
        scan.saving_bytes >= freed,
        "{} < {freed}",
        scan.saving_bytes
    );
    assert!(scan.saving_bytes < 2 * freed);
}

#[test]
fn what_jax_checkpoint_frees_is_not_advised_again() {
    for f in of_kind("lm_v6e_checkpoint", FindingKind::SAVED_ACTIVATIONS) {
        assert!(!f.title.contains("loop"), "{f:?}");
    }
    assert!(of_kind("serve_v6e", FindingKind::SAVED_ACTIVATIONS).is_empty());
    assert!(of_kind("padded_v5e", FindingKind::SAVED_ACTIVATIONS).is_empty());
}

#[test]
fn saved_activations_are_what_backward_reads() {
    common::look(&sample("mlp_scan_v4"), None, |ctx| {
        let saved = ctx.saved_activations();
        assert!(
            saved.iter().filter(|s| s.trip_count == Some(6)).count() >= 2,
            "{saved:?}"
        );
        for s in saved {
            let op = ctx.program.module.instruction(s.producer).op_name;
            assert!(op.contains("jvp(") && !op.contains("transpose("), "{op}");
            assert_eq!(s.bytes, ctx.peak.buffers[s.peak_index].counted_bytes);
        }
    });
}

#[test]
fn a_left_over_debug_print_is_found_with_its_line() {
    let found = of_kind("lm_v5e_debug_print", FindingKind::DEBUG_CALLBACK);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].title.starts_with("debug_print (train.py:"),
        "{}",
        found[0].title
    );
    // The tensor of all devices is at the peak for it.
    assert!(found[0].saving_bytes >= 256 << 20, "{found:?}");
    for folder in common::folders() {
        let name = common::name_of(&folder);
        let mut found = findings(&common::bytes_of(&folder), None);
        found.retain(|f| f.kind == FindingKind::DEBUG_CALLBACK);
        assert_eq!(
            !found.is_empty(),
            name.contains("debug_print"),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn fragmentation_is_the_total_less_the_peak() {
    let found = of_kind("lm_v5p_whole_logits", FindingKind::FRAGMENTATION);
    let u = usage("lm_v5p_whole_logits");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].bytes, u.allocated_bytes - u.peak_bytes());
    assert!(found[0].bytes > 1 << 30);
    assert!(
        found[0].evidence.iter().any(|e| e.contains("up to offset")),
        "{:?}",
        found[0].evidence
    );
    for name in ["serve_v6e", "mlp_h100", "mlp_scan_v4"] {
        assert!(
            of_kind(name, FindingKind::FRAGMENTATION).is_empty(),
            "{name}"
        );
    }
    {
        let bytes = common::read("transformer_v6e_unsharded_logits");
        let mut found = findings(&bytes, None);
        found.retain(|f| f.kind == FindingKind::FRAGMENTATION);
        assert_eq!(xpeak::units::bytes(found[0].saving_bytes), "2.45 GiB");
    }
}

#[test]
fn float32_tells_upcasts_from_state() {
    let found = of_kind("lm_v5p_whole_logits", FindingKind::FLOAT32);
    let upcasts = found
        .iter()
        .find(|f| f.title.contains("copies of 16-bit data"));
    let upcasts = upcasts.expect("the logits are bfloat16 made larger");
    assert_eq!(upcasts.bytes, 2 * (16 * 1024 * 32768 * 4));
    assert_eq!(upcasts.saving_bytes, upcasts.bytes / 2);
    assert!(found
        .iter()
        .any(|f| f.title.contains("arguments and outputs")));
    // All bfloat16.
    assert!(of_kind("serve_v6e", FindingKind::FLOAT32).is_empty());
}

#[test]
fn optimizer_state_that_waits_for_the_end_is_long_lived() {
    let found = of_kind("lm_v6e_donated", FindingKind::LONG_LIVED);
    let arguments = found
        .iter()
        .find(|f| f.title.contains("arguments"))
        .unwrap();
    let ours = |w: &str| arguments.evidence.iter().any(|e| e.contains(w));
    assert!(ours("['mu']") || ours("['nu']"), "{:?}", arguments.evidence);
    // The embedding is read at once.
    assert!(!ours("['params']['embedding']"), "{:?}", arguments.evidence);
    for name in ["serve_v6e", "padded_v5e"] {
        assert!(of_kind(name, FindingKind::LONG_LIVED).is_empty(), "{name}");
    }
}

#[test]
fn capacity_is_silent_when_unknown_and_first_when_too_small() {
    let bytes = sample("lm_v5e_oom");
    let capacity = |f: &&Finding| f.kind == FindingKind::CAPACITY;
    assert!(findings(&bytes, None).iter().find(capacity).is_none());
    let found = findings(&bytes, Some(16_911_433_728));
    assert_eq!(found[0].kind, FindingKind::CAPACITY);
    assert_eq!(found[0].severity, FindingSeverity::High);
    assert!(
        found[0].title.starts_with("Does not fit"),
        "{}",
        found[0].title
    );
    let found = findings(&bytes, Some(100 << 30));
    let fits = found.iter().find(capacity).unwrap();
    assert_eq!(fits.severity, FindingSeverity::Low);
    assert!(fits.title.starts_with("Fits"), "{}", fits.title);
}

#[test]
fn one_buffer_over_half_of_the_device_is_a_large_tensor() {
    let large = |name: &str, capacity| {
        let mut found = findings(&sample(name), capacity);
        found.retain(|f| f.kind == FindingKind::LARGE_TENSOR);
        found.len()
    };
    assert_eq!(large("serve_v6e", None), 1);
    assert_eq!(large("serve_v6e", Some(3 << 29)), 1);
    assert_eq!(large("serve_v6e", Some(100 << 30)), 0);
    assert_eq!(large("lm_v6e", None), 0);
    // Copies on several devices say more of these logits than their size.
    assert_eq!(large("lm_v5p_whole_logits", None), 0);
    let copies = of_kind("lm_v5p_whole_logits", FindingKind::REDUNDANT_COPIES);
    assert!(copies.iter().any(|f| f.buffer_ids.len() == 2), "{copies:?}");
}

/// Findings of a program that only tests have.
fn elsewhere(name: &str) -> Vec<Finding> {
    findings(&common::read(name), None)
}

fn kind(found: &[Finding], kind: FindingKind) -> Vec<&Finding> {
    found.iter().filter(|f| f.kind == kind).collect()
}

/// The size after `before` in a text: `keeps (up to 7.38 GiB,` → 7.38 GiB in bytes.
fn size_after(text: &str, before: &str) -> f64 {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{text}"));
    let mut words = rest.split([' ', ',', ')', ';']);
    let number: f64 = words.next().unwrap().parse().unwrap();
    let unit = words.next().unwrap().trim_end_matches('.');
    let unit = match unit {
        "GiB" => 30,
        "MiB" => 20,
        other => panic!("{other}"),
    };
    number * f64::from(1u32 << unit)
}

/// What a policy keeps counts the products that nothing holds today: compiled with it, the same
/// program frees what is said to within a tenth.
#[test]
fn a_policy_that_keeps_products_is_not_oversold() {
    let (found, base, with) = (
        elsewhere("transformer_v6e_donate"),
        common::read("transformer_v6e_donate"),
        common::read("transformer_v6e_remat_dots"),
    );
    let loops = kind(&found, FindingKind::SAVED_ACTIVATIONS);
    let said = size_after(&loops[0].action, "frees about ");
    let peak = |b: &[u8]| common::look(b, None, |ctx| ctx.usage.allocated_bytes);
    let freed = (peak(&base) - peak(&with)) as f64;
    assert!(
        (said - freed).abs() < 0.1 * freed,
        "said {said}, freed {freed}"
    );
    // Where nothing counts the iterations, the stacks do; what is computed twice is kept once.
    let found = elsewhere("transformer_oom_v5e");
    let loops = kind(&found, FindingKind::SAVED_ACTIVATIONS);
    assert!(
        loops[0].title.contains("a loop of 8 iterations"),
        "{}",
        loops[0].title
    );
    assert!(
        loops[0].evidence[0].contains(" = 8 x "),
        "{:?}",
        loops[0].evidence
    );
    assert!(loops[0].evidence.iter().any(|e| e.contains(".remat")));
}

/// Layers in a row without loops: each result is the next one's input, and has to stay.
#[test]
fn what_layers_are_computed_from_is_not_promised() {
    for (name, at_most) in [("many_small_v5e", 0), ("mlp_oom_v5e", 1 << 30)] {
        let found = elsewhere(name);
        let saved = kind(&found, FindingKind::SAVED_ACTIVATIONS);
        let sum: u64 = saved.iter().map(|f| f.saving_bytes).sum();
        assert!(sum <= at_most, "{name}: {saved:?}");
    }
    for folder in common::folders() {
        let bytes = common::bytes_of(&folder);
        let trains = common::look(&bytes, None, |ctx| {
            let mut all = ctx.program.module.instructions.iter();
            all.any(|i| i.op_name.contains("transpose("))
        });
        let found = findings(&bytes, None);
        assert!(trains || kind(&found, FindingKind::SAVED_ACTIVATIONS).is_empty());
    }
}

/// What goes with a print is told once, and saves what the peak falls by.
#[test]
fn what_a_print_keeps_is_told_once() {
    let found = elsewhere("transformer_v6e_debug_print");
    let debug = kind(&found, FindingKind::DEBUG_CALLBACK);
    let removed: BTreeSet<i64> = debug[0].buffer_ids.iter().copied().collect();
    assert_eq!(debug[0].bytes, 4 << 30);
    let with = usage("transformer_v6e_debug_print").peak_bytes();
    let without = usage("transformer_v6e_remat_full").peak_bytes();
    assert!(debug[0].saving_bytes > 0 && debug[0].saving_bytes <= with - without);
    for f in &found {
        let told_again = f.kind != FindingKind::DEBUG_CALLBACK
            && f.saving_bytes > 0
            && f.buffer_ids.iter().all(|id| removed.contains(id))
            && !f.buffer_ids.is_empty();
        assert!(!told_again, "{f:?}");
    }
}

#[test]
fn findings_that_share_buffers_say_so() {
    let found = findings(&sample("lm_v6e"), None);
    let shares = |f: &&Finding| f.evidence.iter().any(|e| e.contains("do not add up"));
    let mut seen = BTreeSet::new();
    for f in found.iter().filter(|f| f.saving_bytes > 0) {
        let shared = f.buffer_ids.iter().any(|id| seen.contains(id));
        let expected = shared && f.kind != FindingKind::FRAGMENTATION;
        assert_eq!(shares(&f), expected, "{f:?}");
        if f.kind != FindingKind::FRAGMENTATION {
            seen.extend(f.buffer_ids.iter().copied());
        }
    }
    assert!(found.iter().any(|f| shares(&f)));
}

/// The figure for bfloat16 state is no less than the compiler saved, to within alignment.
#[test]
fn float32_state_is_bounded_with_its_copies_and_gradients() {
    let found = elsewhere("transformer_v6e_donate");
    let state = found
        .iter()
        .find(|f| f.kind == FindingKind::FLOAT32 && f.title.contains("arguments"))
        .unwrap();
    let (base, half) = (
        usage("transformer_v6e_donate"),
        usage("transformer_v6e_bf16"),
    );
    let saved = base.allocated_bytes - half.allocated_bytes;
    assert!(state.saving_bytes + (1 << 20) >= saved, "{state:?}");
    assert!(state.saving_bytes >= base.peak_bytes() - half.peak_bytes());
    // Stacks of weights' gradients are no copies of 16-bit data.
    let found = elsewhere("mlp_scan_v5e");
    let float32 = kind(&found, FindingKind::FLOAT32);
    assert!(float32.iter().all(|f| !f.title.contains("16-bit data")));
    assert!(float32.iter().any(|f| f.title.contains("gradients")));
}

#[test]
fn nothing_is_sent_to_the_host_that_is_there_already() {
    let host = |f: &&Finding| f.action.contains("pinned_host");
    {
        let found = elsewhere("host_offload_v5e");
        let fetched = found
            .iter()
            .find(|f| f.title.contains("copies of host arguments"))
            .unwrap();
        assert!(!host(&fetched) && fetched.action.contains("device_put"));
    }
    for name in ["mlp_cpu", "transformer_cpu"] {
        {
            let found = elsewhere(name);
            let advised: Vec<_> = found.iter().filter(host).collect();
            assert!(advised.is_empty(), "{name}: {advised:?}");
        }
    }
}

/// Damaged files give errors or findings, never a panic.
#[test]
fn damaged_programs_do_no_harm() {
    let bytes = sample("mlp_scan_v4");
    let mut state = 7u64;
    let mut next = |n: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let mut looked_at = 0;
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + next(20) {
            let at = next(damaged.len());
            damaged[at] = next(256) as u8;
        }
        let Ok(program) = decode_program(&damaged, HloContainer::Proto) else {
            continue;
        };
        let Some(assignment) = program.assignment.as_ref() else {
            continue;
        };
        let usage = space_usage(assignment, MemorySpace::HBM);
        let peak = peak_snapshot(&program, &usage);
        let ctx = Context {
            program: &program,
            usage: &usage,
            peak: &peak,
            capacity_bytes: Some(1 << 20),
        };
        let facts = Facts::new(ctx, Vec::new());
        let _ = all_findings(&facts);
        let _ = facts.origins();
        looked_at += 1;
    }
    assert!(looked_at > 20, "{looked_at}");
}

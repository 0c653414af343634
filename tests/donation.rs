//! Which donations save memory: rules on small programs, and promises against what the compiler
//! did when the same program was compiled with donation.
#![allow(clippy::unwrap_used)]

#[path = "common/build.rs"]
mod build;
mod common;

use build::{Build, SIZE};
use xpeak::facts::Facts;
use xpeak::findings::{donation_findings, Finding, SavingKind};
use xpeak::training::DonationPair;

fn look<T>(bytes: &[u8], f: impl FnOnce(&Facts<'_, '_>) -> T) -> T {
    common::look(bytes, None, f)
}

fn found(facts: &Facts<'_, '_>) -> Vec<Finding> {
    donation_findings(facts, facts.donations())
}

fn pairs(b: Build) -> Vec<DonationPair> {
    look(&b.bytes(), |facts| facts.donations().to_vec())
}

/// (effective, may save) of the only pair.
fn judged(b: Build) -> (bool, bool) {
    let found = pairs(b);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].bytes, SIZE as u64);
    (found[0].effective, found[0].may_save)
}

#[test]
fn an_elementwise_update_can_take_its_arguments_place() {
    let b = Build::default().computation(
        "main",
        &[("p", "parameter.0", &[]), ("out", "add", &["p", "p"])],
    );
    assert_eq!(
        judged(b.argument("p", 0).output(&[("out", &[])])),
        (true, true)
    );
}

#[test]
fn what_reads_all_over_while_it_writes_cannot() {
    let b = Build::default().computation(
        "main",
        &[("p", "parameter.0", &[]), ("out", "reverse", &["p"])],
    );
    assert_eq!(
        judged(b.argument("p", 0).output(&[("out", &[])])),
        (false, false)
    );
}

#[test]
fn an_argument_read_after_the_output_is_written_may_if_the_order_can_change() {
    let program = |operands: &'static [&'static str]| {
        Build::default()
            .computation(
                "main",
                &[
                    ("p", "parameter.0", &[]),
                    ("out", "negate", &["p"]),
                    ("late", "sort", operands),
                    ("root", "tuple", &["out", "late"]),
                ],
            )
            .argument("p", 0)
            .output(&[("out", &[])])
    };
    assert_eq!(judged(program(&["p"])), (false, true));
    // The sort needs both the old and the new.
    assert_eq!(judged(program(&["p", "out"])), (false, false));
}

#[test]
fn a_temporary_in_the_outputs_memory_makes_it_uncertain() {
    let b = Build::default().computation(
        "main",
        &[
            ("p", "parameter.0", &[]),
            ("early", "sort", &["p"]),
            ("sum", "reverse", &["early"]),
            ("out", "add", &["p", "sum"]),
        ],
    );
    let b = b.argument("p", 0).output(&[("early", &[]), ("out", &[])]);
    assert_eq!(judged(b), (false, true));
}

#[test]
fn fusions_are_looked_into() {
    let program = |inner: &'static str| {
        Build::default()
            .computation(
                "fused",
                &[
                    ("f.p", "parameter.0", &[]),
                    ("f.x", inner, &["f.p"]),
                    ("f.out", "multiply", &["f.x", "f.p"]),
                ],
            )
            .computation(
                "main",
                &[
                    ("p", "parameter.0", &[]),
                    ("out", "fusion", &["p", "@fused"]),
                ],
            )
            .argument("p", 0)
            .output(&[("out", &[])])
    };
    assert_eq!(judged(program("exponential")), (true, true));
    assert_eq!(judged(program("reverse")), (false, false));
}

/// The cache of a decoding loop: read slice by slice while the new one is filled.
#[test]
fn a_loop_that_reads_the_old_while_it_writes_the_new_cannot() {
    let b = Build::default()
        .computation(
            "condition",
            &[
                ("tuple.c", "parameter.0", &[]),
                ("c", "get-tuple-element.0", &["tuple.c"]),
            ],
        )
        .computation(
            "body",
            &[
                ("tuple.b", "parameter.0", &[]),
                ("old", "get-tuple-element.0", &["tuple.b"]),
                ("new", "get-tuple-element.1", &["tuple.b"]),
                ("slice", "sort", &["old"]),
                ("written", "dynamic-update-slice", &["new", "slice"]),
                ("tuple.r", "tuple", &["old", "written"]),
            ],
        )
        .computation(
            "main",
            &[
                ("p", "parameter.0", &[]),
                ("empty", "custom-call", &[]),
                ("tuple.i", "tuple", &["p", "empty"]),
                ("loop", "while", &["tuple.i", "@body", "@condition"]),
                ("out", "get-tuple-element.1", &["loop"]),
            ],
        )
        .argument("p", 0)
        .output(&[("empty", &[]), ("loop", &[1]), ("written", &[])]);
    assert_eq!(judged(b), (false, false));
}

fn sum(found: &[Finding], kind: SavingKind) -> u64 {
    let of_kind = found.iter().filter(|f| f.saving == kind);
    of_kind.map(|f| f.saving_bytes).sum()
}

fn info(name: &str) -> serde_json::Value {
    let mut folders = common::folders().into_iter();
    let folder = folders.find(|f| common::name_of(f) == name).unwrap();
    let text = std::fs::read_to_string(folder.join("info.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What is promised is what the compiler saved on the same program with donation: the aliased
/// bytes, and the difference of the peaks.
#[test]
fn promises_hold_when_compiled() {
    let mut checked = 0;
    for (base, donated) in [
        ("lm_v6e", "lm_v6e_donated"),
        ("transformer_v6e_base", "transformer_v6e_donate"),
        ("serve_v6e", "serve_v6e_donated"),
        ("decode_v6e_nodonate", "decode_v6e_donate"),
    ] {
        let (bytes, info, other) = (common::read(base), info(donated), common::read(donated));
        let found = look(&bytes, found);
        let promised = sum(&found, SavingKind::Exact);
        let peak = |b: &[u8]| look(b, |ctx| ctx.usage.peak_bytes());
        assert_eq!(promised, peak(&bytes) - peak(&other), "{base}");
        let aliased = info["memory_analysis"]["alias_size_in_bytes"]
            .as_u64()
            .unwrap();
        if promised > 0 {
            assert_eq!(promised, aliased, "{base}");
        } else {
            assert!(aliased > 0, "{base}: nothing was donated");
            assert_eq!(found.len(), 1, "{base}: {found:?}");
            assert!(found[0].title.contains("would not save"), "{base}");
            assert_eq!(found[0].saving_bytes, 0);
        }
        checked += 1;
    }
    assert!(checked == 4);
}

#[test]
fn what_is_donated_is_not_advised_again() {
    for name in ["lm_v6e_donated", "serve_v6e_donated", "lm_v6e_checkpoint"] {
        let bytes = common::read(name);
        let found = look(&bytes, found);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// Where the last read copies the argument, the copy may go as well: no exact figure, and one
/// that is no less than the compiler saved.
#[test]
fn a_copy_of_the_argument_is_counted() {
    let bytes = common::read("control_flow_v5p");
    let found = look(&bytes, found);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].saving, SavingKind::UpperBound);
    assert_eq!(found[0].saving_bytes, 128 << 20);
}

/// A cache that is donated, but read while the new one is filled, is in memory twice.
#[test]
fn donation_without_effect_is_told_and_promises_nothing() {
    let all = |name: &str| {
        let bytes = common::read(name);
        let mut found = look(&bytes, xpeak::findings::all_findings);
        found.retain(|f| f.title.contains("is donated, but"));
        found
    };
    let twice = all("serve_v6e_donated");
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert_eq!(twice[0].saving_bytes, 0);
    assert!(!twice[0].buffer_ids.is_empty());
    for name in ["lm_v6e_donated", "lm_v6e_checkpoint", "serve_v6e"] {
        assert!(all(name).is_empty(), "{name}");
    }
    assert_eq!(all("decode_v6e_donate")[0].bytes, 2 << 30);
}

#[test]
fn the_action_can_be_written_down() {
    let found = look(&common::read("lm_v6e"), found);
    assert_eq!(found.len(), 1);
    assert!(found[0].action.contains("donate_argnames=(\"state\",)"));
    assert!(found[0].action.contains("donate_argnums=(0,)"));
    assert!(
        found[0].evidence[0].starts_with("state['"),
        "{:?}",
        found[0].evidence
    );
    assert!(!found[0].buffer_ids.is_empty());
}

//! The rewriting of unoptimised modules, without a compiler: what a recorded dump becomes decodes
//! again, differs from the dump where the edit says, and nowhere else.
#![cfg(feature = "compiler")]
#![allow(clippy::unwrap_used)]

use xpeak::compiler::{rewritten, Prepared, Rewritten};
use xpeak::hlo::{decode_program, HloContainer, Program};
use xpeak::report::{load, Loaded, Options};
use xpeak::source::Sources;
use xpeak::whatif::Edit;

/// A sample and what an edit makes of it.
fn with<T>(sample: &str, edits: &str, look: impl FnOnce(&Prepared, Vec<Rewritten>) -> T) -> T {
    let path = format!("{}/samples/{sample}", env!("CARGO_MANIFEST_DIR"));
    let sources = Sources::open(&[path.into()]).unwrap();
    let loaded: Loaded<'_> = load(&sources, &Options::default()).unwrap();
    let prepared = Prepared::new(&loaded.modules[0]).unwrap();
    let words: Vec<&str> = edits.split(' ').collect();
    let edits = Edit::parse_words(&words).unwrap();
    let changed = rewritten(&loaded.modules[0], &prepared, &edits, &[]).unwrap();
    look(&prepared, changed)
}

fn decoded(module: &[u8]) -> Program<'_> {
    let program = decode_program(module, HloContainer::Module).unwrap();
    assert!(program.diagnostics.is_empty(), "{:?}", program.diagnostics);
    program
}

#[test]
fn every_operand_of_a_changed_module_stands_before_its_user() {
    for edits in [
        "--donate all",
        "--dtype state=bf16",
        "--offload state",
        "--donate all --dtype state=bf16 --offload state",
    ] {
        for sample in ["lm_v6e", "lm_v5e_oom"] {
            with(sample, edits, |prepared, changed| {
                let before = decoded(&prepared.source.module);
                for c in &changed {
                    let after = decoded(&c.module);
                    let m = &after.module;
                    assert!(m.instructions.len() >= before.module.instructions.len());
                    for (id, _) in m.with_ids() {
                        assert!(m.operands(id).iter().all(|o| *o < id), "{sample} {edits}");
                        let wanted = m.instruction(id).opcode_name();
                        assert!(wanted != "convert" || m.operands(id).len() == 1);
                    }
                    let ids: std::collections::BTreeSet<_> = m
                        .with_ids()
                        .map(|(_, i)| (i.computation, i.wire_id))
                        .collect();
                    assert_eq!(ids.len(), m.instructions.len(), "{sample} {edits}");
                }
            });
        }
    }
}

#[test]
fn a_checkpoint_computes_layers_again_behind_barriers() {
    for (sample, edit, layers) in [
        ("programs/mlp_train_v5e", "--checkpoint all", "blocks of"),
        (
            "programs/mlp_train_v5e",
            "--checkpoint all:dots",
            "blocks of",
        ),
        ("lm_v6e", "--checkpoint all", "stacked values less"),
        ("lm_v6e", "--checkpoint all:dots", "stacked values less"),
        ("mlp_scan_v4", "--checkpoint all", "stacked values less"),
        (
            "mlp_scan_v4",
            "--checkpoint all:dots",
            "stacked values less",
        ),
    ] {
        with(sample, edit, |prepared, changed| {
            assert!(
                changed[0].notes[0].contains(layers),
                "{:?}",
                changed[0].notes
            );
            let count = |p: &Program<'_>, opcode: &str| {
                let all = p.module.with_ids();
                all.filter(|(_, i)| i.opcode_name() == opcode).count()
            };
            let before = decoded(&prepared.source.module);
            let after = decoded(&changed[0].module);
            let barriers = count(&after, "opt-barrier") - count(&before, "opt-barrier");
            assert!(barriers > 0, "{sample} {edit}");
            assert_eq!(count(&after, "call"), 0);
            let m = &after.module;
            for (id, _) in m.with_ids() {
                assert!(m.operands(id).iter().all(|o| *o < id), "{sample} {edit}");
            }
            let products = count(&after, "dot");
            match edit.ends_with(":dots") {
                true => assert!(products >= count(&before, "dot")),
                false => assert!(products > count(&before, "dot")),
            }
        });
    }
}

#[test]
fn donation_is_an_alias_table() {
    with("lm_v6e", "--donate all", |prepared, changed| {
        let (before, after) = (
            decoded(&prepared.source.module),
            decoded(&changed[0].module),
        );
        assert!(before.module.input_output_alias.is_empty());
        let table = &after.module.input_output_alias;
        assert!(table.len() > 10, "{}", table.len());
        let outputs: std::collections::BTreeSet<_> =
            table.iter().map(|a| a.output_index.clone()).collect();
        assert_eq!(outputs.len(), table.len());
        let same = |p: &Program<'_>| p.module.instructions.len();
        assert_eq!(same(&before), same(&after));
        assert!(changed[0].notes[0].contains("arguments give their memory"));
    });
}

#[test]
fn an_element_type_reaches_the_arguments_and_what_takes_their_place() {
    with("lm_v6e", "--dtype state=bf16", |prepared, changed| {
        let (before, after) = (
            decoded(&prepared.source.module),
            decoded(&changed[0].module),
        );
        let count = |p: &Program<'_>| {
            let parameters = p.module.entry_parameters();
            let shapes = parameters.iter().map(|&i| p.module.shape(i).to_string());
            shapes.filter(|s| s.starts_with("bf16")).count()
        };
        let results = |p: &Program<'_>| {
            let root = p.module.shape(p.module.entry_root().unwrap());
            let parts = root.tuple.iter().map(|s| s.to_string());
            parts.filter(|s| s.starts_with("bf16")).count()
        };
        assert!(count(&after) > count(&before));
        assert_eq!(
            count(&after) - count(&before),
            results(&after) - results(&before)
        );
    });
}

#[test]
fn splitting_asks_about_every_choice_once() {
    with("mlp_scan_v4", "--shard params=4", |_, changed| {
        assert!(changed.len() > 1);
        let modules: std::collections::BTreeSet<_> = changed.iter().map(|c| &c.module).collect();
        assert_eq!(modules.len(), changed.len());
        assert!(changed.iter().all(|c| c.choice.is_some()));
    });
}

#[test]
fn what_cannot_be_asked_is_said() {
    let path = format!("{}/samples/lm_v6e", env!("CARGO_MANIFEST_DIR"));
    let sources = Sources::open(&[path.into()]).unwrap();
    let loaded = load(&sources, &Options::default()).unwrap();
    let prepared = Prepared::new(&loaded.modules[0]).unwrap();
    for (edit, says) in [
        ("--pad-free", "cannot be asked"),
        ("--checkpoint nowhere", "no layers of that scope"),
        ("--donate nonsense", "no argument"),
        ("--drop nonsense", "no output"),
        ("--shard nonsense=2", "nothing in the unoptimised"),
        ("--no-debug", "no debugging"),
        ("--dtype tokens=bf16", "no argument"),
    ] {
        let words: Vec<&str> = edit.split(' ').collect();
        let edits = Edit::parse_words(&words).unwrap();
        let e = rewritten(&loaded.modules[0], &prepared, &edits, &[]).unwrap_err();
        assert_eq!(e.exit_code(), 2, "{edit}");
        assert!(e.to_string().contains(says), "{edit}: {e}");
    }
}

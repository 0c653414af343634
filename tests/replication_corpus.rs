//! Who holds the same data in compiled programs whose source we know. Folders that are not there
//! are skipped.
#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::path::{Path, PathBuf};

use xpeak::devices::{
    global_shape_witness, meshes_of, replication_summary, Replication, ReplicationSummary,
};
use xpeak::findings::{unsharded_findings, Finding, FindingKind, FindingSeverity};
use xpeak::hlo::{decode_program, HloContainer};
use xpeak::hlo::{InstructionId, MemorySpace, Opcode, Program};
use xpeak::memory::space_usage;
use xpeak::peak::{peak_snapshot, Context};

fn read(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_some_and(|e| e == "gz") {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut out)
            .unwrap();
        return out;
    }
    bytes
}

fn file_of(folder: &Path, stage: &str) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .map(|e| e.unwrap().path())
        .filter(|p| {
            let name = p.to_string_lossy();
            name.trim_end_matches(".gz").ends_with(stage)
        })
        .collect();
    found.sort();
    found.pop()
}

struct Case {
    after: Vec<u8>,
    before: Option<Vec<u8>>,
}

/// What is known of one program's HBM.
struct Seen<'p, 'a> {
    program: &'p Program<'a>,
    before: Option<&'p Program<'p>>,
    replication: &'p Replication,
    summary: &'p ReplicationSummary,
    findings: &'p [Finding],
}

impl Case {
    /// A program of either folder.
    fn open(name: &str) -> Case {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = ["samples", "samples/programs"].iter().find_map(|f| {
            let folder = root.join(f).join(name);
            Some(Case {
                after: read(&file_of(&folder, "after_optimizations.hlo.pb")?),
                before: file_of(&folder, "before_optimizations.hlo.pb").map(|p| read(&p)),
            })
        });
        found.unwrap_or_else(|| panic!("no program {name}"))
    }

    fn look(&self, with_names: bool, f: impl FnOnce(&Seen<'_, '_>)) {
        let program = decode_program(&self.after, HloContainer::Proto).unwrap();
        let before = self
            .before
            .as_ref()
            .map(|b| decode_program(b, HloContainer::Proto).unwrap());
        let meshes = before
            .as_ref()
            .filter(|_| with_names)
            .map_or(Vec::new(), |b| meshes_of(&b.module));
        let replication = Replication::new(&program, &meshes);
        let usage = space_usage(program.assignment.as_ref().unwrap(), MemorySpace::HBM);
        let peak = peak_snapshot(&program, &usage);
        let ctx = Context {
            program: &program,
            usage: &usage,
            peak: &peak,
            capacity_bytes: None,
        };
        let summary = replication_summary(&ctx, &replication);
        let findings = unsharded_findings(&ctx, &replication, &summary);
        check_sums(&ctx, &replication, &summary);
        f(&Seen {
            program: &program,
            before: before.as_ref(),
            replication: &replication,
            summary: &summary,
            findings: &findings,
        });
    }
}

/// What must hold of every program.
fn check_sums(ctx: &Context<'_, '_>, r: &Replication, s: &ReplicationSummary) {
    let rows: u64 = s.rows.iter().map(|r| r.redundant_bytes).sum();
    let bare: u64 = s.unannotated.iter().map(|r| r.redundant_bytes).sum();
    assert_eq!(rows + bare + s.unshardable_bytes, s.redundant_bytes);
    assert!(s.redundant_bytes <= s.peak_bytes);
    assert!(s.unshardable_bytes <= s.constant_bytes);
    for b in &ctx.peak.buffers {
        if let Some(x) = r.of_buffer(ctx, b) {
            assert!((1..=x.devices).contains(&x.distinct_copies));
            assert!(x.redundant_bytes < b.counted_bytes.max(1));
            assert_eq!(x.axes.is_none(), x.distinct_copies == x.devices);
        }
    }
    for row in &s.rows {
        assert_eq!(row.count, row.buffer_ids.len(), "{}", row.label);
    }
}

fn classes_of(s: &Seen<'_, '_>, i: InstructionId) -> u32 {
    let r = s.replication;
    r.classes().count(r.classes_of(&s.program.module, i, &[]))
}

#[test]
fn unsharded_logits_are_found_and_come_first() {
    let case = Case::open("transformer_v6e_unsharded_logits");
    case.look(true, |s| {
        let first = &s.findings[0];
        assert_eq!(first.kind, FindingKind::REDUNDANT_COPIES);
        assert_eq!(first.severity, FindingSeverity::High);
        assert!(
            first.title.contains("f32[16,2048,32000]"),
            "{}",
            first.title
        );
        assert!(first.title.contains("the same on all 4 devices"));
        // Two of 16 x 2048 x 32000 float32, three quarters of them too many.
        assert_eq!(first.bytes, 2 * 16 * 2048 * 32000 * 4);
        assert_eq!(first.saving_bytes, first.bytes / 4 * 3);
        assert!(first.action.contains("with_sharding_constraint"));
        assert!(first.action.contains("'fsdp'") && first.action.contains("'tp'"));
        assert_eq!(s.summary.rows[0].distinct_copies, 1);
        // Their cut halves, by rows of the mesh: the offset is a table's entry by device.
        for (id, i) in s.program.module.with_ids() {
            if i.name == "exponential_reduce_fusion" {
                let i = id;
                let r = s.replication;
                let id = r.classes_of(&s.program.module, i, &[1]);
                assert_eq!(r.axes(id).as_deref(), Some("`tp`"));
            }
        }
    });
}

#[test]
fn an_unsharded_embedding_is_found_with_its_gradient_and_moments() {
    let case = Case::open("transformer_v6e_unsharded_embed");
    case.look(true, |s| {
        for name in [
            "state[0]['embed']",
            "state[1]['mu']['embed']",
            "state[1]['nu']['embed']",
            "state[0]['unembed']",
            "state[1]['mu']['unembed']",
            "state[1]['nu']['unembed']",
        ] {
            let found = s
                .findings
                .iter()
                .find(|f| f.title.contains(&format!("`{name}`")))
                .unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(found.kind, FindingKind::UNSHARDED);
            assert_eq!(found.bytes, 32000 * 2048 * 4);
            assert_eq!(found.saving_bytes, 32000 * 2048 * 3);
            assert!(found.action.contains("PartitionSpec("));
        }
        // The gradient is not alive at the peak: look for it in the program.
        let m = &s.program.module;
        let gradient = m.with_ids().any(|(id, i)| {
            i.op_name.contains("transpose(jvp")
                && m.shape(id).dimensions == [32000, 2048]
                && classes_of(s, id) == 1
        });
        assert!(gradient);
        let w = global_shape_witness(s.before.unwrap(), s.program, s.replication);
        assert!(w.agreed > 0 && w.whole.len() >= w.agreed);
    });
}

#[test]
fn replicated_weights_gradients_and_outputs_are_found() {
    for name in ["mlp_train_v5e", "mlp_train_h100"] {
        let case = Case::open(name);
        case.look(true, |s| {
            let unsharded = |what: &str| {
                s.findings
                    .iter()
                    .any(|f| f.kind == FindingKind::UNSHARDED && f.title.starts_with(what))
            };
            assert!(unsharded("`params[0][*]`") && unsharded("`params[1][*]`"));
            assert!(unsharded("result of `jit(train_step)/sub`"));
            // Gradients: summed over all devices, so equal on them.
            let m = &s.program.module;
            let gradient = m.with_ids().any(|(id, i)| {
                i.opcode.synchronous() == Opcode::AllReduce
                    && m.shape(id).element_count() >= 1024 * 4096
                    && classes_of(s, id) == 1
            });
            let in_tuple = m
                .with_ids()
                .filter(|(_, i)| i.opcode == Opcode::AllReduce)
                .any(|(id, _)| {
                    let c = s.replication.classes_of(m, id, &[0]);
                    s.replication.classes().count(c) == 1
                });
            assert!(gradient || in_tuple, "{name}");
            // The batch is cut.
            assert!(!s.summary.rows.iter().any(|r| r.label == "batch"));
        });
    }
}

#[test]
fn sharded_programs_have_nothing_large() {
    for name in [
        "mlp_train_sharded_v5e",
        "decode_v6e_donate",
        "decode_v6e_nodonate",
        "moe_v6e",
    ] {
        let case = Case::open(name);
        case.look(true, |s| {
            assert!(s.findings.is_empty(), "{name}: {:?}", s.findings);
            for r in &s.summary.rows {
                let gathered_weight = r.gathered && r.label.starts_with("params");
                assert!(
                    gathered_weight || r.redundant_bytes * 100 < s.summary.peak_bytes,
                    "{name}: {r:?}"
                );
            }
        });
    }
}

/// `act(x, "fsdp", None, None)` keeps the residual stream whole along `tp`; projections to
/// heads, hidden units and vocabulary are cut along it.
#[test]
fn activations_are_replicated_over_tp_exactly_where_they_are() {
    for name in [
        "transformer_v6e_base",
        "transformer_v6e_donate",
        "transformer_v6e_bf16",
    ] {
        let case = Case::open(name);
        case.look(true, |s| {
            let m = &s.program.module;
            let mut whole = 0;
            let mut cut = 0;
            for (id, i) in m.with_ids() {
                if !(i.opcode == Opcode::While && i.op_name == "jit(train_step)/jvp()/while") {
                    continue;
                }
                for (n, leaf) in m.shape(id).tuple.iter().enumerate() {
                    let r = s.replication;
                    let axes = r.axes(r.classes_of(m, id, &[n as i64]));
                    match leaf.dimensions[..] {
                        // layers, batch, sequence, model
                        [8, 8, 2048, 2048] => {
                            assert_eq!(axes.as_deref(), Some("`tp`"), "{name} {leaf}");
                            whole += 1;
                        }
                        // hidden units, heads, attention scores
                        [8, 8, 2048, 2816] | [8, 8, 2048, 8, 128] | [8, 8, 8, 2048, 2048] => {
                            assert_eq!(axes, None, "{name} {leaf}");
                            cut += 1;
                        }
                        _ => {}
                    }
                }
            }
            assert!(whole >= 3 && cut >= 6, "{name}: {whole} {cut}");
            for r in &s.summary.rows {
                assert!(!r.label.contains("['mlp']") && !r.label.contains("['attn']"));
            }
            for f in s.findings {
                assert!(f.title.contains("the same along `tp`"), "{}", f.title);
            }
        });
    }
}

#[test]
fn without_a_mesh_axes_go_by_size_and_stride() {
    let case = Case::open("transformer_v6e_base");
    case.look(false, |s| {
        let words: Vec<_> = s
            .summary
            .rows
            .iter()
            .filter_map(|r| r.axes.as_deref())
            .collect();
        assert!(words.contains(&"an axis of size 2 (stride 1)"));
        assert!(words.contains(&"all 4 devices"));
    });
}

#[test]
fn an_old_compilers_program_is_followed_too() {
    let case = Case::open("old_transformer_oom_v5e");
    case.look(true, |s| {
        assert!(s.findings[0].title.contains("[8,8,2048,2048]"));
        assert_eq!(s.summary.rows[0].distinct_copies, 2);
    });
}

#[test]
fn masks_and_zeros_are_no_copies() {
    let case = Case::open("transformer_h100");
    case.look(true, |s| {
        assert!(s.summary.constant_bytes > 1 << 30);
        assert!(!s
            .findings
            .iter()
            .any(|f| f.title.contains("broadcast_in_dim")));
    });
}

#[test]
fn one_device_has_nothing_to_share() {
    let case = Case::open("control_flow_v5p");
    case.look(true, |s| {
        assert_eq!(s.replication.devices(), 1);
        assert!(s.summary.rows.is_empty() && s.findings.is_empty());
    });
}

#[test]
fn samples_show_what_they_were_made_to_show() {
    {
        let case = Case::open("lm_v5p_whole_logits");
        case.look(true, |s| {
            let first = &s.findings[0];
            assert!(first.title.contains("the same on all"), "{}", first.title);
            assert_eq!(s.summary.rows[0].distinct_copies, 1);
        });
    }
    {
        let case = Case::open("lm_v5e_whole_embedding");
        case.look(true, |s| {
            let found = s
                .findings
                .iter()
                .filter(|f| f.kind == FindingKind::UNSHARDED && f.title.contains("embed"))
                .count();
            assert!(found >= 3, "{:?}", s.findings);
        });
    }
    {
        let case = Case::open("lm_v6e");
        case.look(true, |s| {
            assert!(!s.findings.iter().any(|f| f.kind == FindingKind::UNSHARDED));
        });
    }
}

/// Bytes changed at random, with a fixed seed: anything but a panic.
#[test]
fn damaged_programs_do_not_panic() {
    let case = Case::open("lm_v5p_whole_logits");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut looked_at = 0;
    for _ in 0..150 {
        let mut bytes = case.after.clone();
        for _ in 0..1 + next() % 40 {
            let at = (next() % bytes.len() as u64) as usize;
            bytes[at] = next() as u8;
        }
        let Ok(program) = decode_program(&bytes, HloContainer::Proto) else {
            continue;
        };
        let r = Replication::new(&program, &[]);
        let Some(assignment) = &program.assignment else {
            continue;
        };
        let usage = space_usage(assignment, MemorySpace::HBM);
        let peak = peak_snapshot(&program, &usage);
        let ctx = Context {
            program: &program,
            usage: &usage,
            peak: &peak,
            capacity_bytes: None,
        };
        let summary = replication_summary(&ctx, &r);
        assert!(summary.redundant_bytes <= summary.peak_bytes);
        let _ = unsharded_findings(&ctx, &r, &summary);
        let _ = global_shape_witness(&program, &program, &r);
        looked_at += 1;
    }
    assert!(looked_at > 0);
}

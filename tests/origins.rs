//! What each block at the peak is for, on programs of all kinds.
#![allow(clippy::unwrap_used)]

mod common;

use xpeak::training::Origin;

fn sample(name: &str) -> Vec<u8> {
    common::read(name)
}

#[test]
fn origins_label_what_they_can() {
    let bytes_of = |name: &str| {
        common::look(&sample(name), None, |ctx| {
            let labels = ctx.origins();
            assert_eq!(labels.len(), ctx.peak.buffers.len());
            assert!(labels.iter().all(|l| !l.rule.is_empty()));
            let mut sums = std::collections::BTreeMap::new();
            for (b, l) in ctx.peak.buffers.iter().zip(&labels) {
                *sums.entry(l.origin).or_insert(0u64) += b.counted_bytes;
            }
            (sums, ctx.usage.peak_bytes())
        })
    };
    let (serve, _) = bytes_of("serve_v6e");
    assert!(serve[&Origin::KvCache] >= 1 << 30, "{serve:?}");
    assert!(!serve.contains_key(&Origin::Gradients), "{serve:?}");
    let (train, peak) = bytes_of("lm_v6e");
    assert!(train[&Origin::Activations] * 2 > peak, "{train:?}");
    assert!(
        train[&Origin::OptimizerState] > train[&Origin::Parameters],
        "{train:?}"
    );
    assert!(
        train.get(&Origin::Unknown).copied().unwrap_or(0) < peak / 10,
        "{train:?}"
    );
    let (logits, peak) = bytes_of("lm_v5p_whole_logits");
    assert!(logits[&Origin::EmbeddingsLogits] > peak / 2, "{logits:?}");
}

/// What is told by structure is told without the names of arguments too.
#[test]
fn origins_need_no_names() {
    use prost::Message;
    use xpeak::training::Certainty;
    for name in ["lm_v6e", "lm_v5e_whole_embedding", "mlp_scan_v4"] {
        let bytes = sample(name);
        let mut proto = xpeak_protos::hlo::HloProto::decode(&bytes[..]).unwrap();
        let module = proto.hlo_module.as_mut().unwrap();
        let entry = module.entry_computation_id;
        for c in module.computations.iter_mut().filter(|c| c.id == entry) {
            for i in &mut c.instructions {
                if i.opcode == b"parameter" {
                    if let Some(m) = &mut i.metadata {
                        m.op_name = format!("x[{}]", i.parameter_number).into_bytes();
                    }
                }
            }
        }
        let with = common::look(&bytes, None, |facts| facts.origins());
        let without = common::look(&proto.encode_to_vec(), None, |facts| facts.origins());
        let mut arguments = 0;
        for (a, b) in with.iter().zip(&without) {
            let of_weights = matches!(a.origin, Origin::Parameters | Origin::OptimizerState);
            if of_weights && a.certainty == Certainty::Structure {
                assert_eq!(a.origin, b.origin, "{name}: {} / {}", a.rule, b.rule);
                assert_eq!(b.certainty, Certainty::Structure);
                arguments += 1;
            }
        }
        assert!(arguments >= 4, "{name}: {arguments}");
    }
}

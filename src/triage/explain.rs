//! Topics of the catalogue, by name.
//!
//! In: a name. Out: what the catalogue has under it.

use super::catalogue::{Flag, Intervention, Term, FLAGS, INTERVENTIONS, TERMS};
use crate::findings::FindingKind;

/// An entry of the catalogue.
#[derive(Debug, Clone, Copy)]
pub enum Topic {
    /// A word, or a kind of finding.
    Term(Term),
    /// Something to change.
    Intervention(&'static Intervention),
    /// A flag of the compiler.
    Flag(&'static Flag),
}

/// What the catalogue has under a name; empty when it has nothing.
///
/// A topic is an id as `padding`, `checkpoint` or `xla_tpu_rwb_fusion`; upper and lower case,
/// leading dashes, `-` and blanks for `_` do not matter.
pub fn explain(topic: &str) -> Vec<Topic> {
    let wanted = normal(topic);
    let terms = terms().filter(|t| t.id == wanted).map(Topic::Term);
    let interventions = INTERVENTIONS.iter().filter(|i| i.id.name() == wanted);
    let flags = FLAGS.iter().filter(|f| f.name == wanted);
    terms
        .chain(interventions.map(Topic::Intervention))
        .chain(flags.map(Topic::Flag))
        .collect()
}

/// Words and kinds of findings.
fn terms() -> impl Iterator<Item = Term> {
    TERMS.iter().copied().chain(finding_terms())
}

/// Kinds of findings, as terms.
pub fn finding_terms() -> impl Iterator<Item = Term> {
    FindingKind::all().map(|k| Term {
        id: k.name(),
        brief: k.brief(),
        text: k.text(),
    })
}

/// Every topic with what it is in a few words, under the title of its sort.
pub fn topics() -> [(&'static str, Vec<(&'static str, &'static str)>); 4] {
    let brief = |t: Term| (t.id, t.brief);
    let interventions = INTERVENTIONS.iter().map(|i| (i.id.name(), i.name));
    let flags = FLAGS.iter().map(|f| (f.name, f.what));
    [
        ("Terms", TERMS.iter().copied().map(brief).collect()),
        ("Findings", finding_terms().map(brief).collect()),
        ("Interventions", interventions.collect()),
        ("Flags (a last resort)", flags.collect()),
    ]
}

/// Topics whose name shares a word or a start of some length with `topic`, at most six, in the
/// catalogue's order.
pub fn suggest(topic: &str) -> Vec<&'static str> {
    let wanted = normal(topic);
    let words: Vec<&str> = wanted.split('_').filter(|w| w.len() >= 3).collect();
    let near = |id: &str| {
        let id = id.to_ascii_lowercase();
        let whole = wanted.len() >= 3 && (id.contains(&wanted) || wanted.contains(&id));
        let start = wanted
            .bytes()
            .zip(id.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        whole
            || (start >= 4 && start * 2 >= wanted.len())
            || words.iter().any(|w| {
                id.split('_')
                    .any(|part| part == *w && *w != "xla" && *w != "tpu")
            })
    };
    let mut out: Vec<&'static str> = Vec::new();
    for (id, _) in topics().into_iter().flat_map(|(_, rows)| rows) {
        if near(id) && out.len() < 6 && !out.contains(&id) {
            out.push(id);
        }
    }
    out
}

/// A topic as the catalogue writes it.
fn normal(topic: &str) -> String {
    topic
        .trim()
        .trim_start_matches('-')
        .to_ascii_lowercase()
        .replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_explained() {
        for (id, brief) in topics().into_iter().flat_map(|(_, rows)| rows) {
            assert!(!explain(id).is_empty() && !brief.is_empty(), "{id}");
        }
        assert_eq!(explain("--xla-tpu_RWB_fusion").len(), 1);
        assert!(explain("no such thing").is_empty());
    }

    #[test]
    fn close_names_are_suggested() {
        assert!(suggest("shard").contains(&"sharding"));
        assert!(suggest("debug").contains(&"remove_debug_print"));
        assert!(suggest("rwb fusion").contains(&"xla_tpu_rwb_fusion"));
        assert!(suggest("remat").contains(&"rematerialization"));
        assert_eq!(suggest("no such thing"), Vec::<&str>::new());
        assert_eq!(suggest(""), Vec::<&str>::new());
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<_> = terms().map(|t| t.id).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|w| w[0] != w[1]));
    }
}

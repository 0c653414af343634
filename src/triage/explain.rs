//! In: a topic, or none. Out: what the catalogue says about it, as text.

use super::catalogue::{Flag, Intervention, Term, FLAGS, INTERVENTIONS, TERMS};
use crate::findings::FindingKind;

/// Explains a topic, or lists all of them. `None` when there is no such topic.
///
/// A topic is an id as `padding`, `checkpoint` or `xla_tpu_rwb_fusion`; upper and lower case,
/// leading dashes, `-` and blanks for `_` do not matter.
pub fn explain(topic: Option<&str>) -> Option<String> {
    let Some(topic) = topic else {
        return Some(index());
    };
    let wanted = normal(topic);
    let mut out = String::new();
    for term in terms().filter(|t| t.id == wanted) {
        out.push_str(&format!("{}\n\n{}\n", term.id, term.text));
    }
    for i in INTERVENTIONS.iter().filter(|i| i.id.name() == wanted) {
        separate(&mut out);
        out.push_str(&intervention(i));
    }
    for f in FLAGS.iter().filter(|f| f.name == wanted) {
        separate(&mut out);
        out.push_str(&flag(f));
    }
    (!out.is_empty()).then_some(out)
}

fn separate(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

fn intervention(i: &Intervention) -> String {
    format!(
        "{} ({})\n\n{}\n\nGain       {}\nTrade-off  {}\nResults    {}\nFits when  {}\nHow        {}\nVerify     {}\n",
        i.name, i.id.name(), i.what, i.gain, i.trade_off, i.safety.words(), i.fits_when, i.how, i.verify
    )
}

fn flag(f: &Flag) -> String {
    let measured = if f.measured.is_empty() {
        "not measured".to_owned()
    } else {
        format!("on a 4-layer transformer here: {}", f.measured)
    };
    format!(
        "{}\n\n{}\n\nDefault    {}\nSuggested  {}\nTrade-off  {}\nResults    {}\nMeasured   {}\n",
        f.name,
        f.what,
        f.default,
        f.suggested,
        f.trade_off,
        f.safety.words(),
        measured
    )
}

/// Words and kinds of findings.
fn terms() -> impl Iterator<Item = Term> {
    TERMS.iter().copied().chain(findings())
}

/// Kinds of findings, as terms.
pub(crate) fn findings() -> impl Iterator<Item = Term> {
    FindingKind::all().map(|k| Term {
        id: k.name(),
        brief: k.brief(),
        text: k.text(),
    })
}

/// Columns of the list of topics.
const WIDTH: usize = 79;

/// Every topic with what it is in a few words, under the title of its sort.
fn topics() -> [(&'static str, Vec<(&'static str, &'static str)>); 4] {
    let brief = |t: Term| (t.id, t.brief);
    let interventions = INTERVENTIONS.iter().map(|i| (i.id.name(), i.name));
    let flags = FLAGS.iter().map(|f| (f.name, f.what));
    [
        ("Terms", TERMS.iter().copied().map(brief).collect()),
        ("Findings", findings().map(brief).collect()),
        ("Interventions", interventions.collect()),
        ("Flags (a last resort)", flags.collect()),
    ]
}

fn index() -> String {
    let mut out = String::from("Topics (xpeak explain TOPIC):\n");
    for (title, rows) in topics() {
        out.push_str(&format!("\n{title}\n"));
        for (id, text) in rows {
            // Flags have long names: what they do stands below.
            let line = if id.starts_with("xla_") {
                format!("  {id}\n{}", elided(&format!("      {text}")))
            } else {
                elided(&format!("  {id:<20} {text}"))
            };
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

/// A line cut before a word, where it is too long.
fn elided(line: &str) -> String {
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    let head: String = line.chars().take(WIDTH - 1).collect();
    let at = head.rfind(' ').unwrap_or(head.len());
    format!(
        "{}…",
        head.get(..at)
            .unwrap_or_default()
            .trim_end_matches([',', ';'])
    )
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
        for (id, _) in topics().into_iter().flat_map(|(_, rows)| rows) {
            let text = explain(Some(id)).unwrap();
            assert!(text.len() > 40, "{id}");
            assert!(explain(None).unwrap().contains(id), "{id}");
        }
        assert_eq!(
            explain(Some("--xla-tpu_RWB_fusion")),
            explain(Some("xla_tpu_rwb_fusion"))
        );
        assert_eq!(explain(Some("no such thing")), None);
    }

    #[test]
    fn rejected_values_are_named_and_others_suggested() {
        let text = explain(Some("xla_memory_scheduler")).unwrap();
        assert!(
            text.contains("Suggested  list, dfs or post_order"),
            "{text}"
        );
        assert!(text.contains("kBrkga is rejected"), "{text}");
    }

    #[test]
    fn the_list_is_whole_words_in_80_columns() {
        let list = explain(None).unwrap();
        assert!(list.lines().all(|l| l.chars().count() <= 79), "{list}");
        for line in list.lines().filter(|l| l.ends_with('…')) {
            let mut known = topics().into_iter().skip(2).flat_map(|(_, rows)| rows);
            let cut = line.trim().trim_end_matches('…');
            assert!(
                known.any(|(_, text)| text
                    .strip_prefix(cut)
                    .is_some_and(|rest| rest.starts_with([' ', ',', ';']))),
                "{line}"
            );
        }
        assert!(list.contains("Remove jax.debug.print"), "{list}");
        assert!(terms().all(|t| list.contains(t.brief)));
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

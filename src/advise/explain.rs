//! In: a topic, or none. Out: what the catalogue says about it, as text.

use super::catalogue::{Flag, Intervention, FINDINGS, FLAGS, INTERVENTIONS, TERMS};

/// Explains a topic, or lists all of them. `None` when there is no such topic.
///
/// A topic is an id as `padding`, `checkpoint` or `xla_tpu_rwb_fusion`; upper and lower case,
/// leading dashes, `-` and blanks for `_` do not matter.
pub fn explain(topic: Option<&str>) -> Option<String> {
    let Some(topic) = topic else {
        return Some(index());
    };
    let wanted = topic
        .trim()
        .trim_start_matches('-')
        .to_ascii_lowercase()
        .replace(['-', ' '], "_");
    let mut out = String::new();
    for term in TERMS.iter().chain(FINDINGS).filter(|t| t.id == wanted) {
        out.push_str(&format!("{}\n\n{}\n", term.id, term.text));
    }
    for i in INTERVENTIONS.iter().filter(|i| i.id == wanted) {
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
        i.name, i.id, i.what, i.gain, i.trade_off, i.safety.words(), i.fits_when, i.how, i.verify
    )
}

fn flag(f: &Flag) -> String {
    let measured = if f.measured.is_empty() {
        "not measured"
    } else {
        f.measured
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

fn index() -> String {
    let mut out = String::from("Topics (xpeak explain TOPIC):\n");
    let mut part = |title: &str, rows: Vec<(&str, &str)>| {
        out.push_str(&format!("\n{title}\n"));
        for (id, text) in rows {
            let first = text.split(['.', ':']).next().unwrap_or(text);
            let line = format!("  {id:<26} {first}");
            let cut: String = line.chars().take(79).collect();
            out.push_str(cut.trim_end());
            out.push('\n');
        }
    };
    part("Terms", TERMS.iter().map(|t| (t.id, t.text)).collect());
    part(
        "Findings",
        FINDINGS.iter().map(|t| (t.id, t.text)).collect(),
    );
    part(
        "Interventions",
        INTERVENTIONS.iter().map(|i| (i.id, i.name)).collect(),
    );
    part("Flags", FLAGS.iter().map(|f| (f.name, "")).collect());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_explained() {
        let ids = TERMS.iter().chain(FINDINGS).map(|t| t.id);
        let ids = ids
            .chain(INTERVENTIONS.iter().map(|i| i.id))
            .chain(FLAGS.iter().map(|f| f.name));
        for id in ids {
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
    fn rejected_values_are_named() {
        assert!(explain(Some("xla_memory_scheduler"))
            .unwrap()
            .contains("rejected"));
    }

    #[test]
    fn ids_are_unique() {
        for list in [TERMS, FINDINGS] {
            let mut ids: Vec<_> = list.iter().map(|t| t.id).collect();
            ids.sort_unstable();
            assert!(ids.windows(2).all(|w| w[0] != w[1]));
        }
    }
}

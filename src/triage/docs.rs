//! In: the catalogue. Out: `docs/advice.md`.

use super::catalogue::{Term, FLAGS, INTERVENTIONS, TERMS};
use super::explain::findings;

/// The whole page, as Markdown.
fn advice_page() -> String {
    let mut out = String::from(
        "# What to change\n\n\
         Made from `src/triage/catalogue.rs`; `BLESS=1 cargo test advice_page` rewrites it. \
         `xpeak explain` prints the same.\n\n\
         ## Interventions\n\n\
         | | what it does | results | gain | trade-off | fits when | how | verify |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for i in INTERVENTIONS {
        let cells = [
            &format!("**{}** `{}`", i.name, i.id.name()),
            i.what,
            i.safety.words(),
            i.gain,
            i.trade_off,
            i.fits_when,
            i.how,
            i.verify,
        ];
        row(&mut out, &cells);
    }
    out.push_str(
        "\n## Flags\n\n\
         A last resort, after the interventions. Pass them as \
         `your_jitted_function.lower(*args).compile(compiler_options={name: value})` or in `LIBTPU_INIT_ARGS`; the \
         values in force are in a dump's `flagfile`. Measured with libtpu 0.0.52 on a 4-layer \
         transformer step with a peak of 7.438 GiB; `tools/measure_flags.py` measures again.\n\n\
         | flag | what it does | default | suggested | results | trade-off | measured |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for f in FLAGS {
        let measured = if f.measured.is_empty() {
            "not measured"
        } else {
            f.measured
        };
        let name = format!("`{}`", f.name);
        row(
            &mut out,
            &[
                &name,
                f.what,
                f.default,
                f.suggested,
                f.safety.words(),
                f.trade_off,
                measured,
            ],
        );
    }
    let found: Vec<Term> = findings().collect();
    for (title, terms) in [("Findings", &found[..]), ("Terms", TERMS)] {
        out.push_str(&format!("\n## {title}\n\n"));
        for t in terms {
            out.push_str(&format!("- **{}**: {}\n", t.id, t.text));
        }
    }
    out
}

fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
    out.push_str(&format!("| {} |\n", cells.join(" | ")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/advice.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).unwrap();
            std::fs::write(path, advice_page()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(
            committed == advice_page(),
            "docs/advice.md is old: BLESS=1 cargo test advice_page"
        );
    }
}

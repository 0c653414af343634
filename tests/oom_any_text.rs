//! Texts of any kind are read without harm, and nothing is invented.
#![allow(clippy::unwrap_used)]

mod oom_samples;

use oom_samples::{difference, samples, wrapped};
use proptest::prelude::*;
use xpeak::oom::{read, read_str};
use xpeak::triage::triage;

fn fragment() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "Ran out of memory in memory space ",
        "hbm. ",
        "Used ",
        "9.99G ",
        "of ",
        "Exceeded ",
        "RESOURCE_EXHAUSTED: ",
        "Allocation (size=",
        "18446744073709551616",
        ") would exceed memory (size=",
        "Size: ",
        "1. ",
        "Shape: ",
        "f32[",
        "4,",
        "]{",
        "1,0:T(8,128)",
        "}",
        "\n",
        "Operator: op_name=\"",
        "Attempting to allocate ",
        ". That was not possible",
        "BufferAssignment stats:",
        "Peak buffers:",
        "Allocator (",
        "ran out of memory trying to allocate ",
        "Chunks of size ",
        "InUse at 0 of size 9 next",
        "Free  at 0 of size 99999999999999999999 next",
        "donated buffers were not usable:",
        "ShapedArray(",
        "XLA::TPU program HBM usage: ",
        "Total hbm usage >= ",
        "E1000:",
        "\u{1b}[",
        "**",
        "> ",
        "\\",
        "\0",
        "é",
        "while allocating on stack for %",
        "Executable(",
        "but got buffer with incompatible size ",
        "[repeated 9x across cluster]",
        "(W pid=1) ",
        "I0101 ",
        "a.cc:1] ",
        "[36m",
        "&lt;",
    ]);
    let junk = "\\PC{0,12}";
    prop::collection::vec(
        prop_oneof![4 => words.prop_map(String::from), 1 => junk],
        0..60,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_text_is_survived(text in fragment()) {
        let report = read_str(&text);
        let report = triage(report);
        let document = xpeak::render::documents::triage(&report, None);
        xpeak::render::render_terminal(&document, 80, Default::default());
        xpeak::render::render_markdown(&document);
        xpeak::render::render_html(&document);
        prop_assert!(serde_json::to_string(&report).is_ok());
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(read(bytes.as_slice()).unwrap().reports.is_empty());
    }

    #[test]
    fn words_of_other_logs_invent_nothing(words in prop::collection::vec("[a-z]{1,9}|[0-9.]{1,6}[GMK]?|memory|out|of|ran|hbm|exceeded|Used|Error:", 0..200)) {
        prop_assert!(read_str(&words.join(" ")).reports.is_empty());
    }

    #[test]
    fn cut_anywhere(which in 0usize..20, part in 0.0f64..1.0) {
        let all = samples();
        let (_, text, want) = &all[which % all.len()];
        let mut cut = (text.len() as f64 * part) as usize;
        while !text.is_char_boundary(cut) { cut -= 1; }
        let report = read_str(&text[..cut]);
        if want["oom"] == false {
            prop_assert!(!report.has_oom());
        }
        // Whatever is left of a failure's numbers, they are not others'.
        for r in report.reports.iter().filter(|r| r.oom) {
            let limit = want["limit_bytes"].as_u64();
            // A bare integer cut at the very end of the text cannot be told from a whole one.
            let bare = want["kind"] == "gpu_bfc";
            prop_assert!(bare || r.limit_bytes.zip(limit).is_none_or(|(a, b)| a == b));
            let used = want["used_bytes"].as_u64();
            prop_assert!(r.used_bytes.zip(used).is_none_or(|(a, b)| a == b));
            let asked = want["requested_bytes"].as_u64();
            prop_assert!(bare || r.requested_bytes.zip(asked).is_none_or(|(a, b)| a == b));
        }
    }

    #[test]
    fn wrappers_on_wrappers(which in 0usize..20, ways in prop::collection::vec(0usize..7, 0..3), last in 7usize..16) {
        let all = samples();
        let (path, text, want) = &all[which % all.len()];
        let mut text = wrapped(if last == 12 { 11 } else { last }, text);
        for way in ways {
            text = wrapped(way, &text);
        }
        prop_assert_eq!(difference(&read_str(&text), want), None, "{}: {}", path.display(), text);
    }
}

//! In: one line of a log, as somebody's terminal, logger, chat or web page left it.
//! Out: the line without what they put around it.
//!
//! Taken off: line ends, ANSI colours, quoting (`> `), exception group bars, docker and srun
//! labels, `(Name pid=1, ip=..)` of Ray and vLLM (kept as the line's tag), `ERROR 06-03 07:41:11
//! [core.py:1184]`, glog, absl, TensorFlow and ISO time stamps, `[repeated 5x across cluster]`,
//! Markdown's bold and escapes, HTML entities, escaped newlines. What is *inside* a line is left:
//! the parsers look for their words anywhere, and blanks and line breaks mean nothing to them.

use std::borrow::Cow;

/// A line without its wrappers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cleaned {
    /// What is left. May hold several lines when line ends were escaped.
    pub text: String,
    /// Who wrote it, as `TrainWorker pid=411, ip=10.68.6.4`.
    pub tag: Option<String>,
    /// How many lines of the log this one stands for.
    pub repeated: u64,
}

/// Most prefixes taken off one line.
const MAX_PREFIXES: usize = 8;
/// A prefix is no longer than this.
const MAX_PREFIX: usize = 200;

/// Takes the wrappers off a line.
pub(crate) fn clean(line: &str) -> Cleaned {
    let line = strip_ansi(line.trim_end_matches(['\r', '\n']));
    let mut out = Cleaned {
        repeated: 1,
        ..Cleaned::default()
    };
    let mut rest: &str = &line;
    for _ in 0..MAX_PREFIXES {
        let Some(next) = strip_prefix(rest, &mut out.tag) else {
            break;
        };
        rest = next;
    }
    let (rest, repeated) = strip_repeated(rest);
    out.repeated = repeated;
    out.text = if is_bar(rest) {
        rest.to_string()
    } else {
        unescape(rest)
    };
    out
}

/// The BFC allocator's picture of its memory: only `*`, `_` and `x`.
pub(crate) fn is_bar(text: &str) -> bool {
    let text = text.trim();
    text.len() >= 10 && text.bytes().all(|b| matches!(b, b'*' | b'_' | b'x'))
}

fn strip_ansi(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') && !line.contains("m ") && !line.contains("m(") {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['\u{1b}', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        match escape_len(from.as_bytes()) {
            Some(n) => rest = from.get(n..).unwrap_or_default(),
            None => {
                let n = from.chars().next().map_or(0, char::len_utf8);
                out.push_str(from.get(..n).unwrap_or_default());
                rest = from.get(n..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Length of `ESC [ ... letter`, or of `[36m` whose ESC was lost.
fn escape_len(text: &[u8]) -> Option<usize> {
    let lost = text.first() == Some(&b'[');
    let start = if lost { 1 } else { 2 };
    if !lost && text.get(1) != Some(&b'[') {
        return Some(1);
    }
    let body = text.get(start..)?;
    let n = body
        .iter()
        .take(16)
        .take_while(|b| b.is_ascii_digit() || **b == b';')
        .count();
    let end = *body.get(n)?;
    let whole = if lost {
        end == b'm' && n > 0
    } else {
        end.is_ascii_alphabetic()
    };
    whole.then_some(start + n + 1)
}

/// One prefix off the line's start.
fn strip_prefix<'a>(line: &'a str, tag: &mut Option<String>) -> Option<&'a str> {
    let text = line.trim_start();
    let quote = text.strip_prefix('>').or_else(|| text.strip_prefix("| "));
    if let Some(rest) = quote {
        return Some(rest);
    }
    if let Some(rest) = strip_process(text, tag) {
        return Some(rest);
    }
    strip_level(text)
        .or_else(|| strip_glog(text))
        .or_else(|| strip_stamp(text))
        .or_else(|| {
            let rest = strip_label(text)?;
            (rest.len() < text.len()).then_some(rest)
        })
}

/// `(EngineCore pid=106339) `, `(pid=, ip=10.68.6.4) `.
fn strip_process<'a>(text: &'a str, tag: &mut Option<String>) -> Option<&'a str> {
    let (inner, rest) = text.strip_prefix('(')?.split_once(')')?;
    if inner.len() > MAX_PREFIX || !inner.contains("pid=") {
        return None;
    }
    tag.get_or_insert_with(|| inner.to_string());
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `ERROR 06-03 07:41:11 [core.py:1184] `.
fn strip_level(text: &str) -> Option<&str> {
    const LEVELS: [&str; 6] = ["ERROR", "WARNING", "INFO", "DEBUG", "CRITICAL", "FATAL"];
    let rest = LEVELS.iter().find_map(|l| text.strip_prefix(l))?;
    let rest = rest.strip_prefix([' ', ':'])?;
    let starts_with_time = rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
    if starts_with_time {
        return strip_file_bracket(rest);
    }
    None
}

/// `I0320 03:59:34.777634 888 file.cc:2167] `, `2025-08-02 23:46:25.965629: W path.cc:3423] `.
fn strip_glog(text: &str) -> Option<&str> {
    let b = text.as_bytes();
    let glog = matches!(b.first(), Some(b'I' | b'W' | b'E' | b'F'))
        && b.get(1..5)
            .is_some_and(|d| d.iter().all(u8::is_ascii_digit))
        && b.get(5) == Some(&b' ');
    if !glog && date_len(text).is_none() {
        return None;
    }
    // Another writer's prefix in between is taken off by itself: its tag counts.
    let rest = strip_file_bracket(text)?;
    let prefix = text.get(..text.len() - rest.len())?;
    (!prefix.contains("pid=")).then_some(rest)
}

/// Everything through `file.ext:123] `, when that comes early.
fn strip_file_bracket(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(n) = text.get(from..)?.find(']') {
        let at = from + n;
        if at > MAX_PREFIX {
            return None;
        }
        let before = text.get(..at)?;
        let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
        if digits > 0 && before.as_bytes().get(at - digits - 1) == Some(&b':') {
            let rest = text.get(at + 1..)?;
            return Some(rest.strip_prefix(' ').unwrap_or(rest));
        }
        from = at + 1;
    }
    None
}

/// A bare time stamp: `2024-01-02T03:04:05.678Z `, `2024-01-02 03:04:05,678 `, `...: W `.
fn strip_stamp(text: &str) -> Option<&str> {
    let rest = text.get(date_len(text)?..)?.strip_prefix(['T', ' '])?;
    let time = rest
        .bytes()
        .take_while(|b| b.is_ascii_digit() || b":.,+Z".contains(b))
        .count();
    if time < 5 {
        return None;
    }
    let rest = rest.get(time..)?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let level = ["I ", "W ", "E ", "F "]
        .iter()
        .find_map(|l| rest.strip_prefix(l));
    Some(level.unwrap_or(rest))
}

fn date_len(text: &str) -> Option<usize> {
    let date = text.as_bytes().get(..10)?;
    let good = date.iter().enumerate().all(|(i, b)| match i {
        4 | 7 => *b == b'-' || *b == b'/',
        _ => b.is_ascii_digit(),
    });
    good.then_some(10)
}

/// `worker-0  | ` (docker compose), `12: ` (srun), `[rank3]: `.
fn strip_label(text: &str) -> Option<&str> {
    let name = text
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || b"_-./".contains(b))
        .count();
    let after = text.get(name..)?;
    if name > 0 && name < 64 {
        let bar = after.trim_start_matches(' ');
        if bar.len() < after.len() {
            if let Some(rest) = bar.strip_prefix("| ") {
                return Some(rest);
            }
        }
        let all_digits = text.bytes().take(name).all(|b| b.is_ascii_digit());
        if all_digits && name < 6 {
            return after.strip_prefix(": ");
        }
    }
    let rest = text
        .strip_prefix("[rank")?
        .trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix("]: ").or_else(|| rest.strip_prefix("]:"))
}

/// ` [repeated 5x across cluster]` off the end.
fn strip_repeated(text: &str) -> (&str, u64) {
    let none = (text, 1);
    let Some(at) = text.rfind("[repeated ") else {
        return none;
    };
    let (before, suffix) = text.split_at(at);
    let digits = suffix.trim_start_matches("[repeated ");
    let Some((n, rest)) = digits.split_once('x') else {
        return none;
    };
    match n.parse::<u64>() {
        Ok(n) if rest.starts_with(" across cluster]") => (before, n.max(1)),
        _ => none,
    }
}

/// Markdown's `**`, backslashes and back-ticks, HTML entities, escaped line ends.
fn unescape(text: &str) -> String {
    const ENTITIES: [(&str, &str); 6] = [
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
        ("&nbsp;", " "),
    ];
    let mut out = text.to_string();
    if out.contains('&') {
        for (from, to) in ENTITIES {
            out = out.replace(from, to);
        }
    }
    if out.contains('\\') {
        out = unescape_backslashes(&out);
    }
    if out.contains("**") {
        out = out.replace("**", "");
    }
    if out.contains(['`', '\u{a0}', '│']) {
        out = out.replace('`', "").replace(['\u{a0}', '│'], " ");
    }
    out
}

fn unescape_backslashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(&next)) if next.is_ascii_punctuation() => out.push(next),
            _ => {
                out.push(c);
                continue;
            }
        }
        chars.next();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_come_off() {
        for line in [
            "X: 1",
            "X: 1\r\n",
            "> > X: 1",
            "\u{1b}[36m(TrainWorker pid=411, ip=10.68.6.4)\u{1b}[0m X: 1",
            "[36m(TrainWorker pid=411)[0m X: 1",
            "(EngineCore pid=106339) ERROR 06-03 07:41:11 [core.py:1184] X: 1",
            "2020-05-04 09:05:40.719745: E    1578 tensorflow/compiler/xla/xla_client/xla_util.cc:76] X: 1",
            "I0320 03:59:34.777634 888 file.cc:2167] X: 1",
            "W0000 00:00:1756998431.440298    5182 file.cc:3183] X: 1",
            "2025-08-02 23:46:25.965629: W external/xla/a.cc:3423] X: 1",
            "I0309 12:51:51.372677 140505975940928 run_docker.py:247] X: 1",
            "2024-01-02T03:04:05.678Z X: 1",
            "worker-0  | X: 1",
            "12: X: 1",
            "[rank0]: X: 1",
            "  | X: 1",
            "**X: 1**",
            "X\\: 1",
        ] {
            assert_eq!(clean(line).text.trim(), "X: 1", "{line:?}");
        }
    }

    #[test]
    fn tags_and_repeats() {
        let c = clean("(pid=, ip=10.68.6.4) X \u{1b}[32m [repeated 5x across cluster]\u{1b}[0m");
        assert_eq!(
            (c.text.trim(), c.tag.as_deref(), c.repeated),
            ("X", Some("pid=, ip=10.68.6.4"), 5)
        );
    }

    #[test]
    fn what_must_stay() {
        for line in [
            "  1. Size: 4.00G",
            "Shape: f32[36,3]{1,0:T(8,128)}",
            "step 1 loss 3.2",
            "There are 1.02G free.; (0x0x0_HBM0)",
        ] {
            assert_eq!(clean(line).text.trim(), line.trim());
        }
        assert_eq!(
            clean("W0309 10:11:12.1 99 b.cc:513] ****_**__xx").text,
            "****_**__xx"
        );
        assert_eq!(clean("a\\n  b").text, "a\n  b");
    }
}

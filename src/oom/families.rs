//! In: squeezed text. Out: what each message in it says, by the parser of its family.
//!
//! The table of messages is [`MESSAGES`]; what a log is searched for comes from it too.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::found::{Found, Message};
use super::section::Squeezed;
use super::{blocks, gpu, host_and_frameworks as host, tpu_compile, tpu_runtime, warnings};

/// A parser of one message; `None` when the text only looks like it.
type Parser = fn(&Message<'_>) -> Option<Found>;

/// One message.
struct Row {
    /// Words that only this message has, alternatives apart by `|`.
    words: &'static str,
    /// Words of a line that it is on, or that comes just before it: what a log is searched for.
    /// Shorter than `words`, because a log may break their line anywhere.
    opens: &'static str,
    /// Reads it.
    parser: Parser,
    /// Whether it ends the message before it.
    ends: bool,
    /// Starts of the lines that may follow it.
    lines: &'static [&'static str],
}

/// A message that ends the one before it.
const fn message(words: &'static str, opens: &'static str, parser: Parser) -> Row {
    Row {
        words,
        opens,
        parser,
        ends: true,
        lines: &[],
    }
}

/// A message that may stand inside another.
const fn inside(words: &'static str, opens: &'static str, parser: Parser) -> Row {
    Row {
        ends: false,
        ..message(words, opens, parser)
    }
}

impl Row {
    /// The same, with starts of the lines that may follow it.
    const fn followed_by(self, lines: &'static [&'static str]) -> Row {
        Row { lines, ..self }
    }
}

/// Every message, a row each.
///
/// To add one, write its grammar and parser in the file of its family (or a new file), and add a
/// row here: the words that tell it, what opens its section, and the parser. The parser gets a
/// [`Message`]: a cursor behind the words, over text without blanks, however the log broke it. Words
/// are found whole; of two at one place the longer counts. Then put a text of it into
/// `samples/oom_text` with the values that it says.
#[rustfmt::skip]
const MESSAGES: &[Row] = &[
    message("Ran out of memory in memory space", "ut of memory", tpu_compile::space)
        .followed_by(tpu_compile::LINES),
    inside("while allocating on stack for", "memory in memory space", tpu_compile::scoped),
    message("Ran out of memory on HBM", "ut of memory|CompileTime", tpu_compile::short),
    message("Allocation (size=", "would exceed memory", tpu_compile::single),
    message("Aborting compilation early", "Aborting compilation", tpu_compile::early),
    message("TPU TensorCore Hbm usage|TC Hbm usage:", "TensorCore Hbm|TC Hbm usage", tpu_compile::cores),
    message("'memref.alloca' op", "memref.alloca", tpu_compile::alloca),
    message("XLA::TPU program", "XLA::TPU program", tpu_compile::usage),
    inside("usage >=", " usage >= |Largest program allocations", tpu_compile::table)
        .followed_by(blocks::LINES),

    message("Attempting to allocate", "Attempting to allocate|RuntimeBufferAllocation", tpu_runtime::buffer),
    message("Attempting to reserve", "Attempting to reserve|RuntimeProgram", tpu_runtime::load),
    message("but got buffer with incompatible size", "incompatible size", tpu_runtime::mismatch),

    message("Out of memory while trying to allocate", "ut of memory", gpu::line),
    message("Failed to allocate request for", "ailed to allocate", gpu::request),
    message("failed to allocate", "ailed to allocate", gpu::driver),
    message("Not enough memory to allocate", "ot enough memory", gpu::limit),
    message("BufferAssignment stats:", "BufferAssignment|Peak buffers:", gpu::buffer_assignment),
    message("ran out of memory trying to allocate", "bfc_allocator|memory_limit_:|Chunks of size", gpu::bfc)
        .followed_by(gpu::LINES),

    inside("reduce memory use below", "reduce memory use below", warnings::rematerialization),
    inside("input/output arguments (", "input/output arguments", warnings::arguments),
    inside("Involuntary full remat", "Involuntary full remat", warnings::spmd),
    inside("donated buffers were not usable:", "donated buffers", warnings::donation),

    message("Out of memory allocating", "ut of memory", host::cpu),
    message("Out of host memory while trying to allocate", "ut of host memory", host::pinned),
    message(
        "oom-kill|oom_kill|OOM killed|OOMKilled|Out of memory: Kill",
        "oom-kill|oom_kill|OOM killed|OOMKilled|ut of memory",
        host::killed,
    ),
    message(
        "code 137|code: 137|code=137|status 137",
        "code 137|code: 137|code:137|code=137|status 137",
        host::status,
    ),
    message("std::bad_alloc", "std::bad_alloc", host::bad_alloc),
    message("OOM when allocating tensor with shape", "OOM when allocating", host::tensorflow),
    message("Post Compilation Analysis: Graph", "Post Compilation Analysis", host::pytorch)
        .followed_by(host::LINES),
    message(
        "Total memory size:|Total estimated memory size",
        "Total memory size|Total estimated memory",
        host::maxtext,
    ),
    message("Using (GB)", "Using (GB)", host::maxtext_device),
    message("AllocatorStats", "AllocatorStats", host::reactant),
];

/// Status that comes before the compiler's and the runtime's messages.
const STATUS: [&str; 2] = ["RESOURCE_EXHAUSTED", "esource exhausted"];

/// A search for all of `words` at once; the longest of those that start at one place is found.
fn search(words: &[String]) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(words)
        .ok()
}

/// Where the first word in `text` starts that may open a section of a log.
pub(crate) fn opening(text: &[u8]) -> Option<usize> {
    static SET: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let set = SET.get_or_init(|| {
        let all = MESSAGES.iter().flat_map(|m| m.opens.split('|'));
        let mut words: Vec<String> = all.chain(STATUS).map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        search(&words)
    });
    Some(set.as_ref()?.find(text)?.start())
}

/// Whether a line may follow a message that has begun.
pub(crate) fn follows(line: &str) -> bool {
    let line = line
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim_start();
    let mut starts = MESSAGES.iter().flat_map(|m| m.lines);
    starts.any(|s| line.starts_with(s))
}

/// The words of all messages without blanks, as a search, and the row of each.
fn words() -> Option<&'static (AhoCorasick, Vec<&'static Row>)> {
    static SET: OnceLock<Option<(AhoCorasick, Vec<&'static Row>)>> = OnceLock::new();
    let set = SET.get_or_init(|| {
        let each = MESSAGES
            .iter()
            .flat_map(|row| row.words.split('|').map(move |w| (w.replace(' ', ""), row)));
        let (words, rows): (Vec<String>, Vec<&Row>) = each.unzip();
        Some((search(&words)?, rows))
    });
    set.as_ref()
}

/// Everything the text says, in its order.
pub(crate) fn parse(sq: &Squeezed) -> Vec<Found> {
    let Some((search, rows)) = words() else {
        return Vec::new();
    };
    let found = search.find_iter(&sq.text);
    let hits: Vec<(usize, usize, &Row)> = found
        .filter_map(|hit| Some((hit.start(), hit.end(), *rows.get(hit.pattern().as_usize())?)))
        .collect();
    // Ends of messages, from the back, so that one pass is enough. The next of its own kind always
    // ends a message: then no two parsers of a kind read the same text.
    let mut ends = vec![sq.text.len(); hits.len()];
    let mut next = sq.text.len();
    let mut next_same: Vec<(&str, usize)> = Vec::new();
    for (end, &(at, _, row)) in ends.iter_mut().zip(&hits).rev() {
        *end = next;
        match next_same.iter_mut().find(|s| s.0 == row.words) {
            Some(same) => *end = next.min(std::mem::replace(&mut same.1, at)),
            None => next_same.push((row.words, at)),
        }
        if row.ends {
            next = at;
        }
    }
    let mut out = Vec::new();
    let mut tables_end = 0;
    for (&(at, after, row), &end) in hits.iter().zip(&ends) {
        let found = (row.parser)(&Message { sq, at, after, end });
        match &found {
            // Tables within a report of a memory space are its own.
            Some(Found::Usage(_)) if at < tables_end => continue,
            Some(Found::Report(r)) if r.kind.has_tables() => tables_end = end,
            _ => {}
        }
        out.extend(found);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_one_message_each() {
        let (search, rows) = words().unwrap();
        assert!(search.patterns_len() == rows.len() && opening(b"ut of memory").is_some());
        let mut all: Vec<&str> = MESSAGES.iter().flat_map(|m| m.words.split('|')).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}

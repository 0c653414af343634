//! What each edit is and does: one file an edit, one row in [`KINDS`].
//!
//! In: an option's value. Out: what it changes in shapes, sizes, live ranges and blocks; what a plan
//! may try of it; the JAX code for it. May use: `whatif`'s base and scenario.

pub(crate) mod batch;
pub(crate) mod checkpoint;
pub(crate) mod donate;
pub(crate) mod drop;
pub(crate) mod dtype;
pub(crate) mod microbatch;
pub(crate) mod no_debug;
pub(crate) mod offload;
pub(crate) mod pad_free;
pub(crate) mod shard;

use super::edit::{Edit, EditKind};
use crate::error::{Error, Result};

/// Every kind of edit, in the order in which they take effect. To add one: a file beside this one
/// with its `KIND` (and its `mod` line), and a row here.
pub static KINDS: &[&EditKind] = &[
    &no_debug::KIND,
    &drop::KIND,
    &pad_free::KIND,
    &dtype::KIND,
    &batch::KIND,
    &shard::KIND,
    &checkpoint::KIND,
    &microbatch::KIND,
    &offload::KIND,
    &donate::KIND,
];

/// A kind's place in [`KINDS`].
pub(crate) fn position(kind: &EditKind) -> usize {
    let of = |k: &&EditKind| std::ptr::eq(*k, kind);
    KINDS.iter().position(of).unwrap_or(KINDS.len())
}

const SELECTORS: &str =
    "SELECTOR is an argument name, operation path, opcode, shape, source line, finding id, or all";

impl Edit {
    /// Reads option `name` (without dashes) and its value.
    ///
    /// # Errors
    /// Unknown options, and values that make no sense.
    pub fn parse(name: &str, value: Option<&str>) -> Result<Edit> {
        let Some(kind) = KINDS.iter().find(|k| k.name == name) else {
            let names: Vec<String> = KINDS.iter().map(|k| format!("--{}", k.name)).collect();
            return Err(Error::usage(
                format!("--{name}: not an edit"),
                format!("edits: {}", names.join(" ")),
            ));
        };
        let value = value.map_or("", str::trim);
        if kind.value.is_some() && value.is_empty() {
            return Err(Error::usage(format!("--{name} takes a value"), kind.usage));
        }
        (kind.parse)(value)
            .ok_or_else(|| Error::usage(format!("--{name} {value}: not understood"), kind.usage))
    }

    /// Reads edits as words of a command line: `--donate all --shard embed=4`, `--batch=16:8`.
    ///
    /// # Errors
    /// As [`Edit::parse`].
    pub fn parse_words<S: AsRef<str>>(words: &[S]) -> Result<Vec<Edit>> {
        let mut out = Vec::new();
        let mut words = words.iter().map(AsRef::as_ref).peekable();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--") else {
                return Err(Error::usage(
                    format!("{word}: an edit begins with --"),
                    SELECTORS,
                ));
            };
            let takes_none = |name: &str| {
                let kind = KINDS.iter().find(|k| k.name == name);
                kind.is_some_and(|k| k.value.is_none())
            };
            let edit = match option.split_once('=') {
                Some((name, value)) if !name.is_empty() => Edit::parse(name, Some(value))?,
                _ if takes_none(option) => Edit::parse(option, None)?,
                _ => {
                    let value = words.next_if(|w| !w.starts_with("--"));
                    Edit::parse(option, value)?
                }
            };
            out.push(edit);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_print_as_they_read() {
        let line = "--donate all --shard f32[16,2048,32000]=4 --shard embed=tp --batch 16:8@tokens:0 --batch 4:2@x --microbatch 4 --dtype state=bf16 --checkpoint all:dots --checkpoint layers/attn --drop x --pad-free --offload mu --no-debug";
        let words: Vec<&str> = line.split(' ').collect();
        let edits = Edit::parse_words(&words).unwrap();
        assert_eq!(edits.len(), 13);
        let again: Vec<String> = edits.iter().map(Edit::to_string).collect();
        assert_eq!(again.join(" "), line);
        assert!(KINDS
            .iter()
            .all(|k| line.contains(&format!("--{}", k.name))));
    }

    #[test]
    fn nonsense_is_refused_with_a_hint() {
        for bad in [
            "--shard x",
            "--shard =4",
            "--shard x=0",
            "--batch 8",
            "--batch 0:4",
            "--batch a:b",
            "--batch 8:4@",
            "--microbatch 0",
            "--microbatch x",
            "--dtype x=float",
            "--dtype bf16",
            "--checkpoint :dots",
            "--donate",
            "--frobnicate 3",
            "word",
            "--dtype x=tuple",
            "--no-debug=x",
        ] {
            let words: Vec<&str> = bad.split(' ').collect();
            let e = Edit::parse_words(&words).unwrap_err();
            assert_eq!(e.exit_code(), 2, "{bad}");
            assert!(e.hint().is_some(), "{bad}");
        }
    }
}

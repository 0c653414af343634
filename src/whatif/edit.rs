//! The edits, as the command line writes them.
//!
//! In: option and value. Out: [`Edit`], which prints itself back in the same form.

use std::fmt;

use crate::error::{Error, Result};
use crate::hlo::ElementType;

/// One change to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edit {
    /// Arguments give their memory to outputs.
    Donate {
        /// Which arguments.
        selector: String,
    },
    /// Tensors are split over devices.
    Shard {
        /// Which tensors.
        selector: String,
        /// How many ways, or along which mesh axis.
        ways: Ways,
    },
    /// The batch changes.
    Batch {
        /// Size now.
        old: u64,
        /// Size then.
        new: u64,
        /// Argument and dimension that carry it; found if not given.
        seed: Option<(String, Option<u8>)>,
    },
    /// The batch is worked off in so many slices, gradients summed up.
    Microbatch {
        /// Slices.
        count: u64,
    },
    /// Tensors change their element type.
    Dtype {
        /// Which tensors.
        selector: String,
        /// To which type.
        to: ElementType,
    },
    /// Saved activations are computed again in the backward pass.
    Checkpoint {
        /// Part of the operation path; `all` for everything saved.
        scope: String,
        /// Whether results of matrix products are kept.
        dots: bool,
    },
    /// Tensors disappear.
    Drop {
        /// Which tensors.
        selector: String,
    },
    /// Tile padding disappears where a better shape exists.
    PadFree,
    /// Tensors move to host memory.
    Offload {
        /// Which tensors.
        selector: String,
    },
    /// Debugging callbacks disappear, with what only they need.
    NoDebug,
}

/// How often something is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ways {
    /// That many times.
    Count(u64),
    /// By the size of this mesh axis.
    Axis(String),
}

impl Edit {
    /// Reads option `name` (without dashes) and its value.
    ///
    /// # Errors
    /// Unknown options, and values that make no sense.
    pub fn parse(name: &str, value: Option<&str>) -> Result<Edit> {
        let value = value.map(str::trim);
        let text = || {
            value
                .filter(|v| !v.is_empty())
                .ok_or_else(|| Error::usage(format!("--{name} takes a value"), usage_of(name)))
        };
        let bad = |v: &str| Error::usage(format!("--{name} {v}: not understood"), usage_of(name));
        match name {
            "donate" => Ok(Edit::Donate {
                selector: text()?.to_owned(),
            }),
            "shard" => {
                let v = text()?;
                let (selector, ways) = assignment(v).ok_or_else(|| bad(v))?;
                let ways = match ways.parse::<u64>() {
                    Ok(0) => return Err(bad(v)),
                    Ok(n) => Ways::Count(n),
                    Err(_) => Ways::Axis(ways.to_owned()),
                };
                Ok(Edit::Shard {
                    selector: selector.to_owned(),
                    ways,
                })
            }
            "batch" => batch(text()?).ok_or_else(|| bad(value.unwrap_or_default())),
            "microbatch" => match text()?.parse::<u64>() {
                Ok(count) if count > 0 => Ok(Edit::Microbatch { count }),
                _ => Err(bad(value.unwrap_or_default())),
            },
            "dtype" => {
                let v = text()?;
                let (selector, to) = assignment(v).ok_or_else(|| bad(v))?;
                let to = match ElementType::from_name(to) {
                    Some(t) if t.bits() > 0 => t,
                    _ => return Err(bad(v)),
                };
                Ok(Edit::Dtype {
                    selector: selector.to_owned(),
                    to,
                })
            }
            "checkpoint" => {
                let v = text()?;
                let (scope, dots) = match v.strip_suffix(":dots") {
                    Some(scope) => (scope, true),
                    None => (v, false),
                };
                if scope.is_empty() {
                    return Err(bad(v));
                }
                Ok(Edit::Checkpoint {
                    scope: scope.to_owned(),
                    dots,
                })
            }
            "drop" => Ok(Edit::Drop {
                selector: text()?.to_owned(),
            }),
            "offload" => Ok(Edit::Offload {
                selector: text()?.to_owned(),
            }),
            "pad-free" => Ok(Edit::PadFree),
            "no-debug" => Ok(Edit::NoDebug),
            _ => Err(Error::usage(
                format!("--{name}: not an edit"),
                "edits: --donate --shard --batch --microbatch --dtype --checkpoint --drop --pad-free --offload --no-debug",
            )),
        }
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
                    usage_of(""),
                ));
            };
            let edit = match option.split_once('=') {
                Some((name, value)) if !name.is_empty() => Edit::parse(name, Some(value))?,
                _ if matches!(option, "pad-free" | "no-debug") => Edit::parse(option, None)?,
                _ => {
                    let value = words.next_if(|w| !w.starts_with("--"));
                    Edit::parse(option, value)?
                }
            };
            out.push(edit);
        }
        Ok(out)
    }

    /// Position in which edits are applied, whatever order they were given in.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Edit::NoDebug => 0,
            Edit::Drop { .. } => 1,
            Edit::PadFree => 2,
            Edit::Dtype { .. } => 3,
            Edit::Batch { .. } => 4,
            Edit::Shard { .. } => 5,
            Edit::Checkpoint { .. } => 6,
            Edit::Microbatch { .. } => 7,
            Edit::Offload { .. } => 8,
            Edit::Donate { .. } => 9,
        }
    }
}

fn usage_of(name: &str) -> &'static str {
    match name {
        "donate" => "--donate ARG or --donate all",
        "shard" => "--shard SELECTOR=N or --shard SELECTOR=AXIS",
        "batch" => "--batch OLD:NEW, or --batch OLD:NEW@ARG or @ARG:DIMENSION to say what carries it",
        "microbatch" => "--microbatch N, N at least 1",
        "dtype" => "--dtype SELECTOR=bf16",
        "checkpoint" => "--checkpoint SCOPE or SCOPE:dots; SCOPE `all` for everything saved",
        "drop" => "--drop SELECTOR",
        "offload" => "--offload SELECTOR",
        _ => "SELECTOR is an argument name, operation path, opcode, shape, source line, finding id, or all",
    }
}

/// `selector=value`, cut at the last `=`.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (selector, value) = text.rsplit_once('=')?;
    let (selector, value) = (selector.trim(), value.trim());
    (!selector.is_empty() && !value.is_empty()).then_some((selector, value))
}

fn batch(text: &str) -> Option<Edit> {
    let (sizes, seed) = match text.split_once('@') {
        Some((sizes, seed)) => (sizes, Some(seed.trim())),
        None => (text, None),
    };
    let (old, new) = sizes.split_once(':')?;
    let (old, new) = (old.trim().parse().ok()?, new.trim().parse().ok()?);
    let seed = match seed {
        None => None,
        Some("") => return None,
        Some(s) => Some(match s.rsplit_once(':') {
            Some((argument, d)) if !argument.is_empty() && d.parse::<u8>().is_ok() => {
                (argument.to_owned(), d.parse().ok())
            }
            _ => (s.to_owned(), None),
        }),
    };
    (old > 0 && new > 0).then_some(Edit::Batch { old, new, seed })
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edit::Donate { selector } => write!(f, "--donate {selector}"),
            Edit::Shard { selector, ways } => match ways {
                Ways::Count(n) => write!(f, "--shard {selector}={n}"),
                Ways::Axis(a) => write!(f, "--shard {selector}={a}"),
            },
            Edit::Batch { old, new, seed } => {
                write!(f, "--batch {old}:{new}")?;
                match seed {
                    None => Ok(()),
                    Some((argument, None)) => write!(f, "@{argument}"),
                    Some((argument, Some(d))) => write!(f, "@{argument}:{d}"),
                }
            }
            Edit::Microbatch { count } => write!(f, "--microbatch {count}"),
            Edit::Dtype { selector, to } => write!(f, "--dtype {selector}={to}"),
            Edit::Checkpoint { scope, dots } => {
                write!(
                    f,
                    "--checkpoint {scope}{}",
                    if *dots { ":dots" } else { "" }
                )
            }
            Edit::Drop { selector } => write!(f, "--drop {selector}"),
            Edit::PadFree => f.write_str("--pad-free"),
            Edit::Offload { selector } => write!(f, "--offload {selector}"),
            Edit::NoDebug => f.write_str("--no-debug"),
        }
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
        ] {
            let words: Vec<&str> = bad.split(' ').collect();
            let e = Edit::parse_words(&words).unwrap_err();
            assert_eq!(e.exit_code(), 2, "{bad}");
            assert!(e.hint().is_some(), "{bad}");
        }
    }
}

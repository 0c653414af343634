//! In: a failure's text, and the program it is about where that is known. Out: what advice rests
//! on.

use super::steps::shorten;
use crate::oom::{Allocation, OomReport, Scenario};
use crate::report::{BufferEntry, SpaceReport};
use crate::units;

/// Buffers of a program that advice looks at.
const MOST_BUFFERS: usize = 64;

/// A failure, as far as it decides what to do.
#[derive(Debug)]
pub(crate) struct Failure<'a> {
    /// What the text says.
    pub text: &'a OomReport,
    /// Which case it is.
    pub scenario: Option<Scenario>,
    /// What takes the memory: allocations that the text lists; else the program's, largest first.
    pub buffers: Vec<Buffer<'a>>,
    /// The program shows why its largest buffer is there: it is no slip in the configuration.
    pub explained: bool,
}

/// Something that takes memory.
#[derive(Debug, Clone)]
pub(crate) struct Buffer<'a> {
    pub size_bytes: u64,
    pub padding_bytes: Option<u64>,
    pub shape: Option<&'a str>,
    /// The framework's name of its operation.
    pub op_name: Option<&'a str>,
    /// What the compiler calls it.
    pub label: Option<&'a str>,
    /// Where it comes from, as `file:line`.
    pub source: Option<String>,
}

impl<'a> From<&'a Allocation> for Buffer<'a> {
    fn from(a: &'a Allocation) -> Self {
        Buffer {
            size_bytes: a.size_bytes,
            padding_bytes: a.padding_bytes,
            shape: a.shape.as_deref(),
            op_name: a.op_name.as_deref(),
            label: a.label.as_deref(),
            source: a.source.as_ref().map(ToString::to_string),
        }
    }
}

impl<'a> From<&'a BufferEntry> for Buffer<'a> {
    fn from(b: &'a BufferEntry) -> Self {
        Buffer {
            size_bytes: b.size_bytes,
            padding_bytes: Some(b.padding_bytes),
            shape: Some(&b.shape),
            op_name: Some(&b.label),
            label: Some(&b.instruction),
            source: b.source.as_ref().map(|s| format!("{}:{}", s.file, s.line)),
        }
    }
}

impl<'a> Failure<'a> {
    /// A failure of which there is nothing but its text.
    pub fn of_text(text: &'a OomReport) -> Self {
        Failure {
            text,
            scenario: text.scenario,
            buffers: text.allocations.iter().map(Buffer::from).collect(),
            explained: false,
        }
    }

    /// A failure of a program that is there: it tells what the text leaves open.
    pub fn of_program(text: &'a OomReport, space: &'a SpaceReport, explained: bool) -> Self {
        let mut out = Failure {
            explained,
            ..Failure::of_text(text)
        };
        if out.buffers.is_empty() {
            let largest = space.buffers.iter().take(MOST_BUFFERS);
            out.buffers = largest.map(Buffer::from).collect();
        }
        if out.scenario == Some(Scenario::Undetermined) {
            let largest = space.buffers.first().map_or(0, |b| b.size_bytes);
            let limit = text.limit_bytes.unwrap_or(space.allocated_bytes);
            out.scenario = Some(Scenario::of_largest(largest, limit));
        }
        out
    }

    /// The largest buffer; the first of equals.
    pub fn largest(&self) -> Option<&Buffer<'a>> {
        let top = self.buffers.iter().map(|b| b.size_bytes).max()?;
        self.buffers.iter().find(|b| b.size_bytes == top)
    }

    /// How much the program is over its limit.
    pub fn over(&self) -> Option<u64> {
        let r = self.text;
        r.over_bytes
            .or_else(|| r.used_bytes?.checked_sub(r.limit_bytes?))
    }

    /// ` About 2.96 GiB must go.`
    pub fn must_go(&self) -> String {
        self.over().map_or_else(String::new, |o| {
            format!(" About {} must go.", units::bytes(o))
        })
    }
}

impl Buffer<'_> {
    /// Names that it has.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.op_name, self.label].into_iter().flatten()
    }

    pub fn is_f32(&self) -> bool {
        self.shape.is_some_and(|s| s.starts_with("f32["))
    }

    /// What it is, for people: bytes, shape, name, source.
    pub fn describe(&self) -> String {
        let mut out = units::bytes(self.size_bytes);
        if let Some(shape) = self.shape {
            out.push_str(&format!(" {shape}"));
        }
        if let Some(name) = self.names().next() {
            out.push_str(&format!(" of {}", shorten(name, 90)));
        }
        if let Some(source) = &self.source {
            out.push_str(&format!(" ({source})"));
        }
        out
    }
}

//! In: the list of largest allocations, TPU's or GPU's. Out: one [`Allocation`] a block.
//!
//! ```text
//! block = [ number "." | "Buffer" number ":" ] "Size:" size { field } [ "=====..." ]
//! field = "Operator:" { key "=" value }
//!       | "Shape:" shape | "Entry Parameter Subshape:" shape
//!       | "Unpadded size:" size
//!       | "Extra memory due to padding:" size "(" number "x expansion)"
//!       | ( "XLA label:" | "XLA Label:" ) text
//!       | "Allocation type:" text | "Tag:" text
//! ```
//! Numbers can be lost, blocks can be cut anywhere.

use super::cursor::{find, named, Cursor, FAR};
use super::report::{Allocation, PaddingFrom, SourceLine};
use super::section::Squeezed;
use super::shape_text::ShapeText;
use super::size::prints_as;

/// Field names, without blanks.
const FIELDS: [&str; 8] = [
    "Operator:",
    "EntryParameterSubshape:",
    "Shape:",
    "Unpaddedsize:",
    "Extramemoryduetopadding:",
    "XLAlabel:",
    "XLALabel:",
    "Allocationtype:",
];
/// Starts of a list's lines.
pub(crate) const LINES: &[&str] = &[
    "Size:",
    "Operator:",
    "Shape:",
    "Unpadded size:",
    "Extra memory due",
    "XLA label:",
    "XLA Label:",
    "Allocation type:",
    "======",
    "Entry Parameter",
    "Buffer ",
];
/// Most blocks taken from one list; compilers print a few dozen at most.
const MAX_BLOCKS: usize = 1000;
const MAX_TEXT: usize = 4000;

/// All blocks in a range.
pub(crate) fn parse(sq: &Squeezed, from: usize, end: usize) -> Vec<Allocation> {
    let mut starts = Vec::new();
    let mut c = Cursor::within(&sq.text, from, end);
    while c.skip_past("Size:", FAR) && starts.len() < MAX_BLOCKS {
        let at = c.pos();
        let sized = c.size().is_some() && next_is_field(&c);
        if sized {
            starts.push(at);
        }
        c.seek(at);
    }
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(&start, end)| block(sq, start, end))
        .collect()
}

/// A size of an allocation is followed by a field, by the end of its block or of the text.
fn next_is_field(c: &Cursor<'_>) -> bool {
    let rest = c.rest();
    rest.is_empty()
        || rest.starts_with(b"===")
        || rest.starts_with(b"Tag:")
        || FIELDS.iter().any(|f| rest.starts_with(f.as_bytes()))
}

fn block(sq: &Squeezed, start: usize, end: usize) -> Option<Allocation> {
    let whole = sq.text.get(start..end)?;
    let closed = find(whole, "=====");
    let end = closed.map_or(end, |n| start + n);
    let mut c = Cursor::within(&sq.text, start, end);
    let mut a = Allocation {
        size_bytes: c.size()?,
        ..Allocation::default()
    };
    let marks = field_marks(&c, start, end);
    let nexts = marks.iter().skip(1).map(|m| Some(m.0)).chain([None]);
    for (&(_, value, field), next) in marks.iter().zip(nexts) {
        // The last field of a block that was cut off ends with its line.
        let cut = || {
            if closed.is_some() {
                end
            } else {
                sq.line_end(value).min(end)
            }
        };
        let stop = next.unwrap_or_else(cut).min(value + MAX_TEXT);
        read_field(sq, field, value, stop, &mut a);
    }
    measure(&mut a, prints_as);
    Some(a)
}

/// Fields of a block in order: where it starts, where its value starts, which.
fn field_marks(c: &Cursor<'_>, start: usize, end: usize) -> Vec<(usize, usize, &'static str)> {
    let mut marks = Vec::new();
    for field in FIELDS {
        if let Some(at) = c.find(field, FAR) {
            let inside_other = field == "Shape:" && at == start;
            if at < end && !inside_other {
                marks.push((at, at + field.len(), field));
            }
        }
    }
    marks.sort_unstable_by_key(|m| m.0);
    marks
}

fn read_field(sq: &Squeezed, field: &str, from: usize, stop: usize, a: &mut Allocation) {
    let mut c = Cursor::within(&sq.text, from, stop);
    match field {
        "Operator:" => operator(sq, from, stop, a),
        "Shape:" | "EntryParameterSubshape:" => {
            a.shape = shape(&mut c);
            if field != "Shape:" {
                a.allocation_type = Some("parameter".to_string());
            }
        }
        "Unpaddedsize:" => a.unpadded_bytes = c.size(),
        "Extramemoryduetopadding:" => {
            a.padding_bytes = c.size();
            a.padding_from = a.padding_bytes.map(|_| PaddingFrom::Text);
        }
        "Allocationtype:" => a.allocation_type = text(sq, from, stop),
        _ => {
            a.label = text(sq, from, stop);
            if a.op_name.is_none() {
                operator(sq, from, stop, a);
            }
        }
    }
}

fn text(sq: &Squeezed, from: usize, stop: usize) -> Option<String> {
    let text = sq.readable(from, stop);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// The printed shape, if it is one; else what stands there, unread.
fn shape(c: &mut Cursor<'_>) -> Option<String> {
    let start = c.pos();
    if ShapeText::read(c).is_none() {
        c.seek(start + c.rest().len().min(300));
    }
    named(c.since(start))
}

/// `op_name="..." source_file="..." source_line=N stack_frame_id=N`.
pub(crate) fn operator(sq: &Squeezed, from: usize, stop: usize, a: &mut Allocation) {
    let c = Cursor::within(&sq.text, from, stop);
    a.op_name = quoted(sq, &c, "op_name=\"");
    let number = |key: &str| {
        let mut c = c.clone();
        c.skip_past(key, FAR).then(|| c.int()).flatten()
    };
    if let Some(file) = quoted(sq, &c, "source_file=\"") {
        a.source = Some(SourceLine {
            file,
            line: number("source_line="),
        });
    }
    a.stack_frame_id = number("stack_frame_id=");
}

/// The value of `key="..."`; cut at the range's end when the closing quote is lost.
fn quoted(sq: &Squeezed, c: &Cursor<'_>, key: &str) -> Option<String> {
    let mut c = c.clone();
    c.reach(key, FAR)?;
    let start = c.pos();
    c.take_while(|b| b != b'"');
    Some(sq.readable(start, c.pos())).filter(|value| !value.is_empty())
}

/// Padding from shape and layout, where what they account for agrees with the size that the text
/// says.
pub(crate) fn measure(a: &mut Allocation, agrees: impl Fn(u64, u64) -> bool) {
    let shape = a.shape.as_deref().and_then(ShapeText::parse);
    let computed = shape.and_then(|s| Some((s.padded_bytes()?, s.unpadded_bytes()?)));
    let Some((padded, unpadded)) = computed.filter(|c| agrees(c.0, a.size_bytes)) else {
        return;
    };
    a.exact_bytes = Some(padded);
    a.unpadded_bytes = a.unpadded_bytes.or(Some(unpadded));
    if a.padding_bytes.is_none() {
        a.padding_bytes = padded.checked_sub(unpadded);
        a.padding_from = a.padding_bytes.map(|_| PaddingFrom::Shape);
    }
}

//! In: warnings that come before a failure, or in a healthy run (G17). Out: one [`Warning`] each.
//!
//! ```text
//! "Can't reduce memory use below" amount "by rematerialization; only reduced to" amount
//!     [ ", down from" amount "originally" ]                     amount = size [ "(" int "bytes)" ]
//! "The byte size of input/output arguments (" int ") exceeds the base limit (" int ")"
//! "[SPMD] Involuntary full rematerialization. The compiler ..." up to a line's end
//! "Some donated buffers were not usable:" shape { "," shape } "."
//!     shape = "ShapedArray(" numpy type "[" dims "]" ... ")" | HLO shape
//! ```

use super::cursor::{lossy, Cursor};
use super::found::Found;
use super::report::Warning;
use super::section::Squeezed;
use super::shape_text::ShapeText;
use super::size::human;

fn warning(sq: &Squeezed, at: usize, kind: &'static str, message: String) -> (u64, Warning) {
    let (line, count) = sq.line_at(at);
    (
        line,
        Warning {
            kind,
            message,
            bytes: None,
            limit_bytes: None,
            count,
        },
    )
}

/// A size, and the exact figure in parentheses when it follows.
fn amount(c: &mut Cursor<'_>) -> Option<u64> {
    let rounded = c.size_or_int()?;
    let mut inner = c.clone();
    if inner.lit("(") {
        if let Some(exact) = inner.int().filter(|_| inner.lit("bytes)")) {
            *c = inner;
            return Some(exact);
        }
    }
    Some(rounded)
}

/// Rematerialisation did not get low enough.
pub(crate) fn parse_rematerialization(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("reducememoryusebelow").then_some(())?;
    let limit = amount(&mut c)?;
    c.skip_past("reducedto", 60).then_some(())?;
    let reached = amount(&mut c)?;
    let message = format!(
        "rematerialization wanted {}, got down to {}",
        human(limit),
        human(reached)
    );
    let (line, mut w) = warning(sq, at, "rematerialization", message);
    w.bytes = Some(reached);
    w.limit_bytes = Some(limit);
    Some(Found::Warning(line, w))
}

/// Parameters and outputs alone do not fit.
pub(crate) fn parse_arguments(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("input/outputarguments(").then_some(())?;
    let bytes = c.int()?;
    c.skip_past("exceedsthebaselimit(", 4).then_some(())?;
    let limit = c.int()?;
    let message = format!(
        "inputs and outputs alone take {}, the limit is {}",
        human(bytes),
        human(limit)
    );
    let (line, mut w) = warning(sq, at, "arguments_exceed_limit", message);
    w.bytes = Some(bytes);
    w.limit_bytes = Some(limit);
    Some(Found::Warning(line, w))
}

/// A tensor was replicated to change its sharding.
pub(crate) fn parse_spmd(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let text = sq.readable(at, sq.line_end(at).min(end));
    let message: String = text.trim().chars().take(300).collect();
    let (line, w) = warning(sq, at, "spmd_rematerialization", message);
    Some(Found::Warning(line, w))
}

/// Donated buffers that found no output to become.
pub(crate) fn parse_donation(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("donatedbufferswerenotusable:").then_some(())?;
    let (mut total, mut count) = (Some(0u64), 0u64);
    while let Some(bytes) = donated(&mut c) {
        total = total.zip(bytes).and_then(|(t, b)| t.checked_add(b));
        count += 1;
        if !c.lit(",") {
            break;
        }
    }
    if count == 0 {
        return None;
    }
    let said = total.map_or_else(|| "of unknown size".to_string(), human);
    let plural = if count == 1 { "buffer" } else { "buffers" };
    let message = format!("{count} donated {plural} not usable, {said}");
    let (line, mut w) = warning(sq, at, "donation", message);
    w.bytes = total;
    Some(Found::Warning(line, w))
}

/// One entry of the list; its bytes when the type is known. `None` when this is no entry.
fn donated(c: &mut Cursor<'_>) -> Option<Option<u64>> {
    if !c.lit("ShapedArray(") {
        let (shape, n) = ShapeText::parse_prefix(c.rest())?;
        c.seek(c.pos() + n);
        return Some(shape.padded_bytes());
    }
    let name = lossy(c.take_while(|b| b.is_ascii_alphanumeric() || b == b'_'));
    let dims = c.take_while(|b| b.is_ascii_digit() || b"[],".contains(&b));
    let shape = hlo_type(&name).map(|t| format!("{t}{}", lossy(dims)));
    let bytes = shape
        .and_then(|s| ShapeText::parse(&s))
        .and_then(|s| s.unpadded_bytes());
    c.take_while(|b| b != b')');
    c.lit(")").then_some(bytes)
}

/// NumPy's name of a type in HLO's words.
fn hlo_type(name: &str) -> Option<String> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letter = match name.strip_suffix(digits)? {
        "bool" => return Some("pred".to_string()),
        "bfloat" => "bf",
        "float" => "f",
        "int" => "s",
        "uint" => "u",
        "complex" => "c",
        _ => return name.strip_prefix("float8_").map(|rest| format!("f8{rest}")),
    };
    Some(format!("{letter}{digits}"))
}

//! In: warnings that come before a failure, or in a healthy run. Out: one each.
//!
//! ```text
//! remat    = "Can't reduce memory use below" amount "by rematerialization; only reduced to" amount
//!            [ ", down from" amount "originally" ]                 amount = size [ "(" int "bytes)" ]
//! inputs   = "The byte size of input/output arguments (" int ") exceeds the base limit (" int ")"
//! spmd     = "[SPMD] Involuntary full rematerialization. The compiler ..." up to a line's end
//! donation = "Some donated buffers were not usable:" shape { "," shape } "."
//!            shape = "ShapedArray(" numpy type "[" dims "]" ... ")" | HLO shape
//! ```

use super::cursor::{lossy, Cursor};
use super::found::{Found, Message};
use super::report::WarningKind;
use super::shape_text::ShapeText;
use crate::units;

/// Rematerialisation did not get low enough.
pub(crate) fn rematerialization(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let limit = c.exact()?;
    c.reach("reducedto", 60)?;
    let reached = c.exact()?;
    let message = format!(
        "rematerialization wanted {}, got down to {}",
        units::bytes(limit),
        units::bytes(reached)
    );
    let kind = WarningKind::Rematerialization;
    Some(m.warning(kind, message, Some(reached), Some(limit)))
}

/// Parameters and outputs alone do not fit.
pub(crate) fn arguments(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let bytes = c.int()?;
    c.reach("exceedsthebaselimit(", 4)?;
    let limit = c.int()?;
    let message = format!(
        "inputs and outputs alone take {}, the limit is {}",
        units::bytes(bytes),
        units::bytes(limit)
    );
    let kind = WarningKind::ArgumentsExceedLimit;
    Some(m.warning(kind, message, Some(bytes), Some(limit)))
}

/// A tensor was replicated to change its sharding.
pub(crate) fn spmd(m: &Message<'_>) -> Option<Found> {
    let message = m.line().chars().take(300).collect();
    Some(m.warning(WarningKind::SpmdRematerialization, message, None, None))
}

/// Donated buffers that found no output to become.
pub(crate) fn donation(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let mut each = vec![donated(&mut c)?];
    while c.lit(",") {
        let Some(bytes) = donated(&mut c) else { break };
        each.push(bytes);
    }
    let total = each
        .iter()
        .try_fold(0u64, |sum, bytes| sum.checked_add((*bytes)?));
    let said = total.map_or_else(|| "of unknown size".to_string(), units::bytes);
    let count = each.len();
    let plural = if count == 1 { "buffer" } else { "buffers" };
    let message = format!("{count} donated {plural} not usable, {said}");
    Some(m.warning(WarningKind::Donation, message, total, None))
}

/// One entry of the list; its bytes when the type is known. `None` when this is no entry.
fn donated(c: &mut Cursor<'_>) -> Option<Option<u64>> {
    if !c.lit("ShapedArray(") {
        return Some(ShapeText::read(c)?.padded_bytes());
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

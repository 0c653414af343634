//! The protobuf wire format over borrowed bytes: a field iterator, nothing more. No allocation,
//! no copy; a length-delimited field is stepped over unless somebody looks inside.

use std::fmt::Write as _;

/// One field's value as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 2: text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 5.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// The bytes of a length-delimited field; `None` for another wire type, which a reader treats
    /// as an unknown field.
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(b) => Some(b),
            _ => None,
        }
    }
}

/// Where and why a message could not be read. The path grows outwards as callers add to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    cause: &'static str,
    /// Address of the offending byte; turned into an offset by whoever knows the file's start.
    address: usize,
    path: Vec<(&'static str, Option<usize>)>,
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "damaged in {}: {}", self.field(), self.cause())
    }
}

impl std::error::Error for WireError {}

impl WireError {
    pub(crate) fn new(cause: &'static str, at: &[u8]) -> Self {
        WireError(Box::new(Inner {
            cause,
            address: at.as_ptr() as usize,
            path: Vec::new(),
        }))
    }

    /// The same error, inside field `name` (its `index`-th element where it is repeated).
    pub(crate) fn within(mut self, name: &'static str, index: Option<usize>) -> Self {
        self.0.path.push((name, index));
        self
    }

    /// What is wrong.
    pub fn cause(&self) -> &'static str {
        self.0.cause
    }

    /// Byte offset within `file`, the buffer that the message was read from.
    pub fn offset_in(&self, file: &[u8]) -> u64 {
        let start = file.as_ptr() as usize;
        self.0.address.saturating_sub(start).min(file.len()) as u64
    }

    /// The field's path, outermost first: `hlo_module.computations[3].instructions[0]`.
    pub fn field(&self) -> String {
        let mut out = String::new();
        for (name, index) in self.0.path.iter().rev() {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(name);
            if let Some(i) = index {
                let _ = write!(out, "[{i}]");
            }
        }
        if out.is_empty() {
            out.push_str("the outermost message");
        }
        out
    }
}

/// Result of wire-level reading.
pub type WireResult<T> = Result<T, WireError>;

/// Iterates over the fields of a message. After an error it ends.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
    lenient: bool,
    truncated: bool,
}

/// The fields of `message`.
#[inline]
pub fn fields(message: &[u8]) -> Fields<'_> {
    Fields {
        rest: message,
        lenient: false,
        truncated: false,
    }
}

/// The fields of a message that may have been cut off: a last length-delimited field that reaches
/// past the end is handed out with the bytes that are there, and [`Fields::truncated`] tells.
#[inline]
pub fn fields_of_truncated(message: &[u8]) -> Fields<'_> {
    Fields {
        rest: message,
        lenient: true,
        truncated: false,
    }
}

impl<'a> Fields<'a> {
    /// Whether the last field handed out was cut short.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64, &'static str> {
        match *self.rest {
            [a, ..] if a < 0x80 => {
                self.rest = self.rest.get(1..).unwrap_or_default();
                Ok(u64::from(a))
            }
            [a, b, ..] if b < 0x80 => {
                self.rest = self.rest.get(2..).unwrap_or_default();
                Ok(u64::from(a & 0x7f) | u64::from(b) << 7)
            }
            _ => self.varint_long(),
        }
    }

    #[inline(never)]
    fn varint_long(&mut self) -> Result<u64, &'static str> {
        let mut value = 0u64;
        for (i, &b) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(b & 0x7f) << (7 * i);
            if b < 0x80 {
                if i == 9 && b > 1 {
                    break;
                }
                self.rest = self.rest.get(i + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        if self.rest.len() < 10 {
            Err("the file ends within a number (truncated?)")
        } else {
            Err("a number longer than ten bytes")
        }
    }

    #[inline(always)]
    fn take(&mut self, n: u64) -> Result<&'a [u8], &'static str> {
        match usize::try_from(n)
            .ok()
            .and_then(|n| self.rest.split_at_checked(n))
        {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err("a field reaches past the end (truncated?)"),
        }
    }

    #[inline(always)]
    fn take_bytes(&mut self, n: u64) -> Result<&'a [u8], &'static str> {
        let all = self.rest;
        self.take(n).or_else(|e| {
            if !self.lenient {
                return Err(e);
            }
            self.truncated = true;
            self.rest = &[];
            Ok(all)
        })
    }

    #[inline(always)]
    fn field(&mut self) -> Result<(u32, Value<'a>), &'static str> {
        let key = self.varint()?;
        let number = key >> 3;
        if number == 0 || number > 0x1fff_ffff {
            return Err("an impossible field number");
        }
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            2 => {
                let n = self.varint()?;
                Value::Bytes(self.take_bytes(n)?)
            }
            1 => Value::Fixed64(
                self.take(8)?
                    .try_into()
                    .map(u64::from_le_bytes)
                    .unwrap_or_default(),
            ),
            5 => Value::Fixed32(
                self.take(4)?
                    .try_into()
                    .map(u32::from_le_bytes)
                    .unwrap_or_default(),
            ),
            _ => return Err("an impossible wire type"),
        };
        Ok((number as u32, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = WireResult<(u32, Value<'a>)>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest;
        Some(self.field().map_err(|cause| {
            self.rest = &[];
            WireError::new(cause, start)
        }))
    }
}

/// Calls `each` for every number of a repeated integer field, packed or not.
pub fn numbers(value: Value<'_>, mut each: impl FnMut(u64)) -> WireResult<()> {
    match value {
        Value::Varint(v) => each(v),
        Value::Bytes(packed) => {
            let mut f = fields(packed);
            while !f.rest.is_empty() {
                let start = f.rest;
                each(f.varint().map_err(|cause| WireError::new(cause, start))?);
            }
        }
        Value::Fixed64(v) => each(v),
        Value::Fixed32(v) => each(u64::from(v)),
    }
    Ok(())
}

/// The first length-delimited field of this number; `None` if there is none before any damage.
pub(crate) fn bytes_of(message: &[u8], number: u32) -> Option<&[u8]> {
    fields(message)
        .filter_map(Result::ok)
        .find_map(|(n, v)| v.bytes().filter(|_| n == number))
}

/// Text that need not be UTF-8: the valid text up to the first bad byte.
#[inline]
pub fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(s) => s,
        Err(_) => bytes
            .utf8_chunks()
            .next()
            .map(|c| c.valid())
            .unwrap_or_default(),
    }
}

/// A wire error as the library's error about `path`, with the offset within `file`.
pub(crate) fn damaged(path: &std::path::Path, file: &[u8], e: &WireError) -> crate::error::Error {
    crate::error::Error::Decode {
        path: path.to_path_buf(),
        field: e.field(),
        offset: e.offset_in(file),
        cause: e.cause().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_wire_type() {
        let bytes = [
            0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0,
        ];
        let got: Vec<_> = fields(&bytes).map(|f| f.unwrap()).collect();
        assert_eq!(
            got,
            [
                (1, Value::Varint(150)),
                (2, Value::Bytes(b"hi")),
                (3, Value::Fixed32(1)),
                (4, Value::Fixed64(2))
            ]
        );
    }

    #[test]
    fn errors_say_where() {
        let bytes = [0x08, 0x01, 0x12, 9, b'h'];
        let err = fields(&bytes).find_map(|f| f.err()).unwrap();
        assert_eq!(err.offset_in(&bytes), 2);
        assert!(err.cause().contains("past the end"));
        let err = err.within("b", Some(2)).within("a", None);
        assert_eq!(err.field(), "a.b[2]");
        assert!(err.to_string().starts_with("damaged in a.b[2]: "), "{err}");
    }

    #[test]
    fn an_overlong_number_is_refused() {
        let bytes = [
            0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02,
        ];
        assert!(fields(&bytes).any(|f| f.is_err()));
        let ok = [
            0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(
            fields(&ok).next().unwrap().unwrap().1,
            Value::Varint(u64::MAX)
        );
    }

    #[test]
    fn text_survives_bad_bytes() {
        assert_eq!(text(b"ab\xffcd"), "ab");
        assert_eq!(text("héé".as_bytes()), "héé");
    }
}

//! A message as a list of fields that can be changed; what nobody touches goes back as it came.

use crate::compiler::wire_out::{varint, Message};
use crate::hlo::decode::wire::{fields, numbers, text, Value, WireResult};

/// A field's value, owned.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Number(u64),
    Bytes(Vec<u8>),
    Fixed64(u64),
    Fixed32(u32),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Owned::Number(n) => Value::Varint(*n),
            Owned::Bytes(b) => Value::Bytes(b),
            Owned::Fixed64(n) => Value::Fixed64(*n),
            Owned::Fixed32(n) => Value::Fixed32(*n),
        }
    }
}

/// A message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record(Vec<(u32, Owned)>);

impl Record {
    /// Reads a message, one level deep.
    pub(crate) fn read(bytes: &[u8]) -> WireResult<Record> {
        let mut out = Vec::new();
        for f in fields(bytes) {
            let (number, value) = f?;
            let owned = match value {
                Value::Varint(n) => Owned::Number(n),
                Value::Bytes(b) => Owned::Bytes(b.to_vec()),
                Value::Fixed64(n) => Owned::Fixed64(n),
                Value::Fixed32(n) => Owned::Fixed32(n),
            };
            out.push((number, owned));
        }
        Ok(Record(out))
    }

    /// The message's bytes.
    pub(crate) fn write(&self, out: &mut Message) {
        for (number, value) in &self.0 {
            out.field(*number, value.value());
        }
    }

    /// The same, alone.
    pub(crate) fn bytes_out(&self) -> Vec<u8> {
        let mut out = Message::default();
        self.write(&mut out);
        out.0
    }

    fn find(&self, field: u32) -> Option<&Owned> {
        // The last counts, by the rules of the wire.
        let mut of_it = self.0.iter().rev().filter(|f| f.0 == field);
        of_it.next().map(|f| &f.1)
    }

    /// A field with a length; empty when it is not there.
    pub(crate) fn bytes(&self, field: u32) -> &[u8] {
        match self.find(field) {
            Some(Owned::Bytes(b)) => b,
            _ => &[],
        }
    }

    /// Whether the field is there.
    pub(crate) fn has(&self, field: u32) -> bool {
        self.find(field).is_some()
    }

    /// The same as text.
    pub(crate) fn text(&self, field: u32) -> &str {
        text(self.bytes(field))
    }

    /// A number; 0 when it is not there.
    pub(crate) fn number(&self, field: u32) -> u64 {
        match self.find(field) {
            Some(Owned::Number(n)) => *n,
            _ => 0,
        }
    }

    /// Every number of a repeated field.
    pub(crate) fn numbers(&self, field: u32) -> Vec<u64> {
        let mut out = Vec::new();
        for (_, v) in self.0.iter().filter(|f| f.0 == field) {
            // What cannot be read is left out here, and was refused when the program was decoded.
            let _ = numbers(v.value(), |n| out.push(n));
        }
        out
    }

    /// Every message of a repeated field.
    pub(crate) fn all(&self, field: u32) -> impl Iterator<Item = &[u8]> {
        self.0
            .iter()
            .filter(move |f| f.0 == field)
            .filter_map(|f| match &f.1 {
                Owned::Bytes(b) => Some(&b[..]),
                _ => None,
            })
    }

    /// Takes the field out, however often it is there.
    pub(crate) fn remove(&mut self, field: u32) {
        self.0.retain(|f| f.0 != field);
    }

    /// Sets a field with a length, in its old place or at the end.
    pub(crate) fn set_bytes(&mut self, field: u32, value: Vec<u8>) {
        self.set(field, Owned::Bytes(value));
    }

    /// Sets a number.
    pub(crate) fn set_number(&mut self, field: u32, value: u64) {
        self.set(field, Owned::Number(value));
    }

    /// Sets every number of a repeated field.
    pub(crate) fn set_numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Vec::new();
        values.into_iter().for_each(|v| varint(&mut packed, v));
        match packed.is_empty() {
            true => self.remove(field),
            false => self.set(field, Owned::Bytes(packed)),
        }
    }

    /// Sets every message of a repeated field.
    pub(crate) fn set_all(&mut self, field: u32, values: impl IntoIterator<Item = Vec<u8>>) {
        self.remove(field);
        let values = values.into_iter().map(|v| (field, Owned::Bytes(v)));
        self.0.extend(values);
    }

    fn set(&mut self, field: u32, value: Owned) {
        match self.0.iter().position(|f| f.0 == field) {
            Some(at) => {
                self.0[at].1 = value;
                let mut seen = false;
                self.0.retain(|f| {
                    let again = f.0 == field && seen;
                    seen |= f.0 == field;
                    !again
                });
            }
            None => self.0.push((field, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_touched_goes_back_as_it_came() {
        let bytes = [
            0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0,
        ];
        let mut record = Record::read(&bytes).unwrap();
        assert_eq!(record.bytes_out(), bytes);
        assert_eq!((record.number(1), record.text(2)), (150, "hi"));
        record.set_number(1, 1);
        record.set_bytes(9, b"x".to_vec());
        record.remove(3);
        let bytes = record.bytes_out();
        assert_eq!(bytes[..2], [0x08, 1]);
        assert!(bytes.ends_with(&[9 << 3 | 2, 1, b'x']));
        record.set_numbers(7, [1, 300]);
        assert_eq!(record.numbers(7), [1, 300]);
    }
}

//! Writing protobuf messages field by field.

use crate::hlo::decode::wire::Value;

/// A message being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    /// A field as it was read.
    pub(crate) fn field(&mut self, number: u32, value: Value<'_>) -> &mut Self {
        match value {
            Value::Varint(v) => self.number(number, v),
            Value::Bytes(b) => self.bytes(number, b),
            Value::Fixed64(v) => self.double(number, f64::from_bits(v)),
            Value::Fixed32(v) => {
                varint(&mut self.0, u64::from(number) << 3 | 5);
                self.0.extend(v.to_le_bytes());
                self
            }
        }
    }

    /// An integer, a bool or an enum.
    pub(crate) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        varint(&mut self.0, u64::from(field) << 3);
        varint(&mut self.0, value);
        self
    }

    /// A double.
    pub(crate) fn double(&mut self, field: u32, value: f64) -> &mut Self {
        varint(&mut self.0, u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Text, bytes, a message or packed numbers.
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        varint(&mut self.0, u64::from(field) << 3 | 2);
        varint(&mut self.0, value.len() as u64);
        self.0.extend(value);
        self
    }

    /// A message that `fill` writes.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) -> &mut Self {
        let mut inner = Message::default();
        fill(&mut inner);
        self.bytes(field, &inner.0)
    }

    /// Packed numbers; nothing when there are none.
    pub(crate) fn packed(
        &mut self,
        field: u32,
        values: impl IntoIterator<Item = u64>,
    ) -> &mut Self {
        let mut inner = Vec::new();
        values.into_iter().for_each(|v| varint(&mut inner, v));
        match inner.is_empty() {
            true => self,
            false => self.bytes(field, &inner),
        }
    }
}

/// Appends a number in seven-bit groups.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

//! What a file is, from its bytes. Extensions are never asked.

use crate::hlo::decode::wire::{fields_of_truncated, Value};

/// What a file's content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A profile of one host.
    XSpace,
    /// A program with or without buffer assignment.
    HloProto,
    /// A module alone.
    HloModule,
    /// A recorded run.
    HloSnapshot,
    /// A device memory profile (pprof).
    Pprof,
    /// Nothing at all.
    Empty,
    /// A Git LFS pointer in place of the file.
    LfsPointer,
    /// Binary data that went through a text conversion: bytes were replaced and are lost.
    CorruptedAsText,
    /// Some text: a log, a flag file, an HLO text dump.
    Text,
    /// A ZIP archive.
    Zip,
    /// None of these.
    Unknown,
}

impl FileKind {
    /// Whether such a file is searched for programs.
    pub fn may_hold_programs(self) -> bool {
        matches!(
            self,
            FileKind::XSpace | FileKind::HloProto | FileKind::HloModule | FileKind::HloSnapshot
        )
    }

    /// The contract's word for it, and a person's.
    pub fn describe(self) -> &'static str {
        match self {
            FileKind::XSpace => "XSpace (profile)",
            FileKind::HloProto => "HloProto",
            FileKind::HloModule => "HloModuleProto",
            FileKind::HloSnapshot => "HloSnapshot",
            FileKind::Pprof => "device memory profile (pprof)",
            FileKind::Empty => "empty file",
            FileKind::LfsPointer => "Git LFS pointer, not the file itself",
            FileKind::CorruptedAsText => "binary file damaged by a text conversion",
            FileKind::Text => "text",
            FileKind::Zip => "ZIP archive",
            FileKind::Unknown => "unknown binary data",
        }
    }
}

/// What `bytes` (a whole file, decompressed) are.
pub fn sniff(bytes: &[u8]) -> FileKind {
    if bytes.is_empty() {
        return FileKind::Empty;
    }
    if bytes.starts_with(b"version https://git-lfs.github.com/") {
        return FileKind::LfsPointer;
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return FileKind::Zip;
    }
    if let Some(kind) = protobuf_kind(bytes) {
        return kind;
    }
    let head = bytes.get(..bytes.len().min(64 << 10)).unwrap_or_default();
    let replaced = head.windows(3).filter(|w| *w == b"\xef\xbf\xbd").count();
    if replaced * 100 > head.len() {
        return FileKind::CorruptedAsText;
    }
    if is_text(head) {
        return FileKind::Text;
    }
    FileKind::Unknown
}

fn protobuf_kind(bytes: &[u8]) -> Option<FileKind> {
    if looks_like_module(bytes) {
        return Some(FileKind::HloModule);
    }
    let mut walk = fields_of_truncated(bytes);
    let first = loop {
        match walk.next()?.ok()? {
            (1, Value::Bytes(b)) => break b,
            // An XSpace may start with what it has besides planes.
            (2..=4, Value::Bytes(_)) => {}
            _ => return None,
        }
    };
    if looks_like_module(first) {
        return Some(FileKind::HloProto);
    }
    if looks_like_plane(first) {
        return Some(FileKind::XSpace);
    }
    match fields_of_truncated(first).next() {
        Some(Ok((1, Value::Bytes(inner)))) if looks_like_module(inner) => {
            Some(FileKind::HloSnapshot)
        }
        _ => looks_like_pprof(bytes).then_some(FileKind::Pprof),
    }
}

/// A name, then an entry name, then computations with names and instructions of their own.
fn looks_like_module(bytes: &[u8]) -> bool {
    let (mut name, mut computation) = (false, false);
    for field in fields_of_truncated(bytes).take(64) {
        match field {
            Ok((1 | 2, Value::Bytes(b))) => {
                if !is_name(b) {
                    return false;
                }
                name = true;
            }
            Ok((3, Value::Bytes(b))) => {
                computation = looks_like_computation(b);
                break;
            }
            Ok((1..=3, _)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    name && computation
}

fn looks_like_computation(bytes: &[u8]) -> bool {
    let mut walk = fields_of_truncated(bytes);
    matches!(walk.next(), Some(Ok((1, Value::Bytes(b)))) if is_name(b))
        && matches!(walk.next(), Some(Ok((2, Value::Bytes(_)))))
}

fn looks_like_plane(bytes: &[u8]) -> bool {
    let mut known = 0;
    for field in fields_of_truncated(bytes).take(16) {
        match field {
            Ok((1, Value::Varint(_))) => {}
            Ok((2, Value::Bytes(b))) if is_name(b) => known += 1,
            Ok((3..=6, Value::Bytes(_))) => known += 1,
            _ => return false,
        }
    }
    known > 0
}

/// Sample types (two small numbers each), then samples; a string table in field 6.
fn looks_like_pprof(bytes: &[u8]) -> bool {
    let mut sample_types = 0;
    let mut strings = 0;
    for field in fields_of_truncated(bytes).take(100_000) {
        match field {
            Ok((1, Value::Bytes(b))) => {
                let small = fields_of_truncated(b)
                    .all(|f| matches!(f, Ok((1 | 2, Value::Varint(v))) if v < 1 << 20));
                if !small {
                    return false;
                }
                sample_types += 1;
            }
            Ok((6, Value::Bytes(_))) => strings += 1,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    sample_types > 0 && strings > 0
}

/// Printable text of a length that names have.
fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.len() < 1 << 16 && is_text(bytes)
}

fn is_text(bytes: &[u8]) -> bool {
    let control = bytes
        .iter()
        .filter(|b| **b < 32 && !matches!(b, b'\t' | b'\n' | b'\r' | 27));
    let valid = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // A head cut within a character is still text.
        Err(e) => e.error_len().is_none(),
    };
    valid && control.count() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use xpeak_protos::{hlo, xplane};

    fn module() -> hlo::HloModuleProto {
        hlo::HloModuleProto {
            name: b"jit_f".to_vec(),
            entry_computation_name: b"main".to_vec(),
            computations: vec![hlo::HloComputationProto {
                name: b"main".to_vec(),
                instructions: vec![hlo::HloInstructionProto {
                    name: b"p".to_vec(),
                    opcode: b"parameter".to_vec(),
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn tells_messages_apart_by_content() {
        let m = module();
        assert_eq!(sniff(&m.encode_to_vec()), FileKind::HloModule);
        let p = hlo::HloProto {
            hlo_module: Some(m),
            ..Default::default()
        };
        assert_eq!(sniff(&p.encode_to_vec()), FileKind::HloProto);
        let s = hlo::HloSnapshot { hlo: Some(p) };
        assert_eq!(sniff(&s.encode_to_vec()), FileKind::HloSnapshot);
        let x = xplane::XSpace {
            planes: vec![xplane::XPlane {
                name: b"/host:CPU".to_vec(),
                ..Default::default()
            }],
            ..Default::default()
        };
        assert_eq!(sniff(&x.encode_to_vec()), FileKind::XSpace);
    }

    #[test]
    fn names_what_is_no_program() {
        assert_eq!(sniff(b""), FileKind::Empty);
        assert_eq!(
            sniff(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
            FileKind::LfsPointer
        );
        assert_eq!(
            sniff(b"Ran out of memory in memory space hbm.\n"),
            FileKind::Text
        );
        assert_eq!(sniff(&[0xff; 300]), FileKind::Unknown);
        let mangled =
            String::from_utf8_lossy(&[0x9d, 0x0a, 0xfe, 0x80, 0x90].repeat(200)).into_owned();
        assert_eq!(sniff(mangled.as_bytes()), FileKind::CorruptedAsText);
    }
}

//! A file's bytes: mapped where they stand, or decompressed in memory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

/// Most that a compressed file may unpack to: no serialized protobuf message is larger.
pub const MAX_DECOMPRESSED_BYTES: u64 = 2 << 30;

/// The content of a file.
#[derive(Debug)]
pub struct FileBytes {
    storage: Storage,
    /// Set when compressed data ended early: what is here is its beginning.
    pub cut_short: Option<String>,
    /// Whether the file was compressed.
    pub compressed: bool,
}

#[derive(Debug)]
enum Storage {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl std::ops::Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.storage {
            Storage::Mapped(m) => m,
            Storage::Owned(v) => v,
        }
    }
}

impl FileBytes {
    /// Bytes already in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        FileBytes {
            storage: Storage::Owned(bytes),
            cut_short: None,
            compressed: false,
        }
    }

    /// Tells the system that all of it will be read soon: one large read instead of a fault a page.
    pub fn read_ahead(&self) {
        #[cfg(target_os = "linux")]
        if let Storage::Mapped(m) = &self.storage {
            // A hint: where the system does not take it, pages come one by one.
            let _ = m.advise(memmap2::Advice::PopulateRead);
        }
    }

    /// Opens `path`: maps it, or unpacks it if it is gzip-compressed (told by content).
    ///
    /// # Errors
    /// The file can't be read, or unpacks to more than [`MAX_DECOMPRESSED_BYTES`].
    pub fn open(path: &Path) -> Result<FileBytes> {
        Self::open_within(path, MAX_DECOMPRESSED_BYTES)
    }

    /// Like [`FileBytes::open`], unpacking no more than `limit` bytes.
    pub(crate) fn open_within(path: &Path, limit: u64) -> Result<FileBytes> {
        // Asked before opening: to open a pipe is to wait for somebody who writes to it.
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
        if !metadata.is_file() {
            return Err(Error::io(path, std::io::Error::other("not a regular file")));
        }
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        if metadata.len() == 0 {
            return Ok(FileBytes::from_vec(Vec::new()));
        }
        // SAFETY: the map is read-only. A file that another process truncates meanwhile would
        // raise a signal on access, as with any tool that maps its input.
        #[allow(unsafe_code)]
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|e| Error::io(path, e))?;
        if map.starts_with(&[0x1f, 0x8b]) {
            return gunzip(path, &map, limit.min(MAX_DECOMPRESSED_BYTES));
        }
        Ok(FileBytes {
            storage: Storage::Mapped(map),
            cut_short: None,
            compressed: false,
        })
    }
}

/// Unpacks gzip data (all members). Damage keeps what came before it.
fn gunzip(path: &Path, data: &[u8], limit: u64) -> Result<FileBytes> {
    let mut out = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(data).take(limit + 1);
    let cut_short = match reader.read_to_end(&mut out) {
        Ok(_) => None,
        // The data may be whole: there is no room for it.
        Err(e) if e.kind() == std::io::ErrorKind::OutOfMemory => return Err(Error::io(path, e)),
        Err(e) => Some(e.to_string()),
    };
    if out.len() as u64 > limit {
        return Err(Error::Limit {
            what: format!("{}: decompressed bytes", path.display()),
            limit,
            got: out.len() as u64,
        });
    }
    if out.is_empty() {
        if let Some(e) = cut_short {
            return Err(Error::io(
                path,
                std::io::Error::other(format!("damaged gzip data: {e}")),
            ));
        }
    }
    Ok(FileBytes {
        storage: Storage::Owned(out),
        cut_short,
        compressed: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gz(data: &[u8]) -> Vec<u8> {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(data).unwrap();
        e.finish().unwrap()
    }

    #[test]
    fn unpacks_every_member_and_keeps_what_a_cut_leaves() {
        let mut two = gz(b"hello ");
        two.extend(gz(b"world"));
        let p = Path::new("x.gz");
        assert_eq!(&gunzip(p, &two, 100).unwrap()[..], b"hello world");
        let noise: Vec<u8> = (0..100_000u32)
            .flat_map(|i| i.wrapping_mul(2654435761).to_le_bytes())
            .collect();
        let whole = gz(&noise);
        let cut = gunzip(p, &whole[..whole.len() / 2], 1 << 20).unwrap();
        assert!(cut.cut_short.is_some() && !cut.is_empty());
    }

    #[test]
    fn a_bomb_is_refused() {
        assert!(matches!(
            gunzip(Path::new("b"), &gz(&[0; 5000]), 1000),
            Err(Error::Limit { .. })
        ));
    }
}

//! What was compiled before: a folder an answer, named by the hash of everything that it depends on.
//!
//! In: a key. Out: the compiler's answer. A folder is put in place whole or not at all; the oldest go
//! when there is too much.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::job::{read_json, Verdict};

/// Compiled answers on disk.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    limit_bytes: u64,
}

/// What is kept beside the assigned module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) verdict: Verdict,
    /// Name of the file in the dump.
    pub(crate) file_name: String,
    pub(crate) seconds: f64,
    pub(crate) device_kind: String,
    pub(crate) platform_version: String,
}

const ENTRY: &str = "entry.json";
const MODULE: &str = "assigned.hlo.pb.gz";
const DEFAULT_LIMIT: u64 = 1 << 30;

impl Cache {
    /// The user's cache folder: `XDG_CACHE_HOME/xpeak` or `~/.cache/xpeak`. `None` where neither
    /// variable is set.
    pub fn of_user() -> Option<Cache> {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let base = match variable("XDG_CACHE_HOME").map(PathBuf::from) {
            Some(folder) if folder.is_absolute() => folder,
            _ => PathBuf::from(variable("HOME")?).join(".cache"),
        };
        Some(Cache::at(base.join("xpeak").join("compiled")))
    }

    /// A cache in a folder, which is made when it is written to.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache {
            folder: folder.into(),
            limit_bytes: DEFAULT_LIMIT,
        }
    }

    /// The same with another bound on its size.
    pub fn with_limit(mut self, bytes: u64) -> Cache {
        self.limit_bytes = bytes;
        self
    }

    /// What was kept under a key. Damaged entries are none.
    pub(crate) fn get(&self, key: &str) -> Option<(Entry, Vec<u8>)> {
        let folder = self.folder.join(key);
        let entry: Entry = read_json(&folder.join(ENTRY))?;
        let packed = std::fs::File::open(folder.join(MODULE)).ok()?;
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(packed)
            .read_to_end(&mut bytes)
            .ok()?;
        // The oldest used goes first.
        if let Ok(f) = std::fs::File::options()
            .append(true)
            .open(folder.join(ENTRY))
        {
            let _ = f.set_modified(SystemTime::now());
        }
        Some((entry, bytes))
    }

    /// Keeps an answer. A cache that cannot be written is no cache; nothing else comes of it.
    pub(crate) fn put(&self, key: &str, entry: &Entry, module: &[u8]) {
        let _ = self.try_put(key, entry, module);
    }

    fn try_put(&self, key: &str, entry: &Entry, module: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let beside = self
            .folder
            .join(format!("{key}.{}.part", std::process::id()));
        std::fs::create_dir_all(&beside)?;
        let filled = self.fill(&beside, entry, module);
        let placed = filled.and_then(|()| std::fs::rename(&beside, self.folder.join(key)));
        if placed.is_err() {
            // Another process was faster, or the disk is full.
            let _ = std::fs::remove_dir_all(&beside);
        }
        self.shrink()
    }

    fn fill(&self, folder: &Path, entry: &Entry, module: &[u8]) -> std::io::Result<()> {
        let file = std::fs::File::create(folder.join(MODULE))?;
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, module)?;
        packed.finish()?.sync_all()?;
        std::fs::write(folder.join(ENTRY), serde_json::to_vec(entry)?)
    }

    /// Removes the entries used longest ago until the rest is within the bound, and what interrupted
    /// processes left.
    fn shrink(&self) -> std::io::Result<()> {
        let mut entries = Vec::new();
        for e in std::fs::read_dir(&self.folder)?.flatten() {
            let path = e.path();
            let age = |p: &Path| std::fs::metadata(p).and_then(|m| m.modified()).ok();
            if path.extension().is_some_and(|x| x == "part") {
                let old = age(&path).and_then(|t| t.elapsed().ok());
                if old.is_some_and(|t| t.as_secs() > 3600) {
                    let _ = std::fs::remove_dir_all(&path);
                }
                continue;
            }
            let size: u64 = [ENTRY, MODULE]
                .iter()
                .filter_map(|f| std::fs::metadata(path.join(f)).ok())
                .map(|m| m.len())
                .sum();
            entries.push((age(&path.join(ENTRY)), path, size));
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|e| e.2).sum();
        for (_, path, size) in entries {
            if total <= self.limit_bytes {
                break;
            }
            std::fs::remove_dir_all(&path)?;
            total -= size;
        }
        Ok(())
    }
}

/// The hash of parts, each by its length and bytes.
pub(crate) fn key(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        Entry {
            verdict: Verdict::Fits,
            file_name: name.to_owned(),
            seconds: 1.5,
            device_kind: "TPU v6 lite".to_owned(),
            platform_version: "cl/1".to_owned(),
        }
    }

    #[test]
    fn what_is_put_is_got_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("c")).with_limit(400);
        assert!(cache.get("a").is_none());
        cache.put("a", &entry("one"), b"module");
        let (got, bytes) = cache.get("a").unwrap();
        assert_eq!(
            (got.file_name.as_str(), &bytes[..]),
            ("one", &b"module"[..])
        );
        for name in ["b", "c", "d", "e"] {
            cache.put(name, &entry(name), name.as_bytes());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(cache.get("a").is_none());
        assert!(cache.get("e").is_some());
        // A damaged entry is none.
        std::fs::write(cache.folder.join("e").join(MODULE), "x").unwrap();
        assert!(cache.get("e").is_none());
    }

    #[test]
    fn keys_tell_parts_apart() {
        assert_ne!(key(&[b"ab", b"c"]), key(&[b"a", b"bc"]));
        assert_eq!(key(&[b"ab"]).len(), 64);
    }
}

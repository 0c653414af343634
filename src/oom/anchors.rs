//! In: bytes. Out: where one of a fixed set of words starts.
//!
//! The search looks at three bytes at a time and skips ahead by how far the nearest word could
//! start (Wu and Manber's method), so most of a log is stepped over without being read.

/// Bytes looked at together.
const GRAM: usize = 3;
/// Bits of their hash.
const BITS: u32 = 15;

/// A set of words to find. The longer the shortest of them, the faster the search.
#[derive(Debug)]
pub(crate) struct Anchors {
    /// How far to move when bytes of this hash end the window.
    shift: Box<[u8; 1 << BITS]>,
    /// Words whose window ends with bytes of this hash, as (hash, word), sorted.
    buckets: Vec<(u16, usize)>,
    words: Vec<&'static [u8]>,
    /// Width of the window: the shortest word.
    window: usize,
}

impl Anchors {
    /// Prepares a set. Words of less than three bytes are left out.
    pub fn new(words: impl IntoIterator<Item = &'static str>) -> Self {
        let words: Vec<&'static [u8]> = words
            .into_iter()
            .map(str::as_bytes)
            .filter(|w| w.len() >= GRAM)
            .collect();
        let window = words.iter().map(|w| w.len()).min().unwrap_or(GRAM).min(64);
        let farthest = window - GRAM;
        let mut shift = Box::new([farthest as u8 + 1; 1 << BITS]);
        let mut buckets = Vec::new();
        for (n, word) in words.iter().enumerate() {
            for (at, gram) in word.windows(GRAM).take(farthest + 1).enumerate() {
                let Some(gram) = gram.first_chunk() else {
                    continue;
                };
                let hash = hash(gram);
                if let Some(s) = shift.get_mut(usize::from(hash)) {
                    *s = (*s).min((farthest - at) as u8);
                }
                if at == farthest {
                    buckets.push((hash, n));
                }
            }
        }
        buckets.sort_unstable();
        Anchors {
            shift,
            buckets,
            words,
            window,
        }
    }

    /// First place at or after `from` where a word starts, and which; the longest of several.
    pub fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        // Place of the bytes that end the window.
        let mut at = from.checked_add(self.window - GRAM)?;
        while let Some(gram) = text.get(at..).and_then(|t| t.first_chunk::<GRAM>()) {
            let hash = hash(gram);
            // The mask keeps it inside, so no check is left in this loop.
            let skip = self.shift[usize::from(hash) & ((1 << BITS) - 1)];
            if skip > 0 {
                at += usize::from(skip);
                continue;
            }
            let start = at + GRAM - self.window;
            if let Some(word) = self.word_at(hash, text.get(start..)?) {
                return Some((start, word));
            }
            at += 1;
        }
        None
    }

    fn word_at(&self, hash: u16, text: &[u8]) -> Option<usize> {
        let first = self.buckets.partition_point(|b| b.0 < hash);
        let candidates = self
            .buckets
            .get(first..)?
            .iter()
            .take_while(|b| b.0 == hash);
        let matching = candidates.filter_map(|&(_, n)| {
            let word = self.words.get(n)?;
            text.starts_with(word)
                .then_some((word.len(), std::cmp::Reverse(n)))
        });
        matching.max().map(|(_, n)| n.0)
    }
}

fn hash(&[a, b, c]: &[u8; GRAM]) -> u16 {
    let bytes = u32::from_le_bytes([a, b, c, 0]);
    (bytes.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_plain_search_finds() {
        let words = ["abcabc", "bcabcabc", "abcabca", "zzzzzz"];
        let set = Anchors::new(words);
        let mut state = 1u32;
        for _ in 0..300 {
            let text: Vec<u8> = (0..60)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    [b'a', b'b', b'c', b'a', b'b', b'c', b'z'][(state >> 16) as usize % 7]
                })
                .chain(*b"abcabcabc")
                .collect();
            let starts = |i: usize| words.iter().any(|w| text[i..].starts_with(w.as_bytes()));
            let plain = (0..text.len()).find(|&i| starts(i));
            assert_eq!(set.find(&text, 0).map(|h| h.0), plain);
        }
    }

    #[test]
    fn takes_the_longest_and_stops_at_the_end() {
        let set = Anchors::new(["abcabc", "abcabca"]);
        assert_eq!(set.find(b"xxabcabcax", 0), Some((2, 1)));
        assert_eq!(set.find(b"xxabcabcax", 3), None);
        assert_eq!(set.find(b"abc", 0), None);
        assert_eq!(set.find(b"", usize::MAX), None);
    }
}

//! In: bytes. Out: where one of a fixed set of words starts.
//!
//! The search looks at pairs of bytes and skips ahead by how far the nearest word could start
//! (Wu and Manber's method), so most of a log is stepped over without being read.

/// A set of words to find. The longer the shortest of them, the faster the search.
#[derive(Debug)]
pub(super) struct Anchors {
    /// How far to move when this pair of bytes ends the window.
    shift: Vec<u8>,
    /// Words whose window ends with the pair, as (pair, word), sorted.
    buckets: Vec<(u16, usize)>,
    words: Vec<&'static [u8]>,
    /// Width of the window: the shortest word.
    window: usize,
}

impl Anchors {
    /// Prepares a set. Words of one byte are left out.
    pub fn new(words: impl IntoIterator<Item = &'static str>) -> Self {
        let words: Vec<&'static [u8]> = words
            .into_iter()
            .map(str::as_bytes)
            .filter(|w| w.len() >= 2)
            .collect();
        let window = words.iter().map(|w| w.len()).min().unwrap_or(2).min(64);
        let mut shift = vec![(window - 1) as u8; 1 << 16];
        let mut buckets = Vec::new();
        for (n, word) in words.iter().enumerate() {
            for (at, two) in word.windows(2).take(window - 1).enumerate() {
                let pair = pair(two);
                let distance = (window - 2 - at) as u8;
                if let Some(s) = shift.get_mut(usize::from(pair)) {
                    *s = (*s).min(distance);
                }
                if distance == 0 {
                    buckets.push((pair, n));
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
        let mut last = from.checked_add(self.window - 1)?;
        while let (Some(&a), Some(&b)) = (text.get(last.wrapping_sub(1)), text.get(last)) {
            let pair = u16::from_be_bytes([a, b]);
            let skip = self.shift.get(usize::from(pair)).copied().unwrap_or(0);
            if skip > 0 {
                last += usize::from(skip);
                continue;
            }
            let start = last + 1 - self.window;
            if let Some(word) = self.word_at(pair, text.get(start..)?) {
                return Some((start, word));
            }
            last += 1;
        }
        None
    }

    fn word_at(&self, pair: u16, text: &[u8]) -> Option<usize> {
        let first = self.buckets.partition_point(|b| b.0 < pair);
        let candidates = self
            .buckets
            .get(first..)?
            .iter()
            .take_while(|b| b.0 == pair);
        let matching = candidates.filter_map(|&(_, n)| {
            let word = self.words.get(n)?;
            text.starts_with(word)
                .then_some((word.len(), std::cmp::Reverse(n)))
        });
        matching.max().map(|(_, n)| n.0)
    }
}

fn pair(two: &[u8]) -> u16 {
    match two {
        [a, b] => u16::from_be_bytes([*a, *b]),
        _ => 0,
    }
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

//! The program while edits are applied to it: blocks and arena items with new sizes and ranges.
//!
//! In: a [`Base`]. Out: [`Scenario`], which [`super::predict`] measures.

use super::base::Base;
use super::confidence::Confidence;
use crate::memory::pack::PackItem;

/// An edited program.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Blocks, as in the base; 0 bytes = gone.
    pub(crate) blocks: Vec<u64>,
    /// Arenas, as in the base.
    pub(crate) arenas: Vec<EditedArena>,
    /// What the compiler may do differently, without repeats, in order of appearance.
    pub caveats: Vec<String>,
    /// How sure the result is.
    pub confidence: Confidence,
}

/// An arena's items: first the base's slots in order, then what edits added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedArena {
    /// What is to be packed.
    pub items: Vec<PackItem>,
    /// What each item after the slots is, for the list of largest buffers.
    pub added: Vec<String>,
}

impl Scenario {
    /// The program as compiled.
    pub fn new(base: &Base<'_, '_>) -> Self {
        Scenario {
            blocks: base.blocks.iter().map(|b| b.size_bytes).collect(),
            arenas: base
                .arenas
                .iter()
                .map(|a| EditedArena {
                    items: a.items(),
                    added: Vec::new(),
                })
                .collect(),
            caveats: Vec::new(),
            confidence: Confidence::Exact,
        }
    }

    /// Adds a temporary to the main arena, alive over `[start, end)`.
    pub(crate) fn add(&mut self, label: String, size_bytes: u64, start: u32, end: u32) {
        if let Some(arena) = self.arenas.first_mut() {
            if size_bytes > 0 && end > start {
                arena.items.push(PackItem {
                    size_bytes,
                    ranges: vec![(start, end)],
                });
                arena.added.push(label);
            }
        }
    }

    /// Notes a caveat once, and lowers the confidence.
    pub(crate) fn caveat(&mut self, confidence: Confidence, text: &str) {
        self.confidence = self.confidence.max(confidence);
        if !text.is_empty() && !self.caveats.iter().any(|c| c == text) {
            self.caveats.push(text.to_owned());
        }
    }
}

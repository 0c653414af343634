//! What charts are drawn from: plain figures, already thinned to what a picture can show. Filled
//! from an analysis by [`chart_data`](crate::chart::chart_data), or by hand.

use crate::hlo::AllocationKind;

/// Most columns that a timeline keeps: more than a chart has pixels for.
pub const MAX_COLUMNS: usize = 1400;

/// Everything that the charts of one memory space show. All sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ChartData {
    /// What the pictures are headed with.
    pub title: ChartTitle,
    /// What must fit, where known.
    pub capacity_bytes: Option<u64>,
    /// Memory in use at the peak.
    pub peak_bytes: u64,
    /// The part of `peak_bytes` that is data and not tile padding.
    pub peak_unpadded_bytes: u64,
    /// Sum of all allocations: the peak and what is lost between buffers.
    pub allocated_bytes: u64,
    /// The peak by kind; sums to `peak_bytes`. Drawn in this order.
    pub breakdown: Vec<(AllocationKind, u64)>,
    /// Memory over program order; `None` without a heap simulator trace.
    pub timeline: Option<Timeline>,
    /// Buffers at the peak, repeats folded, largest first.
    pub groups: Vec<ChartGroup>,
    /// Addresses over program order; `None` without a heap simulator trace.
    pub map: Option<MemoryMap>,
    /// Buffers at the peak by path of named scopes.
    pub scopes: Scope,
    /// How tensors are spread over devices; empty where this was not analysed.
    pub sharding: Vec<ShardingRow>,
    /// Effect of a change; `None` where there is none to show.
    pub what_if: Option<WhatIfData>,
}

/// Words at the head of a picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartTitle {
    /// Module name.
    pub module: String,
    /// Device name; may be empty.
    pub device: String,
    /// Memory space, `HBM`.
    pub space: String,
    /// Instruction at which the peak is; may be empty.
    pub peak_instruction: String,
}

/// Memory of one space over program order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeline {
    /// Number of program points.
    pub point_count: u32,
    /// Program point of the peak.
    pub peak_point: u32,
    /// Memory at the peak.
    pub peak_bytes: u64,
    /// Stretches of program points, in order, without gaps; at most [`MAX_COLUMNS`].
    pub columns: Vec<TimelineColumn>,
}

/// Extremes over a stretch of program points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineColumn {
    /// First program point.
    pub start: u32,
    /// Program point after the last.
    pub end: u32,
    /// Least memory in use.
    pub min_bytes: u64,
    /// Most memory in use.
    pub max_bytes: u64,
    /// Most memory in use without tile padding; `None` where it is not known.
    pub max_unpadded_bytes: Option<u64>,
}

/// Buffers at the peak that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartGroup {
    /// What they are: op name, argument name.
    pub label: String,
    /// Shape of each; may be empty.
    pub shape: String,
    /// How many there are.
    pub count: u64,
    /// Bytes of all of them, padding included.
    pub size_bytes: u64,
    /// The part of `size_bytes` that is tile padding.
    pub padding_bytes: u64,
    /// What their memory is for.
    pub kind: AllocationKind,
}

/// One arena of temporaries: addresses over program order.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct MemoryMap {
    /// Size of the arena.
    pub arena_bytes: u64,
    /// Bytes live at the peak.
    pub live_bytes: u64,
    /// Number of program points.
    pub point_count: u32,
    /// Program point of the peak.
    pub peak_point: u32,
    /// Number of live ranges in all.
    pub range_count: u64,
    /// The ones that show most, largest area (bytes times program points) first.
    pub blocks: Vec<MapBlock>,
    /// All the others.
    pub rest: Coverage,
}

/// A buffer's place and life.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapBlock {
    /// First program point at which it is alive.
    pub start: u32,
    /// First at which it is no longer.
    pub end: u32,
    /// Offset in the arena.
    pub offset_bytes: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// What it is; empty for blocks too small to name.
    pub label: String,
    /// Shape of what it holds; may be empty.
    pub shape: String,
}

/// How full each cell of a coarse grid over an arena is.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Coverage {
    /// Cells along program order.
    pub columns: usize,
    /// Cells along addresses.
    pub rows: usize,
    /// Share of each cell in use, 0 to 255; row by row from address 0.
    pub cells: Vec<u8>,
}

/// A named scope with what is inside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// Bytes at the peak, of all that is inside.
    pub size_bytes: u64,
    /// Number of buffers inside.
    pub count: u64,
    /// Kind of most of its bytes.
    pub kind: Option<AllocationKind>,
    /// What is inside, largest first.
    pub children: Vec<Scope>,
}

/// A tensor or group of them, and how devices hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardingRow {
    /// What it is.
    pub label: String,
    /// Bytes on each device.
    pub size_bytes: u64,
    /// The part of `size_bytes` that full sharding would save.
    pub redundant_bytes: u64,
    /// Devices that hold the same data.
    pub copies: u64,
    /// Devices in all.
    pub devices: u64,
}

/// A program before and after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WhatIfData {
    /// What the program is called before the change.
    pub before_label: String,
    /// What it is called after: the edits.
    pub after_label: String,
    /// Memory before.
    pub before: Timeline,
    /// Memory after.
    pub after: Timeline,
}

impl Timeline {
    /// Thins `bytes` (one entry a program point) and, where given, `unpadded` to at most
    /// [`MAX_COLUMNS`] columns that keep every extreme.
    pub fn thin(bytes: &[u64], unpadded: Option<&[u64]>, peak_point: u32) -> Timeline {
        let points = bytes.len();
        let columns = points.min(MAX_COLUMNS);
        let edge = |i: usize| (i as u128 * points as u128 / columns.max(1) as u128) as usize;
        let columns = (0..columns).map(|i| {
            let (start, end) = (edge(i), edge(i + 1));
            let part = bytes.get(start..end).unwrap_or_default();
            TimelineColumn {
                start: start as u32,
                end: end as u32,
                min_bytes: part.iter().copied().min().unwrap_or(0),
                max_bytes: part.iter().copied().max().unwrap_or(0),
                max_unpadded_bytes: unpadded.and_then(|u| u.get(start..end)?.iter().copied().max()),
            }
        });
        Timeline {
            point_count: points as u32,
            peak_point,
            peak_bytes: bytes.get(peak_point as usize).copied().unwrap_or(0),
            columns: columns.collect(),
        }
    }
}

impl ChartData {
    /// Bytes of tile padding at the peak.
    pub fn padding_bytes(&self) -> u64 {
        self.peak_bytes.saturating_sub(self.peak_unpadded_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_extremes_and_covers_every_point() {
        let mut bytes = vec![5u64; 100_003];
        bytes[77_777] = 900;
        bytes[33] = 1;
        let t = Timeline::thin(&bytes, None, 77_777);
        assert_eq!((t.columns.len(), t.peak_bytes), (MAX_COLUMNS, 900));
        assert_eq!(t.columns.iter().map(|c| c.max_bytes).max(), Some(900));
        assert_eq!(t.columns.iter().map(|c| c.min_bytes).min(), Some(1));
        let mut at = 0;
        for c in &t.columns {
            assert!(c.start == at && c.end > at);
            at = c.end;
        }
        assert_eq!(at, 100_003);
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let t = Timeline::thin(&[1, 2, 3], Some(&[1, 1, 2]), 2);
        let last = t.columns[2];
        assert_eq!((last.start, last.end, last.max_bytes), (2, 3, 3));
        assert_eq!(last.max_unpadded_bytes, Some(2));
        assert_eq!(Timeline::thin(&[], None, 9).columns, []);
    }
}

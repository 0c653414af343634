//! Replays a heap simulator trace: what is alive at every program point.
//!
//! One event is one program point; the heap at a point is what is alive after its event. ALLOC
//! and FREE count references on the canonical buffer; SHARE_WITH makes a buffer one more name of
//! a canonical one and brings it back to life if its count had reached zero. The size that counts
//! is the canonical buffer's.

use crate::hlo::{BufferAssignment, BufferId, HeapEventKind, HeapTrace};

/// A stretch of program points over which one canonical buffer is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRange {
    /// The canonical buffer.
    pub buffer: BufferId,
    /// First point at which it is alive.
    pub start: u32,
    /// First point at which it is no longer (exclusive).
    pub end: u32,
}

/// A replayed trace.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// Live bytes after each event: the plain sum of sizes.
    pub heap_bytes: Vec<u64>,
    /// Live ranges by start, then by buffer. A buffer brought back to life has several.
    pub ranges: Vec<LiveRange>,
    /// Point of the largest heap, the first of equals; 0 for an empty trace.
    pub peak_point: u32,
    /// Largest heap.
    pub peak_bytes: u64,
    /// Buffers freed more often than allocated, or never freed: counts of oddities.
    pub unbalanced_frees: u32,
}

const UNKNOWN: u32 = u32::MAX;

/// Replays `trace`. Events that name unknown buffers do nothing.
// Long: one event after the other: the arms share the state of the heap.
pub fn replay(assignment: &BufferAssignment<'_>, trace: &HeapTrace<'_>) -> Replay {
    let slots = Slots::new(assignment.logical_buffers.len(), trace);
    let mut root: Vec<u32> = vec![UNKNOWN; slots.count];
    let mut references: Vec<u32> = vec![0; slots.count];
    let mut open: Vec<u32> = vec![UNKNOWN; slots.count];
    let mut out = Replay {
        heap_bytes: Vec::with_capacity(trace.events.len()),
        ..Replay::default()
    };
    let mut live = 0u64;
    let size = |b: u32| assignment.buffer(BufferId(b)).size_bytes;
    let end = trace.events.len() as u32;
    for (point, event) in trace.events.iter().enumerate() {
        let point = point as u32;
        if let Some(BufferId(b)) = event.buffer {
            let at = slots.of(b);
            let mut raise = |r: u32| {
                let slot = slots.of(r);
                references[slot] = references[slot].saturating_add(1);
                if references[slot] == 1 {
                    live = live.saturating_add(size(r));
                    open[slot] = out.ranges.len() as u32;
                    out.ranges.push(LiveRange {
                        buffer: BufferId(r),
                        start: point,
                        end,
                    });
                }
            };
            match event.kind {
                HeapEventKind::Alloc => {
                    root[at] = b;
                    raise(b);
                }
                HeapEventKind::ShareWith {
                    canonical: Some(BufferId(c)),
                } => {
                    let r = match root[slots.of(c)] {
                        UNKNOWN => c,
                        r => r,
                    };
                    root[at] = r;
                    raise(r);
                }
                HeapEventKind::ShareWith { canonical: None } => {}
                HeapEventKind::Free => {
                    let r = if root[at] == UNKNOWN { b } else { root[at] };
                    let slot = slots.of(r);
                    match references[slot] {
                        0 => out.unbalanced_frees += 1,
                        1 => {
                            references[slot] = 0;
                            live = live.saturating_sub(size(r));
                            if let Some(range) = out.ranges.get_mut(open[slot] as usize) {
                                range.end = point;
                            }
                        }
                        n => references[slot] = n - 1,
                    }
                }
            }
        }
        if live > out.peak_bytes {
            out.peak_bytes = live;
            out.peak_point = point;
        }
        out.heap_bytes.push(live);
    }
    out.ranges.retain(|r| r.end > r.start);
    out
}

/// Places of a trace's buffers in tables. A short trace gets short tables: a program may have as
/// many traces as buffers.
struct Slots {
    /// The trace's buffers, sorted; empty = a place for every buffer of the program.
    involved: Vec<u32>,
    count: usize,
}

impl Slots {
    fn new(buffers: usize, trace: &HeapTrace<'_>) -> Self {
        if trace.events.len() >= buffers / 16 {
            return Slots {
                involved: Vec::new(),
                count: buffers,
            };
        }
        let mut involved = Vec::with_capacity(trace.events.len());
        for event in &trace.events {
            involved.extend(event.buffer.map(|b| b.0));
            if let HeapEventKind::ShareWith { canonical } = event.kind {
                involved.extend(canonical.map(|c| c.0));
            }
        }
        involved.sort_unstable();
        involved.dedup();
        Slots {
            count: involved.len(),
            involved,
        }
    }

    /// Place of a buffer that the trace names.
    fn of(&self, buffer: u32) -> usize {
        if self.involved.is_empty() {
            return buffer as usize;
        }
        self.involved.partition_point(|&b| b < buffer)
    }
}

/// The buffer that last became a name of each canonical buffer, up to and including `point`:
/// pairs of canonical buffer and name, by canonical buffer. Buffers that were never shared are not
/// listed.
pub fn last_names(
    assignment: &BufferAssignment<'_>,
    trace: &HeapTrace<'_>,
    point: u32,
) -> rustc_hash::FxHashMap<BufferId, BufferId> {
    let mut root = rustc_hash::FxHashMap::default();
    let mut names = rustc_hash::FxHashMap::default();
    let known = |b: BufferId| b.index() < assignment.logical_buffers.len();
    for event in trace.events.iter().take(point as usize + 1) {
        let Some(b) = event.buffer.filter(|b| known(*b)) else {
            continue;
        };
        match event.kind {
            HeapEventKind::Alloc => {
                root.insert(b, b);
                names.remove(&b);
            }
            HeapEventKind::ShareWith { canonical: Some(c) } => {
                let r = root.get(&c).copied().unwrap_or(c);
                root.insert(b, r);
                names.insert(r, b);
            }
            _ => {}
        }
    }
    names
}

/// The first buffer that `counts` among those that become names of each canonical buffer after
/// `point`, within the live range that `point` is in, by canonical buffer.
pub fn next_names(
    assignment: &BufferAssignment<'_>,
    trace: &HeapTrace<'_>,
    point: u32,
    ends: &rustc_hash::FxHashMap<BufferId, u32>,
    counts: impl Fn(BufferId) -> bool,
) -> rustc_hash::FxHashMap<BufferId, BufferId> {
    let mut root = rustc_hash::FxHashMap::default();
    let mut out = rustc_hash::FxHashMap::default();
    let known = |b: BufferId| b.index() < assignment.logical_buffers.len();
    for (at, event) in trace.events.iter().enumerate() {
        let Some(b) = event.buffer.filter(|b| known(*b)) else {
            continue;
        };
        match event.kind {
            HeapEventKind::Alloc => {
                root.insert(b, b);
            }
            HeapEventKind::ShareWith { canonical: Some(c) } => {
                let r = root.get(&c).copied().unwrap_or(c);
                root.insert(b, r);
                let within = ends.get(&r).is_some_and(|&end| at < end as usize);
                if at > point as usize && within && counts(b) {
                    out.entry(r).or_insert(b);
                }
            }
            _ => {}
        }
    }
    out
}

/// The last buffer to become a name of each canonical buffer within each of its live ranges, by
/// canonical buffer and first point of the range. Ranges without sharing are not listed.
pub fn range_names(
    assignment: &BufferAssignment<'_>,
    trace: &HeapTrace<'_>,
) -> rustc_hash::FxHashMap<(BufferId, u32), BufferId> {
    let ranges = replay(assignment, trace).ranges;
    let mut start_of = rustc_hash::FxHashMap::default();
    let mut root = rustc_hash::FxHashMap::default();
    let mut out = rustc_hash::FxHashMap::default();
    let mut next = ranges.iter().peekable();
    for (point, event) in trace.events.iter().enumerate() {
        while let Some(r) = next.next_if(|r| r.start as usize <= point) {
            start_of.insert(r.buffer, r.start);
        }
        match (event.kind, event.buffer) {
            (HeapEventKind::Alloc, Some(b)) => {
                root.insert(b, b);
            }
            (HeapEventKind::ShareWith { canonical: Some(c) }, Some(b)) => {
                let r = root.get(&c).copied().unwrap_or(c);
                root.insert(b, r);
                if let Some(&start) = start_of.get(&r) {
                    out.insert((r, start), b);
                }
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::{HeapEvent, LogicalBuffer, MemorySpace};

    fn assignment(sizes: &[u64]) -> BufferAssignment<'static> {
        BufferAssignment {
            logical_buffers: sizes
                .iter()
                .enumerate()
                .map(|(i, &s)| LogicalBuffer {
                    id: i as i64,
                    size_bytes: s,
                    instruction: None,
                    space: MemorySpace(0),
                    allocation: None,
                    offset_bytes: 0,
                    shape_index: (0, 0),
                })
                .collect(),
            ..BufferAssignment::default()
        }
    }

    fn trace(events: &[(char, u32, u32)]) -> HeapTrace<'static> {
        HeapTrace {
            events: events
                .iter()
                .map(|&(k, b, c)| HeapEvent {
                    kind: match k {
                        'a' => HeapEventKind::Alloc,
                        'f' => HeapEventKind::Free,
                        _ => HeapEventKind::ShareWith {
                            canonical: Some(BufferId(c)),
                        },
                    },
                    buffer: Some(BufferId(b)),
                    instruction_name: "",
                })
                .collect(),
            ..HeapTrace::default()
        }
    }

    #[test]
    fn the_peak_is_the_first_maximum() {
        let a = assignment(&[10, 20, 20]);
        let r = replay(
            &a,
            &trace(&[
                ('a', 0, 0),
                ('a', 1, 0),
                ('f', 1, 0),
                ('a', 2, 0),
                ('f', 2, 0),
                ('f', 0, 0),
            ]),
        );
        assert_eq!(r.heap_bytes, [10, 30, 10, 30, 10, 0]);
        assert_eq!((r.peak_point, r.peak_bytes), (1, 30));
        assert_eq!(r.ranges.len(), 3);
        assert_eq!(
            r.ranges[0],
            LiveRange {
                buffer: BufferId(0),
                start: 0,
                end: 5
            }
        );
    }

    #[test]
    fn sharing_counts_the_root_once_and_can_raise_it_again() {
        let a = assignment(&[10, 99, 99]);
        let r = replay(
            &a,
            &trace(&[
                ('a', 0, 0),
                ('s', 1, 0),
                ('f', 0, 0),
                ('f', 1, 0),
                ('s', 2, 1),
                ('f', 2, 0),
            ]),
        );
        assert_eq!(r.heap_bytes, [10, 10, 10, 0, 10, 0]);
        assert_eq!(r.ranges.len(), 2);
        assert!(r.ranges.iter().all(|x| x.buffer == BufferId(0)));
    }

    #[test]
    fn a_short_trace_of_many_buffers_replays_the_same() {
        let events = [
            ('a', 70, 0),
            ('s', 99, 70),
            ('a', 3, 0),
            ('f', 70, 0),
            ('f', 99, 0),
            ('f', 3, 0),
        ];
        let mut sizes = vec![1; 100];
        sizes[70] = 10;
        let few = replay(&assignment(&sizes), &trace(&events));
        sizes.resize(1000, 1);
        let many = replay(&assignment(&sizes), &trace(&events));
        assert_eq!(few.heap_bytes, [10, 10, 11, 11, 1, 0]);
        assert_eq!(many.heap_bytes, few.heap_bytes);
        assert_eq!(many.ranges, few.ranges);
        assert_eq!((many.peak_point, many.unbalanced_frees), (2, 0));
    }

    #[test]
    fn a_free_too_many_changes_nothing() {
        let a = assignment(&[10]);
        let r = replay(
            &a,
            &trace(&[('f', 0, 0), ('a', 0, 0), ('f', 0, 0), ('f', 0, 0)]),
        );
        assert_eq!(r.heap_bytes, [0, 10, 0, 0]);
        assert_eq!(r.unbalanced_frees, 2);
    }

    #[test]
    fn the_last_sharer_names_the_buffer() {
        let a = assignment(&[10, 10, 10]);
        let t = trace(&[('a', 0, 0), ('s', 1, 0), ('s', 2, 1), ('f', 0, 0)]);
        assert_eq!(last_names(&a, &t, 1).get(&BufferId(0)), Some(&BufferId(1)));
        assert_eq!(last_names(&a, &t, 3).get(&BufferId(0)), Some(&BufferId(2)));
    }

    #[test]
    fn later_names_count_within_the_live_range() {
        let a = assignment(&[10, 10, 10]);
        let t = trace(&[('a', 0, 0), ('s', 1, 0), ('s', 2, 1), ('f', 0, 0)]);
        let next = |end, counts: fn(BufferId) -> bool| {
            let ends = [(BufferId(0), end)].into_iter().collect();
            next_names(&a, &t, 0, &ends, counts)
                .get(&BufferId(0))
                .copied()
        };
        assert_eq!(next(4, |_| true), Some(BufferId(1)));
        assert_eq!(next(4, |b| b.0 == 2), Some(BufferId(2)));
        assert_eq!(next(2, |b| b.0 == 2), None);
    }
}

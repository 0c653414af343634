//! Measures a scenario: replays the heap, packs the arenas, names what is largest.
//!
//! In: base and scenario. Out: [`Outcome`], as in the JSON contract.

use serde::Serialize;

use super::base::{Arena, Base};
use super::scenario::Scenario;
use super::selector::plain_shape;
use crate::dataflow::producer_of_buffer;
use crate::hlo::op_name::base_name;
use crate::hlo::{AllocationKind, BufferId, Opcode};
use crate::memory::pack::{pack, peak_of, PackItem};

/// Memory use of one space, before or after. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Whole-program bytes plus the largest heap.
    pub peak_bytes: u64,
    /// What must fit: every allocation.
    pub allocated_bytes: u64,
    /// Allocated and not in use at the peak.
    pub fragmentation_bytes: u64,
    /// The largest heap.
    pub heap_peak_bytes: u64,
    /// Parameters, outputs, constants.
    pub indefinite_bytes: u64,
    /// Program point of the peak (of the program as compiled).
    pub peak_point: u32,
    /// Instruction there.
    pub peak_instruction: String,
    /// The largest buffers at the peak, largest first.
    pub largest: Vec<LargeBuffer>,
}

/// Buffers alive at a peak that are repeats of each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct LargeBuffer {
    /// Instruction that computes the first of them, or what an edit added.
    pub name: String,
    /// Framework name of what computes them; of a parameter its argument name.
    pub op_name: String,
    /// Shape as compiled, without its layout; empty for what an edit added.
    pub shape: String,
    /// How many.
    pub count: u64,
    /// Bytes of one.
    pub size_bytes: u64,
    /// What they are for.
    pub kind: &'static str,
}

impl LargeBuffer {
    fn total(&self) -> u128 {
        u128::from(self.count) * u128::from(self.size_bytes)
    }
}

/// How many of the largest buffers an outcome names.
const LARGEST: usize = 8;

/// The program as compiled.
pub fn outcome_as_compiled(base: &Base<'_, '_>) -> Outcome {
    measure(base, &Scenario::new(base))
}

/// Measures a scenario. An arena that no edit touched keeps the size that the compiler gave it.
pub fn measure(base: &Base<'_, '_>, scenario: &Scenario) -> Outcome {
    let peaks = Peaks::of(base, scenario);
    packed(base, scenario, &peaks)
}

/// As [`measure`], but only if the total can be as low as `worth` asks: packing takes longest, and
/// no packing goes below the peak.
pub(crate) fn measure_if(
    base: &Base<'_, '_>,
    scenario: &Scenario,
    worth: impl Fn(u64) -> bool,
) -> Option<Outcome> {
    let peaks = Peaks::of(base, scenario);
    let peak_bytes = peaks.indefinite_bytes.saturating_add(peaks.heap_bytes());
    worth(peak_bytes).then(|| packed(base, scenario, &peaks))
}

/// What is alive at most, which takes no packing.
struct Peaks {
    indefinite_bytes: u64,
    /// Point and bytes of each arena's peak; `None` for one that no edit touched.
    edited: Vec<Option<(u32, u64)>>,
    as_compiled: Vec<u64>,
}

impl Peaks {
    fn of(base: &Base<'_, '_>, scenario: &Scenario) -> Self {
        let arenas = || base.arenas.iter().zip(&scenario.arenas);
        Peaks {
            indefinite_bytes: sum(scenario.blocks.iter().copied()),
            edited: arenas()
                .map(|(arena, edited)| {
                    let mut same = edited.items.iter().zip(&arena.slots);
                    let untouched =
                        edited.items.len() == arena.slots.len() && same.all(|(e, s)| *e == s.item);
                    (!untouched).then(|| peak_of(&edited.items))
                })
                .collect(),
            as_compiled: arenas().map(|(arena, _)| arena.compiled_peak).collect(),
        }
    }

    fn heap_bytes(&self) -> u64 {
        let edited = self.edited.iter().zip(&self.as_compiled);
        sum(edited.map(|(e, &compiled)| e.map_or(compiled, |e| e.1)))
    }
}

fn packed(base: &Base<'_, '_>, scenario: &Scenario, peaks: &Peaks) -> Outcome {
    let arenas = base.arenas.iter().zip(&scenario.arenas);
    let arena_bytes = sum(arenas
        .zip(&peaks.edited)
        .map(|((arena, edited), peak)| match peak {
            None => arena.compiled_bytes,
            Some((_, peak)) => {
                let packed = pack(&edited.items, arena.alignment).size_bytes;
                as_compiled(arena, &edited.items, packed).max(*peak)
            }
        }));
    let main = peaks.edited.first().copied().flatten();
    let peak_point = main.map_or_else(|| base.usage.peak_point(), |m| m.0);
    let indefinite_bytes = peaks.indefinite_bytes;
    let heap_peak_bytes = peaks.heap_bytes();
    let peak_bytes = indefinite_bytes.saturating_add(heap_peak_bytes);
    let allocated_bytes = indefinite_bytes.saturating_add(arena_bytes);
    Outcome {
        peak_bytes,
        allocated_bytes,
        fragmentation_bytes: allocated_bytes.saturating_sub(peak_bytes),
        heap_peak_bytes,
        indefinite_bytes,
        peak_point,
        peak_instruction: instruction_at(base, peak_point),
        largest: largest(base, scenario, peak_point),
    }
}

/// What the compiler makes of an arena whose items pack into `packed` bytes. A saving is the
/// difference of two packings of ours, of the base and of the edited program: that ours of the base
/// is better than the compiler's saves nothing.
///
/// A little that it lost on the base it loses again. Much is lost in gaps, which are as large as
/// the buffers that left them, and which smaller buffers fill the better the smaller they are: so
/// much is lost again as the square of the largest buffer's size says. (Of programs compiled before
/// and after a change, those whose largest buffer went were packed without the gaps, and those
/// whose buffers all became half as large lost about a quarter.)
fn as_compiled(arena: &Arena, items: &[PackItem], packed: u64) -> u64 {
    let (compiled, base) = (arena.compiled_bytes, arena.packed_bytes);
    if compiled < base {
        return packed.saturating_sub(base - compiled);
    }
    let lost = compiled - base;
    if lost <= base / 50 {
        return packed.saturating_add(lost.min(packed / 20));
    }
    let largest = |items: &mut dyn Iterator<Item = &PackItem>| {
        let alive = items.filter(|i| !i.ranges.is_empty());
        u128::from(alive.map(|i| i.size_bytes).max().unwrap_or(0))
    };
    let before = largest(&mut arena.slots.iter().map(|s| &s.item)).max(1);
    let after = largest(&mut items.iter()).min(before);
    let again = u128::from(lost) * after / before * after / before;
    packed.saturating_add(u64::try_from(again).unwrap_or(u64::MAX))
}

/// Heap bytes of the main arena at every program point, with everything else added: what a chart
/// draws.
pub fn timeline(base: &Base<'_, '_>, scenario: &Scenario) -> Vec<u64> {
    let count = base.usage.point_count();
    let Some(main) = scenario.arenas.first().filter(|_| count > 0) else {
        return Vec::new();
    };
    let others = scenario.arenas.iter().skip(1).map(|a| peak_of(&a.items).1);
    let rest = sum(scenario.blocks.iter().copied().chain(others));
    let mut change = vec![0i128; count + 1];
    for item in &main.items {
        for &(start, end) in item.ranges.iter().filter(|r| r.1 > r.0) {
            if let Some(c) = change.get_mut(start as usize) {
                *c += i128::from(item.size_bytes);
            }
            if let Some(c) = change.get_mut((end as usize).min(count)) {
                *c -= i128::from(item.size_bytes);
            }
        }
    }
    let mut live = i128::from(rest);
    change
        .iter()
        .take(count)
        .map(|c| {
            live += c;
            u64::try_from(live.max(0)).unwrap_or(u64::MAX)
        })
        .collect()
}

pub(crate) fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

fn instruction_at(base: &Base<'_, '_>, point: u32) -> String {
    let mut at = point as usize;
    for &t in base.usage.main_arena().map_or(&[][..], |a| &a.traces) {
        let Some(trace) = base.assignment.traces.get(t) else {
            continue;
        };
        match trace.events.get(at) {
            Some(e) => return e.instruction_name.to_owned(),
            None => at -= trace.events.len(),
        }
    }
    String::new()
}

fn largest(base: &Base<'_, '_>, scenario: &Scenario, point: u32) -> Vec<LargeBuffer> {
    let alive = |item: &PackItem| item.ranges.iter().any(|r| (r.0..r.1).contains(&point));
    let mut out = Vec::new();
    for (block, &size_bytes) in base.blocks.iter().zip(&scenario.blocks) {
        let kind = match block.kind {
            AllocationKind::Parameter => "parameter",
            AllocationKind::Donated => "donated",
            AllocationKind::Output => "output",
            _ => "constant",
        };
        let name = block.names.iter().copied().find(|&b| {
            base.assignment
                .buffer(b)
                .instruction
                .is_some_and(|i| base.program.module.instruction(i).opcode == Opcode::Parameter)
        });
        out.push(named(
            base,
            name.or(block.names.first().copied()),
            size_bytes,
            kind,
        ));
    }
    if let (Some(arena), Some(edited)) = (base.arenas.first(), scenario.arenas.first()) {
        for (slot, item) in arena.slots.iter().zip(&edited.items) {
            if alive(item) {
                out.push(named(
                    base,
                    slot.names.last().copied(),
                    item.size_bytes,
                    "temporary",
                ));
            }
        }
        let added = edited.items.iter().skip(arena.slots.len());
        for (item, label) in added.zip(&edited.added) {
            if alive(item) {
                out.push(LargeBuffer {
                    name: label.clone(),
                    op_name: String::new(),
                    shape: String::new(),
                    count: 1,
                    size_bytes: item.size_bytes,
                    kind: "temporary",
                });
            }
        }
    }
    out.retain(|b| b.size_bytes > 0);
    folded(out)
}

/// Repeats as one, the largest in all first.
fn folded(mut all: Vec<LargeBuffer>) -> Vec<LargeBuffer> {
    let is_named = |b: &LargeBuffer| !b.op_name.is_empty();
    let key = |b: &LargeBuffer| {
        let name = match is_named(b) {
            true => b.op_name.clone(),
            false => base_name(&b.name).to_owned(),
        };
        (name, b.shape.clone(), b.size_bytes, b.kind)
    };
    all.sort_by_cached_key(|b| (key(b), b.name.clone()));
    let mut out: Vec<LargeBuffer> = Vec::new();
    for b in all {
        match out.last_mut() {
            Some(last) if key(last) == key(&b) => last.count += 1,
            _ => out.push(b),
        }
    }
    out.sort_by(|a, b| b.total().cmp(&a.total()).then_with(|| a.cmp(b)));
    out.truncate(LARGEST);
    out
}

fn named(
    base: &Base<'_, '_>,
    buffer: Option<BufferId>,
    size_bytes: u64,
    kind: &'static str,
) -> LargeBuffer {
    let module = &base.program.module;
    let made_by = buffer.and_then(|b| {
        let i = base.assignment.buffer(b).instruction?;
        Some(producer_of_buffer(base.program, b).map_or(i, |m| m.instruction))
    });
    let i = made_by.map(|i| module.instruction(i));
    let shape = buffer.and_then(|b| base.content(b)).map(|(_, s)| s);
    LargeBuffer {
        name: i.map_or_else(|| "unnamed".to_owned(), |i| i.name.to_owned()),
        op_name: i.map_or_else(String::new, |i| i.op_name.to_owned()),
        shape: shape.map_or_else(String::new, plain_shape),
        count: 1,
        size_bytes,
        kind,
    }
}

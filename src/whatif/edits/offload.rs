//! `--offload`: tensors move to host memory; they take device memory only around their uses.
//!
//! In: a selector. Out: live ranges cut short, arguments replaced by copies at their uses.

use crate::error::Result;
use crate::findings::{Finding, Safety};
use crate::hlo::InstructionId;
use crate::whatif::applying::Applying;
use crate::whatif::arguments::names_of_large;
use crate::whatif::batch;
use crate::whatif::confidence::Confidence;
use crate::whatif::edit::{Change, Edit, EditKind};
use crate::whatif::python::variable;
use crate::whatif::selector::Selection;
use crate::whatif::Base;

pub(crate) static KIND: EditKind = EditKind {
    name: "offload",
    value: Some("SELECTOR"),
    help: "Keep tensors in host memory until they are used",
    usage: "--offload SELECTOR",
    safety: Safety::ChangesSpeed,
    verify: "compile again; measure the time of a step: transfers are slow",
    pins: false,
    parse: |value| Some(of(value.to_owned())),
    candidates: |base, _| {
        let state = names_of_large(base, |i| batch::is_state(base, i));
        state.into_iter().map(|name| vec![of(name)]).collect()
    },
};

#[derive(Debug)]
struct Offload {
    selector: String,
}

fn of(selector: String) -> Edit {
    Edit::new(Offload { selector })
}

impl Change for Offload {
    fn kind(&self) -> &'static EditKind {
        &KIND
    }

    fn value(&self) -> String {
        self.selector.clone()
    }

    fn ranges(&self, run: &mut Applying<'_, '_, '_>) -> Result<()> {
        let s = run.select(&self.selector)?;
        let moved = offload(run, &s);
        run.note(moved, format!("{moved} buffers, by {}", s.by.name()));
        run.scenario.caveat(
            Confidence::UpperBound,
            "transfers may keep more on the device at once than assumed",
        );
        Ok(())
    }

    fn jax(&self, _: &Base<'_, '_>, _: &[Finding]) -> String {
        let name = variable(&self.selector);
        format!("host = jax.tree.map(\n    lambda a: a.sharding.with_memory_kind(\"pinned_host\"), {name})\n{name} = jax.device_put({name}, host)  # and back inside the step, where it is used")
    }
}

/// Moves the buffers that a selection means; returns how many.
fn offload(run: &mut Applying<'_, '_, '_>, s: &Selection) -> usize {
    let base = run.base;
    let blocks: Vec<bool> = base.blocks.iter().map(|b| run.means(s, &b.names)).collect();
    let slots = base.arenas.iter().flat_map(|a| &a.slots);
    let slots: Vec<bool> = slots.map(|slot| run.means(s, &slot.names)).collect();
    let of = |b| base.assignment.buffer(b).instruction;
    let scenario = &mut run.scenario;
    let mut moved = 0;
    let mut at_uses: Vec<(String, u64, u32, u32)> = Vec::new();
    for ((block, size), chosen) in base.blocks.iter().zip(&mut scenario.blocks).zip(blocks) {
        if *size == 0 || !chosen {
            continue;
        }
        let mut points: Vec<u32> = Vec::new();
        for i in block.names.iter().filter_map(|&b| of(b)) {
            points.extend(base.point(i));
            points.extend(base.graph.uses(i).iter().filter_map(|u| base.point(u.user)));
        }
        let at = |i: &InstructionId| base.program.module.instruction(*i).name;
        let name = block.names.iter().filter_map(|&b| of(b)).next();
        points.sort_unstable();
        points.dedup();
        for p in points.into_iter().skip(1) {
            let label = format!(
                "{} fetched from the host",
                name.as_ref().map_or("argument", at)
            );
            at_uses.push((label, *size, p.saturating_sub(1), p.saturating_add(1)));
        }
        *size = 0;
        moved += 1;
    }
    let mut chosen = slots.into_iter();
    for (arena, edited) in base.arenas.iter().zip(&mut scenario.arenas) {
        for (item, chosen) in edited
            .items
            .iter_mut()
            .zip(chosen.by_ref().take(arena.slots.len()))
        {
            if item.size_bytes == 0 || !chosen {
                continue;
            }
            let mut ranges = Vec::new();
            for &(start, end) in &item.ranges {
                // Long enough to be idle in between?
                if end.saturating_sub(start) > 4 {
                    ranges.extend([(start, start + 2), (end - 2, end)]);
                } else {
                    ranges.push((start, end));
                }
            }
            if ranges != item.ranges {
                item.ranges = ranges;
                moved += 1;
            }
        }
    }
    let count = base.points.point_count();
    for (label, size, start, end) in at_uses {
        scenario.add(label, size, start, end.min(count));
    }
    moved
}

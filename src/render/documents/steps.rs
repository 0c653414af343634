//! Scenarios and steps, as the triage of a text and of a dump say them.

use crate::oom::Scenario;
use crate::render::document::{Block, Document, Item, Mark};
use crate::render::words::{Tone, Words};
use crate::triage::Step;

/// Its name and what it means.
pub(super) fn scenario(s: Scenario) -> Words {
    Words::new()
        .code(s.as_str())
        .plain(format!(": {}", meaning(s)))
}

/// What a scenario means, in a line.
fn meaning(s: Scenario) -> &'static str {
    match s {
        Scenario::TcScImbalance => "TensorCore and SparseCore share HBM; one side takes too much",
        Scenario::LargeAllocation => "one allocation takes over half of the limit",
        Scenario::Aggregate => "many allocations, none over half of the limit",
        Scenario::Undetermined => "the text lists no allocations; a dump does",
        Scenario::ScopedVmem => "one kernel or fusion needs more VMEM than its limit",
        Scenario::Vmem => "on-chip vector memory is full",
        Scenario::Smem => "on-chip scalar memory is full",
        Scenario::SparsecoreMemory => "a SparseCore memory is full",
        Scenario::RuntimeFull => "the device is full of live arrays",
        Scenario::RuntimeFragmentation => "enough is free, but not in one piece",
        Scenario::ProgramLoad => "the program's reserve does not fit beside what is resident",
        Scenario::GpuAllocation => "GPU memory is full",
        Scenario::GpuFragmentation => "what is free on the GPU is in pieces",
        Scenario::HostMemory => "host RAM, not device memory",
    }
}

/// What to do, in order.
pub(super) fn next_steps(out: &mut Document, steps: &[Step]) {
    if steps.is_empty() {
        return;
    }
    out.heading(2, "Next steps");
    let before = std::iter::once(None).chain(steps.iter().map(Some));
    let items = steps.iter().zip(before).enumerate();
    out.list(items.map(|(n, (s, before))| step(n, s, before)).collect());
}

/// A step; how to verify it is not said again where it is as of the one before.
fn step(n: usize, s: &Step, before: Option<&Step>) -> Item {
    let mut item = Item::of(Mark::Number(n + 1), Words::toned(Tone::Strong, &s.title));
    let verify = match s.verify.as_str() {
        "" => None,
        text if before.is_some_and(|b| b.verify == text) => None,
        text => Some(format!("Verify: {text}")),
    };
    let lines = [Some(s.detail.clone()), s.cost(), verify];
    let lines = lines.into_iter().flatten().filter(|t| !t.is_empty());
    let lines = lines.map(|t| Block::Paragraph(t.into()));
    item.blocks.extend(lines);
    item
}

//! Memory of the host: whether a program has one apart from the device's, and what lives there.

use super::context::Context;
use super::snapshot::PeakBuffer;
use crate::dataflow::{names_of, Path, Through, Value};
use crate::hlo::InstructionId;

/// XLA's number of the host's memory in layouts.
const HOST_SPACE: i64 = 5;

/// Whether a program runs on a CPU, whose memory is the host's: its back end's configurations say
/// so, and no layout has tiles.
pub fn runs_on_cpu(ctx: &Context<'_, '_>) -> bool {
    let tiled = |b: &PeakBuffer| {
        let layout = b.shape.as_ref().and_then(|s| s.layout.as_ref());
        layout.is_some_and(|l| !l.tiles.is_empty())
    };
    if ctx.peak.buffers.iter().any(tiled) {
        return false;
    }
    ctx.program.module.instructions.iter().any(|i| {
        let config = i.attributes().backend_config;
        let has = |word: &[u8]| config.windows(word.len()).any(|w| w == word);
        config.len() < 10_000
            && (has(b"outer_dimension_partitions") || has(b"onednn") || has(b"ynn_fusion"))
    })
}

/// Names and copies of a value that are looked at.
const MAX_NAMES: usize = 24;

/// Whether a temporary is fetched from an argument in the host's memory, directly or by an
/// asynchronous copy.
pub fn fetched_from_host(ctx: &Context<'_, '_>, value: InstructionId) -> bool {
    let module = &ctx.program.module;
    let on_host = |(i, path): &Value| {
        let shape = module.shape(*i);
        let layout = shape.leaf(path).and_then(|s| s.layout.as_ref());
        layout.is_some_and(|l| l.memory_space == HOST_SPACE)
    };
    let value = (value, Path::new());
    let names = names_of(ctx.program, &value, Through::Copies, MAX_NAMES);
    names.iter().skip(1).any(on_host)
}

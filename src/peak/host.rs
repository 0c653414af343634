//! Memory of the host: whether a program has one apart from the device's, and what lives there.

use super::context::Context;
use super::snapshot::PeakBuffer;
use crate::dataflow::flow::{names_of, Path};
use crate::hlo::{InstructionId, Opcode};

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

/// Whether a temporary is fetched from an argument in the host's memory, directly or by an
/// asynchronous copy.
pub fn fetched_from_host(ctx: &Context<'_, '_>, value: InstructionId) -> bool {
    let module = &ctx.program.module;
    let mut at: (InstructionId, Path) = (value, Path::new());
    for _ in 0..6 {
        let i = module.instruction(at.0);
        if !matches!(
            i.opcode,
            Opcode::Copy
                | Opcode::CopyStart
                | Opcode::CopyDone
                | Opcode::Bitcast
                | Opcode::GetTupleElement
        ) {
            return false;
        }
        let Some(&from) = module.operands(at.0).first() else {
            return false;
        };
        let space = module.shape(from).layout.map_or(0, |l| l.memory_space);
        if space == HOST_SPACE {
            return true;
        }
        match names_of(ctx.program, from, &[], 4).pop() {
            Some(n) => at = n,
            None => return false,
        }
    }
    false
}

//! Lines of evidence: names, sizes and source lines, written one way for all findings.

use crate::hlo::InstructionId;
use crate::peak::Context;
use crate::peak::PeakBuffer;
use crate::units;

/// Lines of one kind that a finding lists before it sums up the rest.
const MAX_LINES: usize = 8;

/// Whether `bytes` are at least a hundredth of the peak: less is not worth a finding.
pub(crate) fn matters(ctx: &Context<'_, '_>, bytes: u64) -> bool {
    bytes > 0 && u128::from(bytes) * 100 >= u128::from(ctx.usage.peak_bytes())
}

/// ` (train.py:12)`, or nothing.
pub(crate) fn place(ctx: &Context<'_, '_>, id: InstructionId) -> String {
    match ctx.program.module.source_of(id) {
        Some(s) if s.line > 0 => format!(" ({}:{})", file_name(&s.file), s.line),
        Some(s) if !s.file.is_empty() => format!(" ({})", file_name(&s.file)),
        _ => String::new(),
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The name people know a block at the peak by: the framework's, or the instruction's.
pub(crate) fn name<'c>(ctx: &Context<'c, '_>, b: &PeakBuffer) -> &'c str {
    let Some(id) = b.instruction else {
        return "memory that nothing in the file accounts for";
    };
    let i = ctx.program.module.instruction(id);
    if i.op_name.is_empty() {
        i.name
    } else {
        i.op_name
    }
}

/// `fusion.7: 512 MiB, f32[8,1024]{1,0}, jit(step)/jvp()/dot_general (train.py:12)`.
pub(crate) fn buffer_line(ctx: &Context<'_, '_>, b: &PeakBuffer) -> String {
    let mut out = match b.instruction {
        Some(id) => ctx.program.module.instruction(id).name.to_owned(),
        None => "(no instruction)".to_owned(),
    };
    out += &format!(": {}", units::bytes(b.counted_bytes));
    if let Some(shape) = &b.shape {
        out += &format!(", {shape}");
    }
    if let Some(id) = b.instruction {
        let op_name = ctx.program.module.instruction(id).op_name;
        if !op_name.is_empty() {
            out += &format!(", {op_name}");
        }
        out += &place(ctx, id);
    }
    out
}

/// The first lines, and how many bytes the rest come to.
pub(crate) fn shortened(lines: Vec<(u64, String)>) -> Vec<String> {
    let count = lines.len();
    let rest: u64 = lines
        .iter()
        .skip(MAX_LINES)
        .fold(0, |s, l| s.saturating_add(l.0));
    let mut out: Vec<String> = lines.into_iter().take(MAX_LINES).map(|l| l.1).collect();
    if count > MAX_LINES {
        out.push(format!(
            "and {} more, {} together",
            count - MAX_LINES,
            units::bytes(rest)
        ));
    }
    out
}

/// Numbers of the buffers behind blocks, largest first, each once.
pub(crate) fn buffer_ids<'b>(
    ctx: &Context<'_, '_>,
    buffers: impl IntoIterator<Item = &'b PeakBuffer>,
) -> Vec<i64> {
    let mut found: Vec<(std::cmp::Reverse<u64>, i64)> = buffers
        .into_iter()
        .filter_map(|b| Some((std::cmp::Reverse(b.size_bytes), ctx.buffer_id(b)?)))
        .collect();
    found.sort_unstable();
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|f| seen.insert(f.1));
    found.into_iter().map(|f| f.1).collect()
}

/// `1 buffer`, `3 buffers`.
pub(crate) fn counted(n: usize, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        units::count(n as u64),
        if n == 1 { one } else { many }
    )
}

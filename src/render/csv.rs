//! Everything at the peak as comma-separated values, one row a buffer, all modules and spaces.

use crate::report::Report;

/// Renders the buffers; the first row names the columns. Sizes are bytes.
pub fn render_csv(report: &Report) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    // Writing to memory does not fail.
    let _ = out.write_record([
        "module",
        "program_id",
        "space",
        "logical_buffer_id",
        "allocation_index",
        "offset_bytes",
        "size_bytes",
        "counted_bytes",
        "unpadded_bytes",
        "padding_bytes",
        "kind",
        "instruction",
        "opcode",
        "op_name",
        "source",
        "shape",
        "live_start",
        "live_end",
        "devices",
        "distinct_copies",
        "redundant_bytes",
        "origin",
    ]);
    for m in &report.modules {
        for s in &m.memory_spaces {
            for b in &s.buffers {
                let source = b.source.as_ref();
                let _ = out.write_record([
                    m.name.clone(),
                    m.program_id.map_or_else(String::new, |n| n.to_string()),
                    s.name.clone(),
                    b.logical_buffer_id
                        .map_or_else(String::new, |n| n.to_string()),
                    b.allocation_index
                        .map_or_else(String::new, |n| n.to_string()),
                    b.offset_bytes.to_string(),
                    b.size_bytes.to_string(),
                    b.counted_bytes.to_string(),
                    b.unpadded_bytes.to_string(),
                    b.padding_bytes.to_string(),
                    b.kind.to_owned(),
                    b.instruction.clone(),
                    b.opcode.clone(),
                    b.op_name.clone(),
                    source.map_or_else(String::new, |s| format!("{}:{}", s.file, s.line)),
                    b.shape.clone(),
                    number(b.live.map(|l| u64::from(l.start))),
                    number(b.live.map(|l| u64::from(l.end))),
                    b.devices.to_string(),
                    number(b.distinct_copies),
                    number(b.redundant_bytes),
                    b.origin.clone().unwrap_or_default(),
                ]);
            }
        }
    }
    out.into_inner().unwrap_or_default()
}

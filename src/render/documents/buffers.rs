//! Everything at the peak, one row a buffer, all modules and spaces: for spreadsheets.

use crate::render::{Cell, Column, Table};
use crate::report::{BufferEntry, ModuleReport, Report, SpaceReport};

/// The buffers; columns have the names of the JSON's fields.
pub fn buffers(report: &Report) -> Table {
    let mut rows = Vec::new();
    for m in &report.modules {
        for s in &m.memory_spaces {
            rows.extend(s.buffers.iter().map(|b| row(m, s, b)));
        }
    }
    Table {
        columns: [
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
        ]
        .map(Column::left)
        .to_vec(),
        rows,
        ..Table::default()
    }
}

fn row(m: &ModuleReport, s: &SpaceReport, b: &BufferEntry) -> Vec<Cell> {
    let number = |n: Option<u64>| n.map_or_else(|| Cell::of(""), Cell::Count);
    let source = b.source.as_ref();
    vec![
        Cell::of(&m.name),
        number(m.program_id),
        Cell::of(&s.name),
        Cell::of(
            b.logical_buffer_id
                .map_or_else(String::new, |n| n.to_string()),
        ),
        Cell::of(
            b.allocation_index
                .map_or_else(String::new, |n| n.to_string()),
        ),
        Cell::Bytes(b.offset_bytes),
        Cell::Bytes(b.size_bytes),
        Cell::Bytes(b.counted_bytes),
        Cell::Bytes(b.unpadded_bytes),
        Cell::Bytes(b.padding_bytes),
        Cell::of(b.kind),
        Cell::of(&b.instruction),
        Cell::of(&b.opcode),
        Cell::of(&b.op_name),
        Cell::of(source.map_or_else(String::new, |s| format!("{}:{}", s.file, s.line))),
        Cell::of(&b.shape),
        number(b.live.map(|l| u64::from(l.start))),
        number(b.live.map(|l| u64::from(l.end))),
        Cell::Count(b.devices),
        number(b.distinct_copies),
        number(b.redundant_bytes),
        Cell::of(b.origin.clone().unwrap_or_default()),
    ]
}

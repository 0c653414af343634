//! A table as comma-separated values: numbers as they are, sizes in bytes.

use super::escape::csv as escape;
use super::table::{Cell, Table};

/// The table; its first row names the columns.
pub fn render_csv(table: &Table) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail, and every row has a cell a column.
    let _ = out.write_record(table.columns.iter().map(|c| c.name));
    for row in &table.rows {
        let _ = out.write_record(row.iter().map(field));
    }
    out.into_inner().unwrap_or_default()
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Bytes(n) | Cell::Count(n) => n.to_string(),
        Cell::Change(before, after) => (i128::from(*after) - i128::from(*before)).to_string(),
        Cell::Scope(_, text) | Cell::Text(text) | Cell::Code(text) | Cell::Shape(text) => {
            escape(text.trim())
        }
        other => other.text(),
    }
}

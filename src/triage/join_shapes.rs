//! An out-of-memory text joined with a dump that has no buffer assignment (a compiler that
//! stopped early writes none): what the program's arguments and results alone tell.

use serde::Serialize;

use super::actions::{COMPILES, LOOK};
use super::steps::Step;
use crate::oom::OomReport;
use crate::report::Loaded;
use crate::report::Options;
use crate::report::ShapeEntry;
use crate::text::without_layout;
use crate::units;

/// Arrays listed.
const ARRAYS: usize = 8;

/// What shapes alone add to a failure.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct JoinedShapes {
    /// File of the dump.
    pub path: String,
    /// Its module.
    pub module: String,
    /// Whether the text names the same module; null where it names none.
    pub same_module: Option<bool>,
    /// Devices that the program is split over.
    pub num_partitions: u32,
    /// Whether shapes are of the whole program rather than of one device.
    pub shapes_are_global: bool,
    /// Bytes of entry parameters as laid out.
    pub parameter_bytes: u64,
    /// Bytes of the result as laid out.
    pub output_bytes: u64,
    /// Largest arguments and results, largest first.
    pub arrays: Vec<ShapeEntry>,
    /// What that says to do, before what the text says.
    pub advice: Vec<Step>,
}

/// Joins `report` with the module that it names, else the one of the largest shapes. `None` if
/// every module has buffer assignment, or none has an argument or result.
pub fn join_shapes(
    report: &OomReport,
    loaded: &Loaded<'_>,
    options: &Options,
) -> Option<JoinedShapes> {
    let full = loaded.report(options);
    let named = report.module.as_deref().or(report.program.as_deref());
    let module = full
        .modules
        .iter()
        .filter(|m| m.shapes_only.as_ref().is_some_and(|s| !s.arrays.is_empty()))
        .max_by_key(|m| {
            let s = m.shapes_only.as_ref();
            let bytes = s.map_or(0, |s| s.parameter_bytes.saturating_add(s.output_bytes));
            (named == Some(m.name.as_str()), bytes)
        })?;
    let shapes = module.shapes_only.as_ref()?;
    let arrays: Vec<ShapeEntry> = shapes.arrays.iter().take(ARRAYS).cloned().collect();
    let mut out = JoinedShapes {
        path: full.sources.get(module.source_index)?.path.clone(),
        module: module.name.clone(),
        same_module: named.map(|n| n == module.name),
        num_partitions: module.num_partitions.max(1),
        shapes_are_global: shapes.shapes_are_global,
        parameter_bytes: shapes.parameter_bytes,
        output_bytes: shapes.output_bytes,
        arrays,
        advice: Vec::new(),
    };
    out.advice.extend(too_large(&out, report.limit_bytes));
    Some(out)
}

/// A step about an array that cannot fit even when split over all devices.
fn too_large(shapes: &JoinedShapes, limit: Option<u64>) -> Option<Step> {
    let limit = limit?;
    let largest = shapes.arrays.first()?;
    let parts = match shapes.shapes_are_global {
        true => u64::from(shapes.num_partitions),
        false => 1,
    };
    if largest.size_bytes / parts <= limit {
        return None;
    }
    let at_most = match parts {
        1 => String::new(),
        n => format!(
            ", {} a device at the least over {n}",
            units::bytes(largest.size_bytes / n)
        ),
    };
    let title = format!(
        "The {} alone does not fit: make it smaller or split it further",
        said(largest)
    );
    let why = format!(
        "{} takes {}{at_most}; the limit is {}. Look for a dimension that is larger than meant.",
        without_layout(&largest.shape),
        units::bytes(largest.size_bytes),
        units::bytes(limit)
    );
    Some(LOOK.verified_by(COMPILES).titled(title, why))
}

fn said(a: &ShapeEntry) -> String {
    if a.kind == a.name {
        a.kind.to_owned()
    } else {
        format!("{} {}", a.kind, a.name)
    }
}

//! In: the TPU compiler's out-of-memory report (G1, G2, G3, G5, G7). Out: its values.
//!
//! ```text
//! headline = "Ran out of memory in memory space" SPACE "." [ "Used" size "of" size SPACE "."
//!            [ "Exceeded" SPACE "capacity by" size "." ] ] [ tables ] [ list ]
//!          | "Ran out of memory on HBM, the total memory required for HLO temporaries (" size
//!            ") exceeds available HBM (" size ")." [ "HLO module:" NAME "." ]
//! tables   = "Total" SPACE "usage >=" size ":" { row }
//!            [ "Output size" size "; shares" size "with arguments." | "Output size unknown." ]
//!            "Program" SPACE "requirement" size ":" { row }
//! row      = ( "reserved" | "program" | "arguments" | "global" | "scoped" | "overlays" ) size
//!          | "arguments unknown size"
//!          | "HLO temp" size "(" percent "% utilization"
//!            [ ": Unpadded (" size ") Padded (" size ")" ] "," percent "% fragmentation (" size "))"
//! list     = "Largest program allocations in" SPACE ":" { block }          see blocks.rs
//! ```
//! Lines can be missing and out of order (Ray drops and reorders them).

use super::blocks;
use super::cursor::{find, lossy, Cursor};
use super::found::{base, name_at, Found};
use super::look_alike;
use super::report::{Kind, OomReport};
use super::section::Squeezed;

/// The report for one memory space.
pub(crate) fn parse_space(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Ranoutofmemoryinmemoryspace").then_some(())?;
    let name = c.take_while(|b| b.is_ascii_lowercase() || b == b'_');
    if find(name, b"whileallocatingonstack").is_some() {
        return None; // scoped_vmem.rs reads it
    }
    if name.is_empty() || name.len() > 24 {
        return None;
    }
    let space = lossy(name);
    c.lit(".");
    if c.lit("Estimated") {
        return look_alike::estimate(sq, at);
    }
    let mut r = base(sq, at, kind_of(&space), true);
    if c.lit("Used") {
        r.used_bytes = c.size();
        if c.lit("of") {
            r.limit_bytes = c.size();
        }
        // The words between may hold what a log put into a split headline.
        if c.skip_past("Exceeded", 400) && c.lit(&space) && c.lit("capacityby") {
            r.over_bytes = c.size();
        }
    }
    r.module = module(sq, c.pos(), end);
    tables(sq, &space, at, end, &mut r);
    r.allocations = blocks::parse(sq, c.pos(), end);
    r.space = Some(space);
    Some(Found::Report(Box::new(r)))
}

/// The short form of 2025 and later.
pub(crate) fn parse_short(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("RanoutofmemoryonHBM").then_some(())?;
    c.skip_past("(", 80).then_some(())?;
    let mut r = base(sq, at, Kind::TpuCompileHbm, true);
    r.used_bytes = Some(c.size()?);
    if c.skip_past("exceedsavailableHBM(", 8) {
        r.limit_bytes = c.size();
    }
    r.space = Some("hbm".to_string());
    r.module = module(sq, c.pos(), end);
    Some(Found::Report(Box::new(r)))
}

fn kind_of(space: &str) -> Kind {
    match space {
        "hbm" => Kind::TpuCompileHbm,
        "vmem" => Kind::TpuCompileVmem,
        "smem" => Kind::TpuCompileSmem,
        _ => Kind::TpuCompileSpace,
    }
}

/// `HLO module: NAME` close by.
fn module(sq: &Squeezed, from: usize, end: usize) -> Option<String> {
    let mut c = Cursor::within(&sq.text, from, end);
    c.skip_past("HLOmodule:", 200).then_some(())?;
    name_at(sq, c.pos())
}

/// The two tables of a space, as far as they are there.
pub(crate) fn tables(sq: &Squeezed, space: &str, from: usize, end: usize, r: &mut OomReport) {
    let whole = Cursor::within(&sq.text, from, end);
    let list = whole
        .find("Largestprogramallocations", usize::MAX >> 1)
        .unwrap_or(end);
    let c = Cursor::within(&sq.text, from, list);
    let far = usize::MAX >> 1;
    let requirement = c.find(&format!("Program{space}requirement"), far);
    if let Some(total) = c.find(&format!("Total{space}usage>="), far) {
        let until = requirement.filter(|&q| q > total).unwrap_or(list);
        let mut t = Cursor::within(&sq.text, total, until);
        t.skip_past("usage>=", far);
        r.total_bytes = t.size();
        r.reserved_bytes = row(&t, "reserved");
        r.program_bytes = row(&t, "program");
        r.parameter_bytes = row(&t, "arguments");
        r.output_bytes = row(&t, "Outputsize");
    }
    if let Some(requirement) = requirement {
        let mut t = Cursor::within(&sq.text, requirement, list);
        t.skip_past("requirement", far);
        r.program_bytes = t.size().or(r.program_bytes);
    }
    temporaries(c, r);
}

/// The `HLO temp` row.
fn temporaries(mut c: Cursor<'_>, r: &mut OomReport) {
    if !c.skip_past("HLOtemp", usize::MAX >> 1) {
        return;
    }
    r.temp_bytes = c.size();
    if !c.lit("(") {
        return;
    }
    if c.skip_past("utilization:Unpadded(", 12) {
        r.unpadded_bytes = c.size();
        if c.lit(")Padded(") {
            r.padded_bytes = c.size();
        }
    }
    if c.skip_past("%fragmentation(", 40) {
        r.fragmentation_bytes = c.size();
    }
}

/// Size behind the first `name` that has one.
fn row(c: &Cursor<'_>, name: &str) -> Option<u64> {
    let mut c = c.clone();
    while c.skip_past(name, usize::MAX >> 1) {
        if let Some(size) = c.size() {
            return Some(size);
        }
    }
    None
}

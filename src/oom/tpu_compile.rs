//! In: failures and usage lines of the TPU compiler. Out: their values.
//!
//! ```text
//! space    = "Ran out of memory in memory space" SPACE "." [ "Used" size "of" size SPACE "."
//!            [ "Exceeded" SPACE "capacity by" size "." ] ] [ tables ] [ list ]
//! short    = "Ran out of memory on HBM, the total memory required for HLO temporaries (" size
//!            ") exceeds available HBM (" size ")." [ "HLO module:" NAME "." ]
//! tables   = "Total" SPACE "usage >=" size ":" { row }
//!            [ "Output size" size "; shares" size "with arguments." | "Output size unknown." ]
//!            "Program" SPACE "requirement" size ":" { row }
//! row      = ( "reserved" | "program" | "arguments" | "global" | "scoped" | "overlays" ) size
//!          | "arguments unknown size"
//!          | "HLO temp" size "(" percent "% utilization"
//!            [ ": Unpadded (" size ") Padded (" size ")" ] "," percent "% fragmentation (" size "))"
//! list     = "Largest program allocations in" SPACE ":" { block }          see blocks.rs
//! scoped   = "Ran out of memory in memory space" SPACE "while allocating on stack for" [ "%" ] NAME
//!            "=" instruction "." "Scoped allocation with size" size "and limit" size
//!            "exceeded scoped" SPACE "limit by" size "."                                  E1001
//! single   = "Allocation (size=" int ") would exceed memory (size=" int ") :: #allocation" int
//!            "[shape = '" shape "', space=" SPACE ", size = 0x" hex ", tag = '" text "'] ::"
//!            ( instruction | "<no-hlo-instruction>" )
//! early    = "Aborting compilation early because it's unlikely to have enough [device] memory."
//!            "Requires" size ", has" size "available."
//! cores    = ( "TPU TensorCore Hbm usage:" | "TC Hbm usage:" ) size
//!            "," ( "SparseCore" | "SC" ) "Hbm usage" [ ":" ] size ", exceeding available bytes:" size
//! alloca   = "'memref.alloca' op current allocation offset upper bound (" int "words) exceeds the
//!            legitimate user allocatable offset upper bound (" int "words) in memory space" int
//!            "when allocating" int "words."                                               E3000
//! usage    = "XLA::TPU program" SPACE "usage:" size "/" size                              no failure
//!          | tables without a headline                                                    no failure
//! ```
//! Lines can be missing and out of order (Ray drops and reorders them). The hexadecimal size of
//! `single` can be unset (all ones): the decimal one counts; it is often cut after the shape. What
//! `alloca` counts are words: their size depends on the memory and is not in the text.

use super::blocks::{self, measure};
use super::cursor::{find, lossy, named, Cursor, FAR};
use super::found::{name_at, Found, Message};
use super::host_and_frameworks::estimate;
use super::report::{Allocation, Bottleneck, Kind, OomReport, SpaceUsage};
use super::shape_text::ShapeText;

/// Starts of the tables' lines.
pub(crate) const LINES: &[&str] = &[
    "reserved ",
    "program ",
    "arguments ",
    "global ",
    "scoped ",
    "overlays ",
    "HLO temp",
    "Output size",
    "Exceeded ",
    "Total ",
    "Program ",
];
/// What a name of an instruction may hold beside letters and digits.
const IN_NAMES: &[u8] = b"_.-";

/// The report for one memory space.
pub(crate) fn space(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let name = c.take_while(|b| b.is_ascii_lowercase() || b == b'_');
    // With those words it is another message, which starts at them.
    if name.is_empty() || name.len() > 24 || find(name, "whileallocatingonstack").is_some() {
        return None;
    }
    let space = lossy(name);
    c.lit(".");
    if c.lit("Estimated") {
        return estimate(m);
    }
    let kind = match space.as_str() {
        "hbm" => Kind::TpuCompileHbm,
        "vmem" => Kind::TpuCompileVmem,
        "smem" => Kind::TpuCompileSmem,
        _ => Kind::TpuCompileSpace,
    };
    let mut r = m.report(kind, true);
    if c.lit("Used") {
        r.used_bytes = c.size();
        r.limit_bytes = c.size_after("of", 0);
        // The words between may hold what a log put into a split headline.
        if c.skip_past("Exceeded", 400) && c.lit(&space) {
            r.over_bytes = c.size_after("capacityby", 0);
        }
    }
    r.module = module(m, &c);
    tables(m, m.at, &space, &mut r);
    r.allocations = blocks::parse(m.sq, c.pos(), m.end);
    r.space = Some(space);
    Some(r.into())
}

/// The short form of 2025 and later.
pub(crate) fn short(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    c.reach("(", 80)?;
    let mut r = in_hbm(m, Kind::TpuCompileHbm);
    r.used_bytes = Some(c.size()?);
    r.limit_bytes = c.size_after("exceedsavailableHBM(", 8);
    r.module = module(m, &c);
    Some(r.into())
}

fn in_hbm(m: &Message<'_>, kind: Kind) -> OomReport {
    OomReport {
        space: Some("hbm".to_string()),
        ..m.report(kind, true)
    }
}

/// `HLO module: NAME` close by.
fn module(m: &Message<'_>, c: &Cursor<'_>) -> Option<String> {
    let mut c = c.clone();
    c.reach("HLOmodule:", 200)?;
    name_at(m.sq, c.pos())
}

/// The two tables of a space, as far as they are there.
fn tables(m: &Message<'_>, from: usize, space: &str, r: &mut OomReport) {
    let sq = m.sq;
    let list = m.from(from).find("Largestprogramallocations", FAR);
    let list = list.unwrap_or(m.end);
    let mut c = Cursor::within(&sq.text, from, list);
    let requirement = c.find(&format!("Program{space}requirement"), FAR);
    if let Some(total) = c.find(&format!("Total{space}usage>="), FAR) {
        let until = requirement.filter(|&q| q > total).unwrap_or(list);
        let mut t = Cursor::within(&sq.text, total, until);
        r.total_bytes = t.size_after("usage>=", FAR);
        r.reserved_bytes = row(&t, "reserved");
        r.program_bytes = row(&t, "program");
        r.parameter_bytes = row(&t, "arguments");
        r.output_bytes = row(&t, "Outputsize");
    }
    if let Some(requirement) = requirement {
        let mut t = Cursor::within(&sq.text, requirement, list);
        r.program_bytes = t.size_after("requirement", FAR).or(r.program_bytes);
    }
    r.temp_bytes = c.size_after("HLOtemp", FAR);
    if c.lit("(") {
        r.unpadded_bytes = c.size_after("utilization:Unpadded(", 12);
        r.padded_bytes = c.size_after(")Padded(", 0);
        r.fragmentation_bytes = c.size_after("%fragmentation(", 40);
    }
}

/// Size behind the first `name` that has one.
fn row(c: &Cursor<'_>, name: &str) -> Option<u64> {
    let mut c = c.clone();
    while c.skip_past(name, FAR) {
        if let Some(size) = c.size() {
            return Some(size);
        }
    }
    None
}

/// Scoped VMEM of one instruction.
pub(crate) fn scoped(m: &Message<'_>) -> Option<Found> {
    let (head, space) = m.before("memoryspace", 80)?;
    let start = head.saturating_sub("Ranoutofmemoryin".len());
    let mut r = m.report_from(start, Kind::TpuScopedVmem, true);
    let mut c = m.cursor();
    c.lit("%");
    r.instruction = c.name_of(IN_NAMES);
    let mut a = Allocation::default();
    blocks::operator(m.sq, c.pos(), m.end, &mut a);
    r.op_name = a.op_name;
    r.opcode = opcode(c.clone());
    r.used_bytes = c.size_after("Scopedallocationwithsize", FAR);
    r.limit_bytes = c.size_after("andlimit", 0);
    r.over_bytes = c.size_after("limitby", 40);
    r.space = named(space);
    Some(r.into())
}

/// The opcode of `= shape opcode(`.
fn opcode(mut c: Cursor<'_>) -> Option<String> {
    c.want("=")?;
    ShapeText::read(&mut c)?;
    let word = c.take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    named(word).filter(|_| c.peek() == Some(b'('))
}

/// One allocation larger than the memory.
pub(crate) fn single(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let size = c.int()?;
    c.want(")wouldexceedmemory(size=")?;
    let limit = c.int().filter(|_| c.lit(")"));
    let mut r = m.report(Kind::TpuSingleAllocation, true);
    r.used_bytes = Some(size);
    r.limit_bytes = limit;
    let mut a = Allocation {
        size_bytes: size,
        ..Allocation::default()
    };
    if c.skip_past("[shape='", 60) {
        a.shape = c.name_until(b'\'');
    }
    if c.skip_past("space=", 8) {
        r.space = c.name_of(b"_").map(|s| s.to_ascii_lowercase());
    }
    if c.skip_past("tag='", 60) {
        let start = c.pos();
        c.name_until(b'\'');
        a.label = Some(m.sq.readable(start, c.pos())).filter(|s| !s.is_empty());
    }
    if c.skip_past("]::", 8) && !c.lit("<no-hlo-instruction>") {
        c.lit("%");
        r.instruction = c.name_of(IN_NAMES);
    }
    measure(&mut a, |computed, said| computed == said);
    r.allocations.push(a);
    Some(r.into())
}

/// The compiler's early stop.
pub(crate) fn early(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    c.reach("Requires", 200)?;
    let mut r = in_hbm(m, Kind::TpuFastExit);
    r.used_bytes = Some(c.size()?);
    r.limit_bytes = c.size_after(",has", 0);
    Some(r.into())
}

/// TensorCore and SparseCore use of HBM.
pub(crate) fn cores(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    c.lit(":");
    let tensorcore = c.size()?;
    c.lit(",");
    (c.lit("SparseCoreHbmusage") || c.lit("SCHbmusage")).then_some(())?;
    c.lit(":");
    let sparsecore = c.size()?;
    let mut r = in_hbm(m, Kind::TpuTcSc);
    if c.skip_past("availablebytes", 20) {
        c.lit(":");
        r.limit_bytes = c.size();
    }
    r.tensorcore_bytes = Some(tensorcore);
    r.sparsecore_bytes = Some(sparsecore);
    r.bottleneck = Some(bottleneck(tensorcore, sparsecore, r.limit_bytes));
    Some(r.into())
}

/// The side that is over half of what there is; both, when neither or both are.
fn bottleneck(tensorcore: u64, sparsecore: u64, limit: Option<u64>) -> Bottleneck {
    let half = limit.unwrap_or(tensorcore.max(sparsecore)) / 2;
    match (tensorcore > half, sparsecore > half) {
        (true, false) => Bottleneck::Tensorcore,
        (false, true) => Bottleneck::Sparsecore,
        _ => Bottleneck::Both,
    }
}

/// A SparseCore stack allocation.
pub(crate) fn alloca(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    c.reach("upperbound(", 80)?;
    let used = c.int()?;
    c.want("words)exceeds")?;
    c.reach("upperbound(", 80)?;
    let limit = c.int()?;
    c.reach("memoryspace", 20)?;
    let space = match c.int()? {
        0 => "sparsecore smem".to_string(),
        201 => "tile_spmem".to_string(),
        202 => "spmem".to_string(),
        203 => "hbm".to_string(),
        204 => "sflag".to_string(),
        id => format!("space {id}"),
    };
    let mut r = m.report(Kind::TpuSparsecoreAlloca, true);
    r.space = Some(space);
    let asked = c.lit("whenallocating").then(|| c.int()).flatten();
    let asked = asked.map_or_else(String::new, |words| format!("allocating {words} words "));
    r.notes.push(format!(
        "{asked}reaches word {used} where {limit} is the last allowed"
    ));
    Some(r.into())
}

/// One usage line.
pub(crate) fn usage(m: &Message<'_>) -> Option<Found> {
    let mut c = m.cursor();
    let space = lossy(c.take_while(|b| b.is_ascii_uppercase())).to_ascii_lowercase();
    c.want("usage:")?;
    let used_bytes = Some(c.size()?);
    c.want("/")?;
    let limit_bytes = Some(c.size()?);
    let mut r = m.report(Kind::TpuUsage, false);
    r.usages.push(SpaceUsage {
        space,
        used_bytes,
        limit_bytes,
    });
    Some(Found::Usage(Box::new(r)))
}

/// Tables without a headline: what is left of a report, or the compiler's information.
pub(crate) fn table(m: &Message<'_>) -> Option<Found> {
    let (start, name) = m.before("Total", 32)?;
    if name.is_empty() || name.len() > 24 || !name.iter().all(u8::is_ascii_lowercase) {
        return None;
    }
    let space = lossy(name);
    let mut r = m.report_from(start, Kind::TpuUsage, false);
    tables(m, start, &space, &mut r);
    r.total_bytes?;
    r.allocations = blocks::parse(m.sq, m.at, m.end);
    r.space = Some(space);
    Some(Found::Usage(Box::new(r)))
}

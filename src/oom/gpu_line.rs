//! In: one-line failures of the GPU and CPU backends (G14). Out: their values.
//!
//! ```text
//! "Out of memory while trying to allocate" amount [ "with allocator" NAME ] [ "on device" int ] "."
//!     { "[executable_name='" NAME "']" | "[tf-allocator-allocation-error='" text "']" }
//! "Failed to allocate request for" size "(" int "B) on device ordinal" int
//! "failed to allocate" size "(" int "bytes) from device:" ( "CUDA_ERROR_OUT_OF_MEMORY"
//!     | "HIP_ERROR_OutOfMemory" )
//! "Not enough memory to allocate" int "on device" int "within provided limit." "limit=" int "]"
//! "Out of memory allocating" int "bytes."                                   CPU backend
//! "Out of host memory while trying to allocate" amount "."                  pinned host memory
//! amount = size | int "bytes"
//! ```

use super::cursor::{lossy, Cursor};
use super::found::{base, Found};
use super::report::{Kind, OomReport};
use super::section::Squeezed;

fn report(mut r: OomReport, requested: Option<u64>) -> Option<Found> {
    r.requested_bytes = requested;
    Some(Found::Report(Box::new(r)))
}

/// The usual one.
pub(crate) fn parse_out_of_memory(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Outofmemorywhiletryingtoallocate").then_some(())?;
    let requested = requested(&mut c)?;
    let mut r = base(sq, at, Kind::GpuAllocation, true);
    r.module = executable(&c);
    report(r, requested)
}

/// The amount; `Some(None)` when it was cut off, `None` when there is none.
fn requested(c: &mut Cursor<'_>) -> Option<Option<u64>> {
    let starts = c.peek().is_some_and(|b| b.is_ascii_digit());
    starts.then(|| c.amount())
}

/// `[executable_name='jit_x']` close by.
fn executable(c: &Cursor<'_>) -> Option<String> {
    let mut c = c.clone();
    c.skip_past("executable_name='", 400).then_some(())?;
    let name = c.take_while(|b| b != b'\'' && b != b']');
    (!name.is_empty()).then(|| lossy(name))
}

/// The platform allocator's.
pub(crate) fn parse_request(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Failedtoallocaterequestfor").then_some(())?;
    let requested = exact(&mut c)?;
    report(base(sq, at, Kind::GpuAllocation, true), Some(requested))
}

/// The driver's. The allocator asks it for less and less, so it comes in series.
pub(crate) fn parse_driver(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("failedtoallocate").then_some(())?;
    let requested = exact(&mut c)?;
    c.skip_past("OutOfMemory", 60)
        .then_some(())
        .or_else(|| c.skip_past("ERROR_OUT_OF_MEMORY", 60).then_some(()))?;
    let mut r = base(sq, at, Kind::GpuAllocation, true);
    r.notes.push(DRIVER_NOTE.to_string());
    report(r, Some(requested))
}

/// Marks a report that came from the driver's line alone.
pub(crate) const DRIVER_NOTE: &str =
    "the driver's line; the allocator may have gone on with a smaller request";

/// `4.00GiB (4294967552B)`: the exact figure when there is one.
fn exact(c: &mut Cursor<'_>) -> Option<u64> {
    let rounded = c.size_or_int()?;
    let mut inner = c.clone();
    if inner.lit("(") {
        if let Some(exact) = inner.int() {
            *c = inner;
            return Some(exact);
        }
    }
    Some(rounded)
}

/// The limit set for a device.
pub(crate) fn parse_limit(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Notenoughmemorytoallocate").then_some(())?;
    let requested = c.size_or_int();
    c.lit("ondevice").then_some(())?;
    let mut r = base(sq, at, Kind::GpuAllocation, true);
    if c.skip_past("limit=", 80) {
        r.limit_bytes = c.size_or_int();
    }
    report(r, requested)
}

/// The CPU backend's.
pub(crate) fn parse_cpu(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Outofmemoryallocating").then_some(())?;
    let requested = requested(&mut c)?;
    report(base(sq, at, Kind::CpuAllocation, true), requested)
}

/// Pinned host memory of a GPU program: not the device's.
pub(crate) fn parse_pinned_host(sq: &Squeezed, at: usize, end: usize) -> Option<Found> {
    let mut c = Cursor::within(&sq.text, at, end);
    c.lit("Outofhostmemorywhiletryingtoallocate")
        .then_some(())?;
    let requested = requested(&mut c)?;
    let mut r = base(sq, at, Kind::HostOom, false);
    r.space = Some("host".to_string());
    r.notes
        .push("pinned host memory; XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB sets its limit".to_string());
    report(r, requested)
}

//! In: the values of one message. Out: which case of the guide it is.

use super::report::{Kind, OomReport, Scenario};

/// The scenario; `None` when nothing ran out.
pub(crate) fn decide(r: &OomReport) -> Option<Scenario> {
    Some(match r.kind {
        Kind::TpuCompileHbm => by_list(r),
        Kind::TpuCompileVmem => Scenario::Vmem,
        Kind::TpuCompileSmem => Scenario::Smem,
        Kind::TpuCompileSpace => match r.space.as_deref() {
            Some("host") => Scenario::HostMemory,
            _ => Scenario::Undetermined,
        },
        Kind::TpuScopedVmem => match r.space.as_deref() {
            Some("smem") => Scenario::Smem,
            _ => Scenario::ScopedVmem,
        },
        Kind::TpuSingleAllocation => single(r),
        Kind::TpuFastExit => Scenario::Undetermined,
        Kind::TpuTcSc => Scenario::TcScImbalance,
        Kind::TpuSparsecoreAlloca => Scenario::SparsecoreMemory,
        Kind::TpuRuntimeAllocation => match fits_in_pieces(r) {
            true => Scenario::RuntimeFragmentation,
            false => Scenario::RuntimeFull,
        },
        Kind::TpuProgramLoad => Scenario::ProgramLoad,
        Kind::GpuAllocation | Kind::GpuBufferAssignment | Kind::GpuBfc => gpu(r),
        Kind::CpuAllocation | Kind::HostOom => Scenario::HostMemory,
        Kind::TpuInputMismatch
        | Kind::TpuUsage
        | Kind::Warnings
        | Kind::FrameworkAccounting
        | Kind::TensorflowOp
        | Kind::LookAlike => return None,
    })
}

impl Scenario {
    /// One allocation over half of the limit, or many.
    pub(crate) fn of_largest(largest_bytes: u64, limit_bytes: u64) -> Scenario {
        match largest_bytes > limit_bytes / 2 {
            true => Scenario::LargeAllocation,
            false => Scenario::Aggregate,
        }
    }
}

fn by_list(r: &OomReport) -> Scenario {
    match (r.largest(), r.limit_bytes) {
        (Some(largest), Some(limit)) => Scenario::of_largest(largest.size_bytes, limit),
        _ => Scenario::Undetermined,
    }
}

fn single(r: &OomReport) -> Scenario {
    let tag = r
        .largest()
        .and_then(|a| a.label.as_deref())
        .unwrap_or_default();
    match r.space.as_deref() {
        Some("vmem") if tag.starts_with("scoped memory") => Scenario::ScopedVmem,
        Some("vmem") => Scenario::Vmem,
        Some("smem") => Scenario::Smem,
        _ => Scenario::LargeAllocation,
    }
}

/// Enough is free, in pieces too small for the request.
fn fits_in_pieces(r: &OomReport) -> bool {
    match (r.requested_bytes, r.free_bytes, r.largest_free_block_bytes) {
        (Some(asked), _, Some(largest)) => {
            asked > largest && r.free_bytes.is_none_or(|f| f >= asked)
        }
        (Some(asked), Some(free), None) => free >= asked,
        _ => false,
    }
}

/// GPU memory in pieces: what is free would do, or more than half of it is out of reach of any
/// one request. A largest block of 0 means that the allocator did not look.
fn gpu(r: &OomReport) -> Scenario {
    let allocator = r.chunks.as_ref().and_then(|c| c.allocator.as_deref());
    if allocator.is_some_and(|name| name.contains("host") || name.contains("cpu")) {
        return Scenario::HostMemory;
    }
    let largest = r.largest_free_block_bytes.filter(|&b| b > 0);
    match (r.requested_bytes, r.unused_bytes(), largest) {
        (Some(asked), Some(free), Some(largest))
            if largest < asked && (free >= asked || largest <= free / 2) =>
        {
            Scenario::GpuFragmentation
        }
        _ => Scenario::GpuAllocation,
    }
}

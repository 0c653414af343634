//! In: a capacity in the text. Out: the chip it fits, marked as a guess.

use super::report::{Certainty, DeviceGuess, Kind, OomReport};
use crate::chips::{gpu_with, tpu_with};
use crate::units;

/// The chip whose capacity this is; `None` when no or more than one capacity fits.
pub(crate) fn guess(r: &OomReport) -> Option<DeviceGuess> {
    let limit = r.limit_bytes?;
    let device = match r.kind {
        Kind::GpuAllocation | Kind::GpuBfc | Kind::GpuBufferAssignment => {
            gpu_with(|bytes| bytes == limit)?
        }
        // Exact sizes of physical memory: 16 GiB is several chips'. And the early stop takes
        // something off the capacity first.
        Kind::TpuSingleAllocation | Kind::TpuFastExit => return None,
        _ if r.in_hbm() => by_hbm(limit)?,
        _ => return None,
    };
    let from = format!("its limit of {}", units::bytes(limit));
    Some(DeviceGuess {
        device,
        certainty: Certainty::Guess,
        from,
    })
}

/// Compilers print hundredths of GiB: the neighbours 31.24 and 31.25 are two figures of one chip.
fn by_hbm(limit: u64) -> Option<&'static str> {
    tpu_with(|bytes| bytes.abs_diff(limit) < (1 << 30) / 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips() {
        let device = |hundredths: u64| by_hbm((hundredths << 30) / 100);
        assert_eq!(device(1575), Some("TPU v5e"));
        assert_eq!(device(3125), Some("TPU v6e"));
        assert_eq!(device(9475), Some("TPU v7x (one device)"));
        assert_eq!(device(1600), Some("TPU v3 (one core)"));
        assert_eq!(device(2000), None);
    }
}

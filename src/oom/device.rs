//! In: a capacity in the text. Out: the chip it fits, marked as a guess.

use super::report::{Certainty, DeviceGuess, Kind, OomReport};
use super::size::{human, prints_as};

/// Capacities as compilers print them, in hundredths of GiB.
const HBM: &[(u64, &str)] = &[
    (748, "TPU v2 (one core)"),
    (1548, "TPU v3 (one core)"),
    (1600, "TPU v3 (one core)"),
    (1525, "TPU v4 (one core)"),
    (3075, "TPU v4"),
    (1575, "TPU v5e"),
    (9573, "TPU v5p"),
    (9574, "TPU v5p"),
    (3124, "TPU v6e"),
    (3125, "TPU v6e"),
    (9474, "TPU v7x (one device)"),
    (9475, "TPU v7x (one device)"),
];
/// The H100 80GB HBM3, in bytes.
const H100_BYTES: u64 = 84_942_979_072;

/// The chip whose capacity this is; `None` when no or more than one capacity fits.
pub(crate) fn guess(r: &OomReport) -> Option<DeviceGuess> {
    let limit = r.limit_bytes?;
    let device = match r.kind {
        Kind::GpuAllocation | Kind::GpuBfc | Kind::GpuBufferAssignment => {
            (limit == H100_BYTES).then_some("H100 80GB HBM3")?
        }
        // Exact sizes of physical memory: 16 GiB is several chips'. And the early stop takes
        // something off the capacity first.
        Kind::TpuSingleAllocation | Kind::TpuFastExit => return None,
        _ if r.in_hbm() => by_hbm(limit)?,
        _ => return None,
    };
    let from = format!("its limit of {}", human(limit));
    Some(DeviceGuess {
        device,
        certainty: Certainty::Guess,
        from,
    })
}

fn by_hbm(limit: u64) -> Option<&'static str> {
    let mut found = None;
    for &(hundredths, device) in HBM {
        let bytes = (u128::from(hundredths) << 30) / 100;
        let bytes = u64::try_from(bytes).ok()?;
        // Printed figures, so a hundredth is exact: the neighbours 31.24 and 31.25 are one chip.
        if prints_as(limit, bytes) && bytes.abs_diff(limit) < (1 << 30) / 200 {
            if found.is_some_and(|f| f != device) {
                return None;
            }
            found = Some(device);
        }
    }
    found
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

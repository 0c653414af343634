//! What the digits that XLA prints of a size mean for a comparison; [`units`] reads and writes sizes.
//!
//! [`units`]: crate::units

/// The power of 1024 whose unit XLA prints a size in: it cuts whole powers off and never rounds up
/// to the next unit.
fn order(bytes: u64) -> u32 {
    bytes.checked_ilog2().unwrap_or(0) / 10
}

/// True when `bytes` would be printed as `printed` (K one decimal, M and above two).
pub fn prints_as(bytes: u64, printed: u64) -> bool {
    let step: u64 = match order(printed) {
        0 => 1,
        1 => 103,
        order => ((1 << (10 * order)) / 100) + 1,
    };
    bytes.abs_diff(printed) <= step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing() {
        assert!(prints_as(29_116_293_120, 29_119_878_267));
        assert!(!prints_as(29_016_293_120, 29_119_878_267));
    }
}

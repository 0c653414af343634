//! Sizes with the digits that XLA prints: what its rounding means for a comparison, and a reader
//! finds `27.12 GiB` of our text as `27.12G` in the log. Other output is [`units::bytes`]'s, which
//! keeps as many digits as matter; sizes are read there too.
//!
//! [`units::bytes`]: crate::units::bytes

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

/// Bytes as XLA prints them, for people: `27.12 GiB`, `528.5 KiB`, `204 B`.
pub fn human(bytes: u64) -> String {
    let order = order(bytes);
    let value = bytes as f64 / (1u64 << (10 * order)) as f64;
    match order {
        0 => format!("{bytes} B"),
        1 => format!("{value:.1} KiB"),
        2 => format!("{value:.2} MiB"),
        3 => format!("{value:.2} GiB"),
        4 => format!("{value:.2} TiB"),
        5 => format!("{value:.2} PiB"),
        _ => format!("{value:.2} EiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing() {
        assert_eq!(human(29_119_878_267), "27.12 GiB");
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(541_184), "528.5 KiB");
        assert_eq!(human(u64::MAX), "16.00 EiB");
        assert!(prints_as(29_116_293_120, 29_119_878_267));
        assert!(!prints_as(29_016_293_120, 29_119_878_267));
    }
}

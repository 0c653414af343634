//! Device kinds and their memory.

/// What is known of the device a program was compiled for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Name as the profile gives it, `TPU v6 lite`.
    pub kind: Option<String>,
    /// Device memory that programs can use, in bytes.
    pub hbm_capacity_bytes: Option<u64>,
    /// Where the capacity is from: `profile`, `device_kind`, `flag`.
    pub capacity_from: Option<&'static str>,
}

const fn gib_hundredths(hundredths: u64) -> u64 {
    // Compilers print GiB with two decimals, and this is what they print.
    hundredths * (1 << 30) / 100
}

/// Memory per device as the compilers count it, by name in profiles; most specific first.
const CAPACITIES: [(&str, u64); 12] = [
    ("tpu v2", gib_hundredths(748)),
    ("tpu v3", gib_hundredths(1548)),
    ("tpu v4", gib_hundredths(3075)),
    ("tpu v5 lite", gib_hundredths(1575)),
    ("tpu v5e", gib_hundredths(1575)),
    ("tpu v5p", gib_hundredths(9573)),
    ("tpu v5", gib_hundredths(9573)),
    ("tpu v6 lite", gib_hundredths(3124)),
    ("tpu v6e", gib_hundredths(3124)),
    ("tpu7x", gib_hundredths(9474)),
    ("tpu v7x", gib_hundredths(9474)),
    ("nvidia h100 80gb hbm3", 84_942_979_072),
];

/// Memory of a device by its name, in bytes, as the compiler counts it.
pub fn capacity_of(kind: &str) -> Option<u64> {
    let kind = kind.trim().to_ascii_lowercase();
    CAPACITIES
        .iter()
        .find(|(name, _)| *name == kind)
        .map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_profiles_have_capacities() {
        assert_eq!(capacity_of("TPU v5 lite"), Some(16_911_433_728));
        assert_eq!(capacity_of("TPU v6 Lite"), capacity_of("TPU v6e"));
        assert_eq!(capacity_of("TPU v5"), capacity_of("TPU v5p"));
        assert_eq!(capacity_of("toaster"), None);
    }
}

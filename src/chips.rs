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

/// A chip, or the part of one that a program sees as a device.
struct Chip {
    /// For people.
    title: &'static str,
    /// Names in profiles, lower case.
    names: &'static [&'static str],
    /// Memory of a device as compilers count it, in bytes; the usual figure first.
    memory: &'static [u64],
}

/// Compilers print GiB with two decimals, and this is what they print.
const fn gib(hundredths: u64) -> u64 {
    hundredths * (1 << 30) / 100
}

/// TPUs whose memory is known.
#[rustfmt::skip]
const TPUS: &[Chip] = &[
    Chip { title: "TPU v2 (one core)", names: &["tpu v2"], memory: &[gib(748)] },
    Chip { title: "TPU v3 (one core)", names: &["tpu v3"], memory: &[gib(1548), gib(1600)] },
    Chip { title: "TPU v4 (one core)", names: &[], memory: &[gib(1525)] },
    Chip { title: "TPU v4", names: &["tpu v4"], memory: &[gib(3075)] },
    Chip { title: "TPU v5e", names: &["tpu v5 lite", "tpu v5e"], memory: &[gib(1575)] },
    Chip { title: "TPU v5p", names: &["tpu v5p", "tpu v5"], memory: &[gib(9573), gib(9574)] },
    Chip { title: "TPU v6e", names: &["tpu v6 lite", "tpu v6e"], memory: &[gib(3124), gib(3125)] },
    Chip { title: "TPU v7x (one device)", names: &["tpu7x", "tpu v7x"], memory: &[gib(9474), gib(9475)] },
];

/// GPUs whose memory is known.
#[rustfmt::skip]
const GPUS: &[Chip] = &[
    Chip { title: "H100 80GB HBM3", names: &["nvidia h100 80gb hbm3"], memory: &[84_942_979_072] },
];

/// Memory of a device by its name, in bytes, as the compiler counts it.
pub fn capacity_of(kind: &str) -> Option<u64> {
    let kind = kind.trim().to_ascii_lowercase();
    let chip = TPUS
        .iter()
        .chain(GPUS)
        .find(|c| c.names.contains(&kind.as_str()))?;
    chip.memory.first().copied()
}

/// The one TPU that has a memory of which `fits` holds; `None` when none or several have.
pub fn tpu_with(fits: impl Fn(u64) -> bool) -> Option<&'static str> {
    only(TPUS, fits)
}

/// The same of GPUs.
pub fn gpu_with(fits: impl Fn(u64) -> bool) -> Option<&'static str> {
    only(GPUS, fits)
}

fn only(chips: &[Chip], fits: impl Fn(u64) -> bool) -> Option<&'static str> {
    let mut chips = chips.iter().filter(|c| c.memory.iter().any(|&m| fits(m)));
    let title = chips.next()?.title;
    chips.next().is_none().then_some(title)
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
        assert_eq!(tpu_with(|m| m == gib(1600)), Some("TPU v3 (one core)"));
        assert_eq!(tpu_with(|m| m > gib(9000)), None);
    }
}

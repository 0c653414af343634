//! Turning numbers into words: the only place that does.

/// `bytes` in binary units with about three or four significant digits: `26.41 GiB`, `96.0 MiB`,
/// `512 B`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.995 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit >= 2 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A difference in bytes with its sign: `-1.51 GiB`, `+96.0 MiB`, `0 B`.
pub fn delta(bytes_delta: i64) -> String {
    match bytes_delta.signum() {
        0 => "0 B".to_owned(),
        1 => format!("+{}", bytes(bytes_delta.unsigned_abs())),
        _ => format!("-{}", bytes(bytes_delta.unsigned_abs())),
    }
}

/// `part` of `whole` in per cent: `48 %`, `3.2 %`, `<0.1 %`; empty when `whole` is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let p = part as f64 * 100.0 / whole as f64;
    if part == 0 {
        "0 %".to_owned()
    } else if p < 0.1 {
        "<0.1 %".to_owned()
    } else if p < 9.95 {
        format!("{p:.1} %")
    } else if p >= 1000.0 {
        format!("{:.0}x", p / 100.0)
    } else if part < whole && p >= 99.5 {
        format!("{:.1} %", p.min(99.9))
    } else {
        format!("{p:.0} %")
    }
}

/// An expansion factor: `1.03x`, `42.7x`, `128x`.
pub fn factor(padded: u64, unpadded: u64) -> String {
    if unpadded == 0 {
        return "-".to_owned();
    }
    let f = padded as f64 / unpadded as f64;
    if f < 9.995 {
        format!("{f:.2}x")
    } else if f < 99.95 {
        format!("{f:.1}x")
    } else {
        format!("{f:.0}x")
    }
}

/// A count with thousands separated: `40,025`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Reads a size as the compilers print it: `15.75GiB`, `16G`, `512MiB`, `1024`, `1.5 T`. K, M, G
/// and T are binary. `None` for anything else, a negative number, or one beyond 2^64.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1u64 << shift);
    }
    if number.is_empty() || number == "." || (shift == 0 && number.contains('.')) {
        return None;
    }
    let value = number.parse::<f64>().ok()? * (1u64 << shift) as f64;
    (value.is_finite() && value < u64::MAX as f64).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pick_a_readable_unit() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(150 << 10), "150 KiB");
        assert_eq!(bytes(96 << 20), "96.0 MiB");
        assert_eq!(bytes(28_357_451_936), "26.41 GiB");
        assert_eq!(bytes((1 << 30) - 1), "1.00 GiB");
        assert_eq!(bytes(u64::MAX), "16.00 EiB");
    }

    #[test]
    fn sizes_read_as_compilers_print_them() {
        assert_eq!(parse_size("15.75GiB"), Some(16_911_433_728));
        assert_eq!(parse_size("16G"), Some(16 << 30));
        assert_eq!(parse_size("512 MiB"), Some(512 << 20));
        assert_eq!(parse_size("84942979072"), Some(84_942_979_072));
        for bad in [
            "",
            "G",
            "-1",
            "1.5",
            "1e9",
            "1X",
            "99999999999999999999",
            "1.2.3G",
        ] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn percentages_never_round_to_a_lie() {
        assert_eq!(percent(0, 10), "0 %");
        assert_eq!(percent(1, 100_000), "<0.1 %");
        assert_eq!(percent(999_999, 1_000_000), "99.9 %");
        assert_eq!(percent(10, 10), "100 %");
        assert_eq!(percent(1, 0), "");
        assert_eq!(percent(5000, 10), "500x");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
    }
}

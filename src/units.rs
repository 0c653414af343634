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

/// `after` less `before` with its sign, as [`delta`].
pub fn change(before: u64, after: u64) -> String {
    let change = i128::from(after) - i128::from(before);
    delta(change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
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

/// Most digits of a size, before and after the point together; no compiler prints more.
const MAX_DIGITS: usize = 20;

/// A decimal number: its digits without the point, and how many stand behind it.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// The number at the start of `text`, and its length.
    fn prefix(text: &[u8]) -> Option<(Decimal, usize)> {
        let whole = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let fraction = match text.get(whole..)?.split_first() {
            Some((b'.', rest)) => rest.iter().take_while(|b| b.is_ascii_digit()).count(),
            _ => 0,
        };
        let point = text.get(whole) == Some(&b'.');
        if whole == 0 || whole + fraction > MAX_DIGITS || (point && fraction == 0) {
            return None;
        }
        let len = whole + fraction + usize::from(point);
        let value = |n: u128, b: &u8| n * 10 + u128::from(b - b'0');
        let digits = text.get(..len)?.iter().filter(|b| **b != b'.');
        let decimal = Decimal {
            digits: digits.fold(0, value),
            decimals: u32::try_from(fraction).ok()?,
        };
        Some((decimal, len))
    }

    /// The number times 2^`shift`, rounded to a whole one.
    fn shifted(&self, shift: u32) -> Option<u64> {
        let scale = 10u128.checked_pow(self.decimals)?;
        let scaled = self.digits.checked_mul(1 << shift)?;
        u64::try_from(scaled.checked_add(scale / 2)? / scale).ok()
    }
}

/// Power of two of a unit's letter.
fn unit_shift(letter: u8) -> Option<u32> {
    let order = b"BKMGTPE".iter().position(|&b| b == letter)?;
    u32::try_from(order * 10).ok()
}

/// A size with its unit at the start of `text`, as compilers print it (`27.12G`, `24.6KiB`,
/// `204B`), and its length. Units are binary. A number without a unit is no size here.
pub fn size_prefix(text: &[u8]) -> Option<(u64, usize)> {
    let (number, n) = Decimal::prefix(text)?;
    let (letter, rest) = text.get(n..)?.split_first()?;
    let shift = unit_shift(*letter)?;
    let long = shift > 0 && rest.starts_with(b"iB");
    Some((number.shifted(shift)?, n + if long { 3 } else { 1 }))
}

/// Reads a size as people and compilers write it: `15.75GiB`, `16G`, `512MiB`, `1024`, `1.5 T`.
/// Units are binary, in capitals or not. `None` for anything else, a negative number, a part of a
/// byte, or one beyond 2^64.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, n) = Decimal::prefix(text.as_bytes())?;
    let unit = text.get(n..)?.trim().to_ascii_uppercase();
    let shift = match unit.as_str() {
        "" | "BYTES" => 0,
        _ => {
            let (letter, rest) = unit.as_bytes().split_first()?;
            matches!(rest, b"" | b"B" | b"IB").then_some(())?;
            unit_shift(*letter).filter(|&s| s > 0 || rest.is_empty())?
        }
    };
    (shift > 0 || number.decimals == 0).then_some(())?;
    number.shifted(shift)
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
        assert_eq!(parse_size("1.5 tb"), Some(3 << 39));
        assert_eq!(parse_size("512 bytes"), Some(512));
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
            "1.G",
            "1BiB",
            "1.5B",
            "99E",
        ] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_at_the_start_of_text() {
        for (text, bytes) in [
            ("27.12G", 29_119_878_267),
            ("15.48G", 16_621_523_436),
            ("3.84T", 4_222_124_650_660),
            ("24.6KiB", 25_190),
            ("10.04GiB", 10_780_367_913),
            ("420.0K", 430_080),
            ("224B", 224),
            ("0B", 0),
            ("3.47E", 4_000_637_620_985_759_007),
        ] {
            let all = Some((bytes, text.len()));
            assert_eq!(size_prefix(text.as_bytes()), all, "{text}");
        }
        assert_eq!(size_prefix(b"1.50Giraffe"), Some((1_610_612_736, 5)));
        for text in [
            "",
            "G",
            "12",
            "1.G",
            ".5G",
            "12x",
            "999999999999999999999G",
            "99E",
            "1,2G",
        ] {
            assert_eq!(size_prefix(text.as_bytes()), None, "{text}");
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

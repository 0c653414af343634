//! In: the digits and unit of a printed size. Out: bytes.
//!
//! ```text
//! size  = digits [ "." digits ] unit
//! unit  = "B" | K | M | G | T | P | E | KiB | MiB | ...      all binary; G = GiB
//! ```
//! A printed size is rounded; the value given back is the printed one, rounded to whole bytes.

/// Digits taken before and after the point; more is not a size any compiler prints.
const MAX_DIGITS: usize = 20;
const MAX_DECIMALS: usize = 6;

/// Reads a size at the start of `text`; gives bytes and how many characters it took.
///
/// A number without a unit is no size: see [`parse_int`].
pub fn parse_size(text: &[u8]) -> Option<(u64, usize)> {
    let (whole, decimals, n) = number(text)?;
    let unit = text.get(n..)?;
    let (shift, len) = unit_shift(unit)?;
    let scale = 10u128.checked_pow(u32::try_from(decimals).ok()?)?;
    let scaled = whole.checked_mul(1u128 << shift)?;
    let bytes = scaled.checked_add(scale / 2)? / scale;
    Some((u64::try_from(bytes).ok()?, n + len))
}

/// Reads an unsigned integer; gives the value and how many characters it took.
pub fn parse_int(text: &[u8]) -> Option<(u64, usize)> {
    let n = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if n == 0 || n > MAX_DIGITS {
        return None;
    }
    let digits = std::str::from_utf8(text.get(..n)?).ok()?;
    Some((digits.parse().ok()?, n))
}

/// Mantissa without its point, number of decimals, length.
fn number(text: &[u8]) -> Option<(u128, usize, usize)> {
    let mut value: u128 = 0;
    let (mut digits, mut decimals, mut n) = (0, 0, 0);
    let mut point = false;
    for &b in text {
        match b {
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(u128::from(b - b'0'))?;
                digits += 1;
                decimals += usize::from(point);
            }
            b'.' if !point && digits > 0 => point = true,
            _ => break,
        }
        n += 1;
        if digits > MAX_DIGITS || decimals > MAX_DECIMALS {
            return None;
        }
    }
    (digits > 0 && (!point || decimals > 0)).then_some((value, decimals, n))
}

/// Power of two of a unit, and its length.
fn unit_shift(unit: &[u8]) -> Option<(u32, usize)> {
    let shift = match unit.first()? {
        b'B' => return Some((0, 1)),
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        b'P' => 50,
        b'E' => 60,
        _ => return None,
    };
    Some((shift, if unit.get(1..3) == Some(b"iB") { 3 } else { 1 }))
}

/// True when `bytes` would be printed as `printed` (K one decimal, M and above two).
pub fn prints_as(bytes: u64, printed: u64) -> bool {
    let step: u64 = match printed {
        0..=1023 => 1,
        1024..=0xf_ffff => 103,
        _ => {
            let shift = (63 - printed.leading_zeros()) / 10 * 10;
            ((1u64 << shift) / 100).saturating_add(1)
        }
    };
    bytes.abs_diff(printed) <= step
}

/// Bytes for people: `27.12 GiB`, `528.5 KiB`, `204 B`.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let order = ((63 - bytes.leading_zeros()) / 10).min(6);
    let unit = UNITS.get(order as usize - 1).copied().unwrap_or("B");
    let value = bytes as f64 / (1u64 << (10 * order)) as f64;
    let decimals = if order == 1 { 1 } else { 2 };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_printed() {
        for (text, bytes) in [
            ("27.12G", 29_119_878_267),
            ("15.75G", 16_911_433_728),
            ("15.48G", 16_621_523_436),
            ("3.84T", 4_222_124_650_660),
            ("24.6KiB", 25_190),
            ("10.04GiB", 10_780_367_913),
            ("420.0K", 430_080),
            ("224B", 224),
            ("0B", 0),
            ("3.47E", 4_000_637_620_985_759_007),
        ] {
            assert_eq!(
                parse_size(text.as_bytes()),
                Some((bytes, text.len())),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_size() {
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
            assert_eq!(parse_size(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_size(b"1.50Giraffe"), Some((1_610_612_736, 5)));
    }

    #[test]
    fn printing() {
        assert_eq!(human(29_119_878_267), "27.12 GiB");
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(541_184), "528.5 KiB");
        assert!(prints_as(29_116_293_120, 29_119_878_267));
        assert!(!prints_as(29_016_293_120, 29_119_878_267));
    }
}

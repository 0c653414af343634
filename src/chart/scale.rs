//! Axes: from values to pixels, and round values to label. In: the largest value. Out: positions
//! and ticks.

use crate::units;

/// A straight map from `0..=max` to pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    max: f64,
    from: f32,
    to: f32,
}

impl Scale {
    /// 0 at pixel `from`, `max` at pixel `to`.
    pub(crate) fn new(max: u64, from: f32, to: f32) -> Self {
        let max = (max as f64).max(1.0);
        Scale { max, from, to }
    }

    /// Pixel of a value; values over the maximum lie at its end.
    pub(crate) fn at(&self, value: u64) -> f32 {
        let t = (value as f64 / self.max).min(1.0);
        (f64::from(self.from) + f64::from(self.to - self.from) * t) as f32
    }
}

/// Round values from 0 to `max`, at most about `count`, with their labels, in the one binary unit
/// that fits `max`.
pub(crate) fn byte_ticks(max: u64, count: u32) -> Vec<(u64, String)> {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    // 800 MiB reads better in MiB, 1100 MiB in GiB.
    let power = (max.max(1).ilog2() / 10).min(6);
    let one = (1u64 << (10 * power)) as f64;
    let name = UNITS.get(power as usize).copied().unwrap_or("B");
    let step = round_step(max as f64 / one, count, if power == 0 { 1.0 } else { 0.0 });
    let digits = if step >= 1.0 {
        0
    } else {
        (-step.log10()).ceil() as usize
    };
    let mut out = Vec::new();
    for i in 0..=4 * u64::from(count.max(1)) {
        let v = i as f64 * step;
        if v * one > max as f64 {
            break;
        }
        let label = if i == 0 {
            "0".to_owned()
        } else {
            format!("{v:.digits$} {name}")
        };
        out.push(((v * one) as u64, label));
    }
    out
}

/// Round whole numbers from 0 to `max`, at most about `count`, with their labels.
pub(crate) fn count_ticks(max: u64, count: u32) -> Vec<(u64, String)> {
    let step = round_step(max as f64, count, 1.0) as u64;
    (0..=4 * u64::from(count.max(1)))
        .map(|i| i.saturating_mul(step))
        .take_while(|v| *v <= max)
        .map(|v| (v, units::count(v)))
        .collect()
}

/// The smallest of 1, 2, 5 times a power of ten, at least `least`, of which `count` reach `max`.
fn round_step(max: f64, count: u32, least: f64) -> f64 {
    let rough = (max / f64::from(count.max(1))).max(least).max(1e-6);
    let ten = 10f64.powi(rough.log10().floor() as i32);
    let m = rough / ten;
    let step = [1.0, 2.0, 5.0, 10.0];
    ten * step.into_iter().find(|s| m <= s + 1e-9).unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(t: Vec<(u64, String)>) -> Vec<String> {
        t.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn byte_ticks_are_round_in_one_unit() {
        assert_eq!(
            labels(byte_ticks(27 << 30, 6)),
            ["0", "5 GiB", "10 GiB", "15 GiB", "20 GiB", "25 GiB"]
        );
        assert_eq!(
            labels(byte_ticks(1300 << 20, 6)),
            ["0", "0.5 GiB", "1.0 GiB"]
        );
        assert_eq!(labels(byte_ticks(3, 6)), ["0", "1 B", "2 B", "3 B"]);
        assert_eq!(labels(byte_ticks(0, 6)), ["0"]);
        assert!(byte_ticks(u64::MAX, 6).len() > 3);
    }

    #[test]
    fn count_ticks_are_whole() {
        assert_eq!(labels(count_ticks(1, 8)), ["0", "1"]);
        assert_eq!(
            labels(count_ticks(4100, 5)),
            ["0", "1,000", "2,000", "3,000", "4,000"]
        );
        assert_eq!(labels(count_ticks(0, 5)), ["0"]);
    }

    #[test]
    fn values_map_in_proportion_and_stop_at_the_end() {
        let s = Scale::new(200, 10.0, 110.0);
        assert_eq!(
            (s.at(0), s.at(100), s.at(200), s.at(999)),
            (10.0, 60.0, 110.0, 110.0)
        );
        let down = Scale::new(0, 50.0, 10.0);
        assert_eq!(down.at(0), 50.0);
    }
}

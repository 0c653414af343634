//! How much a change can save at most: the peak that is left when blocks are gone.
//!
//! In: a space's use and live ranges. Out: the largest total over all program points without them.

use crate::memory::SpaceUsage;

/// Peak of the space without blocks of the main arena (`gone`: first point, end, bytes) and
/// without `whole_program_bytes` that are alive all the time.
pub fn peak_without(usage: &SpaceUsage, gone: &[(u32, u32, u64)], whole_program_bytes: u64) -> u64 {
    let timeline = usage.timeline();
    if timeline.is_empty() {
        return usage.peak_bytes().saturating_sub(whole_program_bytes);
    }
    let last = timeline.len();
    let mut starts = vec![0u128; last + 1];
    let mut ends = vec![0u128; last + 1];
    for &(from, to, bytes) in gone {
        let (from, to) = ((from as usize).min(last), (to as usize).min(last));
        if from >= to {
            continue;
        }
        if let (Some(s), Some(e)) = (starts.get_mut(from), ends.get_mut(to)) {
            *s += u128::from(bytes);
            *e += u128::from(bytes);
        }
    }
    let mut removed = 0u128;
    let mut peak = 0;
    for ((total, start), end) in timeline.iter().zip(&starts).zip(&ends) {
        removed = (removed + start).saturating_sub(*end);
        let removed = u64::try_from(removed).unwrap_or(u64::MAX);
        peak = peak.max(total.saturating_sub(removed));
    }
    peak.saturating_sub(whole_program_bytes)
}

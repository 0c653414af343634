//! Colours: one for each thing, the same in every chart. Kinds take the colours of Okabe and Ito,
//! which people with any colour vision can tell apart.

use crate::hlo::AllocationKind;

/// A colour with opacity, each part 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color {
    /// Red.
    pub r: u8,
    /// Green.
    pub g: u8,
    /// Blue.
    pub b: u8,
    /// Opacity.
    pub a: u8,
}

const fn rgb(hex: u32) -> Color {
    Color {
        r: (hex >> 16) as u8,
        g: (hex >> 8) as u8,
        b: hex as u8,
        a: 255,
    }
}

/// Behind everything.
pub const BACKGROUND: Color = rgb(0xFFFFFF);
/// Titles and values.
pub const TEXT: Color = rgb(0x1F2328);
/// Secondary text.
pub const MUTED: Color = rgb(0x59636E);
/// Grid lines.
pub const GRID: Color = rgb(0xE4E8EC);
/// Axis lines.
pub const AXIS: Color = rgb(0x9AA4AF);
/// Empty part of a bar, free memory.
pub const TRACK: Color = rgb(0xEFF2F5);
/// The peak.
pub const PEAK: Color = rgb(0xC8102E);
/// The device's capacity.
pub const CAPACITY: Color = rgb(0x1F2328);
/// Memory without its tile padding.
pub const UNPADDED: Color = rgb(0x1F2328);
/// What is not listed.
pub const OTHER: Color = rgb(0xB4BCC5);

/// Colour of a kind of allocation.
pub fn of_kind(kind: AllocationKind) -> Color {
    match kind {
        AllocationKind::Parameter => rgb(0x0072B2),
        AllocationKind::Donated => rgb(0x56B4E9),
        AllocationKind::Output => rgb(0x009E73),
        AllocationKind::Constant => rgb(0xCC79A7),
        AllocationKind::Temporary => rgb(0xE69F00),
        AllocationKind::ThreadLocal => OTHER,
    }
}

/// Shades of the temporaries' colour, small to large.
pub const TEMPORARY_SHADES: [Color; 5] = [
    rgb(0xFAE6BE),
    rgb(0xF6CF7C),
    rgb(0xE9A92A),
    rgb(0xCC8400),
    rgb(0x9C5A00),
];

impl Color {
    /// The same colour mixed with white: 0 stays, 1 is white.
    pub fn tint(self, amount: f32) -> Color {
        let mix = |c: u8| {
            let c = f32::from(c);
            (c + (255.0 - c) * amount.clamp(0.0, 1.0)).round() as u8
        };
        Color {
            r: mix(self.r),
            g: mix(self.g),
            b: mix(self.b),
            a: self.a,
        }
    }

    /// The same colour with another opacity.
    pub fn alpha(self, a: u8) -> Color {
        Color { a, ..self }
    }

    /// Dark text or white, whichever reads better on this colour.
    pub fn text_on(self) -> Color {
        if 1.05 / (self.luminance() + 0.05) > (self.luminance() + 0.05) / (TEXT.luminance() + 0.05)
        {
            BACKGROUND
        } else {
            TEXT
        }
    }

    /// Relative luminance, 0 to 1 (WCAG 2).
    fn luminance(self) -> f32 {
        let linear = |c: u8| {
            let c = f32::from(c) / 255.0;
            if c <= 0.040_45 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(self.r) + 0.7152 * linear(self.g) + 0.0722 * linear(self.b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_and_their_text_reads() {
        use AllocationKind::*;
        let kinds = [Parameter, Donated, Output, Constant, Temporary];
        for (i, a) in kinds.iter().enumerate() {
            for b in kinds.iter().skip(i + 1) {
                assert_ne!(of_kind(*a), of_kind(*b));
            }
            let (c, t) = (of_kind(*a), of_kind(*a).text_on());
            let (hi, lo) = (
                c.luminance().max(t.luminance()),
                c.luminance().min(t.luminance()),
            );
            assert!((hi + 0.05) / (lo + 0.05) > 4.5, "{a:?}");
        }
    }

    #[test]
    fn tint_ends_are_the_colour_and_white() {
        assert_eq!(PEAK.tint(0.0), PEAK);
        assert_eq!(PEAK.tint(1.0), BACKGROUND);
    }
}

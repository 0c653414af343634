//! The font that ships inside: DejaVu Sans, regular and bold. In: text and a size. Out: its width,
//! and its outlines as path commands.

use ab_glyph::{Font, FontRef, OutlineCurve};

use crate::error::{Error, Result};

/// Name and stand-ins of the font for SVG viewers; Verdana has nearly the same widths.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, Arial, sans-serif";

/// Both faces, parsed.
pub(crate) struct Fonts {
    regular: FontRef<'static>,
    bold: FontRef<'static>,
}

// One call site a face: a second one would link the face's data a second time.
#[inline(never)]
fn regular_face() -> &'static [u8] {
    dejavu::sans::regular()
}

#[inline(never)]
fn bold_face() -> &'static [u8] {
    dejavu::sans::bold()
}

/// One command of a text's outline, in pixels, y down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outline {
    Move(f32, f32),
    Line(f32, f32),
    Quad(f32, f32, f32, f32),
    Cubic(f32, f32, f32, f32, f32, f32),
    Close,
}

impl Fonts {
    pub(crate) fn load() -> Result<Self> {
        let face = |bytes| {
            FontRef::try_from_slice(bytes)
                .map_err(|e| Error::missing(format!("the built-in font is damaged: {e}"), ""))
        };
        Ok(Fonts {
            regular: face(regular_face())?,
            bold: face(bold_face())?,
        })
    }

    fn face(&self, bold: bool) -> &FontRef<'static> {
        if bold {
            &self.bold
        } else {
            &self.regular
        }
    }

    /// Width of `text` at `px` pixels an em.
    pub(crate) fn width(&self, text: &str, px: f32, bold: bool) -> f32 {
        let font = self.face(bold);
        let mut before = None;
        let mut width = 0.0;
        for c in text.chars() {
            let id = font.glyph_id(c);
            if let Some(p) = before {
                width += font.kern_unscaled(p, id);
            }
            width += font.h_advance_unscaled(id);
            before = Some(id);
        }
        width * px / font.units_per_em().unwrap_or(2048.0)
    }

    /// Outlines of `text`, its left end of the baseline at the origin.
    pub(crate) fn outline(&self, text: &str, px: f32, bold: bool) -> Vec<Outline> {
        let font = self.face(bold);
        let k = px / font.units_per_em().unwrap_or(2048.0);
        let mut out = Vec::new();
        let mut before = None;
        let mut x = 0.0f32;
        for c in text.chars() {
            let id = font.glyph_id(c);
            if let Some(p) = before {
                x += font.kern_unscaled(p, id) * k;
            }
            before = Some(id);
            if let Some(glyph) = font.outline(id) {
                contours(&glyph.curves, |p| (x + p.x * k, -p.y * k), &mut out);
            }
            x += font.h_advance_unscaled(id) * k;
        }
        out
    }
}

/// Curves come as one list without moves: a contour ends where the next curve starts elsewhere.
fn contours(
    curves: &[OutlineCurve],
    at: impl Fn(ab_glyph::Point) -> (f32, f32),
    out: &mut Vec<Outline>,
) {
    let mut pen = None;
    for curve in curves {
        let from = match curve {
            OutlineCurve::Line(a, _)
            | OutlineCurve::Quad(a, _, _)
            | OutlineCurve::Cubic(a, _, _, _) => at(*a),
        };
        if pen != Some(from) {
            if pen.is_some() {
                out.push(Outline::Close);
            }
            out.push(Outline::Move(from.0, from.1));
        }
        pen = Some(match curve {
            OutlineCurve::Line(_, b) => {
                let b = at(*b);
                out.push(Outline::Line(b.0, b.1));
                b
            }
            OutlineCurve::Quad(_, c, b) => {
                let (c, b) = (at(*c), at(*b));
                out.push(Outline::Quad(c.0, c.1, b.0, b.1));
                b
            }
            OutlineCurve::Cubic(_, c, d, b) => {
                let (c, d, b) = (at(*c), at(*d), at(*b));
                out.push(Outline::Cubic(c.0, c.1, d.0, d.1, b.0, b.1));
                b
            }
        });
    }
    if pen.is_some() {
        out.push(Outline::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_grows_with_text_size_and_weight() -> Result<()> {
        let fonts = Fonts::load()?;
        let w = fonts.width("peak", 24.0, false);
        assert!(w > 24.0 && w < 96.0);
        assert!((fonts.width("peak", 48.0, false) - 2.0 * w).abs() < 0.01);
        assert!(fonts.width("peak", 24.0, true) > w);
        assert_eq!(fonts.width("", 24.0, false), 0.0);
        Ok(())
    }

    #[test]
    fn every_contour_is_closed() -> Result<()> {
        let out = Fonts::load()?.outline("8é…×", 20.0, false);
        let count = |f: fn(&Outline) -> bool| out.iter().filter(|o| f(o)).count();
        let moves = count(|o| matches!(o, Outline::Move(..)));
        assert!(moves > 6);
        assert_eq!(moves, count(|o| matches!(o, Outline::Close)));
        Ok(())
    }
}

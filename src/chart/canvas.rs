//! A page to draw on, in logical pixels, over any plotters backend: rectangles, lines, hatching,
//! measured text. In: drawing calls. Out: the backend, or the first error.

use std::convert::Infallible;

use plotters_backend::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, FontFamily,
    FontStyle, FontTransform,
};

use super::font::{Fonts, FAMILY};
use super::palette::Color;
use super::skia::{BASELINE, PLOTTERS_EM};

/// Units of the backend a logical pixel: plotters' coordinates are whole numbers, and half a pixel
/// must be possible.
pub(crate) const UNITS: u32 = 2;

/// A rectangle; `y` grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub x: f32,
    pub y: f32,
    pub w: f32,
    pub h: f32,
}

impl Area {
    pub(crate) fn new(x: f32, y: f32, w: f32, h: f32) -> Self {
        let (w, h) = (w.max(0.0), h.max(0.0));
        Area { x, y, w, h }
    }

    pub(crate) fn right(&self) -> f32 {
        self.x + self.w
    }

    pub(crate) fn bottom(&self) -> f32 {
        self.y + self.h
    }

    /// Without a border of `by` on every side.
    pub(crate) fn inset(&self, by: f32) -> Self {
        Area::new(
            self.x + by,
            self.y + by,
            self.w - 2.0 * by,
            self.h - 2.0 * by,
        )
    }
}

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Font {
    pub px: f32,
    pub bold: bool,
    pub color: Color,
}

impl Font {
    pub(crate) const fn new(px: f32, color: Color) -> Self {
        let bold = false;
        Font { px, bold, color }
    }

    pub(crate) const fn bold(px: f32, color: Color) -> Self {
        let bold = true;
        Font { px, bold, color }
    }
}

/// Where a text's x is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Center,
    Right,
}

/// The page.
pub(crate) struct Canvas<'f, B: DrawingBackend> {
    backend: B,
    fonts: &'f Fonts,
    failed: Option<String>,
}

struct Ink {
    color: Color,
    width: u32,
}

impl BackendStyle for Ink {
    fn color(&self) -> BackendColor {
        backend_color(self.color)
    }

    fn stroke_width(&self) -> u32 {
        self.width
    }
}

struct TextInk {
    font: Font,
    align: Align,
    turn: FontTransform,
}

impl BackendTextStyle for TextInk {
    type FontError = Infallible;

    fn color(&self) -> BackendColor {
        backend_color(self.font.color)
    }

    fn size(&self) -> f64 {
        f64::from(self.font.px) * f64::from(UNITS) * PLOTTERS_EM
    }

    fn transform(&self) -> FontTransform {
        self.turn.clone()
    }

    fn style(&self) -> FontStyle {
        if self.font.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        }
    }

    fn anchor(&self) -> Pos {
        let h = match self.align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        Pos::new(h, VPos::Top)
    }

    fn family(&self) -> FontFamily<'_> {
        FontFamily::Name(FAMILY)
    }

    fn layout_box(&self, _: &str) -> Result<((i32, i32), (i32, i32)), Infallible> {
        Ok(((0, 0), (0, 0)))
    }

    fn draw<E, F: FnMut(i32, i32, BackendColor) -> Result<(), E>>(
        &self,
        _: &str,
        _: BackendCoord,
        _: F,
    ) -> Result<Result<(), E>, Infallible> {
        Ok(Ok(()))
    }
}

fn backend_color(c: Color) -> BackendColor {
    BackendColor {
        // Two decimals are enough for the eye, and shorter in SVG.
        alpha: (f64::from(c.a) / 2.55).round() / 100.0,
        rgb: (c.r, c.g, c.b),
    }
}

fn unit(v: f32) -> i32 {
    (v * UNITS as f32).round() as i32
}

fn units(p: (f32, f32)) -> BackendCoord {
    (unit(p.0), unit(p.1))
}

impl<'f, B: DrawingBackend> Canvas<'f, B> {
    pub(crate) fn new(backend: B, fonts: &'f Fonts) -> Self {
        Canvas {
            backend,
            fonts,
            failed: None,
        }
    }

    /// Ends the page; the first thing that went wrong, if any.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let done = self.backend.present();
        self.note(done);
        self.failed.map_or(Ok(()), Err)
    }

    fn note<E: std::fmt::Display>(&mut self, done: Result<(), E>) {
        if let (Err(e), None) = (done, &self.failed) {
            self.failed = Some(e.to_string());
        }
    }

    /// A filled rectangle.
    pub(crate) fn rect(&mut self, a: Area, color: Color) {
        let (from, to) = (units((a.x, a.y)), units((a.right(), a.bottom())));
        if from.0 < to.0 && from.1 < to.1 {
            let done = self
                .backend
                .draw_rect(from, to, &Ink { color, width: 0 }, true);
            self.note(done);
        }
    }

    /// A straight line or a bent one, `width` logical pixels thick.
    pub(crate) fn line(&mut self, points: &[(f32, f32)], color: Color, width: f32) {
        if points.len() > 1 {
            let width = unit(width).max(1) as u32;
            let points = points.iter().map(|p| units(*p));
            let done = self.backend.draw_path(points, &Ink { color, width });
            self.note(done);
        }
    }

    /// A line of dashes, `on` pixels drawn and `off` left out.
    pub(crate) fn dashed(
        &mut self,
        points: &[(f32, f32)],
        color: Color,
        width: f32,
        (on, off): (f32, f32),
    ) {
        let (on, off) = (on.max(1.0), off.max(1.0));
        let mut left = on;
        let mut drawing = true;
        let mut dash: Vec<(f32, f32)> = points.first().copied().into_iter().collect();
        for (&from, &to) in points.iter().zip(points.iter().skip(1)) {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            let mut done = 0.0;
            while length - done > left {
                done += left;
                let t = done / length;
                let p = (from.0 + (to.0 - from.0) * t, from.1 + (to.1 - from.1) * t);
                if drawing {
                    dash.push(p);
                    self.line(&dash, color, width);
                }
                dash.clear();
                dash.push(p);
                drawing = !drawing;
                left = if drawing { on } else { off };
            }
            left -= length - done;
            if drawing {
                dash.push(to);
            }
        }
        if drawing {
            self.line(&dash, color, width);
        }
    }

    /// A filled polygon.
    pub(crate) fn polygon(&mut self, points: &[(f32, f32)], color: Color) {
        if points.len() > 2 {
            let points = points.iter().map(|p| units(*p));
            let done = self.backend.fill_polygon(points, &Ink { color, width: 0 });
            self.note(done);
        }
    }

    /// A filled circle.
    pub(crate) fn dot(&mut self, (x, y): (f32, f32), radius: f32, color: Color) {
        let radius = unit(radius).max(1) as u32;
        let ink = Ink { color, width: 0 };
        let done = self.backend.draw_circle(units((x, y)), radius, &ink, true);
        self.note(done);
    }

    /// Diagonal stripes over a rectangle, `step` pixels apart.
    pub(crate) fn hatch(&mut self, a: Area, color: Color, step: f32) {
        let step = step.max(2.0);
        // Stripes lie on x + y = a multiple of the step, so those of neighbours meet.
        let first = ((a.x + a.y) / step).ceil() as i64;
        let last = ((a.right() + a.bottom()) / step).floor() as i64;
        for i in first..=last.min(first + 10_000) {
            let sum = i as f32 * step;
            let x0 = a.x.max(sum - a.bottom());
            let x1 = a.right().min(sum - a.y);
            if x1 - x0 > 0.5 {
                self.line(&[(x0, sum - x0), (x1, sum - x1)], color, 1.5);
            }
        }
    }

    /// Width of a text.
    pub(crate) fn width(&self, text: &str, font: Font) -> f32 {
        self.fonts.width(text, font.px, font.bold)
    }

    /// A text on the baseline `y`.
    pub(crate) fn text(&mut self, text: &str, (x, y): (f32, f32), font: Font, align: Align) {
        let clean: String;
        let text = if text.contains(char::is_control) {
            clean = text.replace(char::is_control, " ");
            &clean
        } else {
            text
        };
        if text.is_empty() {
            return;
        }
        let top = y - BASELINE * font.px;
        let turn = FontTransform::None;
        let ink = TextInk { font, align, turn };
        let done = self.backend.draw_text(text, &ink, units((x, top)));
        self.note(done);
    }

    /// A text cut in its middle to at most `max` pixels.
    pub(crate) fn elide(&self, text: &str, font: Font, max: f32) -> String {
        if self.width(text, font) <= max {
            return text.to_owned();
        }
        let chars: Vec<char> = text.chars().take(20_000).collect();
        // The end of an op name says more than its beginning.
        let cut = |keep: usize| {
            let head = keep * 2 / 5;
            let tail = keep - head;
            let mut out: String = chars.iter().take(head).collect();
            out.push('…');
            out.extend(chars.iter().skip(chars.len() - tail.min(chars.len())));
            out
        };
        let (mut fits, mut too_long) = (0, chars.len());
        while too_long - fits > 1 {
            let keep = fits + (too_long - fits) / 2;
            if self.width(&cut(keep), font) <= max {
                fits = keep;
            } else {
                too_long = keep;
            }
        }
        cut(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::palette;
    use crate::chart::recorder::Recorder;

    const FONT: Font = Font::new(24.0, palette::TEXT);

    fn recorded(
        draw: impl FnOnce(&mut Canvas<'_, &mut Recorder>),
    ) -> crate::error::Result<Recorder> {
        let fonts = Fonts::load()?;
        let mut r = Recorder::new(400, 300);
        let mut c = Canvas::new(&mut r, &fonts);
        draw(&mut c);
        assert_eq!(c.finish(), Ok(()));
        Ok(r)
    }

    #[test]
    fn rectangles_keep_half_pixels_and_empty_ones_are_left_out() -> crate::error::Result<()> {
        let r = recorded(|c| {
            c.rect(Area::new(10.0, 20.0, 30.5, 5.0), palette::PEAK);
            c.rect(Area::new(10.0, 20.0, 0.0, 5.0), palette::PEAK);
            c.rect(Area::new(10.0, 20.0, -3.0, 5.0), palette::PEAK);
        })?;
        assert_eq!(r.rects.len(), 1);
        assert_eq!(r.rects[0].0, Area::new(10.0, 20.0, 30.5, 5.0));
        Ok(())
    }

    #[test]
    fn stripes_stay_in_their_rectangle() -> crate::error::Result<()> {
        let a = Area::new(13.0, 7.0, 101.0, 17.0);
        let r = recorded(|c| c.hatch(a, palette::TEXT, 6.0))?;
        assert!(r.lines.len() > 10);
        for (x, y) in r.lines.iter().flatten() {
            assert!(*x >= a.x - 0.5 && *x <= a.right() + 0.5, "{x}");
            assert!(*y >= a.y - 0.5 && *y <= a.bottom() + 0.5, "{y}");
        }
        Ok(())
    }

    #[test]
    fn dashes_cover_the_drawn_part_only() -> crate::error::Result<()> {
        let r = recorded(|c| {
            c.dashed(
                &[(0.0, 10.0), (50.0, 10.0), (100.0, 10.0)],
                FONT.color,
                1.0,
                (6.0, 4.0),
            );
        })?;
        let drawn: f32 = r.lines.iter().map(|l| l[l.len() - 1].0 - l[0].0).sum();
        assert!((drawn - 60.0).abs() < 1.0, "{drawn}");
        Ok(())
    }

    #[test]
    fn cut_texts_fit_and_keep_both_ends() -> crate::error::Result<()> {
        let fonts = Fonts::load()?;
        let mut r = Recorder::new(10, 10);
        let c = Canvas::new(&mut r, &fonts);
        let name = "jit(train_step)/transpose(jvp(Transformer))/layers_17/attention/dot_general";
        for max in [60.0, 120.0, 333.0, 700.0] {
            let cut = c.elide(name, FONT, max);
            assert!(c.width(&cut, FONT) <= max, "{cut}");
            assert!(cut.contains('…') && cut.ends_with("al") || max < 100.0);
        }
        assert_eq!(c.elide("short", FONT, 500.0), "short");
        assert_eq!(c.elide("short", FONT, 0.0), "…");
        assert_eq!(c.elide("", FONT, 0.0), "");
        Ok(())
    }
}

//! For tests: a backend that keeps what was drawn, in logical pixels, instead of drawing it.

use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontStyle,
};

use super::canvas::{Area, UNITS};
use super::font::Fonts;
use super::skia::{Never, PLOTTERS_EM};

/// What was drawn, in order.
pub(crate) struct Recorder {
    size: (u32, u32),
    pub rects: Vec<(Area, (u8, u8, u8))>,
    pub lines: Vec<Vec<(f32, f32)>>,
    /// Texts with the boxes around their capitals.
    pub texts: Vec<(String, Area)>,
    fonts: Option<Fonts>,
}

type Drawn = Result<(), DrawingErrorKind<Never>>;

fn logical(v: i32) -> f32 {
    v as f32 / UNITS as f32
}

impl Recorder {
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Recorder {
            size: (width, height),
            rects: Vec::new(),
            lines: Vec::new(),
            texts: Vec::new(),
            fonts: Fonts::load().ok(),
        }
    }

    /// Pairs of texts that touch.
    pub(crate) fn overlaps(&self) -> Vec<(&str, &str)> {
        let mut out = Vec::new();
        for (i, (a_text, a)) in self.texts.iter().enumerate() {
            for (b_text, b) in self.texts.iter().skip(i + 1) {
                if a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom() {
                    out.push((a_text.as_str(), b_text.as_str()));
                }
            }
        }
        out
    }

    /// Texts that leave the page.
    pub(crate) fn outside(&self) -> Vec<&str> {
        let (w, h) = (self.size.0 as f32, self.size.1 as f32);
        self.texts
            .iter()
            .filter(|(_, a)| a.x < 0.0 || a.y < 0.0 || a.right() > w || a.bottom() > h)
            .map(|(t, _)| t.as_str())
            .collect()
    }
}

impl DrawingBackend for &mut Recorder {
    type ErrorType = Never;

    fn get_size(&self) -> (u32, u32) {
        (self.size.0 * UNITS, self.size.1 * UNITS)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, _: BackendCoord, _: BackendColor) -> Drawn {
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        a: BackendCoord,
        b: BackendCoord,
        style: &S,
        _: bool,
    ) -> Drawn {
        let (x, y) = (logical(a.0), logical(a.1));
        let area = Area::new(x, y, logical(b.0) - x, logical(b.1) - y);
        self.rects.push((area, style.color().rgb));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        _: &S,
    ) -> Drawn {
        let points = points.into_iter().map(|p| (logical(p.0), logical(p.1)));
        self.lines.push(points.collect());
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(&mut self, _: BackendCoord, _: u32, _: &S, _: bool) -> Drawn {
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        _: I,
        _: &S,
    ) -> Drawn {
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let px = (style.size() / PLOTTERS_EM) as f32 / UNITS as f32;
        let bold = matches!(style.style(), FontStyle::Bold);
        let width = self.fonts.as_ref().map_or(0.0, |f| f.width(text, px, bold));
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => width / 2.0,
            HPos::Right => width,
        };
        let capitals = Area::new(logical(at.0) - left, logical(at.1), width, 0.8 * px);
        self.texts.push((text.to_owned(), capitals));
        Ok(())
    }
}

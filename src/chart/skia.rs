//! A plotters backend that draws on a tiny-skia pixmap. In: drawing calls in units that are
//! `1 / scale` of a pixel. Out: PNG bytes.

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontStyle, FontTransform,
};
use tiny_skia::{
    FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform,
};

use super::font::{Fonts, Outline};

/// Font sizes in plotters are this many times the em (its SVG backend says so too).
pub(crate) const PLOTTERS_EM: f64 = 1.24;
/// Where a line of text has its baseline below its top, in ems (again as in plotters' SVG).
pub(crate) const BASELINE: f32 = 0.76;

/// The pixmap and what is needed to draw text on it.
pub(crate) struct SkiaBackend<'a> {
    pixmap: &'a mut Pixmap,
    fonts: &'a Fonts,
    units: (u32, u32),
    scale: f32,
}

/// Drawing on a pixmap cannot fail.
#[derive(Debug)]
pub(crate) enum Never {}

impl std::fmt::Display for Never {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

impl std::error::Error for Never {}

type Drawn = Result<(), DrawingErrorKind<Never>>;

impl<'a> SkiaBackend<'a> {
    /// A backend over all of `pixmap`, with `per_pixel` units a pixel.
    pub(crate) fn new(pixmap: &'a mut Pixmap, fonts: &'a Fonts, per_pixel: u32) -> Self {
        let per_pixel = per_pixel.max(1);
        let units = (
            pixmap.width().saturating_mul(per_pixel),
            pixmap.height().saturating_mul(per_pixel),
        );
        SkiaBackend {
            pixmap,
            fonts,
            units,
            scale: 1.0 / per_pixel as f32,
        }
    }

    fn at(&self, c: BackendCoord) -> (f32, f32) {
        (c.0 as f32 * self.scale, c.1 as f32 * self.scale)
    }

    fn polyline(
        &self,
        points: impl IntoIterator<Item = BackendCoord>,
        close: bool,
    ) -> Option<Path> {
        let mut path = PathBuilder::new();
        for c in points {
            let (x, y) = self.at(c);
            if path.is_empty() {
                path.move_to(x, y);
            } else {
                path.line_to(x, y);
            }
        }
        if close && !path.is_empty() {
            path.close();
        }
        path.finish()
    }

    fn fill(&mut self, path: &Path, color: BackendColor) {
        self.pixmap.fill_path(
            path,
            &paint(color),
            FillRule::Winding,
            Transform::identity(),
            None,
        );
    }

    fn stroke(&mut self, path: &Path, style: &impl BackendStyle) {
        let stroke = Stroke {
            width: style.stroke_width() as f32 * self.scale,
            line_join: LineJoin::Round,
            line_cap: LineCap::Butt,
            ..Stroke::default()
        };
        let paint = paint(style.color());
        self.pixmap
            .stroke_path(path, &paint, &stroke, Transform::identity(), None);
    }
}

fn paint(c: BackendColor) -> Paint<'static> {
    let mut paint = Paint::default();
    let (r, g, b) = c.rgb;
    paint.set_color_rgba8(r, g, b, (c.alpha.clamp(0.0, 1.0) * 255.0).round() as u8);
    paint.anti_alias = true;
    paint
}

impl DrawingBackend for SkiaBackend<'_> {
    type ErrorType = Never;

    fn get_size(&self) -> (u32, u32) {
        self.units
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, p: BackendCoord, color: BackendColor) -> Drawn {
        let (x, y) = self.at(p);
        if let Some(r) = Rect::from_xywh(x, y, self.scale, self.scale) {
            self.pixmap
                .fill_rect(r, &paint(color), Transform::identity(), None);
        }
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, s: &S) -> Drawn {
        self.draw_path([a, b], s)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        a: BackendCoord,
        b: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let ((ax, ay), (bx, by)) = (self.at(a), self.at(b));
        let rect = Rect::from_ltrb(ax.min(bx), ay.min(by), ax.max(bx), ay.max(by));
        match rect {
            Some(r) if fill => {
                self.pixmap
                    .fill_rect(r, &paint(style.color()), Transform::identity(), None)
            }
            Some(r) => self.stroke(&PathBuilder::from_rect(r), style),
            None => {}
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        if let Some(path) = self.polyline(points, false) {
            self.stroke(&path, style);
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let (x, y) = self.at(center);
        if let Some(path) = PathBuilder::from_circle(x, y, radius as f32 * self.scale) {
            if fill {
                self.fill(&path, style.color());
            } else {
                self.stroke(&path, style);
            }
        }
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        if let Some(path) = self.polyline(points, true) {
            self.fill(&path, style.color());
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Never>> {
        let em = style.size() / PLOTTERS_EM;
        let width = self.fonts.width(text, em as f32, is_bold(style));
        Ok((width.ceil() as u32, em.ceil() as u32))
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        pos: BackendCoord,
    ) -> Drawn {
        let px = (style.size() / PLOTTERS_EM) as f32 * self.scale;
        let bold = is_bold(style);
        let dx = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -self.fonts.width(text, px, bold) / 2.0,
            HPos::Right => -self.fonts.width(text, px, bold),
        };
        let dy = match style.anchor().v_pos {
            VPos::Top => BASELINE * px,
            VPos::Center => 0.27 * px,
            VPos::Bottom => -0.27 * px,
        };
        let mut path = PathBuilder::new();
        for o in self.fonts.outline(text, px, bold) {
            match o {
                Outline::Move(x, y) => path.move_to(x + dx, y + dy),
                Outline::Line(x, y) => path.line_to(x + dx, y + dy),
                Outline::Quad(cx, cy, x, y) => path.quad_to(cx + dx, cy + dy, x + dx, y + dy),
                Outline::Cubic(cx, cy, ex, ey, x, y) => {
                    path.cubic_to(cx + dx, cy + dy, ex + dx, ey + dy, x + dx, y + dy);
                }
                Outline::Close => path.close(),
            }
        }
        let turn = match style.transform() {
            FontTransform::None => 0.0,
            FontTransform::Rotate90 => 90.0,
            FontTransform::Rotate180 => 180.0,
            FontTransform::Rotate270 => 270.0,
        };
        let (x, y) = self.at(pos);
        let place = Transform::from_rotate(turn).post_translate(x, y);
        if let Some(path) = path.finish() {
            let paint = paint(style.color());
            self.pixmap
                .fill_path(&path, &paint, FillRule::Winding, place, None);
        }
        Ok(())
    }
}

fn is_bold(style: &impl BackendTextStyle) -> bool {
    matches!(style.style(), FontStyle::Bold)
}

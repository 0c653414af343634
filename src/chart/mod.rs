//! Pictures of a memory space's peak, as PNG or SVG, from the same drawing code.
//!
//! In: [`ChartData`]. Out: a file's bytes. May use: the data's types of every room below;
//! computes nothing but layout.
//!
//! The font ships inside, and nothing but the data decides what a picture looks like: the same data
//! gives the same bytes.

mod bars;
mod breakdown;
mod canvas;
mod data;
mod fill;
mod font;
mod map;
mod palette;
mod parts;
mod png;
#[cfg(test)]
mod recorder;
mod report;
mod scale;
mod scopes;
mod skia;
mod squarify;
#[cfg(test)]
mod tests;
mod timeline;
mod treemap;
mod whatif;

use std::sync::atomic::{AtomicUsize, Ordering};

use plotters::prelude::SVGBackend;
use plotters_backend::DrawingBackend;
use tiny_skia::Pixmap;

use self::canvas::{Canvas, UNITS};
use self::font::Fonts;
use self::parts::WIDTH;
use self::skia::SkiaBackend;
use crate::error::{Error, Result};

pub use data::{
    ChartData, ChartGroup, ChartTitle, Coverage, MapBlock, MemoryMap, Scope, ShardingRow, Timeline,
    TimelineColumn, WhatIfData, MAX_COLUMNS,
};
pub use fill::chart_data;
pub use palette::{of_kind as color_of_kind, Color};

/// A picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChartKind {
    /// The whole story in one picture.
    Report,
    /// Memory over program order.
    Timeline,
    /// The largest buffers at the peak.
    Buffers,
    /// What is lost to tile padding.
    Padding,
    /// Addresses over program order.
    Map,
    /// The peak by named scope.
    Treemap,
    /// Data that several devices hold alike; needs [`ChartData::sharding`].
    Sharding,
    /// Before and after a change; needs [`ChartData::what_if`].
    WhatIf,
}

/// File format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChartFormat {
    /// Pixels.
    Png,
    /// Vectors. Text is kept as text, set in DejaVu Sans where the viewer has it.
    Svg,
}

impl ChartKind {
    /// All pictures.
    pub const ALL: [ChartKind; 8] = [
        ChartKind::Report,
        ChartKind::Timeline,
        ChartKind::Buffers,
        ChartKind::Padding,
        ChartKind::Map,
        ChartKind::Treemap,
        ChartKind::Sharding,
        ChartKind::WhatIf,
    ];

    /// Its file name without extension.
    pub fn file_stem(self) -> &'static str {
        match self {
            ChartKind::Report => "report",
            ChartKind::Timeline => "timeline",
            ChartKind::Buffers => "buffers",
            ChartKind::Padding => "padding",
            ChartKind::Map => "map",
            ChartKind::Treemap => "treemap",
            ChartKind::Sharding => "sharding",
            ChartKind::WhatIf => "whatif",
        }
    }

    /// Whether `data` has what this picture is about. Without it, the picture says so in words.
    pub fn has_content(self, data: &ChartData) -> bool {
        match self {
            ChartKind::Report | ChartKind::Buffers => true,
            ChartKind::Timeline => data.timeline.is_some(),
            ChartKind::Padding => data.groups.iter().any(|g| g.padding_bytes > 0),
            ChartKind::Map => data.map.is_some(),
            ChartKind::Treemap => data.scopes.size_bytes > 0,
            ChartKind::Sharding => !data.sharding.is_empty(),
            ChartKind::WhatIf => data.what_if.is_some(),
        }
    }
}

impl ChartFormat {
    /// Its file name extension.
    pub fn extension(self) -> &'static str {
        match self {
            ChartFormat::Png => "png",
            ChartFormat::Svg => "svg",
        }
    }
}

/// Draws a picture and gives its file's bytes.
///
/// # Errors
/// [`Error::Output`] if the picture cannot be encoded.
pub fn render(kind: ChartKind, data: &ChartData, format: ChartFormat) -> Result<Vec<u8>> {
    let fonts = Fonts::load()?;
    let (width, height) = size(kind, data, &fonts);
    let failed = |why: String| {
        let name = format!("{}.{}", kind.file_stem(), format.extension());
        Error::output(name, std::io::Error::other(why))
    };
    match format {
        ChartFormat::Png => {
            let mut pixmap = Pixmap::new(width, height)
                .ok_or_else(|| failed("the picture is too large".to_owned()))?;
            let white = tiny_skia::Color::WHITE;
            pixmap.fill(white);
            let mut canvas = Canvas::new(SkiaBackend::new(&mut pixmap, &fonts, UNITS), &fonts);
            draw(kind, &mut canvas, data);
            canvas.finish().map_err(failed)?;
            png::encode(&pixmap).map_err(|e| failed(e.to_string()))
        }
        ChartFormat::Svg => {
            let mut text = String::new();
            let units = (width * UNITS, height * UNITS);
            let backend = SVGBackend::with_string(&mut text, units);
            let mut canvas = Canvas::new(backend, &fonts);
            let page = canvas::Area::new(0.0, 0.0, width as f32, height as f32);
            canvas.rect(page, palette::BACKGROUND);
            draw(kind, &mut canvas, data);
            canvas.finish().map_err(failed)?;
            // The view box counts units; the picture's size is in pixels.
            let from = format!(r#"width="{}" height="{}""#, units.0, units.1);
            let to = format!(r#"width="{width}" height="{height}""#);
            Ok(text.replacen(&from, &to, 1).into_bytes())
        }
    }
}

/// Draws several pictures, as many at a time as the machine has cores for; bytes in the order of
/// `wanted`.
///
/// # Errors
/// The first picture's that failed.
pub fn render_all(wanted: &[(ChartKind, ChartFormat)], data: &ChartData) -> Result<Vec<Vec<u8>>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = workers.min(wanted.len());
    if workers < 2 {
        let each = |(kind, format): &(ChartKind, ChartFormat)| render(*kind, data, *format);
        return wanted.iter().map(each).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((kind, format)) = wanted.get(at) else {
                return done;
            };
            done.push((at, render(*kind, data, *format)));
        }
    };
    let mut done: Vec<(usize, Result<Vec<u8>>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for worker in workers {
            match worker.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Width and height in pixels.
fn size(kind: ChartKind, data: &ChartData, fonts: &Fonts) -> (u32, u32) {
    let height = match kind {
        ChartKind::Report => {
            let mut nothing = String::new();
            let backend = SVGBackend::with_string(&mut nothing, (0, 0));
            let measure = Canvas::new(backend, fonts);
            report::height(&measure, data)
        }
        ChartKind::Timeline => timeline::HEIGHT,
        ChartKind::Buffers => bars::buffers_height(data),
        ChartKind::Padding => bars::padding_height(data),
        ChartKind::Map => map::HEIGHT,
        ChartKind::Treemap => treemap::HEIGHT,
        ChartKind::Sharding => bars::sharding_height(data),
        ChartKind::WhatIf => whatif::HEIGHT,
    };
    (WIDTH as u32, height.ceil() as u32)
}

fn draw<B: DrawingBackend>(kind: ChartKind, canvas: &mut Canvas<'_, B>, data: &ChartData) {
    match kind {
        ChartKind::Report => report::draw_page(canvas, data),
        ChartKind::Timeline => timeline::draw_page(canvas, data),
        ChartKind::Buffers => bars::draw_buffers(canvas, data),
        ChartKind::Padding => bars::draw_padding(canvas, data),
        ChartKind::Map => map::draw_page(canvas, data),
        ChartKind::Treemap => treemap::draw_page(canvas, data),
        ChartKind::Sharding => bars::draw_sharding(canvas, data),
        ChartKind::WhatIf => whatif::draw_page(canvas, data),
    }
}

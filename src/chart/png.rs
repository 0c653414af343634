//! PNG encoding for pictures of few colours and large even areas. In: an opaque pixmap. Out: the
//! file's bytes, 8-bit RGB.

use std::io::{Error, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use tiny_skia::Pixmap;

const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n'];
/// Every row is stored as its difference to the row above: mostly zeros here.
const FILTER_UP: u8 = 2;

/// Encodes `pixmap`, whose opacity is left out.
pub(crate) fn encode(pixmap: &Pixmap) -> Result<Vec<u8>, Error> {
    let (width, height) = (pixmap.width(), pixmap.height());
    let row_bytes = width as usize * 3;
    let mut data = ZlibEncoder::new(Vec::new(), Compression::new(5));
    let mut above = vec![0u8; row_bytes];
    let mut filtered = vec![0u8; row_bytes + 1];
    for row in pixmap.data().chunks_exact((width as usize * 4).max(1)) {
        if let Some((filter, differences)) = filtered.split_first_mut() {
            *filter = FILTER_UP;
            let pixels = row.chunks_exact(4);
            let into = differences
                .chunks_exact_mut(3)
                .zip(above.chunks_exact_mut(3));
            for (rgba, (out, above)) in pixels.zip(into) {
                for ((new, out), old) in rgba.iter().zip(out).zip(above) {
                    *out = new.wrapping_sub(*old);
                    *old = *new;
                }
            }
        }
        data.write_all(&filtered)?;
    }
    let data = data.finish()?;
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // 8 bits a sample, RGB, and the only compression, filtering and order that there is.
    header.extend([8, 2, 0, 0, 0]);
    let mut out = Vec::with_capacity(data.len() + 64);
    out.extend(SIGNATURE);
    chunk(&mut out, *b"IHDR", &header)?;
    chunk(&mut out, *b"IDAT", &data)?;
    chunk(&mut out, *b"IEND", &[])?;
    Ok(out)
}

fn chunk(out: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> Result<(), Error> {
    let length = u32::try_from(data.len()).map_err(|_| Error::other("a PNG chunk over 4 GiB"))?;
    let mut crc = Crc::new();
    crc.update(&name);
    crc.update(data);
    out.extend(length.to_be_bytes());
    out.extend(name);
    out.extend(data);
    out.extend(crc.sum().to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiny_skia::{Color, Paint, Rect, Transform};

    #[test]
    fn what_is_encoded_decodes_to_the_same_pixels() {
        let mut pixmap = Pixmap::new(37, 11).unwrap();
        pixmap.fill(Color::WHITE);
        let mut paint = Paint::default();
        paint.set_color_rgba8(200, 16, 46, 255);
        let r = Rect::from_xywh(3.0, 2.0, 20.5, 4.0).unwrap();
        pixmap.fill_rect(r, &paint, Transform::identity(), None);
        let png = encode(&pixmap).unwrap();
        let back = Pixmap::decode_png(&png).unwrap();
        assert_eq!((back.width(), back.height()), (37, 11));
        assert!(back.data() == pixmap.data());
    }
}

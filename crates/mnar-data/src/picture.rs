//! An image file as bytes: PNG, JPEG or BMP.

use crate::bmp;
use crate::error::Cause;
use crate::guard::amount;
use std::error::Error;
use std::fmt;
use std::io::{BufRead, Read as _, Seek};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The most bytes that an image may have, whatever the memory.
pub(crate) const LARGEST: usize = 512 << 20;

/// An image takes more bytes than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    pub(crate) bytes: u64,
}

impl TooLarge {
    /// The number of bytes of these sizes, if they are at most `most`.
    pub(crate) fn check(sizes: &[usize], most: usize) -> Result<usize, Self> {
        let bytes = sizes.iter().fold(1_u64, |product, &size| product.saturating_mul(size as u64));
        usize::try_from(bytes).ok().filter(|bytes| *bytes <= most).ok_or(Self { bytes })
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the image takes {}, which is too much", amount(self.bytes))
    }
}

impl Error for TooLarge {}

/// An image as bytes, one per pixel if it is grey, otherwise red, green and blue.
pub(crate) struct Picture {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) grey: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Picture {
    /// Decodes a file of at most `most` bytes of pixels. An alpha channel is dropped, and an image whose pixels are all grey
    /// counts as grey.
    pub(crate) fn decode(mut file: impl BufRead + Seek, most: usize) -> Result<Self, Cause> {
        // The content says what an image is: a jpeg may well be called `.png`.
        let start = file.fill_buf()?;
        if start.is_empty() {
            return Err("the file is empty".into());
        }
        let (format, decoded) = if start.starts_with(b"\x89PNG\r\n\x1a\n") {
            ("PNG", png(file, most))
        } else if start.starts_with(b"\xff\xd8") {
            ("JPEG", whole(file).and_then(|file| jpeg(&file, most)))
        } else if start.starts_with(b"BM") {
            ("BMP", whole(file).and_then(|file| bmp(&file, most)))
        } else {
            return Err("its content is neither PNG nor JPEG nor BMP".into());
        };
        decoded.map(Self::grey_if_all_pixels_are).map_err(|error| match error.is::<TooLarge>() {
            true => error,
            false => format!("{format}: {error}").into(),
        })
    }

    /// Some formats have no other way to store grey: a grey bmp is a palette of equal shares.
    fn grey_if_all_pixels_are(mut self) -> Self {
        if !self.grey && self.bytes.as_chunks().0.iter().all(|&[red, green, blue]| red == green && green == blue) {
            self.bytes = kept(&self.bytes, 3, 1);
            self.grey = true;
        }
        self
    }

    fn channels(&self) -> usize {
        if self.grey { 1 } else { 3 }
    }

    /// The image in another size, interpolated linearly; a smaller one averages over all pixels with a triangle filter.
    pub(crate) fn resized(self, height: usize, width: usize, most: usize) -> Result<Self, Cause> {
        if (height, width) == (self.height, self.width) {
            return Ok(self);
        }
        let channels = self.channels();
        let old_row = self.width * channels;
        // The rows are sums before they are bytes.
        TooLarge::check(&[height, old_row, size_of::<f32>()], most.saturating_mul(4))?;
        TooLarge::check(&[height, width, channels], most)?;
        let mut rows = vec![0.0; height * old_row];
        for (row, (first, weights)) in rows.chunks_exact_mut(old_row).zip(triangles(self.height, height)) {
            for (old, weight) in self.bytes[first * old_row..].chunks_exact(old_row).zip(weights) {
                for (sum, &value) in row.iter_mut().zip(old) {
                    *sum += f32::from(value) * weight;
                }
            }
        }
        let columns: Vec<_> = triangles(self.width, width).collect();
        let mut bytes = Vec::with_capacity(height * width * channels);
        for row in rows.chunks_exact(old_row) {
            for (first, weights) in &columns {
                for channel in 0..channels {
                    let old = row[first * channels + channel..].iter().step_by(channels);
                    let sum = old.zip(weights).fold(0.0, |sum, (value, weight)| sum + value * weight);
                    bytes.push(sum.round() as u8);
                }
            }
        }
        Ok(Self { height, width, bytes, ..self })
    }
}

/// For each of `new` pixels along a side: the first of the `old` pixels that it is made of, and the weights from there on.
fn triangles(old: usize, new: usize) -> impl Iterator<Item = (usize, Vec<f32>)> {
    let ratio = old as f32 / new as f32;
    let reach = ratio.max(1.0);
    (0..new).map(move |at| {
        // Pixel i reaches from i to i + 1, with its centre in between.
        let middle = (at as f32 + 0.5) * ratio;
        let first = ((middle - reach).floor() as usize).min(old - 1);
        let end = ((middle + reach).ceil() as usize).clamp(first + 1, old);
        let weight = |i: usize| (1.0 - ((i as f32 - (middle - 0.5)) / reach).abs()).max(0.0);
        let sum = (first..end).map(weight).fold(0.0, |sum, weight| sum + weight);
        (first, (first..end).map(|i| weight(i) / sum).collect())
    })
}

/// The content of a file, unless it is too large to be that of an image.
fn whole(file: impl BufRead) -> Result<Vec<u8>, Cause> {
    const MOST: u64 = 2 * LARGEST as u64;
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST { Err("the file is larger than 1 GiB".into()) } else { Ok(bytes) }
}

/// The first `to` of every `from` bytes.
fn kept(bytes: &[u8], from: usize, to: usize) -> Vec<u8> {
    bytes.chunks_exact(from).flat_map(|pixel| &pixel[..to]).copied().collect()
}

fn png(file: impl BufRead + Seek, most: usize) -> Result<Picture, Cause> {
    // Besides the pixels, chunks of text and profiles are kept.
    let mut decoder = png::Decoder::new_with_limits(file, png::Limits { bytes: most.max(1 << 20) });
    // Palettes become colours, and fewer than 8 bits a byte.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info()?;
    let size = TooLarge::check(&[reader.output_buffer_size().unwrap_or(usize::MAX)], most)?;
    let mut bytes = vec![0; size];
    reader.next_frame(&mut bytes)?;
    let (colours, depth) = reader.output_color_type();
    if depth == png::BitDepth::Sixteen {
        let rounded = |&value: &[u8; 2]| ((u32::from(u16::from_be_bytes(value)) + 128) / 257) as u8;
        bytes = bytes.as_chunks().0.iter().map(rounded).collect();
    }
    let grey = matches!(colours, png::ColorType::Grayscale | png::ColorType::GrayscaleAlpha);
    match colours {
        png::ColorType::GrayscaleAlpha => bytes = kept(&bytes, 2, 1),
        png::ColorType::Rgba => bytes = kept(&bytes, 4, 3),
        png::ColorType::Grayscale | png::ColorType::Rgb => {}
        png::ColorType::Indexed => return Err("its palette is missing".into()),
    }
    let (width, height) = reader.info().size();
    Ok(Picture { height: height as usize, width: width as usize, grey, bytes })
}

fn jpeg(file: &[u8], most: usize) -> Result<Picture, Cause> {
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers()?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    if grey {
        decoder.set_options(options.jpeg_set_out_colorspace(ColorSpace::Luma));
    }
    let size = TooLarge::check(&[decoder.output_buffer_size().unwrap_or(usize::MAX)], most)?;
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    let mut bytes = vec![0; size];
    decoder.decode_into(&mut bytes)?;
    Ok(Picture { height, width, grey, bytes })
}

fn bmp(file: &[u8], most: usize) -> Result<Picture, Cause> {
    let bmp::Rgb { height, width, bytes } = bmp::decode(file, most)?;
    Ok(Picture { height, width, grey: false, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use png::{BitDepth, ColorType};
    use std::io::Cursor;

    fn decode(file: &[u8]) -> Result<(usize, usize, bool, Vec<u8>), String> {
        let picture = Picture::decode(Cursor::new(file), LARGEST).map_err(|error| error.to_string())?;
        Ok((picture.height, picture.width, picture.grey, picture.bytes))
    }

    /// A PNG of one row.
    fn png_row(colours: ColorType, depth: BitDepth, width: u32, data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, 1);
        encoder.set_color(colours);
        encoder.set_depth(depth);
        if colours == ColorType::Indexed {
            encoder.set_palette(&[9, 9, 9, 1, 2, 3, 7, 7, 7, 40, 50, 60][..]);
            encoder.set_trns(&[0, 128][..]);
        }
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        file
    }

    #[test]
    fn every_kind_of_png_is_read() {
        for (colours, depth, width, data, grey, expected) in [
            (ColorType::Grayscale, BitDepth::One, 3, &[0b1010_0000][..], true, &[255, 0, 255][..]),
            (ColorType::Grayscale, BitDepth::Two, 3, &[0b0110_1100], true, &[85, 170, 255]),
            (ColorType::Grayscale, BitDepth::Eight, 2, &[5, 6], true, &[5, 6]),
            // Rounded: 0x0180 / 257 is 1.494, 0x0182 / 257 is 1.502.
            (ColorType::Grayscale, BitDepth::Sixteen, 3, &[1, 0x80, 1, 0x82, 255, 255], true, &[1, 2, 255]),
            (ColorType::GrayscaleAlpha, BitDepth::Eight, 2, &[5, 0, 6, 255], true, &[5, 6]),
            (ColorType::Rgb, BitDepth::Eight, 2, &[5, 5, 5, 6, 6, 6], true, &[5, 6]),
            (ColorType::Rgb, BitDepth::Eight, 2, &[5, 5, 5, 6, 6, 7], false, &[5, 5, 5, 6, 6, 7]),
            (ColorType::Rgba, BitDepth::Eight, 2, &[1, 2, 3, 0, 4, 5, 6, 9], false, &[1, 2, 3, 4, 5, 6]),
            (ColorType::Rgba, BitDepth::Sixteen, 1, &[1, 0, 2, 0, 3, 0, 4, 0], false, &[1, 2, 3]),
            (ColorType::Indexed, BitDepth::Four, 3, &[0x13, 0x20], false, &[1, 2, 3, 40, 50, 60, 7, 7, 7]),
            (ColorType::Indexed, BitDepth::Eight, 2, &[0, 2], true, &[9, 7]),
        ] {
            let file = png_row(colours, depth, width, data);
            assert_eq!(decode(&file), Ok((1, width as usize, grey, expected.to_vec())), "{colours:?} {depth:?}");
            for end in 1..file.len() - 12 {
                assert!(decode(&file[..end]).is_err(), "{colours:?} {depth:?} cut off at {end}");
            }
        }
    }

    /// Pillow: `Image.new(mode, (3, 2), colour).save(file, quality=95, optimize=True)`, where mode and colour are
    /// RGB (200, 100, 0), L 77 and CMYK (10, 60, 200, 30).
    #[test]
    fn every_kind_of_jpeg_is_read() {
        for (file, grey, pixel) in [
            (&include_bytes!("../tests/images/colour.jpg")[..], false, &[199, 100, 0][..]),
            (include_bytes!("../tests/images/grey.jpg"), true, &[77]),
            (include_bytes!("../tests/images/cmyk.jpg"), false, &[216, 172, 49]),
        ] {
            assert_eq!(decode(file), Ok((2, 3, grey, pixel.repeat(6))));
            assert!(decode(&file[..file.len() / 2]).unwrap_err().starts_with("JPEG: "));
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        assert_eq!(decode(b"").unwrap_err(), "the file is empty");
        assert_eq!(decode(b"GIF89a...").unwrap_err(), "its content is neither PNG nor JPEG nor BMP");
        let mut large = Vec::new();
        let mut writer = png::Encoder::new(&mut large, 1 << 28, 3).write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, &[0]).unwrap();
        drop(writer);
        assert_eq!(decode(&large).unwrap_err(), "the image takes 805.3 MB, which is too much");
    }

    /// The values are those of `image::imageops::resize` (image 0.25.10) with `FilterType::Triangle`.
    #[test]
    fn resizing_is_linear() {
        let resized = |(height, width, grey, bytes): (usize, usize, bool, &[u8]), new_height, new_width| {
            let picture = Picture { height, width, grey, bytes: bytes.to_vec() };
            picture.resized(new_height, new_width, LARGEST).map(|picture| picture.bytes)
        };
        let grey = (3, 4, true, &[0, 50, 100, 255, 10, 20, 30, 40, 200, 0, 200, 7][..]);
        assert_eq!(resized(grey, 3, 4).unwrap(), grey.3);
        assert_eq!(resized(grey, 2, 3).unwrap(), [14, 56, 144, 92, 72, 54]);
        let larger = [0, 35, 75, 147, 255, 6, 24, 44, 76, 121, 81, 33, 53, 74, 28, 200, 60, 100, 142, 7];
        assert_eq!(resized(grey, 4, 5).unwrap(), larger);
        assert_eq!(resized(grey, 1, 1).unwrap(), [67]);
        let colour = (1, 2, false, &[0, 100, 200, 255, 110, 0][..]);
        assert_eq!(resized(colour, 1, 3).unwrap(), [0, 100, 200, 128, 105, 100, 255, 110, 0]);
        assert!(resized(colour, usize::MAX, usize::MAX).is_err());
    }
}

//! Images of one shape, as bytes.

use crate::error::DataError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The shape of an image; the depth of a flat one is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageShape {
    /// Number of slices; 1 for flat images.
    pub depth: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Columns of pixels.
    pub width: usize,
    /// Bytes per pixel: 1 for grey, 3 for red, green and blue.
    pub channels: usize,
}

impl ImageShape {
    /// A flat image.
    pub fn flat(height: usize, width: usize, channels: usize) -> Self {
        Self { depth: 1, height, width, channels }
    }

    /// Number of bytes of an image.
    pub fn len(&self) -> usize {
        self.depth * self.height * self.width * self.channels
    }

    /// Whether an image has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of bytes, if it is positive and fits into a `usize`.
    pub fn checked_len(&self) -> Option<usize> {
        [self.height, self.width, self.channels]
            .iter()
            .try_fold(self.depth, |product, &size| product.checked_mul(size))
            .filter(|&len| len > 0)
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.depth != 1 {
            write!(f, "{}x", self.depth)?;
        }
        write!(f, "{}x{}", self.height, self.width)?;
        match self.channels {
            1 => write!(f, " grey"),
            3 => write!(f, " colour"),
            channels => write!(f, " of {channels} channels"),
        }
    }
}

/// Images of one shape, one after the other, the channels of a pixel side by side.
#[derive(Clone, PartialEq, Eq)]
pub struct Images {
    shape: ImageShape,
    pixels: Vec<u8>,
}

impl Images {
    /// Images from their bytes; `source_name` is what messages start with.
    pub fn new(shape: ImageShape, pixels: Vec<u8>, source_name: &str) -> Result<Self, DataError> {
        match shape.checked_len() {
            Some(len) if pixels.len().is_multiple_of(len) => Ok(Self { shape, pixels }),
            _ => Err(DataError::ImageShape {
                path: source_name.to_owned(),
                found: format!("{} bytes", pixels.len()),
                expected: format!("a multiple of {shape}"),
            }),
        }
    }

    /// The shape of every image.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.pixels.len() / self.shape.len()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }

    /// The bytes of image `i` (from 0): slices, rows, columns, channels.
    pub fn pixels(&self, i: usize) -> &[u8] {
        let len = self.shape.len();
        &self.pixels[i * len..(i + 1) * len]
    }

    /// The bytes of all images.
    pub fn all(&self) -> &[u8] {
        &self.pixels
    }

    /// Image `i` as a PNG file, or the middle slice of a volume; `None` for a number of channels that PNG lacks.
    pub fn png(&self, i: usize) -> Option<Vec<u8>> {
        let ImageShape { depth, height, width, channels } = self.shape;
        let colours = match channels {
            1 => png::ColorType::Grayscale,
            3 => png::ColorType::Rgb,
            _ => return None,
        };
        let slice = height * width * channels;
        let pixels = self.pixels(i).get(depth / 2 * slice..)?.get(..slice)?;
        let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(colours);
        encoder.set_compression(png::Compression::Fast);
        encoder.set_filter(png::Filter::Adaptive);
        let mut writer = encoder.write_header().ok()?;
        writer.write_image_data(pixels).ok()?;
        writer.finish().ok()?;
        Some(file)
    }

    pub(crate) fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }

    /// Turns grey images into colour ones by repeating each byte three times; colour images stay as they are.
    pub(crate) fn into_colour(self) -> Self {
        if self.shape.channels != 1 {
            return self;
        }
        let pixels = self.pixels.iter().flat_map(|&grey| [grey; 3]).collect();
        Self { shape: ImageShape { channels: 3, ..self.shape }, pixels }
    }
}

impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} images, {}", self.len(), self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{LARGEST, Picture};
    use std::io::Cursor;

    #[test]
    fn a_png_holds_the_same_pixels_and_a_volume_shows_its_middle() {
        let volume = ImageShape { depth: 3, height: 1, width: 2, channels: 1 };
        let images = Images::new(volume, vec![0, 1, 20, 30, 4, 5], "x").unwrap();
        let png = Picture::decode(Cursor::new(images.png(0).unwrap()), LARGEST).unwrap();
        assert_eq!((png.height, png.width, png.grey, png.bytes), (1, 2, true, vec![20, 30]));
        let four = Images::new(ImageShape::flat(1, 1, 4), vec![0; 4], "x").unwrap();
        assert!(four.png(0).is_none());
    }
}

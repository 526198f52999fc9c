//! BMP files: headers from OS/2 1.x to version 5, 1 to 32 bits per pixel, run lengths and masks.
//!
//! Read here because `zune-bmp` 0.5 misreads rows of 1, 2, 4 and 16 bits per pixel that end in padding, and fills the rest
//! of a truncated image with the first colour instead of refusing it.

use crate::error::Cause;
use crate::picture::{LARGEST, TooLarge};

/// The pixels of an image: red, green and blue side by side, the top row first.
pub(crate) struct Rgb {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) bytes: Vec<u8>,
}

/// Decodes a file that starts with `BM`; an alpha channel is dropped.
pub(crate) fn decode(file: &[u8], most: usize) -> Result<Rgb, Cause> {
    let header = Header::read(file)?;
    let Header { height, width, bits, .. } = header;
    let pixels = file.get(header.pixels_at..).ok_or(ENDS_EARLY)?;
    let size = TooLarge::check(&[height, width, 3], most)?;
    let mut image = Rgb { height, width, bytes: vec![0; size] };
    match &header.coding {
        Coding::Palette(palette) => image.fill(pixels, &header, |row, x| palette[packed(row, x, bits)])?,
        Coding::RunLengths(palette) => image.fill_from_runs(pixels, bits, palette)?,
        Coding::Bytes => image.fill(pixels, &header, |row, x| {
            let pixel = &row[x * bits / 8..];
            [pixel[2], pixel[1], pixel[0]]
        })?,
        Coding::Masks(masks) => image.fill(pixels, &header, |row, x| {
            let value =
                row[x * bits / 8..][..bits / 8].iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            [masks[0].read(value), masks[1].read(value), masks[2].read(value)]
        })?,
    }
    Ok(image)
}

const ENDS_EARLY: &str = "the file ends early";

struct Header {
    /// Where the pixels start in the file.
    pixels_at: usize,
    height: usize,
    width: usize,
    /// Whether the top row comes first; usually it is the bottom row.
    top_down: bool,
    /// Bits per pixel.
    bits: usize,
    coding: Coding,
}

enum Coding {
    Palette(Palette),
    RunLengths(Palette),
    /// Blue, green and red, and one unused byte if there are 32 bits.
    Bytes,
    /// Red, green and blue.
    Masks([Mask; 3]),
}

/// Colours that a file does not give are black.
type Palette = [[u8; 3]; 256];

/// The size of the oldest header. It holds sizes of 16 bits, and colours of a palette take three bytes, not four.
const CORE: u32 = 12;

/// A row or column with more pixels is not taken at its word: a few bytes of run lengths may claim any size.
const LONGEST: i32 = 0xffff;

impl Header {
    fn read(file: &[u8]) -> Result<Self, Cause> {
        let mut rest = Bytes(file);
        rest.take(10)?;
        let pixels_at = rest.u32()? as usize;
        let size = rest.u32()?;
        let (width, rows) = match size {
            CORE => (i32::from(rest.u16()?), i32::from(rest.u16()?)),
            40 | 52 | 56 | 108 | 124 => (rest.u32()?.cast_signed(), rest.u32()?.cast_signed()),
            _ => return Err(format!("the size of its header, {size} bytes, is unknown").into()),
        };
        if !(1..=LONGEST).contains(&width) || rows == 0 || rows > LONGEST {
            return Err(format!("it says that it has {rows} rows of {width} pixels").into());
        }
        let (top_down, height, width) = (rows < 0, rows.unsigned_abs() as usize, width as usize);
        TooLarge::check(&[height, width, 3], LARGEST)?;
        let planes = rest.u16()?;
        if planes != 1 {
            return Err(format!("it has {planes} planes instead of one").into());
        }
        let bits = rest.u16()?;
        let (mut compression, mut colours) = (0, 0);
        if size != CORE {
            compression = rest.u32()?;
            rest.take(12)?;
            colours = rest.u32()?;
            rest.take(4)?;
        }
        let palette = || read_palette(file, size, bits, colours);
        let coding = match (compression, bits) {
            (0, 1 | 4 | 8) => Coding::Palette(palette()?),
            (0, 2) if size != CORE => Coding::Palette(palette()?),
            (0, 16) if size != CORE => Coding::Masks([Mask(0x7c00), Mask(0x03e0), Mask(0x001f)]),
            (0, 24) => Coding::Bytes,
            (0, 32) if size != CORE => Coding::Bytes,
            (1, 8) | (2, 4) if !top_down => Coding::RunLengths(palette()?),
            (3, 16 | 32) => {
                let masks = [rest.u32()?, rest.u32()?, rest.u32()?];
                let alpha = if size >= 56 { rest.u32()? } else { 0 };
                Coding::Masks(Mask::checked(masks, alpha, bits)?)
            }
            _ => return Err(format!("pixels of {bits} bits with compression {compression} are not supported").into()),
        };
        Ok(Self { pixels_at, height, width, top_down, bits: usize::from(bits), coding })
    }
}

fn read_palette(file: &[u8], header: u32, bits: u16, colours: u32) -> Result<Palette, Cause> {
    let most = 1 << bits;
    if colours > most {
        return Err(format!("its palette has {colours} colours, which {bits} bits per pixel cannot tell apart").into());
    }
    let colours = if colours == 0 { most } else { colours } as usize;
    let step = if header == CORE { 3 } else { 4 };
    let mut rest = Bytes(file);
    rest.take(14 + header as usize)?;
    let mut palette = [[0; 3]; 256];
    for (colour, entry) in palette.iter_mut().zip(rest.take(step * colours)?.chunks_exact(step)) {
        *colour = [entry[2], entry[1], entry[0]];
    }
    Ok(palette)
}

/// The bits of a pixel that hold a colour.
struct Mask(u32);

impl Mask {
    /// The masks of red, green and blue, each in one piece and within the pixel; `alpha` may be 0.
    fn checked(colours: [u32; 3], alpha: u32, bits: u16) -> Result<[Self; 3], Cause> {
        let in_one_piece = |mask: u32| mask.leading_zeros() + mask.count_ones() + mask.trailing_zeros() == 32;
        let good = |mask: u32| in_one_piece(mask) && (bits == 32 || mask >> bits == 0);
        if colours.into_iter().all(good) && (alpha == 0 || good(alpha)) {
            Ok(colours.map(Mask))
        } else {
            Err("its colour masks are not valid".into())
        }
    }

    /// The upper eight bits of the colour; where there are fewer, they are scaled to 0 to 255.
    fn read(&self, pixel: u32) -> u8 {
        let length = self.0.count_ones();
        let value = (pixel & self.0) >> self.0.trailing_zeros();
        if length > 8 {
            return (value >> (length - 8)) as u8;
        }
        let largest = (1 << length) - 1;
        ((255 * value + largest / 2) / largest) as u8
    }
}

/// The value at position `x` of a row of values of 1, 2, 4 or 8 bits.
fn packed(row: &[u8], x: usize, bits: usize) -> usize {
    let at = x * bits;
    usize::from((row[at / 8] << (at % 8)) >> (8 - bits))
}

impl Rgb {
    /// Fills the image from rows that are not compressed; `colour` returns the colour at a position of a row.
    fn fill(&mut self, pixels: &[u8], header: &Header, colour: impl Fn(&[u8], usize) -> [u8; 3]) -> Result<(), Cause> {
        let stride = (self.width * header.bits).div_ceil(32) * 4;
        let pixels = stride.checked_mul(self.height).and_then(|length| pixels.get(..length)).ok_or(ENDS_EARLY)?;
        for (y, row) in pixels.chunks_exact(stride).enumerate() {
            let y = if header.top_down { y } else { self.height - 1 - y };
            for (x, pixel) in self.row(y).enumerate() {
                pixel.copy_from_slice(&colour(row, x));
            }
        }
        Ok(())
    }

    /// Fills the image from run lengths, from the bottom up; pixels that are skipped are black.
    fn fill_from_runs(&mut self, pixels: &[u8], bits: usize, palette: &Palette) -> Result<(), Cause> {
        const LEAVES: &str = "its run lengths lead out of the image";
        let mut rest = Bytes(pixels);
        let (mut x, mut above) = (0, self.height);
        while above > 0 {
            match rest.array()? {
                [0, 0] => (x, above) = (0, above - 1),
                [0, 1] => break,
                [0, 2] => {
                    let [right, up] = rest.array()?.map(usize::from);
                    if (right > 0 || up > 0) && (x + right > self.width || up >= above) {
                        return Err(LEAVES.into());
                    }
                    (x, above) = (x + right, above - up);
                }
                [0, count] => {
                    let count = usize::from(count);
                    let values = rest.take((count * bits).div_ceil(16) * 2)?;
                    if x + count > self.width {
                        return Err(LEAVES.into());
                    }
                    for (k, pixel) in self.row(above - 1).skip(x).take(count).enumerate() {
                        pixel.copy_from_slice(&palette[packed(values, k, bits)]);
                    }
                    x += count;
                }
                [count, value] => {
                    let count = usize::from(count);
                    // ImageMagick writes runs that are longer than the row, if there are 8 bits per pixel.
                    if bits == 4 && x + count > self.width {
                        return Err(LEAVES.into());
                    }
                    for (k, pixel) in self.row(above - 1).skip(x).take(count).enumerate() {
                        pixel.copy_from_slice(&palette[packed(&[value], k % (8 / bits), bits)]);
                    }
                    x += count;
                }
            }
        }
        Ok(())
    }

    /// The pixels of row `y`, counted from the top.
    fn row(&mut self, y: usize) -> std::slice::ChunksExactMut<'_, u8> {
        let length = self.width * 3;
        self.bytes[y * length..][..length].chunks_exact_mut(3)
    }
}

/// What is left of a file.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Cause> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ENDS_EARLY)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Cause> {
        let (&taken, rest) = self.0.split_first_chunk().ok_or(ENDS_EARLY)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, Cause> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Cause> {
        self.array().map(u32::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(file: &[u8]) -> Result<Rgb, Cause> {
        super::decode(file, LARGEST)
    }
    use proptest::prelude::*;

    /// A file with the header of version 3; `middle` is what follows it, a palette or masks.
    fn file(width: i32, rows: i32, bits: u16, compression: u32, colours: u32, middle: &[u8], pixels: &[u8]) -> Vec<u8> {
        let mut file = b"BM".to_vec();
        file.extend([0; 8]);
        file.extend((54 + middle.len() as u32).to_le_bytes());
        file.extend([40, 0, 0, 0]);
        file.extend(width.to_le_bytes());
        file.extend(rows.to_le_bytes());
        file.extend([1, 0]);
        file.extend(bits.to_le_bytes());
        file.extend(compression.to_le_bytes());
        file.extend([0; 12]);
        file.extend(colours.to_le_bytes());
        file.extend([0; 4]);
        file.extend(middle);
        file.extend(pixels);
        file
    }

    /// Colours 0, 1, 2 of a palette, whose red is 10, 20, 30.
    const PALETTE: [u8; 12] = [12, 11, 10, 0, 22, 21, 20, 0, 32, 31, 30, 0];

    /// The red of every pixel of a file, after a check that no shorter file is read.
    fn reds(file: &[u8]) -> Vec<u8> {
        for end in 0..file.len() {
            assert!(decode(&file[..end]).is_err(), "cut off at {end}");
        }
        decode(file).unwrap().bytes.chunks_exact(3).map(|pixel| pixel[0]).collect()
    }

    #[test]
    fn rows_are_padded_and_start_at_the_bottom() {
        let bits = file(3, 2, 1, 0, 2, &PALETTE[..8], &[0b0100_0000, 0, 0, 0, 0b1010_0000, 0, 0, 0]);
        assert_eq!(reds(&bits), [20, 10, 20, 10, 20, 10]);
        let pairs = file(3, 1, 2, 0, 3, &PALETTE, &[0b1000_0100, 0, 0, 0]);
        assert_eq!(reds(&pairs), [30, 10, 20]);
        // There is no colour 3.
        let nibbles = file(3, -2, 4, 0, 3, &PALETTE, &[0x01, 0x20, 0, 0, 0x22, 0x30, 0, 0]);
        assert_eq!(reds(&nibbles), [10, 20, 30, 30, 30, 0]);
        let bytes = file(1, 2, 8, 0, 3, &PALETTE, &[2, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(reds(&bytes), [20, 30]);
        let colours = file(1, 2, 24, 0, 0, &[], &[1, 2, 3, 0, 4, 5, 6, 0]);
        assert_eq!(decode(&colours).unwrap().bytes, [6, 5, 4, 3, 2, 1]);
        assert_eq!(reds(&file(2, 1, 32, 0, 0, &[], &[1, 2, 3, 4, 5, 6, 7, 8])), [3, 7]);
    }

    #[test]
    fn the_oldest_header_is_read() {
        let mut file = b"BM".to_vec();
        file.extend([0; 8]);
        file.extend([32, 0, 0, 0, 12, 0, 0, 0, 2, 0, 1, 0, 1, 0, 1, 0]);
        file.extend([12, 11, 10, 22, 21, 20]);
        file.extend([0b1000_0000, 0, 0, 0]);
        assert_eq!(reds(&file), [20, 10]);
    }

    #[test]
    fn masks_are_scaled_to_bytes() {
        assert_eq!(decode(&file(1, 1, 16, 0, 0, &[], &[0x3f, 0x40, 0, 0])).unwrap().bytes, [132, 8, 255]);
        let masks = |masks: [u32; 3]| masks.map(u32::to_le_bytes).concat();
        let narrow = file(1, 1, 16, 3, 0, &masks([0xf800, 0x07e0, 0x001f]), &[0xe1, 0x07, 0, 0]);
        assert_eq!(decode(&narrow).unwrap().bytes, [0, 255, 8]);
        let wide = file(1, 1, 32, 3, 0, &masks([0x3ff0_0000, 0x000f_fc00, 0x0000_03ff]), &[0xfc, 3, 0, 0x20]);
        assert_eq!(decode(&wide).unwrap().bytes, [128, 0, 255]);
        for bad in [[0, 0x07e0, 0x1f], [0x1_0000, 0x07e0, 0x1f], [0xf0f0, 0x0f00, 0x0f]] {
            assert!(decode(&file(1, 1, 16, 3, 0, &masks(bad), &[0; 4])).is_err(), "{bad:x?}");
        }
    }

    #[test]
    fn run_lengths_are_followed() {
        // One pixel of colour 1; one to the right and one up; one of colour 2; the next row; three as they come, padded.
        let runs = [1, 1, 0, 2, 1, 1, 1, 2, 0, 0, 0, 3, 2, 1, 0, 0, 0, 1];
        assert_eq!(reds(&file(3, 3, 8, 1, 3, &PALETTE, &runs)), [30, 20, 10, 0, 0, 30, 20, 0, 0]);
        let nibbles = [3, 0x12, 0, 0, 0, 3, 0x21, 0x00, 0, 1];
        assert_eq!(reds(&file(3, 2, 4, 2, 3, &PALETTE, &nibbles)), [30, 20, 10, 20, 30, 20]);
        assert_eq!(reds(&file(3, 1, 8, 1, 3, &PALETTE, &[9, 1, 0, 1])), [20, 20, 20]);
        for bad in [&[0, 2, 4, 0, 0, 1][..], &[0, 2, 0, 1, 0, 1], &[0, 4, 0, 0, 0, 0, 0, 1]] {
            assert!(decode(&file(3, 1, 8, 1, 3, &PALETTE, bad)).is_err(), "{bad:?}");
        }
        assert!(decode(&file(3, 1, 4, 2, 3, &PALETTE, &[4, 0x12, 0, 1])).is_err());
    }

    #[test]
    fn impossible_headers_are_refused() {
        for (width, rows) in [(0, 1), (1, 0), (-1, 1), (1, i32::MIN), (70_000, 1), (1, 70_000), (60_000, -60_000)] {
            assert!(decode(&file(width, rows, 8, 1, 3, &PALETTE, &[0, 1])).is_err(), "{width} {rows}");
        }
        assert!(decode(&file(1, 1, 4, 0, 17, &[0; 68], &[0; 4])).is_err());
        assert!(decode(&file(1, 1, 3, 0, 0, &PALETTE, &[0; 4])).is_err());
        assert!(decode(&file(1, -1, 8, 1, 3, &PALETTE, &[0, 1])).is_err());
    }

    proptest! {
        #[test]
        fn no_content_makes_it_panic(
            width in -1..9_i32,
            rows in -9..9_i32,
            bits in prop::sample::select(&[1_u16, 2, 4, 8, 16, 24, 32][..]),
            compression in 0..4_u32,
            colours in 0..20_u32,
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let (middle, pixels) = rest.split_at(rest.len() / 2);
            if let Ok(image) = decode(&file(width, rows, bits, compression, colours, middle, pixels)) {
                prop_assert_eq!(image.bytes.len(), image.height * image.width * 3);
            }
        }
    }
}

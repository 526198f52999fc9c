//! Changes of the values that move no pixel. The definitions are those of the Python Imaging Library, on which FixMatch
//! was built, without its rounding to 8 bits.

use super::batch::Draws;
use mnar_data::ImageShape;
use rand::Rng;

/// Weights of red, green and blue in grey (ITU-R 601).
const LUMA: [f32; 3] = [0.299, 0.587, 0.114];

/// Levels of a histogram: those of 8-bit images, which nearly all image data once were.
const LEVELS: usize = 256;

/// Blends with black; 1 leaves the image as it is.
pub(super) fn brightness(image: &mut [f32], factor: f32) {
    image.iter_mut().for_each(|value| *value *= factor);
}

/// Blends with the image's mean grey; 1 leaves the image as it is.
pub(super) fn contrast(image: &mut [f32], channels: usize, factor: f32) {
    let pixels = (image.len() / channels) as f32;
    let mean = |c: usize| image[c..].iter().step_by(channels).sum::<f32>() / pixels;
    let grey: f32 = if channels == 3 {
        (0..3).map(|c| LUMA[c] * mean(c)).sum()
    } else {
        (0..channels).map(mean).sum::<f32>() / channels as f32
    };
    image.iter_mut().for_each(|value| *value = grey + factor * (*value - grey));
}

/// Blends every pixel of a three-channel image with its own grey; 1 leaves the image as it is. With any other number of
/// channels there is no colour to change.
pub(super) fn saturation(image: &mut [f32], channels: usize, factor: f32) {
    if channels != 3 {
        return;
    }
    for pixel in image.chunks_exact_mut(3) {
        let grey = LUMA[0] * pixel[0] + LUMA[1] * pixel[1] + LUMA[2] * pixel[2];
        pixel.iter_mut().for_each(|value| *value = grey + factor * (*value - grey));
    }
}

/// Values examined together when searching for the lowest and highest value of a channel: a multiple of 1, 2, 3 and 4
/// channels, so that a position in the block always holds the same channel, and of the width of the vector registers.
const BLOCK: usize = 48;

/// The lowest and the highest value of each of up to four channels.
fn ranges(image: &[f32], channels: usize) -> [(f32, f32); 4] {
    let (mut low, mut high) = ([f32::INFINITY; BLOCK], [f32::NEG_INFINITY; BLOCK]);
    let mut include = |values: &[f32]| {
        for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(values) {
            *low = if value < *low { value } else { *low };
            *high = if value > *high { value } else { *high };
        }
    };
    let blocks = image.chunks_exact(BLOCK);
    let rest = blocks.remainder();
    blocks.for_each(&mut include);
    include(rest);
    let mut ranges = [(f32::INFINITY, f32::NEG_INFINITY); 4];
    for (place, (low, high)) in low.into_iter().zip(high).enumerate() {
        let range = &mut ranges[place % channels];
        *range = (range.0.min(low), range.1.max(high));
    }
    ranges
}

/// Stretches each channel to span [0, 1]; a channel with a single value stays as it is.
pub(super) fn autocontrast(image: &mut [f32], channels: usize) {
    match channels {
        1..=4 => {
            // Low and span of every position in a block; a low of 0 and a span of 1 leave a flat channel as it is.
            let ranges = ranges(image, channels);
            let mut low = [0.0; BLOCK];
            let mut span = [1.0; BLOCK];
            for place in 0..BLOCK {
                let (lowest, highest) = ranges[place % channels];
                if spans_levels(lowest, highest) {
                    (low[place], span[place]) = (lowest, highest - lowest);
                }
            }
            for block in image.chunks_mut(BLOCK) {
                for ((value, low), span) in block.iter_mut().zip(&low).zip(&span) {
                    // A division, not a product with 1/span: only this makes the highest value exactly 1.
                    *value = (*value - low) / span;
                }
            }
        }
        _ => {
            for c in 0..channels {
                let channel = || image[c..].iter().step_by(channels).copied();
                let low = channel().fold(f32::INFINITY, f32::min);
                let high = channel().fold(f32::NEG_INFINITY, f32::max);
                if spans_levels(low, high) {
                    image[c..].iter_mut().step_by(channels).for_each(|value| *value = (*value - low) / (high - low));
                }
            }
        }
    }
}

/// Whether there is anything to stretch. A span of less than half an 8-bit level is a single value with rounding error,
/// and stretching would only amplify that error.
fn spans_levels(low: f32, high: f32) -> bool {
    (high - low) * (LEVELS as f32 - 1.0) >= 0.5
}

/// Makes the histogram of each channel as flat as its 256 levels allow; a channel with a single level stays as it is.
pub(super) fn equalize(image: &mut [f32], channels: usize) {
    let pixels = image.len() / channels;
    for c in 0..channels {
        let mut counts = [0_usize; LEVELS];
        image[c..].iter().step_by(channels).for_each(|&value| counts[level(value)] += 1);
        let brightest = counts.iter().rev().find(|&&count| count > 0).copied().unwrap_or(0);
        if brightest == pixels {
            continue;
        }
        // A level is mapped to the share of pixels below it. The brightest level is left out of the total, so that it
        // maps to exactly 1, just as the darkest maps to exactly 0.
        let total = (pixels - brightest) as f32;
        let mut below = 0;
        let equalized = counts.map(|count| {
            let share = below as f32 / total;
            below += count;
            share.min(1.0)
        });
        image[c..].iter_mut().step_by(channels).for_each(|value| *value = equalized[level(*value)]);
    }
}

/// The 8-bit level of a value.
#[inline(always)]
fn level(value: f32) -> usize {
    // The cast saturates, so a value just outside [0, 1] cannot index outside the table.
    usize::from((value * (LEVELS as f32 - 1.0) + 0.5) as u8)
}

/// Keeps the highest `bits` of 8 bits.
pub(super) fn posterize(image: &mut [f32], bits: u32) {
    if bits >= 8 {
        return;
    }
    let mask = u8::MAX << (8 - bits);
    image.iter_mut().for_each(|value| *value = f32::from((*value * 255.0 + 0.5) as u8 & mask) / 255.0);
}

/// Inverts the values above `threshold`.
pub(super) fn solarize(image: &mut [f32], threshold: f32) {
    image.iter_mut().for_each(|value| *value = if *value > threshold { 1.0 - *value } else { *value });
}

/// Blends with a smoothed copy; 1 leaves the image as it is. As in FixMatch, this only ever blurs. Pixels at the border
/// of a plane stay as they are.
pub(super) fn sharpness(image: &mut [f32], scratch: &mut [f32], shape: ImageShape, factor: f32) {
    let channels = shape.channels;
    let row = shape.width * channels;
    if shape.width < 3 || shape.height < 3 {
        return;
    }
    scratch.copy_from_slice(image);
    let plane = shape.height * row;
    let inner = row - 2 * channels;
    for (to, from) in image.chunks_exact_mut(plane).zip(scratch.chunks_exact(plane)) {
        for y in 1..shape.height - 1 {
            let to = &mut to[y * row + channels..][..inner];
            // Three rows, each at its left, middle and right position, as slices of equal length, so that the sum
            // vectorises.
            let [above, here, below] = [y - 1, y, y + 1].map(|y| {
                let row = &from[y * row..(y + 1) * row];
                [&row[..inner], &row[channels..][..inner], &row[2 * channels..][..inner]]
            });
            for i in 0..inner {
                let around = above[0][i] + above[1][i] + above[2][i] + here[0][i] + here[2][i];
                let around = around + below[0][i] + below[1][i] + below[2][i];
                // Kernel (1 1 1, 1 5 1, 1 1 1) / 13.
                let smooth = (around + 5.0 * here[1][i]) / 13.0;
                to[i] = smooth + factor * (to[i] - smooth);
            }
        }
    }
}

/// Raises values to a power; above 1 darkens the mid-tones, below 1 lightens them.
pub(super) fn gamma(image: &mut [f32], exponent: f32) {
    image.iter_mut().for_each(|value| *value = value.max(0.0).powf(exponent));
}

/// Adds noise of standard deviation `sd`, and clips to [0, 1]. The noise is a sum of four uniform draws: bell-shaped,
/// within ±3.5 sd, and made from one 64-bit number per value.
pub(super) fn noise(image: &mut [f32], sd: f32, draws: &mut Draws) {
    // The sum of four 16-bit uniforms has mean 2 · 65535 and standard deviation 65535 / √3.
    let scale = sd * 3.0_f32.sqrt() / 65535.0;
    for value in image {
        let bits = draws.next_u64();
        let sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        *value = (*value + scale * (sum as f32 - 131_070.0)).clamp(0.0, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::{BatchKey, Kind};
    use super::*;

    fn close(a: &[f32], b: &[f32], tolerance: f32) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
    }

    #[test]
    fn autocontrast_spans_the_range_channel_by_channel() {
        let mut image = [0.2, 0.5, 0.3, 0.5, 0.4, 0.5];
        autocontrast(&mut image, 2);
        assert!(close(&image, &[0.0, 0.5, 0.5, 0.5, 1.0, 0.5], 1e-6), "{image:?}");
        assert_eq!((image[0], image[4]), (0.0, 1.0));
    }

    #[test]
    fn autocontrast_is_the_same_with_many_channels() {
        // 70 pixels: more than a block, and not a whole number of blocks.
        for channels in 1..=6 {
            let mut image: Vec<f32> = (0..70 * channels).map(|i| 0.3 + (i * i % 37) as f32 / 100.0).collect();
            let expected: Vec<f32> = (0..image.len())
                .map(|i| {
                    let channel = || image[i % channels..].iter().step_by(channels).copied();
                    let (low, high) = (channel().fold(1.0, f32::min), channel().fold(0.0, f32::max));
                    (image[i] - low) / (high - low)
                })
                .collect();
            autocontrast(&mut image, channels);
            assert!(close(&image, &expected, 1e-6), "{channels} channels");
        }
    }

    #[test]
    fn equalize_keeps_a_flat_histogram() {
        let flat: Vec<f32> = (0..1024).map(|i| (i % 256) as f32 / 255.0).collect();
        let mut image = flat.clone();
        equalize(&mut image, 1);
        assert!(close(&image, &flat, 1e-6));
    }

    #[test]
    fn equalize_spreads_a_narrow_histogram_and_keeps_a_single_level() {
        let mut image = [100.0 / 255.0, 0.5, 101.0 / 255.0, 0.5, 102.0 / 255.0, 0.5];
        equalize(&mut image, 2);
        assert_eq!(image, [0.0, 0.5, 0.5, 0.5, 1.0, 0.5]);
    }

    #[test]
    fn posterize_keeps_the_high_bits() {
        let mut image = [0.0, 15.0 / 255.0, 16.0 / 255.0, 1.0];
        posterize(&mut image, 4);
        assert_eq!(image, [0.0, 0.0, 16.0 / 255.0, 240.0 / 255.0]);
    }

    #[test]
    fn solarize_inverts_what_is_bright() {
        let mut image = [0.2, 0.75, 1.0];
        solarize(&mut image, 0.5);
        assert_eq!(image, [0.2, 0.25, 0.0]);
    }

    #[test]
    fn blends_reach_black_grey_and_colourless() {
        let original = [0.1, 0.4, 0.9, 0.3, 0.2, 0.5];
        let mut image = original;
        brightness(&mut image, 0.0);
        assert_eq!(image, [0.0; 6]);
        image = original;
        contrast(&mut image, 3, 0.0);
        // 0.299 · 0.2 + 0.587 · 0.3 + 0.114 · 0.7
        assert!(close(&image, &[0.3157; 6], 1e-6), "{image:?}");
        image = original;
        contrast(&mut image, 2, 0.0);
        assert!(close(&image, &[0.4; 6], 1e-6), "{image:?}");
        image = original;
        saturation(&mut image, 3, 0.0);
        let (first, second) = (0.0299 + 0.2348 + 0.1026, 0.0897 + 0.1174 + 0.057);
        assert!(close(&image, &[first, first, first, second, second, second], 1e-6), "{image:?}");
        image = original;
        saturation(&mut image, 2, 0.0);
        assert_eq!(image, original);
    }

    #[test]
    fn sharpness_smooths_the_inside_of_every_slice() {
        let shape = ImageShape { depth: 2, height: 3, width: 4, channels: 2 };
        let mut image = vec![0.0; shape.len()];
        // The pixel at row 1, column 1 of the second slice, in its second channel.
        let at = ((3 + 1) * 4 + 1) * 2 + 1;
        image[at] = 1.0;
        sharpness(&mut image, &mut vec![7.0; shape.len()], shape, 0.0);
        let mut expected = vec![0.0; shape.len()];
        expected[at] = 5.0 / 13.0;
        expected[at + 2] = 1.0 / 13.0;
        assert!(close(&image, &expected, 1e-6), "{image:?}");
    }

    #[test]
    fn noise_has_the_spread_asked_for() {
        let mut draws = BatchKey { seed: 1, step: 0, kind: Kind::Strong }.draws(0);
        let mut image = vec![0.5; 100_000];
        noise(&mut image, 0.1, &mut draws);
        let mean = image.iter().sum::<f32>() / 1e5;
        let variance = image.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / 1e5;
        // Four standard errors: 0.0013 of the mean, 0.0009 of the standard deviation.
        assert!((mean - 0.5).abs() < 0.0013, "{mean}");
        assert!((variance.sqrt() - 0.1).abs() < 0.0009, "{}", variance.sqrt());
    }
}

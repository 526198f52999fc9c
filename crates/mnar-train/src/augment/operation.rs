//! RandAugment's operations, and the range from which each draws its strength.

use super::batch::Draws;
use super::geometry::{Linear, Offset, shift, warp};
use super::intensity;
use mnar_data::ImageShape;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// One operation of RandAugment. Its strength is drawn uniformly from FixMatch's range, shrunk towards no change by
/// the magnitude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operation {
    /// Leaves the image as it is.
    Identity,
    /// Stretches every channel to [0, 1]. It has no strength.
    Autocontrast,
    /// Blends with black, keeping a share from 0.05 to 0.95.
    Brightness,
    /// Blends with the mean grey, keeping a share from 0.05 to 0.95.
    Contrast,
    /// Flattens the histogram of every channel. It has no strength.
    Equalize,
    /// Keeps 4 to 8 bits.
    Posterize,
    /// Inverts the values above a threshold from 0 to 1.
    Solarize,
    /// Blends with a smoothed copy, keeping a share from 0.05 to 0.95.
    Sharpness,
    /// Blends with the grey image, keeping a share from 0.05 to 0.95. Has no effect unless there are three channels.
    Saturation,
    /// Rotates the plane by -30 to 30 degrees.
    Rotate,
    /// Shears the plane sideways, by a slope from -0.3 to 0.3.
    ShearX,
    /// Shears the plane up and down, by a slope from -0.3 to 0.3.
    ShearY,
    /// Shifts sideways by up to 0.3 of the width, in whole pixels.
    TranslateX,
    /// Shifts up or down by up to 0.3 of the height, in whole pixels.
    TranslateY,
    /// Shifts along the depth by up to 0.3 of it, in whole slices. Has no effect on a flat image.
    TranslateDepth,
    /// Raises values to a power from 1/2 to 2.
    Gamma,
    /// Adds noise with a standard deviation of up to 0.1.
    Noise,
}

impl Operation {
    /// FixMatch's pool, for colour images.
    pub const COLOUR: [Self; 14] = [
        Self::Identity,
        Self::Autocontrast,
        Self::Brightness,
        Self::Contrast,
        Self::Equalize,
        Self::Posterize,
        Self::Solarize,
        Self::Sharpness,
        Self::Saturation,
        Self::Rotate,
        Self::ShearX,
        Self::ShearY,
        Self::TranslateX,
        Self::TranslateY,
    ];

    /// FixMatch's pool for grey images of digits or letters: without colour, and without solarize, which turns strokes
    /// into background (half the ink of MNIST is above 0.84; any threshold below that turns it into 0.16 or less).
    pub const GREY: [Self; 12] = [
        Self::Identity,
        Self::Autocontrast,
        Self::Brightness,
        Self::Contrast,
        Self::Equalize,
        Self::Posterize,
        Self::Sharpness,
        Self::Rotate,
        Self::ShearX,
        Self::ShearY,
        Self::TranslateX,
        Self::TranslateY,
    ];

    /// The pool for volumes: operations that (noise aside) keep intensities in order, and shifts along all three axes.
    pub const VOLUME: [Self; 12] = [
        Self::Identity,
        Self::Brightness,
        Self::Contrast,
        Self::Gamma,
        Self::Posterize,
        Self::Noise,
        Self::Rotate,
        Self::ShearX,
        Self::ShearY,
        Self::TranslateX,
        Self::TranslateY,
        Self::TranslateDepth,
    ];

    /// Draws a strength and alters the image. At magnitude 0 only the two operations without a strength change
    /// anything.
    pub(super) fn alter(
        self,
        image: &mut [f32],
        scratch: &mut [f32],
        shape: ImageShape,
        magnitude: f32,
        draws: &mut Draws,
    ) {
        let mut strength = Strength { magnitude, draws };
        match self {
            Self::Identity => {}
            Self::Autocontrast => intensity::autocontrast(image, shape.channels),
            Self::Brightness => intensity::brightness(image, strength.kept_share()),
            Self::Contrast => intensity::contrast(image, shape.channels, strength.kept_share()),
            Self::Equalize => intensity::equalize(image, shape.channels),
            Self::Posterize => intensity::posterize(image, 8 - strength.up_to(4)),
            Self::Solarize => intensity::solarize(image, 1.0 - strength.share()),
            Self::Sharpness => intensity::sharpness(image, scratch, shape, strength.kept_share()),
            Self::Saturation => intensity::saturation(image, shape.channels, strength.kept_share()),
            Self::Rotate => warp(image, scratch, shape, Linear::rotation(strength.either_way(30.0))),
            Self::ShearX => warp(image, scratch, shape, Linear::shear_x(strength.either_way(0.3))),
            Self::ShearY => warp(image, scratch, shape, Linear::shear_y(strength.either_way(0.3))),
            Self::TranslateX => {
                let right = strength.pixels(0.3, shape.width);
                shift(image, scratch, shape, Offset { right, ..Offset::default() });
            }
            Self::TranslateY => {
                let down = strength.pixels(0.3, shape.height);
                shift(image, scratch, shape, Offset { down, ..Offset::default() });
            }
            Self::TranslateDepth => {
                let depth = strength.pixels(0.3, shape.depth);
                shift(image, scratch, shape, Offset { depth, ..Offset::default() });
            }
            Self::Gamma => intensity::gamma(image, strength.either_way(1.0).exp2()),
            Self::Noise => {
                let sd = 0.1 * strength.share();
                intensity::noise(image, sd, strength.draws);
            }
        }
    }
}

/// Draws strengths, shrunk by the magnitude.
struct Strength<'a> {
    magnitude: f32,
    draws: &'a mut Draws,
}

impl Strength<'_> {
    /// A number from 0 to the magnitude.
    fn share(&mut self) -> f32 {
        self.magnitude * self.draws.random_range(0.0..=1.0)
    }

    /// A number from `-most` to `most`.
    fn either_way(&mut self, most: f32) -> f32 {
        self.magnitude * most * self.draws.random_range(-1.0..=1.0)
    }

    /// The share of the image that a blend keeps: 0.05 to 0.95 at full magnitude.
    fn kept_share(&mut self) -> f32 {
        1.0 - self.magnitude * self.draws.random_range(0.05..=0.95)
    }

    /// A whole number from 0 to `most`.
    fn up_to(&mut self, most: u32) -> u32 {
        // Rounding would give the two ends half the probability of the others; a range that starts at -1/2 makes all
        // equal.
        let wide = self.magnitude * (self.draws.random_range(0.0..1.0) * (most as f32 + 1.0) - 0.5);
        (wide.round() as u32).min(most)
    }

    /// A shift by up to a share of a side, in whole pixels.
    fn pixels(&mut self, share: f32, side: usize) -> isize {
        self.either_way(share * side as f32).round() as isize
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::{BatchKey, Kind};
    use super::*;

    fn noise_image(shape: ImageShape) -> Vec<f32> {
        let mut draws = BatchKey { seed: 9, step: 9, kind: Kind::Weak }.draws(9);
        (0..shape.len()).map(|_| draws.random()).collect()
    }

    const ALL: [Operation; 17] = [
        Operation::Identity,
        Operation::Autocontrast,
        Operation::Brightness,
        Operation::Contrast,
        Operation::Equalize,
        Operation::Posterize,
        Operation::Solarize,
        Operation::Sharpness,
        Operation::Saturation,
        Operation::Rotate,
        Operation::ShearX,
        Operation::ShearY,
        Operation::TranslateX,
        Operation::TranslateY,
        Operation::TranslateDepth,
        Operation::Gamma,
        Operation::Noise,
    ];

    #[test]
    fn magnitude_zero_is_the_identity() {
        let shape = ImageShape { depth: 3, height: 7, width: 6, channels: 3 };
        let original = noise_image(shape);
        for operation in ALL {
            if matches!(operation, Operation::Autocontrast | Operation::Equalize) {
                continue;
            }
            let (mut image, mut scratch) = (original.clone(), vec![0.0; shape.len()]);
            let mut draws = BatchKey { seed: 1, step: 2, kind: Kind::Strong }.draws(0);
            operation.alter(&mut image, &mut scratch, shape, 0.0, &mut draws);
            let worst = image.iter().zip(&original).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-6, "{operation:?} changed a value by {worst}");
        }
    }

    #[test]
    fn every_operation_changes_the_image_at_full_magnitude() {
        let shape = ImageShape { depth: 8, height: 9, width: 8, channels: 3 };
        let original = noise_image(shape);
        for operation in ALL {
            let changed = (0..20)
                .filter(|&position| {
                    let (mut image, mut scratch) = (original.clone(), vec![0.0; shape.len()]);
                    let mut draws = BatchKey { seed: 1, step: 2, kind: Kind::Strong }.draws(position);
                    operation.alter(&mut image, &mut scratch, shape, 1.0, &mut draws);
                    image != original
                })
                .count();
            // Some draws have no effect: 8 bits, or less than half a pixel.
            let expected = if operation == Operation::Identity { 0..1 } else { 10..21 };
            assert!(expected.contains(&changed), "{operation:?} changed {changed} of 20 images");
        }
    }

    #[test]
    fn the_numbers_of_bits_are_equally_likely() {
        let mut draws = BatchKey { seed: 1, step: 2, kind: Kind::Strong }.draws(0);
        let mut counts = [0; 5];
        for _ in 0..5000 {
            counts[Strength { magnitude: 1.0, draws: &mut draws }.up_to(4) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (880..1120).contains(count)), "{counts:?}");
    }

    #[test]
    fn names_are_snake_case_in_settings() {
        let json = serde_json::to_string(&Operation::VOLUME[11]).expect("plain enum");
        assert_eq!(json, r#""translate_depth""#);
    }
}

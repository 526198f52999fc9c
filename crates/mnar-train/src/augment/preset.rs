//! Settings that suit a kind of image.

use super::AugmentError;
use super::operation::Operation;
use super::orientation::Orientation;
use super::strong::Strong;
use super::weak::Weak;
use mnar::Labels;
use mnar_data::{ImageShape, Images};
use serde::{Deserialize, Serialize};

/// For images that FixMatch's full ranges can make illegible: at 1, brightness keeps as little as 0.05 of an image and
/// a translation moves by up to 0.3 of the side, half an MNIST digit out of its frame; at 0.7 these are 0.34 and 0.21.
const GENTLE_MAGNITUDE: f32 = 0.7;

/// FixMatch's cutout, half the side, would often hide all of a small object in the centre; a digit of MNIST fills 20 of
/// its 28 pixels, a lesion often fewer than 14.
const GENTLE_CUTOUT: f32 = 0.3;

/// The two views that a consistency method compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augment {
    /// For the labelled images, and for the prediction that the strong view has to agree with.
    pub weak: Weak,
    /// For the images that have to agree with that prediction.
    pub strong: Strong,
}

impl Augment {
    /// Settings that are safe to assume from the shape alone.
    ///
    /// - One channel is assumed to show digits or letters: small shifts, no mirrors (a mirrored 3 is not a digit).
    /// - More channels are assumed to be photographs: small shifts, left-right mirrors, and FixMatch's strong view.
    /// - A volume has no preferred side: small shifts, and mirrors along the three axes.
    ///
    /// Shifts are at most 1/8 of the shorter side of the plane.
    pub fn for_shape(shape: ImageShape) -> Self {
        let volume = shape.depth > 1;
        let photograph = !volume && shape.channels > 1;
        let weak = Weak {
            flip_horizontal: volume || photograph,
            flip_vertical: volume,
            flip_depth: volume,
            quarter_turns: false,
            shift: shape.height.min(shape.width) / 8,
        };
        let pool = match (volume, shape.channels) {
            (true, _) => Operation::VOLUME.to_vec(),
            (false, 1) => Operation::GREY.to_vec(),
            (false, 3) => Operation::COLOUR.to_vec(),
            // Two or four channels have no colour to remove.
            (false, _) => Operation::COLOUR.into_iter().filter(|op| *op != Operation::Saturation).collect(),
        };
        let (magnitude, cutout) = match (volume, photograph) {
            (_, true) => (1.0, 0.5),
            (true, _) => (GENTLE_MAGNITUDE, 0.5),
            _ => (GENTLE_MAGNITUDE, GENTLE_CUTOUT),
        };
        Self { strong: Strong { weak: weak.clone(), operations: 2, pool, magnitude, cutout }, weak }
    }

    /// Like [`Self::for_shape`], but flat images are mirrored and turned as far as they [show](Orientation) no preferred
    /// orientation, and shifted by at most 1/14 of the shorter side: on a mask of MNIST S2, networks of folds had a log-loss of
    /// 0.112 with shifts by up to 2 pixels and of 0.129 with up to 3.
    pub fn for_images(images: &Images, labels: &Labels) -> Self {
        let shape = images.shape();
        let mut augment = Self::for_shape(shape);
        if shape.depth == 1 {
            let orientation = Orientation::of(images, labels);
            for weak in [&mut augment.weak, &mut augment.strong.weak] {
                orientation.apply(weak);
                weak.shift = shape.height.min(shape.width) / 14;
            }
        }
        augment
    }

    /// For medical images of a small finding without a preferred orientation, as in dermatoscopy, histology, or crops
    /// of a scan around a nodule: like [`Self::for_shape`] with [`Self::orientation_free`], but gentle, and without
    /// autocontrast, equalize and solarize: the colour of a lesion is part of its diagnosis, and those three act on
    /// each channel separately and so turn skin green or white.
    pub fn medical(shape: ImageShape) -> Self {
        let mut augment = Self::for_shape(shape).orientation_free();
        let recolours = [Operation::Autocontrast, Operation::Equalize, Operation::Solarize];
        augment.strong.pool.retain(|op| !recolours.contains(op));
        augment.strong.magnitude = GENTLE_MAGNITUDE;
        augment.strong.cutout = GENTLE_CUTOUT;
        augment
    }

    /// The same settings with mirrors and quarter turns in the plane, in both views.
    pub fn orientation_free(mut self) -> Self {
        for weak in [&mut self.weak, &mut self.strong.weak] {
            weak.flip_horizontal = true;
            weak.flip_vertical = true;
            weak.quarter_turns = true;
        }
        self
    }

    /// Checks that the settings are valid.
    pub fn check(&self) -> Result<(), AugmentError> {
        self.strong.check()
    }
}

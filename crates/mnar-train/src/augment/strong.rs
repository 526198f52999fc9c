//! The strong view: weak, then RandAugment, then cutout.

use super::AugmentError;
use super::batch::{BatchKey, Kind, for_each_image};
use super::cutout::Cuboid;
use super::operation::Operation;
use super::weak::Weak;
use mnar_data::ImageShape;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// FixMatch's strong view of an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strong {
    /// The weak view applied first. It is drawn independently of the weak view of the same image.
    pub weak: Weak,
    /// Number of operations drawn from the pool for an image, with replacement and applied in turn.
    pub operations: usize,
    /// The operations to draw from, all with the same probability.
    pub pool: Vec<Operation>,
    /// How much of the range of every operation is used, from 0 (no change) to 1 (FixMatch's range).
    pub magnitude: f32,
    /// Side of the grey box drawn over the image at the end, as a share of the image's side; 0 means no box.
    pub cutout: f32,
}

impl Strong {
    /// Checks that the settings are valid.
    pub fn check(&self) -> Result<(), AugmentError> {
        for (name, value) in [("magnitude", self.magnitude), ("cutout", self.cutout)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(AugmentError::OutsideUnitRange { name, value });
            }
        }
        if self.operations > 0 && self.pool.is_empty() {
            return Err(AugmentError::EmptyPool { operations: self.operations });
        }
        Ok(())
    }

    /// Alters every image of a batch in place. What is drawn depends on the seed, the step and the position in the
    /// batch; for the same values, the weak view is drawn independently.
    ///
    /// # Panics
    /// If the slice does not hold a whole number of images, or the settings do not pass [`Self::check`].
    pub fn apply(&self, images: &mut [f32], shape: ImageShape, seed: u64, step: u64) {
        if let Err(error) = self.check() {
            panic!("{error}");
        }
        for_each_image(images, shape, BatchKey { seed, step, kind: Kind::Strong }, |image, scratch, draws| {
            self.weak.alter(image, scratch, shape, draws);
            for _ in 0..self.operations {
                let operation = self.pool[draws.random_range(0..self.pool.len())];
                operation.alter(image, scratch, shape, self.magnitude, draws);
            }
            // Blends and interpolations stay within [0, 1] up to rounding: 13 ones over 13 may be 1.0000001.
            image.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
            if self.cutout > 0.0 {
                Cuboid::draw(shape, self.cutout, draws).fill(image, shape);
            }
        });
    }
}

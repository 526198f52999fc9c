//! The weak view: mirrors, quarter turns and small shifts, none of which creates new values.

use super::batch::{BatchKey, Draws, Kind, for_each_image};
use super::geometry::{Offset, flip_depth, flip_horizontal, flip_vertical, quarter_turns, shift};
use mnar_data::ImageShape;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Which small changes keep the class of an image. Each is drawn independently, mirrors with probability 1/2. The
/// default is none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weak {
    /// Mirror left and right.
    pub flip_horizontal: bool,
    /// Mirror top and bottom.
    pub flip_vertical: bool,
    /// Mirror front and back.
    pub flip_depth: bool,
    /// Rotate by 0, 90, 180 or 270 degrees in the height-width plane; by 0 or 180 where it is not square.
    pub quarter_turns: bool,
    /// Shift by up to this many pixels along the height and along the width, and by the same share along the depth of a
    /// volume. Pixels from beyond the frame are copies of the nearest border pixel.
    pub shift: usize,
}

impl Weak {
    /// Alters every image of a batch in place. What is drawn depends on the seed, the step and the position in the
    /// batch, so two batches of one step (labelled, unlabelled) need two seeds.
    ///
    /// # Panics
    /// If the slice does not hold a whole number of images.
    pub fn apply(&self, images: &mut [f32], shape: ImageShape, seed: u64, step: u64) {
        for_each_image(images, shape, BatchKey { seed, step, kind: Kind::Weak }, |image, scratch, draws| {
            self.alter(image, scratch, shape, draws);
        });
    }

    /// Alters one image.
    pub(super) fn alter(&self, image: &mut [f32], scratch: &mut [f32], shape: ImageShape, draws: &mut Draws) {
        if self.flip_horizontal && draws.random() {
            flip_horizontal(image, shape);
        }
        if self.flip_vertical && draws.random() {
            flip_vertical(image, shape);
        }
        if self.flip_depth && draws.random() {
            flip_depth(image, shape);
        }
        if self.quarter_turns {
            let turns = draws.random_range(0..4);
            quarter_turns(image, scratch, shape, if shape.height == shape.width { turns } else { turns / 2 * 2 });
        }
        if self.shift > 0 {
            let mut either_way = |most: usize| {
                // Far beyond any image, and an integer of the same width on every machine, so that the draws are the
                // same.
                let most = i32::try_from(most).unwrap_or(i32::MAX);
                draws.random_range(-most..=most) as isize
            };
            let offset = Offset {
                down: either_way(self.shift),
                right: either_way(self.shift),
                depth: either_way(self.depth_shift(shape)),
            };
            shift(image, scratch, shape, offset);
        }
    }

    /// The shift along the depth, in slices: the same share of the depth as of the plane. A scan of 5 slices of 64 × 64
    /// pixels with a shift of 8 shifts by at most 1 slice, not by 8.
    fn depth_shift(&self, shape: ImageShape) -> usize {
        if shape.depth == 1 {
            return 0;
        }
        let side = shape.height.max(shape.width) as f64;
        (self.shift as f64 * shape.depth as f64 / side).round() as usize
    }
}

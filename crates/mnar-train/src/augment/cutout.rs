//! Cutout: a grey box drawn over the image.

use super::batch::Draws;
use mnar_data::ImageShape;
use rand::RngExt;
use std::ops::Range;

/// Mid-grey: it carries no information about the class, and lies in the middle of the input range.
const FILL: f32 = 0.5;

/// A box within the frame; one slice deep in a flat image.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cuboid {
    depth: Range<usize>,
    height: Range<usize>,
    width: Range<usize>,
}

impl Cuboid {
    /// Draws a box whose sides are `share` of the image's and whose centre is any pixel. As in FixMatch, the frame cuts
    /// off what lies outside it: if the box were kept inside, one of half the side would always cover the centre of the
    /// image.
    pub(super) fn draw(shape: ImageShape, share: f32, draws: &mut Draws) -> Self {
        let mut along = |side: usize| {
            let length = ((share * side as f32).round() as usize).clamp(1, side);
            let centre = draws.random_range(0..side);
            // For an even length, the centre is the first pixel of the second half.
            centre.saturating_sub(length / 2)..(centre + length.div_ceil(2)).min(side)
        };
        Self { depth: along(shape.depth), height: along(shape.height), width: along(shape.width) }
    }

    /// Fills the box with mid-grey.
    pub(super) fn fill(&self, image: &mut [f32], shape: ImageShape) {
        let channels = shape.channels;
        for z in self.depth.clone() {
            for y in self.height.clone() {
                let row = (z * shape.height + y) * shape.width;
                image[(row + self.width.start) * channels..(row + self.width.end) * channels].fill(FILL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::{BatchKey, Kind};
    use super::*;

    fn grey_pixels(image: &[f32]) -> usize {
        image.iter().filter(|value| **value == FILL).count()
    }

    #[test]
    fn removes_exactly_the_box() {
        let shape = ImageShape { depth: 4, height: 6, width: 5, channels: 3 };
        let mut image = vec![1.0; shape.len()];
        Cuboid { depth: 1..3, height: 2..5, width: 0..2 }.fill(&mut image, shape);
        assert_eq!(grey_pixels(&image), 2 * 3 * 2 * 3);
        let at = |z: usize, y: usize, x: usize| image[((z * 6 + y) * 5 + x) * 3];
        assert_eq!((at(1, 2, 0), at(2, 4, 1)), (FILL, FILL));
        assert_eq!((at(0, 2, 0), at(1, 1, 0), at(1, 2, 2), at(3, 4, 1)), (1.0, 1.0, 1.0, 1.0));
    }

    #[test]
    fn has_the_side_asked_for_unless_the_frame_cuts_it() {
        let shape = ImageShape { depth: 1, height: 32, width: 32, channels: 1 };
        let mut whole = 0;
        for position in 0..2000 {
            let mut draws = BatchKey { seed: 3, step: 0, kind: Kind::Strong }.draws(position);
            let cuboid = Cuboid::draw(shape, 0.25, &mut draws);
            let mut image = vec![1.0; shape.len()];
            cuboid.fill(&mut image, shape);
            assert_eq!(grey_pixels(&image), cuboid.height.len() * cuboid.width.len());
            assert!(cuboid.height.len() >= 4 && cuboid.width.len() >= 4, "at least the half inside the frame");
            whole += usize::from(grey_pixels(&image) == 8 * 8);
        }
        // 25 of the 32 centres along a side leave the box uncut: 61 % of the images.
        assert!((1130..1310).contains(&whole), "{whole}");
    }

    #[test]
    fn covers_a_single_pixel() {
        let shape = ImageShape { depth: 1, height: 1, width: 1, channels: 4 };
        let mut image = vec![1.0; 4];
        let mut draws = BatchKey { seed: 3, step: 0, kind: Kind::Strong }.draws(0);
        Cuboid::draw(shape, 0.1, &mut draws).fill(&mut image, shape);
        assert_eq!(image, [FILL; 4]);
    }
}

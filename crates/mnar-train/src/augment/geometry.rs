//! Geometric operations: mirrors, quarter turns, whole-pixel shifts, and linear maps of the plane.
//!
//! Volumes are processed slice by slice in the height-width plane, with the same parameters for every slice.

use mnar_data::ImageShape;

/// A shift by whole pixels; positive is right, down and deeper.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Offset {
    pub(super) depth: isize,
    pub(super) down: isize,
    pub(super) right: isize,
}

/// Mirrors left and right.
pub(super) fn flip_horizontal(image: &mut [f32], shape: ImageShape) {
    let channels = shape.channels;
    for row in image.chunks_exact_mut(shape.width * channels) {
        row.reverse();
        // Reversing all values has also reversed the channels of each pixel.
        if channels > 1 {
            row.chunks_exact_mut(channels).for_each(<[f32]>::reverse);
        }
    }
}

/// Mirrors top and bottom.
pub(super) fn flip_vertical(image: &mut [f32], shape: ImageShape) {
    let row = shape.width * shape.channels;
    for plane in image.chunks_exact_mut(shape.height * row) {
        flip_blocks(plane, row);
    }
}

/// Mirrors front and back.
pub(super) fn flip_depth(image: &mut [f32], shape: ImageShape) {
    flip_blocks(image, shape.height * shape.width * shape.channels);
}

/// Reverses the order of blocks of `size` values.
fn flip_blocks(values: &mut [f32], size: usize) {
    let (first, rest) = values.split_at_mut(values.len() / size / 2 * size);
    for (front, back) in first.chunks_exact_mut(size).zip(rest.rchunks_exact_mut(size)) {
        front.swap_with_slice(back);
    }
}

/// Rotates the plane by `turns` quarter turns, anticlockwise. An odd number requires a square plane.
pub(super) fn quarter_turns(image: &mut [f32], scratch: &mut [f32], shape: ImageShape, turns: usize) {
    let turns = turns % 4;
    if turns == 2 {
        flip_horizontal(image, shape);
        flip_vertical(image, shape);
        return;
    }
    if turns == 0 {
        return;
    }
    debug_assert_eq!(shape.height, shape.width, "only a square keeps its shape under a quarter turn");
    let (side, channels) = (shape.width, shape.channels);
    scratch.copy_from_slice(image);
    let plane = side * side * channels;
    for (to, from) in image.chunks_exact_mut(plane).zip(scratch.chunks_exact(plane)) {
        for (at, pixel) in to.chunks_exact_mut(channels).enumerate() {
            let (y, x) = (at / side, at % side);
            let (from_y, from_x) = if turns == 1 { (x, side - 1 - y) } else { (side - 1 - x, y) };
            let from_at = (from_y * side + from_x) * channels;
            pixel.copy_from_slice(&from[from_at..from_at + channels]);
        }
    }
}

/// Shifts the image by whole pixels. Pixels from beyond the frame are copies of the nearest border pixel: this needs no
/// knowledge of the background, which is black for digits and skin for dermatoscopy, and, unlike a reflection, never
/// repeats a stroke (reflected, the foot of an MNIST 7 came back as a dot below it).
pub(super) fn shift(image: &mut [f32], scratch: &mut [f32], shape: ImageShape, offset: Offset) {
    if offset == Offset::default() {
        return;
    }
    scratch.copy_from_slice(image);
    let source = |at: usize, moved: isize, side: usize| (at as isize - moved).clamp(0, side as isize - 1) as usize;
    let (width, channels) = (shape.width, shape.channels);
    let row = width * channels;
    // Columns that come from inside the frame are copied in one block; the rest are border pixels.
    let inside_from = offset.right.clamp(0, width as isize) as usize;
    let inside_to = (width as isize + offset.right).clamp(inside_from as isize, width as isize) as usize;
    for (at, to) in image.chunks_exact_mut(row).enumerate() {
        let (z, y) = (at / shape.height, at % shape.height);
        let from_z = source(z, offset.depth, shape.depth);
        let from_y = source(y, offset.down, shape.height);
        let from_at = (from_z * shape.height + from_y) * row;
        let from = &scratch[from_at..from_at + row];
        if inside_from < inside_to {
            let start = (inside_from as isize - offset.right) as usize;
            let moved = &from[start * channels..(start + inside_to - inside_from) * channels];
            to[inside_from * channels..inside_to * channels].copy_from_slice(moved);
        }
        for x in (0..inside_from).chain(inside_to..width) {
            let from_x = source(x, offset.right, width);
            to[x * channels..][..channels].copy_from_slice(&from[from_x * channels..][..channels]);
        }
    }
}

/// A linear map of the plane about the centre of the image, from where a pixel ends up to where it comes from:
/// `(x, y) -> (xx x + xy y, yx x + yy y)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Linear {
    xx: f32,
    xy: f32,
    yx: f32,
    yy: f32,
}

impl Linear {
    /// Rotates by an angle in degrees, anticlockwise as seen.
    pub(super) fn rotation(degrees: f32) -> Self {
        let (sin, cos) = degrees.to_radians().sin_cos();
        Self { xx: cos, xy: -sin, yx: sin, yy: cos }
    }

    /// Shifts rows sideways, in proportion to their height above or below the centre.
    pub(super) fn shear_x(slope: f32) -> Self {
        Self { xx: 1.0, xy: slope, yx: 0.0, yy: 1.0 }
    }

    /// Shifts columns up and down, in proportion to their distance from the centre.
    pub(super) fn shear_y(slope: f32) -> Self {
        Self { xx: 1.0, xy: 0.0, yx: slope, yy: 1.0 }
    }
}

/// Applies a linear map with bilinear sampling; beyond the frame lies the nearest border pixel, as in [`shift`].
pub(super) fn warp(image: &mut [f32], scratch: &mut [f32], shape: ImageShape, map: Linear) {
    scratch.copy_from_slice(image);
    let plane = shape.height * shape.width * shape.channels;
    for (to, from) in image.chunks_exact_mut(plane).zip(scratch.chunks_exact(plane)) {
        // The same code, compiled with a constant channel count for the common ones.
        match shape.channels {
            1 => warp_plane(to, from, shape, 1, map),
            3 => warp_plane(to, from, shape, 3, map),
            channels => warp_plane(to, from, shape, channels, map),
        }
    }
}

#[inline(always)]
fn warp_plane(to: &mut [f32], from: &[f32], shape: ImageShape, channels: usize, map: Linear) {
    let (last_x, last_y) = (shape.width - 1, shape.height - 1);
    let (centre_x, centre_y) = (last_x as f32 / 2.0, last_y as f32 / 2.0);
    let row = shape.width * channels;
    for (y, to_row) in to.chunks_exact_mut(row).enumerate() {
        let from_centre_y = y as f32 - centre_y;
        for (x, pixel) in to_row.chunks_exact_mut(channels).enumerate() {
            let from_centre_x = x as f32 - centre_x;
            let source_x = map.xx * from_centre_x + map.xy * from_centre_y + centre_x;
            let source_y = map.yx * from_centre_x + map.yy * from_centre_y + centre_y;
            let (x0, x1, right) = neighbours(source_x, last_x);
            let (y0, y1, down) = neighbours(source_y, last_y);
            let above = &from[y0 * row..(y0 + 1) * row];
            let below = &from[y1 * row..(y1 + 1) * row];
            let (left, right_of) = (x0 * channels, x1 * channels);
            let corners = (
                &above[left..left + channels],
                &above[right_of..right_of + channels],
                &below[left..left + channels],
                &below[right_of..right_of + channels],
            );
            for c in 0..channels {
                let top = corners.0[c] + right * (corners.1[c] - corners.0[c]);
                let bottom = corners.2[c] + right * (corners.3[c] - corners.2[c]);
                pixel[c] = top + down * (bottom - top);
            }
        }
    }
}

/// The two pixels around a position, and its distance from the first towards the second.
#[inline(always)]
fn neighbours(position: f32, last: usize) -> (usize, usize, f32) {
    let position = position.clamp(0.0, last as f32);
    let first = position as usize;
    (first, (first + 1).min(last), position - first as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image in which no two values are equal.
    fn numbered(shape: ImageShape) -> Vec<f32> {
        (0..shape.len()).map(|i| i as f32 / shape.len() as f32).collect()
    }

    fn plane(height: usize, width: usize, channels: usize) -> ImageShape {
        ImageShape { depth: 1, height, width, channels }
    }

    const SHAPES: [ImageShape; 5] = [
        ImageShape { depth: 1, height: 1, width: 1, channels: 1 },
        ImageShape { depth: 1, height: 3, width: 5, channels: 3 },
        ImageShape { depth: 1, height: 4, width: 1, channels: 4 },
        ImageShape { depth: 2, height: 3, width: 4, channels: 1 },
        ImageShape { depth: 3, height: 2, width: 2, channels: 2 },
    ];

    #[test]
    fn a_flip_is_its_own_inverse_and_no_flip_of_more_than_one_pixel_is_idle() {
        type Flip = (fn(&mut [f32], ImageShape), fn(ImageShape) -> usize);
        let flips: [Flip; 3] =
            [(flip_horizontal, |s| s.width), (flip_vertical, |s| s.height), (flip_depth, |s| s.depth)];
        for shape in SHAPES {
            for (flip, side) in flips {
                let mut image = numbered(shape);
                flip(&mut image, shape);
                assert_eq!(image != numbered(shape), side(shape) > 1);
                flip(&mut image, shape);
                assert_eq!(image, numbered(shape));
            }
        }
    }

    #[test]
    fn flips_keep_the_channels_of_a_pixel_together() {
        let shape = plane(2, 2, 2);
        let mut image = vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];
        flip_horizontal(&mut image, shape);
        assert_eq!(image, [0.2, 0.3, 0.0, 0.1, 0.6, 0.7, 0.4, 0.5]);
        flip_vertical(&mut image, shape);
        assert_eq!(image, [0.6, 0.7, 0.4, 0.5, 0.2, 0.3, 0.0, 0.1]);
    }

    #[test]
    fn quarter_turns_add_up() {
        for shape in [plane(1, 1, 1), plane(5, 5, 3), ImageShape { depth: 3, height: 4, width: 4, channels: 1 }] {
            let mut scratch = vec![0.0; shape.len()];
            let mut step_by_step = numbered(shape);
            for turns in 1..=4 {
                quarter_turns(&mut step_by_step, &mut scratch, shape, 1);
                let mut at_once = numbered(shape);
                quarter_turns(&mut at_once, &mut scratch, shape, turns);
                assert_eq!(step_by_step, at_once, "{turns} turns");
            }
            assert_eq!(step_by_step, numbered(shape));
        }
    }

    #[test]
    fn a_quarter_turn_is_anticlockwise() {
        let mut image = vec![0.1, 0.2, 0.3, 0.4];
        quarter_turns(&mut image, &mut [0.0; 4], plane(2, 2, 1), 1);
        assert_eq!(image, [0.2, 0.4, 0.1, 0.3]);
    }

    #[test]
    fn a_shift_moves_a_known_pixel() {
        let shape = ImageShape { depth: 4, height: 5, width: 6, channels: 3 };
        let at = |z: usize, y: usize, x: usize| ((z * 5 + y) * 6 + x) * 3;
        let mut image = vec![0.0; shape.len()];
        image[at(2, 2, 2) + 1] = 1.0;
        shift(&mut image, &mut vec![7.0; shape.len()], shape, Offset { depth: 1, down: -1, right: 2 });
        let mut expected = vec![0.0; shape.len()];
        expected[at(3, 1, 4) + 1] = 1.0;
        assert_eq!(image, expected);
    }

    #[test]
    fn a_shift_brings_in_border_pixels() {
        let moved = |right| {
            let mut image = vec![0.1, 0.2, 0.3, 0.4];
            shift(&mut image, &mut [0.0; 4], plane(1, 4, 1), Offset { right, ..Offset::default() });
            image
        };
        assert_eq!(moved(2), [0.1, 0.1, 0.1, 0.2]);
        assert_eq!(moved(-1), [0.2, 0.3, 0.4, 0.4]);
        // Further than the width of the image.
        assert_eq!(moved(9), [0.1; 4]);
        assert_eq!(moved(-9), [0.4; 4]);
    }

    #[test]
    fn a_rotation_by_90_degrees_is_the_quarter_turn() {
        for side in [5, 8, 28] {
            for (degrees, turns) in [(90.0, 1), (180.0, 2), (-90.0, 3)] {
                let shape = plane(side, side, 3);
                let mut scratch = vec![0.0; shape.len()];
                let (mut warped, mut turned) = (numbered(shape), numbered(shape));
                warp(&mut warped, &mut scratch, shape, Linear::rotation(degrees));
                quarter_turns(&mut turned, &mut scratch, shape, turns);
                let worst = warped.iter().zip(&turned).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                // The coordinates are off by 1e-6 of a pixel.
                assert!(worst < 1e-5, "{side} pixels, {degrees} degrees: off by {worst}");
            }
        }
    }

    #[test]
    fn a_map_that_moves_nothing_changes_nothing() {
        for shape in SHAPES {
            for map in [Linear::rotation(0.0), Linear::shear_x(0.0), Linear::shear_y(0.0)] {
                let mut image = numbered(shape);
                warp(&mut image, &mut vec![7.0; shape.len()], shape, map);
                assert_eq!(image, numbered(shape));
            }
        }
    }

    #[test]
    fn shears_slide_rows_and_columns_about_the_centre() {
        let shape = plane(3, 3, 1);
        let image = vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
        let sheared = |map| {
            let mut image = image.clone();
            warp(&mut image, &mut [0.0; 9], shape, map);
            image
        };
        // The row above the centre reads one pixel to the left, the one below one pixel to the right.
        assert_eq!(sheared(Linear::shear_x(1.0)), [0.1, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9, 0.9]);
        assert_eq!(sheared(Linear::shear_y(1.0)), [0.1, 0.2, 0.6, 0.1, 0.5, 0.9, 0.4, 0.8, 0.9]);
    }
}

//! Pooling over blocks that do not overlap.

use crate::Isa;
use crate::buffer::{with_scratch, written};
use crate::simd::vectorised;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Images cut into blocks; a last row, column or slice that does not fill a block is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Depth, height and width of an image.
    pub input: [usize; 3],
    /// Depth, height and width of a block.
    pub side: [usize; 3],
    /// Channels.
    pub channels: usize,
}

/// The winner where no value of a block is above the floor.
const NONE: u8 = u8::MAX;

/// Keeps the larger value of each place, and its code. Codes are the bits of an `f32`, to go the way of the values.
#[inline(always)]
fn keep_larger(best: &mut [f32], which: &mut [f32], values: &[f32], code: impl Fn(usize) -> f32) {
    let n = best.len();
    let (which, values) = (&mut which[..n], &values[..n]);
    for i in 0..n {
        let wins = (values[i] > best[i]) | values[i].is_nan(); // without a branch
        best[i] = if wins { values[i] } else { best[i] };
        which[i] = if wins { code(i) } else { which[i] };
    }
}

/// Writes the best of the pixels of a block, left in its first, whose codes count up from those in `which`.
#[inline(always)]
fn keep_largest(best: &mut [f32], which: &mut [f32], output: &mut [MaybeUninit<f32>], winners: &mut [u8]) {
    let c = output.len();
    let ((first, others), (first_which, other_which)) = (best.split_at_mut(c), which.split_at_mut(c));
    for (i, (values, codes)) in others.chunks_exact(c).zip(other_which.chunks_exact(c)).enumerate() {
        keep_larger(first, first_which, values, |c| f32::from_bits(codes[c].to_bits() + 1 + i as u32));
    }
    let winners = &mut winners[..c];
    for i in 0..c {
        output[i].write(first[i]);
        winners[i] = first_which[i].to_bits() as u8;
    }
}

impl Pool {
    /// Depth, height and width of a pooled image.
    pub fn output(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.input[axis] / self.side[axis])
    }

    /// Values of an image.
    pub fn input_len(&self) -> usize {
        self.input.iter().product::<usize>() * self.channels
    }

    /// Values of a pooled image.
    pub fn output_len(&self) -> usize {
        self.output().iter().product::<usize>() * self.channels
    }

    fn check(&self, values: &[f32], len: usize) {
        let pixels: usize = self.side.iter().product();
        assert!(pixels > 0 && self.output_len() > 0, "images hold a block: {self:?}");
        assert!(pixels < usize::from(NONE), "blocks of fewer than {NONE} pixels: {self:?}");
        assert_eq!(values.len() % len, 0, "whole images");
    }

    /// Where in its image the row of pixels begins that holds row (dz, dy) of the blocks of row `row` of the output.
    fn row(&self, row: usize, dz: usize, dy: usize) -> usize {
        let [_, oh, _] = self.output();
        let (z, y) = (row / oh * self.side[0] + dz, row % oh * self.side[1] + dy);
        (z * self.input[1] + y) * self.input[2] * self.channels
    }

    /// The largest value of every block that is above `floor`, else `floor`; and which it was, for the gradient.
    ///
    /// A floor of 0 is a rectifier. Not-a-number wins.
    pub fn max(&self, isa: Isa, x: &[f32], floor: f32) -> (Vec<f32>, Vec<u8>) {
        self.check(x, self.input_len());
        let ([_, _, ow], [sd, sh, sw], c) = (self.output(), self.side, self.channels);
        let images = x.len() / self.input_len();
        let mut winners = vec![NONE; images * self.output_len()];
        let columns = ow * sw * c;
        let write = |output: &mut [MaybeUninit<f32>]| {
            let outputs = output.par_chunks_exact_mut(self.output_len());
            let images = x.par_chunks_exact(self.input_len());
            outputs.zip(winners.par_chunks_exact_mut(self.output_len())).zip(images).for_each(
                |((output, winners), image)| {
                    with_scratch(2 * columns, |scratch| {
                        let (best, which) = scratch.split_at_mut(columns);
                        let rows = output.chunks_exact_mut(ow * c).zip(winners.chunks_exact_mut(ow * c));
                        for (row, (output, winners)) in rows.enumerate() {
                            vectorised(isa, || {
                                // Down the columns first, which are long; then across.
                                best.fill(floor);
                                which.fill(f32::from_bits(u32::from(NONE)));
                                for (dz, dy) in (0..sd).flat_map(|dz| (0..sh).map(move |dy| (dz, dy))) {
                                    let code = f32::from_bits(((dz * sh + dy) * sw) as u32);
                                    let values = &image[self.row(row, dz, dy)..][..columns];
                                    keep_larger(best, which, values, |_| code);
                                }
                                let blocks = best.chunks_exact_mut(sw * c).zip(which.chunks_exact_mut(sw * c));
                                let outputs = output.chunks_exact_mut(c).zip(winners.chunks_exact_mut(c));
                                for ((best, which), (output, winners)) in blocks.zip(outputs) {
                                    keep_largest(best, which, output, winners);
                                }
                            });
                        }
                    });
                },
            );
        };
        // SAFETY: every image is a chunk, its rows are whole, and every channel of every block is written.
        let output = unsafe { written(images * self.output_len(), write) };
        (output, winners)
    }

    /// The gradient of the input of [`max`](Self::max).
    pub fn max_gradient(&self, isa: Isa, winners: &[u8], dy: &[f32]) -> Vec<f32> {
        self.check(dy, self.output_len());
        assert_eq!(winners.len(), dy.len(), "a winner for every block");
        let c = self.channels;
        self.spread(
            isa,
            |row, code, gradient| {
                let (winners, dy) = (&winners[row..row + c], &dy[row..row + c]);
                for ((gradient, &winner), &dy) in gradient.iter_mut().zip(winners).zip(dy) {
                    gradient.write(if winner == code { dy } else { 0.0 });
                }
            },
            dy.len() / self.output_len(),
        )
    }

    /// The mean of every block.
    pub fn average(&self, isa: Isa, x: &[f32]) -> Vec<f32> {
        self.check_average(x, self.input_len());
        let ([_, _, ow], [sd, sh, sw], c) = (self.output(), self.side, self.channels);
        let share = 1.0 / (sd * sh * sw) as f32;
        let mut output = vec![0.0; x.len() / self.input_len() * self.output_len()];
        let images = x.par_chunks_exact(self.input_len());
        output.par_chunks_exact_mut(self.output_len()).zip(images).for_each(|(output, image)| {
            for (row, output) in output.chunks_exact_mut(ow * c).enumerate() {
                vectorised(isa, || {
                    for (dz, dy) in (0..sd).flat_map(|dz| (0..sh).map(move |dy| (dz, dy))) {
                        let values = &image[self.row(row, dz, dy)..][..ow * sw * c];
                        for (output, values) in output.chunks_exact_mut(c).zip(values.chunks_exact(sw * c)) {
                            for values in values.chunks_exact(c) {
                                output.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * share);
                            }
                        }
                    }
                });
            }
        });
        output
    }

    /// The gradient of the input of [`average`](Self::average).
    pub fn average_gradient(&self, isa: Isa, dy: &[f32]) -> Vec<f32> {
        self.check_average(dy, self.output_len());
        let (c, share) = (self.channels, 1.0 / self.side.iter().product::<usize>() as f32);
        self.spread(
            isa,
            |row, _, gradient| {
                for (gradient, dy) in gradient.iter_mut().zip(&dy[row..row + c]) {
                    gradient.write(dy * share);
                }
            },
            dy.len() / self.output_len(),
        )
    }

    fn check_average(&self, values: &[f32], len: usize) {
        assert!(self.side.iter().all(|&side| side > 0) && self.output_len() > 0, "images hold a block: {self:?}");
        assert_eq!(values.len() % len, 0, "whole images");
    }

    /// Writes every pixel's gradient from its block's: `pixel(place in the output, place in the block, gradient)`.
    fn spread(&self, isa: Isa, pixel: impl Fn(usize, u8, &mut [MaybeUninit<f32>]) + Sync, images: usize) -> Vec<f32> {
        let ([od, oh, ow], [sd, sh, sw], c) = (self.output(), self.side, self.channels);
        let [_, height, width] = self.input;
        let write = |gradient: &mut [MaybeUninit<f32>]| {
            gradient.par_chunks_exact_mut(self.input_len()).enumerate().for_each(|(image, gradient)| {
                vectorised(isa, || {
                    for (row, gradient) in gradient.chunks_exact_mut(width * c).enumerate() {
                        let (z, y) = (row / height, row % height);
                        if z >= od * sd || y >= oh * sh {
                            gradient.fill(MaybeUninit::new(0.0));
                            continue;
                        }
                        let output = image * self.output_len() + (z / sd * oh + y / sh) * ow * c;
                        let code = ((z % sd * sh + y % sh) * sw) as u8;
                        let (blocks, left_out) = gradient.split_at_mut(ow * sw * c);
                        for (x, gradient) in blocks.chunks_exact_mut(sw * c).enumerate() {
                            for (dx, gradient) in gradient.chunks_exact_mut(c).enumerate() {
                                pixel(output + x * c, code.wrapping_add(dx as u8), gradient);
                            }
                        }
                        left_out.fill(MaybeUninit::new(0.0));
                    }
                });
            });
        };
        // SAFETY: every image is a chunk, all its rows are walked, and every channel of every pixel is written.
        unsafe { written(images * self.input_len(), write) }
    }
}

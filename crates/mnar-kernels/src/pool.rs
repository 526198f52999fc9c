//! Pooling over blocks that do not overlap.

use crate::Isa;
use crate::buffer::{len_of, with_scratch, written};
use crate::simd::{Kernel, Lanes, dispatch};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Images divided into blocks; a last row, column or slice that does not fill a block is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Depth, height and width of an image.
    pub input: [usize; 3],
    /// Depth, height and width of a block.
    pub side: [usize; 3],
    /// Number of channels.
    pub channels: usize,
}

/// The code of the winner where no value of a block is above the floor.
const NONE: u8 = u8::MAX;

impl Pool {
    /// Depth, height and width of a pooled image.
    pub fn output(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.input[axis] / self.side[axis])
    }

    /// Number of values in an image. Panics where it does not fit into memory.
    pub fn input_len(&self) -> usize {
        let [depth, height, width] = self.input;
        len_of(&[depth, height, width, self.channels])
    }

    /// Number of values in a pooled image. Panics where it does not fit into memory.
    pub fn output_len(&self) -> usize {
        let [depth, height, width] = self.output();
        len_of(&[depth, height, width, self.channels])
    }

    fn check(&self, values: &[f32], len: usize) {
        let pixels = len_of(&self.side);
        assert!(pixels > 0 && self.output_len() > 0, "images must hold a block: {self:?}");
        assert!(pixels < usize::from(NONE), "blocks must have fewer than {NONE} pixels: {self:?}");
        assert_eq!(values.len() % len, 0, "values must be whole images");
    }

    /// The start, within its image, of the row of pixels that holds row (dz, dy) of the blocks of output row `row`.
    fn row(&self, row: usize, dz: usize, dy: usize) -> usize {
        let [_, oh, _] = self.output();
        let (z, y) = (row / oh * self.side[0] + dz, row % oh * self.side[1] + dy);
        (z * self.input[1] + y) * self.input[2] * self.channels
    }

    /// The largest value of every block if it is above `floor`, otherwise `floor`; and its position, for the gradient.
    ///
    /// A floor of 0 is a rectifier. NaN wins.
    pub fn max(&self, isa: Isa, x: &[f32], floor: f32) -> (Vec<f32>, Vec<u8>) {
        self.check(x, self.input_len());
        let ([_, _, ow], [_, _, sw], c) = (self.output(), self.side, self.channels);
        let images = x.len() / self.input_len();
        let mut winners = vec![NONE; images * self.output_len()];
        let columns = ow * sw * c;
        let write = |output: &mut [MaybeUninit<f32>]| {
            let outputs = output.par_chunks_exact_mut(self.output_len());
            let images = x.par_chunks_exact(self.input_len());
            outputs.zip(winners.par_chunks_exact_mut(self.output_len())).zip(images).for_each(
                |((output, winners), image)| {
                    with_scratch(2 * columns, |scratch| {
                        dispatch(isa, WriteMaxima { pool: self, image, floor, scratch, output, winners });
                    });
                },
            );
        };
        // SAFETY: every image is a chunk, its rows are complete, and every channel of every block is written.
        let output = unsafe { written(len_of(&[images, self.output_len()]), write) };
        (output, winners)
    }

    /// The gradient of the input of [`max`](Self::max).
    pub fn max_gradient(&self, isa: Isa, winners: &[u8], dy: &[f32]) -> Vec<f32> {
        self.check(dy, self.output_len());
        assert_eq!(winners.len(), dy.len(), "every block needs a winner");
        self.spread(isa, ToWinner { winners, dy }, dy.len() / self.output_len())
    }

    /// The mean of every block.
    pub fn average(&self, isa: Isa, x: &[f32]) -> Vec<f32> {
        self.check_average(x, self.input_len());
        let mut output = vec![0.0; x.len() / self.input_len() * self.output_len()];
        let images = x.par_chunks_exact(self.input_len());
        output.par_chunks_exact_mut(self.output_len()).zip(images).for_each(|(output, image)| {
            dispatch(isa, AddMeans { pool: self, image, output });
        });
        output
    }

    /// The gradient of the input of [`average`](Self::average).
    pub fn average_gradient(&self, isa: Isa, dy: &[f32]) -> Vec<f32> {
        self.check_average(dy, self.output_len());
        let share = 1.0 / len_of(&self.side) as f32;
        self.spread(isa, ToAll { share, dy }, dy.len() / self.output_len())
    }

    fn check_average(&self, values: &[f32], len: usize) {
        assert!(self.side.iter().all(|&side| side > 0) && self.output_len() > 0, "images must hold a block: {self:?}");
        assert_eq!(values.len() % len, 0, "values must be whole images");
    }

    /// The gradient of every pixel, from that of its block.
    fn spread(&self, isa: Isa, share: impl Share, images: usize) -> Vec<f32> {
        let write = |gradient: &mut [MaybeUninit<f32>]| {
            gradient.par_chunks_exact_mut(self.input_len()).enumerate().for_each(|(image, gradient)| {
                dispatch(isa, WriteShares { pool: self, image, gradient, share });
            });
        };
        // SAFETY: every image is a chunk, all its rows are visited, and every channel of every pixel is written.
        unsafe { written(len_of(&[images, self.input_len()]), write) }
    }
}

struct WriteMaxima<'a> {
    pool: &'a Pool,
    image: &'a [f32],
    floor: f32,
    /// Two rows of the image.
    scratch: &'a mut [f32],
    output: &'a mut [MaybeUninit<f32>],
    winners: &'a mut [u8],
}

impl Kernel for WriteMaxima<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { pool, image, floor, scratch, output, winners } = self;
        let ([_, _, ow], [sd, sh, sw], c) = (pool.output(), pool.side, pool.channels);
        let (best, which) = scratch.split_at_mut(ow * sw * c);
        let rows = output.chunks_exact_mut(ow * c).zip(winners.chunks_exact_mut(ow * c));
        for (row, (output, winners)) in rows.enumerate() {
            // First down the columns, in loops over whole rows; then across.
            best.fill(floor);
            which.fill(f32::from_bits(u32::from(NONE)));
            for line in 0..sd * sh {
                let code = f32::from_bits((line * sw) as u32);
                let values = &image[pool.row(row, line / sh, line % sh)..][..ow * sw * c];
                keep_larger(best, which, values, |_| code);
            }
            let blocks = best.chunks_exact_mut(sw * c).zip(which.chunks_exact_mut(sw * c));
            let outputs = output.chunks_exact_mut(c).zip(winners.chunks_exact_mut(c));
            for ((best, which), (output, winners)) in blocks.zip(outputs) {
                keep_largest(best, which, output, winners);
            }
        }
    }
}

/// Keeps the larger value at each position, and its code. Codes are stored as the bits of an `f32`, so that they move
/// along with the values.
#[inline(always)]
fn keep_larger(best: &mut [f32], which: &mut [f32], values: &[f32], code: impl Fn(usize) -> f32) {
    let n = best.len();
    let (which, values) = (&mut which[..n], &values[..n]);
    for i in 0..n {
        let wins = (values[i] > best[i]) | values[i].is_nan(); // branch-free
        best[i] = if wins { values[i] } else { best[i] };
        which[i] = if wins { code(i) } else { which[i] };
    }
}

/// Writes the best pixel of a block, which is collected in its first pixel; codes count up from those in `which`.
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

struct AddMeans<'a> {
    pool: &'a Pool,
    image: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for AddMeans<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { pool, image, output } = self;
        let ([_, _, ow], [sd, sh, sw], c) = (pool.output(), pool.side, pool.channels);
        let share = 1.0 / (sd * sh * sw) as f32;
        for (row, output) in output.chunks_exact_mut(ow * c).enumerate() {
            for line in 0..sd * sh {
                let values = &image[pool.row(row, line / sh, line % sh)..][..ow * sw * c];
                for (output, values) in output.chunks_exact_mut(c).zip(values.chunks_exact(sw * c)) {
                    for values in values.chunks_exact(c) {
                        output.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * share);
                    }
                }
            }
        }
    }
}

/// How the gradient of a block is distributed to its pixels.
trait Share: Copy + Sync {
    /// Writes the gradient of the pixel at position `code` of the block whose channels are at `block` of the output.
    /// Must be `#[inline(always)]` and write all of it.
    fn pixel(self, block: usize, code: u8, gradient: &mut [MaybeUninit<f32>]);
}

/// All of it goes to the winner.
#[derive(Clone, Copy)]
struct ToWinner<'a> {
    winners: &'a [u8],
    dy: &'a [f32],
}

impl Share for ToWinner<'_> {
    #[inline(always)]
    fn pixel(self, block: usize, code: u8, gradient: &mut [MaybeUninit<f32>]) {
        let c = gradient.len();
        let (winners, dy) = (&self.winners[block..block + c], &self.dy[block..block + c]);
        for i in 0..c {
            gradient[i].write(if winners[i] == code { dy[i] } else { 0.0 });
        }
    }
}

/// Every pixel gets the same share.
#[derive(Clone, Copy)]
struct ToAll<'a> {
    share: f32,
    dy: &'a [f32],
}

impl Share for ToAll<'_> {
    #[inline(always)]
    fn pixel(self, block: usize, _: u8, gradient: &mut [MaybeUninit<f32>]) {
        let c = gradient.len();
        for (gradient, dy) in gradient.iter_mut().zip(&self.dy[block..block + c]) {
            gradient.write(dy * self.share);
        }
    }
}

struct WriteShares<'a, S> {
    pool: &'a Pool,
    /// The index of the image in its batch.
    image: usize,
    gradient: &'a mut [MaybeUninit<f32>],
    share: S,
}

impl<S: Share> Kernel for WriteShares<'_, S> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { pool, image, gradient, share } = self;
        let ([od, oh, ow], [sd, sh, sw], c) = (pool.output(), pool.side, pool.channels);
        let [_, height, width] = pool.input;
        for (row, gradient) in gradient.chunks_exact_mut(width * c).enumerate() {
            let (z, y) = (row / height, row % height);
            if z >= od * sd || y >= oh * sh {
                gradient.fill(MaybeUninit::new(0.0));
                continue;
            }
            let output = image * pool.output_len() + (z / sd * oh + y / sh) * ow * c;
            let code = ((z % sd * sh + y % sh) * sw) as u8;
            let (blocks, left_out) = gradient.split_at_mut(ow * sw * c);
            for (x, gradient) in blocks.chunks_exact_mut(sw * c).enumerate() {
                for (dx, gradient) in gradient.chunks_exact_mut(c).enumerate() {
                    share.pixel(output + x * c, code.wrapping_add(dx as u8), gradient);
                }
            }
            left_out.fill(MaybeUninit::new(0.0));
        }
    }
}

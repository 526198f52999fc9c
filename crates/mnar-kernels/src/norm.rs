//! Batch normalisation over all pixels of a channel, with the rectifier that follows.

use crate::Isa;
use crate::buffer::written;
use crate::channels::{Repeated, add_up, block_len, block_sums, check_pixels, scale_shift};
use crate::simd::{Kernel, Lanes, dispatch};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// The number of pixels in a block, their means, and the sums of squares about the means.
type BlockMoments = (f64, Vec<f64>, Vec<f64>);

/// Mean and (biased) variance of every channel.
///
/// A block is read twice while it is in the cache, the second time about its own mean, and blocks are merged exactly:
/// there is no cancellation, and main memory is read once.
pub fn moments(isa: Isa, x: &[f32], channels: usize) -> (Vec<f32>, Vec<f32>) {
    check_pixels(x, channels);
    let blocks: Vec<BlockMoments> = x
        .par_chunks(block_len(channels))
        .map(|block| {
            let count = (block.len() / channels) as f64;
            let mean: Vec<f64> = block_sums(isa, block, channels).into_iter().map(|sum| sum / count).collect();
            let centre = Repeated::new(&mean.iter().map(|&mean| mean as f32).collect::<Vec<_>>());
            let mut squares = Repeated::zeros(channels);
            dispatch(isa, AddSquares { block, centre: &centre.0, squares: &mut squares.0 });
            (count, mean, squares.folded(channels))
        })
        .collect();
    let total: f64 = blocks.iter().map(|block| block.0).sum();
    let mean: Vec<f64> =
        (0..channels).map(|c| blocks.iter().map(|(n, mean, _)| n * mean[c]).sum::<f64>() / total).collect();
    let variance = (0..channels).map(|c| {
        let about = |(n, block, squares): &BlockMoments| squares[c] + n * (block[c] - mean[c]).powi(2);
        (blocks.iter().map(about).sum::<f64>() / total) as f32
    });
    let variance = variance.collect();
    (mean.into_iter().map(|mean| mean as f32).collect(), variance)
}

struct AddSquares<'a> {
    block: &'a [f32],
    centre: &'a [f32],
    squares: &'a mut [f32],
}

impl Kernel for AddSquares<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for values in self.block.chunks(self.centre.len()) {
            for ((square, value), centre) in self.squares.iter_mut().zip(values).zip(self.centre) {
                *square += (value - centre) * (value - centre);
            }
        }
    }
}

/// What batch normalisation keeps of its input.
#[derive(Clone, Debug)]
pub struct Normalised<'a> {
    /// The input.
    pub x: &'a [f32],
    /// Mean of every channel.
    pub mean: &'a [f32],
    /// One over the standard deviation.
    pub inverse_sd: &'a [f32],
    /// Scale applied after normalising.
    pub gamma: &'a [f32],
    /// Shift applied after scaling.
    pub beta: &'a [f32],
    /// Slope below zero of the rectifier; 1 for none.
    pub slope: f32,
}

/// Gradients of batch normalisation.
#[derive(Clone, Debug)]
pub struct NormGradients {
    /// Gradient of the input.
    pub x: Vec<f32>,
    /// Gradient of the scale.
    pub gamma: Vec<f32>,
    /// Gradient of the shift.
    pub beta: Vec<f32>,
}

impl Normalised<'_> {
    /// Scale and shift such that x · scale + shift is the normalised, scaled and shifted value.
    fn affine(&self) -> (Vec<f32>, Vec<f32>) {
        let scale: Vec<f32> = self.gamma.iter().zip(self.inverse_sd).map(|(gamma, inverse)| gamma * inverse).collect();
        let shift = (0..scale.len()).map(|c| self.beta[c] - self.mean[c] * scale[c]).collect();
        (scale, shift)
    }

    /// The normalised values, scaled, shifted and rectified.
    pub fn forward(&self, isa: Isa) -> Vec<f32> {
        let (scale, shift) = self.affine();
        scale_shift(isa, self.x, &scale, &shift, self.slope)
    }

    /// The gradients, from the gradient `dy` of the output.
    pub fn backward(&self, isa: Isa, dy: &[f32]) -> NormGradients {
        let channels = self.mean.len();
        check_pixels(self.x, channels);
        assert_eq!(dy.len(), self.x.len(), "the gradient must have the output's shape");
        let (scale, shift) = self.affine();
        let (gamma, beta) = self.sums(isa, dy, &scale, &shift);
        // dx = γ/σ · (dy − mean(dy) − x̂ · mean(dy · x̂)) = scale · dy + a · (x − mean) + b, channel by channel.
        let count = (self.x.len() / channels) as f64;
        let (a, b): (Vec<f32>, Vec<f32>) = (0..channels)
            .map(|c| {
                let share = -f64::from(scale[c]) / count;
                ((share * gamma[c] * f64::from(self.inverse_sd[c])) as f32, (share * beta[c]) as f32)
            })
            .unzip();
        let numbers = [&scale, &shift, self.mean, &a, &b].map(Repeated::new);
        let numbers = numbers.each_ref().map(|number| &number.0[..]);
        let block = block_len(channels);
        let write = |dx: &mut [MaybeUninit<f32>]| {
            let blocks = dx.par_chunks_mut(block).zip(self.x.par_chunks(block)).zip(dy.par_chunks(block));
            blocks.for_each(|((dx, x), dy)| {
                dispatch(isa, WriteInputGradient { dx, x, dy, numbers, slope: self.slope });
            });
        };
        // SAFETY: gradient and input are split in the same way, and every element is written.
        let x = unsafe { written(dy.len(), write) };
        let single = |sums: Vec<f64>| sums.into_iter().map(|sum| sum as f32).collect();
        NormGradients { x, gamma: single(gamma), beta: single(beta) }
    }

    /// Σ dy · x̂ and Σ dy of every channel, with dy passed back through the rectifier.
    fn sums(&self, isa: Isa, dy: &[f32], scale: &[f32], shift: &[f32]) -> (Vec<f64>, Vec<f64>) {
        let (channels, block) = (scale.len(), block_len(scale.len()));
        let numbers = [scale, shift, self.mean].map(Repeated::new);
        let numbers = numbers.each_ref().map(|number| &number.0[..]);
        let partial: Vec<Vec<f64>> = self
            .x
            .par_chunks(block)
            .zip(dy.par_chunks(block))
            .map(|(x, dy)| {
                let (mut sum, mut with_x) = (Repeated::zeros(channels), Repeated::zeros(channels));
                let (sums, sums_with_x) = (&mut sum.0[..], &mut with_x.0[..]);
                dispatch(isa, AddGradientSums { x, dy, numbers, slope: self.slope, sums, sums_with_x });
                with_x.folded(channels).into_iter().chain(sum.folded(channels)).collect()
            })
            .collect();
        let mut gamma = add_up(partial, 2 * channels);
        let beta = gamma.split_off(channels);
        gamma.iter_mut().zip(self.inverse_sd).for_each(|(sum, inverse)| *sum *= f64::from(*inverse));
        (gamma, beta)
    }
}

/// Adds dy and dy · (x − mean), with dy passed back through the rectifier.
struct AddGradientSums<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    /// Scale, shift and mean.
    numbers: [&'a [f32]; 3],
    slope: f32,
    sums: &'a mut [f32],
    sums_with_x: &'a mut [f32],
}

impl Kernel for AddGradientSums<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let period = self.sums.len();
        for (x, dy) in self.x.chunks(period).zip(self.dy.chunks(period)) {
            add_gradients(x, dy, self.numbers, self.slope, self.sums, self.sums_with_x);
        }
    }
}

/// A separate function, because its arguments tell the compiler which slices cannot overlap.
#[inline(always)]
fn add_gradients(
    x: &[f32],
    dy: &[f32],
    [scale, shift, mean]: [&[f32]; 3],
    slope: f32,
    sums: &mut [f32],
    sums_with_x: &mut [f32],
) {
    let n = x.len();
    let (dy, scale, shift, mean) = (&dy[..n], &scale[..n], &shift[..n], &mean[..n]);
    let (sums, sums_with_x) = (&mut sums[..n], &mut sums_with_x[..n]);
    for i in 0..n {
        let dy = if x[i] * scale[i] + shift[i] > 0.0 { dy[i] } else { dy[i] * slope };
        sums[i] += dy;
        sums_with_x[i] += dy * (x[i] - mean[i]);
    }
}

/// dx = scale · dy + a · (x − mean) + b, with dy passed back through the rectifier.
struct WriteInputGradient<'a> {
    dx: &'a mut [MaybeUninit<f32>],
    x: &'a [f32],
    dy: &'a [f32],
    /// Scale, shift, mean, a and b.
    numbers: [&'a [f32]; 5],
    slope: f32,
}

impl Kernel for WriteInputGradient<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let period = self.numbers[0].len();
        for ((dx, x), dy) in self.dx.chunks_mut(period).zip(self.x.chunks(period)).zip(self.dy.chunks(period)) {
            let n = dx.len();
            let (x, dy, [scale, shift, mean, a, b]) = (&x[..n], &dy[..n], self.numbers.map(|number| &number[..n]));
            for i in 0..n {
                let dy = if x[i] * scale[i] + shift[i] > 0.0 { dy[i] } else { dy[i] * self.slope };
                dx[i].write(scale[i] * dy + (a[i] * (x[i] - mean[i]) + b[i]));
            }
        }
    }
}

//! Loops over all pixels with a number a channel: sums, and batch normalisation.

use crate::Isa;
use crate::buffer::written;
use crate::simd::vectorised;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Pixels a thread takes at a time; fixed, so that sums do not depend on the threads.
const BLOCK: usize = 1024;

/// Numbers a channel, repeated so that loops over them are long enough to be vectors, and whole.
struct Repeated(Vec<f32>);

/// How often channels are repeated: a multiple of 16 values, and at least 64.
fn repeats(channels: usize) -> usize {
    (1..=16).find(|times| times * channels % 16 == 0 && times * channels >= 64).unwrap_or(16)
}

impl Repeated {
    fn new(values: &[f32]) -> Self {
        Self(values.repeat(repeats(values.len())))
    }

    fn zeros(channels: usize) -> Self {
        Self(vec![0.0; channels * repeats(channels)])
    }

    /// The sum of all repeats of a channel.
    fn folded(&self, channels: usize) -> Vec<f64> {
        (0..channels).map(|c| self.0.iter().skip(c).step_by(channels).map(|&sum| f64::from(sum)).sum()).collect()
    }
}

fn check(values: &[f32], channels: usize) {
    assert!(channels > 0 && values.len() % channels == 0, "whole pixels");
}

/// Sums over blocks of pixels, added up in their order.
fn add_up(partial: Vec<Vec<f64>>, len: usize) -> Vec<f64> {
    partial.into_iter().fold(vec![0.0; len], |mut total, part| {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        total
    })
}

/// Σ over pixels, one sum a channel.
pub fn channel_sums(isa: Isa, values: &[f32], channels: usize) -> Vec<f32> {
    check(values, channels);
    let partial = values.par_chunks(BLOCK * channels).map(|block| block_sums(isa, block, channels)).collect();
    add_up(partial, channels).into_iter().map(|sum| sum as f32).collect()
}

fn block_sums(isa: Isa, block: &[f32], channels: usize) -> Vec<f64> {
    let mut sums = Repeated::zeros(channels);
    vectorised(isa, || {
        for values in block.chunks(sums.0.len()) {
            sums.0.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    });
    sums.folded(channels)
}

/// Mean and (biased) variance of every channel.
///
/// A block is walked twice while it is in the cache, the second time about its own mean, and blocks are merged exactly:
/// nothing cancels, and the memory is read once.
pub fn moments(isa: Isa, x: &[f32], channels: usize) -> (Vec<f32>, Vec<f32>) {
    check(x, channels);
    let blocks: Vec<(f64, Vec<f64>, Vec<f64>)> = x
        .par_chunks(BLOCK * channels)
        .map(|block| {
            let count = (block.len() / channels) as f64;
            let mean: Vec<f64> = block_sums(isa, block, channels).into_iter().map(|sum| sum / count).collect();
            let centre = Repeated::new(&mean.iter().map(|&mean| mean as f32).collect::<Vec<_>>());
            let mut squares = Repeated::zeros(channels);
            vectorised(isa, || {
                for values in block.chunks(centre.0.len()) {
                    for ((square, value), centre) in squares.0.iter_mut().zip(values).zip(&centre.0) {
                        *square += (value - centre) * (value - centre);
                    }
                }
            });
            (count, mean, squares.folded(channels))
        })
        .collect();
    let total: f64 = blocks.iter().map(|block| block.0).sum();
    let mean: Vec<f64> =
        (0..channels).map(|c| blocks.iter().map(|(n, mean, _)| n * mean[c]).sum::<f64>() / total).collect();
    let variance = (0..channels).map(|c| {
        let about = |(n, block, squares): &(f64, Vec<f64>, Vec<f64>)| squares[c] + n * (block[c] - mean[c]).powi(2);
        (blocks.iter().map(about).sum::<f64>() / total) as f32
    });
    let variance = variance.collect();
    (mean.into_iter().map(|mean| mean as f32).collect(), variance)
}

/// x · scale + shift, channel by channel, through a rectifier of this slope below zero (1 for none).
pub fn scale_shift(isa: Isa, x: &[f32], scale: &[f32], shift: &[f32], slope: f32) -> Vec<f32> {
    check(x, scale.len());
    assert_eq!(scale.len(), shift.len(), "a scale and a shift for every channel");
    let block = BLOCK * scale.len();
    let (scale, shift) = (Repeated::new(scale), Repeated::new(shift));
    let write = |output: &mut [MaybeUninit<f32>]| {
        output.par_chunks_mut(block).zip(x.par_chunks(block)).for_each(|(output, x)| {
            vectorised(isa, || {
                let period = scale.0.len();
                for (output, x) in output.chunks_mut(period).zip(x.chunks(period)) {
                    let numbers = scale.0.iter().zip(&shift.0);
                    for ((output, x), (scale, shift)) in output.iter_mut().zip(x).zip(numbers) {
                        let value = x * scale + shift;
                        output.write(if value > 0.0 { value } else { value * slope });
                    }
                }
            });
        });
    };
    // SAFETY: output and input are cut alike, and every element is written.
    unsafe { written(x.len(), write) }
}

/// What batch normalisation remembers of its input.
#[derive(Clone, Debug)]
pub struct Normalised<'a> {
    /// The input.
    pub x: &'a [f32],
    /// Mean of every channel.
    pub mean: &'a [f32],
    /// One over the standard deviation.
    pub inverse_sd: &'a [f32],
    /// Scale after normalising.
    pub gamma: &'a [f32],
    /// Shift after scaling.
    pub beta: &'a [f32],
    /// Slope below zero of the rectifier; 1 for none.
    pub slope: f32,
}

/// Gradients of batch normalisation.
#[derive(Clone, Debug)]
pub struct NormGradients {
    /// Of the input.
    pub x: Vec<f32>,
    /// Of the scale.
    pub gamma: Vec<f32>,
    /// Of the shift.
    pub beta: Vec<f32>,
}

impl Normalised<'_> {
    /// x · scale + shift is the normalised, scaled and shifted value.
    pub fn affine(&self) -> (Vec<f32>, Vec<f32>) {
        let scale: Vec<f32> = self.gamma.iter().zip(self.inverse_sd).map(|(gamma, inverse)| gamma * inverse).collect();
        let shift = (0..scale.len()).map(|c| self.beta[c] - self.mean[c] * scale[c]).collect();
        (scale, shift)
    }

    /// The normalised values, scaled, shifted and rectified.
    pub fn forward(&self, isa: Isa) -> Vec<f32> {
        let (scale, shift) = self.affine();
        scale_shift(isa, self.x, &scale, &shift, self.slope)
    }

    /// From the gradient `dy` of the output.
    pub fn backward(&self, isa: Isa, dy: &[f32]) -> NormGradients {
        let channels = self.mean.len();
        check(self.x, channels);
        assert_eq!(dy.len(), self.x.len(), "the gradient has the output's shape");
        let (scale, shift) = self.affine();
        let (scale, shift) = (Repeated::new(&scale), Repeated::new(&shift));
        let mean = Repeated::new(self.mean);
        let (block, period) = (BLOCK * channels, scale.0.len());
        let rectifier = (&scale.0[..], &shift.0[..], self.slope);
        // Σ dy and Σ dy · (x − mean) of every channel, with dy taken through the rectifier.
        let partial: Vec<Vec<f64>> = self
            .x
            .par_chunks(block)
            .zip(dy.par_chunks(block))
            .map(|(x, dy)| {
                let (mut sum, mut with_x) = (Repeated::zeros(channels), Repeated::zeros(channels));
                vectorised(isa, || {
                    for (x, dy) in x.chunks(period).zip(dy.chunks(period)) {
                        add_gradient_sums(x, dy, rectifier, &mean.0, [&mut sum.0, &mut with_x.0]);
                    }
                });
                let mut sums = sum.folded(channels);
                sums.extend(with_x.folded(channels));
                sums
            })
            .collect();
        let sums = add_up(partial, 2 * channels);
        let (beta, with_x) = sums.split_at(channels);
        let gamma: Vec<f32> = with_x.iter().zip(self.inverse_sd).map(|(sum, inverse)| *sum as f32 * inverse).collect();
        // dx = γ/σ · (dy − mean(dy) − x̂ · mean(dy · x̂)) = scale · dy + a · (x − mean) + b, channel by channel.
        let count = (self.x.len() / channels) as f64;
        let (a, b): (Vec<f32>, Vec<f32>) = (0..channels)
            .map(|c| {
                let a = -f64::from(scale.0[c]) * f64::from(gamma[c]) * f64::from(self.inverse_sd[c]) / count;
                let b = -f64::from(scale.0[c]) * beta[c] / count;
                (a as f32, b as f32)
            })
            .unzip();
        let (a, b) = (Repeated::new(&a), Repeated::new(&b));
        let write = |dx: &mut [MaybeUninit<f32>]| {
            let blocks = dx.par_chunks_mut(block).zip(self.x.par_chunks(block)).zip(dy.par_chunks(block));
            blocks.for_each(|((dx, x), dy)| {
                vectorised(isa, || {
                    for ((dx, x), dy) in dx.chunks_mut(period).zip(x.chunks(period)).zip(dy.chunks(period)) {
                        write_input_gradient(dx, x, dy, rectifier, [&mean.0, &a.0, &b.0]);
                    }
                });
            });
        };
        // SAFETY: gradient and input are cut alike, and every element is written.
        let x = unsafe { written(dy.len(), write) };
        NormGradients { x, gamma, beta: beta.iter().map(|&sum| sum as f32).collect() }
    }
}

/// Scale and shift before a rectifier, and its slope below zero.
type Rectifier<'a> = (&'a [f32], &'a [f32], f32);

// The loops below are functions of their own because arguments tell the compiler which slices cannot overlap.

/// Adds dy and dy · (x − mean), with dy taken through the rectifier, to the sums.
#[inline(always)]
fn add_gradient_sums(
    x: &[f32],
    dy: &[f32],
    (scale, shift, slope): Rectifier<'_>,
    mean: &[f32],
    [sum, with_x]: [&mut [f32]; 2],
) {
    let n = x.len();
    let (dy, scale, shift, mean) = (&dy[..n], &scale[..n], &shift[..n], &mean[..n]);
    let (sum, with_x) = (&mut sum[..n], &mut with_x[..n]);
    for i in 0..n {
        let dy = if x[i] * scale[i] + shift[i] > 0.0 { dy[i] } else { dy[i] * slope };
        sum[i] += dy;
        with_x[i] += dy * (x[i] - mean[i]);
    }
}

/// dx = scale · dy + a · (x − mean) + b, with dy taken through the rectifier.
#[inline(always)]
fn write_input_gradient(
    dx: &mut [MaybeUninit<f32>],
    x: &[f32],
    dy: &[f32],
    (scale, shift, slope): Rectifier<'_>,
    [mean, a, b]: [&[f32]; 3],
) {
    let n = dx.len();
    let (x, dy, scale, shift) = (&x[..n], &dy[..n], &scale[..n], &shift[..n]);
    let (mean, a, b) = (&mean[..n], &a[..n], &b[..n]);
    for i in 0..n {
        let dy = if x[i] * scale[i] + shift[i] > 0.0 { dy[i] } else { dy[i] * slope };
        dx[i].write(scale[i] * dy + (a[i] * (x[i] - mean[i]) + b[i]));
    }
}

/// The gradient before a rectifier of this slope below zero, from the gradient after it and the output.
pub fn rectifier_gradient(isa: Isa, y: &[f32], dy: &[f32], slope: f32) -> Vec<f32> {
    assert_eq!(y.len(), dy.len(), "the gradient has the output's shape");
    const CHUNK: usize = 16 * 1024;
    let write = |dx: &mut [MaybeUninit<f32>]| {
        dx.par_chunks_mut(CHUNK).zip(y.par_chunks(CHUNK)).zip(dy.par_chunks(CHUNK)).for_each(|((dx, y), dy)| {
            vectorised(isa, || {
                for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
                    dx.write(if *y > 0.0 { *dy } else { dy * slope });
                }
            });
        });
    };
    // SAFETY: all three are cut alike, and every element is written.
    unsafe { written(dy.len(), write) }
}

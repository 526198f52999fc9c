//! Loops over all pixels with one number per channel.

use crate::Isa;
use crate::buffer::written;
use crate::simd::{Kernel, Lanes, dispatch};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Values processed by a thread at a time: half of a second-level cache. Fixed, so that sums do not depend on the
/// number of threads.
const BLOCK: usize = 32 * 1024;

/// Number of values in a block, which holds whole pixels.
pub(crate) fn block_len(channels: usize) -> usize {
    (BLOCK / channels).max(1) * channels
}

/// One number per channel, repeated so that loops over them are long enough to vectorise, without remainder.
pub(crate) struct Repeated(pub(crate) Vec<f32>);

/// How often the channels are repeated, at most 16 times: to a multiple of 16 values, and to 64 or more where possible.
fn repeats(channels: usize) -> usize {
    (1..=16).find(|times| (times * channels).is_multiple_of(16) && times * channels >= 64).unwrap_or(16)
}

impl Repeated {
    pub(crate) fn new(values: &[f32]) -> Self {
        Self(values.repeat(repeats(values.len())))
    }

    pub(crate) fn zeros(channels: usize) -> Self {
        Self(vec![0.0; channels * repeats(channels)])
    }

    /// The sum of all repeats of a channel.
    pub(crate) fn folded(&self, channels: usize) -> Vec<f64> {
        (0..channels).map(|c| self.0.iter().skip(c).step_by(channels).map(|&sum| f64::from(sum)).sum()).collect()
    }
}

pub(crate) fn check_pixels(values: &[f32], channels: usize) {
    assert!(channels > 0 && values.len().is_multiple_of(channels), "values must be whole pixels");
}

/// Adds up sums over blocks of pixels, in the order of the blocks.
pub(crate) fn add_up(partial: Vec<Vec<f64>>, len: usize) -> Vec<f64> {
    partial.into_iter().fold(vec![0.0; len], |mut total, part| {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        total
    })
}

/// Σ over pixels, one sum per channel.
pub fn channel_sums(isa: Isa, values: &[f32], channels: usize) -> Vec<f32> {
    check_pixels(values, channels);
    let partial = values.par_chunks(block_len(channels)).map(|block| block_sums(isa, block, channels)).collect();
    add_up(partial, channels).into_iter().map(|sum| sum as f32).collect()
}

pub(crate) fn block_sums(isa: Isa, block: &[f32], channels: usize) -> Vec<f64> {
    let mut sums = Repeated::zeros(channels);
    dispatch(isa, AddToSums { block, sums: &mut sums.0 });
    sums.folded(channels)
}

struct AddToSums<'a> {
    block: &'a [f32],
    sums: &'a mut [f32],
}

impl Kernel for AddToSums<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for values in self.block.chunks(self.sums.len()) {
            self.sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// x · scale + shift, channel by channel, through a rectifier of this slope below zero (1 for none).
pub fn scale_shift(isa: Isa, x: &[f32], scale: &[f32], shift: &[f32], slope: f32) -> Vec<f32> {
    check_pixels(x, scale.len());
    assert_eq!(scale.len(), shift.len(), "every channel needs a scale and a shift");
    let block = block_len(scale.len());
    let (scale, shift) = (Repeated::new(scale), Repeated::new(shift));
    let write = |output: &mut [MaybeUninit<f32>]| {
        output.par_chunks_mut(block).zip(x.par_chunks(block)).for_each(|(output, x)| {
            dispatch(isa, WriteScaled { output, x, scale: &scale.0, shift: &shift.0, slope });
        });
    };
    // SAFETY: output and input are split in the same way, and every element is written.
    unsafe { written(x.len(), write) }
}

struct WriteScaled<'a> {
    output: &'a mut [MaybeUninit<f32>],
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    slope: f32,
}

impl Kernel for WriteScaled<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let period = self.scale.len();
        for (output, x) in self.output.chunks_mut(period).zip(self.x.chunks(period)) {
            for ((output, x), (scale, shift)) in output.iter_mut().zip(x).zip(self.scale.iter().zip(self.shift)) {
                let value = x * scale + shift;
                output.write(if value > 0.0 { value } else { value * self.slope });
            }
        }
    }
}

/// The gradient before a rectifier of this slope below zero, from the gradient after it and its output.
pub fn rectifier_gradient(isa: Isa, y: &[f32], dy: &[f32], slope: f32) -> Vec<f32> {
    assert_eq!(y.len(), dy.len(), "the gradient must have the output's shape");
    let write = |dx: &mut [MaybeUninit<f32>]| {
        dx.par_chunks_mut(BLOCK).zip(y.par_chunks(BLOCK)).zip(dy.par_chunks(BLOCK)).for_each(|((dx, y), dy)| {
            dispatch(isa, WriteRectified { dx, y, dy, slope });
        });
    };
    // SAFETY: all three are split in the same way, and every element is written.
    unsafe { written(dy.len(), write) }
}

struct WriteRectified<'a> {
    dx: &'a mut [MaybeUninit<f32>],
    y: &'a [f32],
    dy: &'a [f32],
    slope: f32,
}

impl Kernel for WriteRectified<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for ((dx, y), dy) in self.dx.iter_mut().zip(self.y).zip(self.dy) {
            dx.write(if *y > 0.0 { *dy } else { dy * self.slope });
        }
    }
}

//! Convolution: output, input gradient and weight gradient.

use crate::Isa;
use crate::buffer::{len_of, with_scratch, written};
use crate::padded::Padded;
use crate::tile::{Finish, Panels, Pixels, Reads, outer_products, product};
use crate::window::Window;
use rayon::prelude::*;

/// A convolution of a batch of images. Images are channels last; weights are (kernel pixels · channels in) × channels
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Number of images in the batch.
    pub images: usize,
    /// The geometry.
    pub window: Window,
    /// Channels of the input.
    pub channels_in: usize,
    /// Channels of the output.
    pub channels_out: usize,
}

impl Convolution {
    fn input_len(&self) -> usize {
        len_of(&[self.window.input_pixels(), self.channels_in])
    }

    fn output_len(&self) -> usize {
        len_of(&[self.window.output_pixels(), self.channels_out])
    }

    /// Number of values that an output pixel reads.
    fn depth(&self) -> usize {
        len_of(&[self.window.kernel_pixels(), self.channels_in])
    }

    fn check(&self, x: Option<&[f32]>, weight: Option<&[f32]>, dy: Option<&[f32]>) {
        assert!(self.window.is_valid(), "the kernel must fit into the padded image: {:?}", self.window);
        assert!(self.channels_in > 0 && self.channels_out > 0, "there must be channels");
        let (input, output) = (len_of(&[self.images, self.input_len()]), len_of(&[self.images, self.output_len()]));
        let weights = len_of(&[self.depth(), self.channels_out]);
        assert!(x.is_none_or(|x| x.len() == input), "the input must have the batch's shape");
        assert!(weight.is_none_or(|weight| weight.len() == weights), "weights must fit the kernel");
        assert!(dy.is_none_or(|dy| dy.len() == output), "the gradient must fit the output");
    }

    /// The convolved images, plus `bias`, through a rectifier of this slope below zero (1 for none).
    pub fn forward(&self, isa: Isa, x: &[f32], weight: &[f32], bias: Option<&[f32]>, slope: f32) -> Vec<f32> {
        self.check(Some(x), Some(weight), None);
        let (padded, pixels, reads) = self.windows();
        let mut panels = Panels::new(isa);
        panels.fill(reads.depth(), self.channels_out, |k| &weight[k * self.channels_out..(k + 1) * self.channels_out]);
        let write = |output: &mut [_]| {
            let images = x.par_chunks_exact(self.input_len());
            output.par_chunks_exact_mut(self.output_len()).zip(images).for_each(|(output, image)| {
                with_scratch(padded.scratch(), |scratch| {
                    let image = padded.pad(image, scratch);
                    product(image, &pixels, &reads, &panels, Finish { bias, slope }, output);
                });
            });
        };
        // SAFETY: every image is a chunk of the output, and every pixel of it is in `pixels`.
        unsafe { written(len_of(&[self.images, self.output_len()]), write) }
    }

    /// What each output pixel reads from the padded image.
    fn windows(&self) -> (Padded, Pixels, Reads) {
        let Window { input, kernel, stride, padding } = self.window;
        let padded = Padded { inner: input, before: padding, after: padding, channels: self.channels_in };
        // Fails here where offsets would wrap around.
        padded.len();
        let mut pixels = Pixels::default();
        for (i, at) in positions(self.window.output()).enumerate() {
            let from = padded.offset(std::array::from_fn(|axis| at[axis] * stride[axis]));
            pixels.push(from, i * self.channels_out);
        }
        let rows = positions([kernel[0], kernel[1], 1]);
        let reads = Reads::new(rows.map(|at| (padded.offset(at), kernel[2] * self.channels_in)));
        (padded, pixels, reads)
    }

    /// The gradient of the input, from the gradient `dy` of the output.
    ///
    /// This is also a convolution, of `dy` with the reversed weights. With a stride, input pixels fall into phases by
    /// their position modulo the stride, and each phase is touched by its own part of the kernel.
    pub fn input_gradient(&self, isa: Isa, dy: &[f32], weight: &[f32]) -> Vec<f32> {
        self.check(None, Some(weight), Some(dy));
        let axes: [Vec<Phase>; 3] = std::array::from_fn(|axis| phases(self.window, axis));
        let outputs = self.window.output();
        let padded = Padded {
            inner: outputs,
            before: std::array::from_fn(|axis| axes[axis].iter().map(Phase::before).max().unwrap_or(0)),
            after: std::array::from_fn(|axis| {
                axes[axis].iter().map(|phase| phase.after(outputs[axis])).max().unwrap_or(0)
            }),
            channels: self.channels_out,
        };
        padded.len();
        let plans: Vec<(Pixels, Reads, Panels)> = positions(std::array::from_fn(|axis| axes[axis].len()))
            .map(|[z, y, x]| self.phase_plan(isa, weight, &padded, [&axes[0][z], &axes[1][y], &axes[2][x]]))
            .collect();
        let finish = Finish { bias: None, slope: 1.0 };
        let write = |gradient: &mut [_]| {
            let images = dy.par_chunks_exact(self.output_len());
            gradient.par_chunks_exact_mut(self.input_len()).zip(images).for_each(|(gradient, dy)| {
                with_scratch(padded.scratch(), |scratch| {
                    let dy = padded.pad(dy, scratch);
                    for (pixels, reads, panels) in &plans {
                        product(dy, pixels, reads, panels, finish, gradient);
                    }
                });
            });
        };
        // SAFETY: every image is a chunk of the gradient, and every pixel of it is in exactly one phase.
        unsafe { written(len_of(&[self.images, self.input_len()]), write) }
    }

    fn phase_plan(&self, isa: Isa, weight: &[f32], padded: &Padded, phase: [&Phase; 3]) -> (Pixels, Reads, Panels) {
        let [_, height, width] = self.window.input;
        let mut pixels = Pixels::default();
        for at in positions(phase.map(|phase| phase.pixels)) {
            let from = padded.offset(std::array::from_fn(|axis| phase[axis].first_read(at[axis], padded.before[axis])));
            let [z, y, x] = std::array::from_fn(|axis| phase[axis].first + at[axis] * self.window.stride[axis]);
            pixels.push(from, ((z * height + y) * width + x) * self.channels_in);
        }
        let taps = phase.map(|phase| phase.taps);
        let rows = if taps.contains(&0) { 0 } else { taps[0] * taps[1] };
        let row = taps[2] * self.channels_out;
        let reads = Reads::new(positions([taps[0], taps[1], 1]).take(rows).map(|at| (padded.offset(at), row)));
        let mut panels = Panels::new(isa);
        let column = |channel: usize, tap: usize| {
            let at = [tap / (taps[1] * taps[2]), tap / taps[2] % taps[1], tap % taps[2]];
            let [z, y, x] = std::array::from_fn(|axis| phase[axis].kernel(at[axis], self.window.stride[axis]));
            let tap = (z * self.window.kernel[1] + y) * self.window.kernel[2] + x;
            &weight[(tap * self.channels_in + channel) * self.channels_out..][..self.channels_out]
        };
        panels.fill_transposed([reads.depth(), self.channels_in], self.channels_out, column);
        (pixels, reads, panels)
    }

    /// The gradient of the weights, from the gradient `dy` of the output.
    pub fn weight_gradient(&self, isa: Isa, x: &[f32], dy: &[f32]) -> Vec<f32> {
        self.check(Some(x), None, Some(dy));
        let (padded, pixels, reads) = self.windows();
        let (depth, columns) = (reads.depth(), self.channels_out);
        let images = self.images.div_ceil(self.parts()).max(1);
        let partial: Vec<(Panels, Vec<f32>)> = x
            .par_chunks(images * self.input_len())
            .zip(dy.par_chunks(images * self.output_len()))
            .map(|(x, dy)| {
                let mut panels = Panels::new(isa);
                let mut sum = Vec::new();
                for (image, dy) in x.chunks_exact(self.input_len()).zip(dy.chunks_exact(self.output_len())) {
                    panels.fill(pixels.len(), columns, |pixel| &dy[pixel * columns..(pixel + 1) * columns]);
                    sum.resize(panels.sums(depth), 0.0);
                    with_scratch(padded.scratch(), |scratch| {
                        outer_products(padded.pad(image, scratch), &pixels, &reads, &panels, &mut sum);
                    });
                }
                (panels, sum)
            })
            .collect();
        // In the order of the images, whichever thread computed them.
        let mut total = vec![0.0; depth * columns];
        for (i, (panels, sum)) in partial.iter().enumerate() {
            panels.unpack(sum, depth, &mut total, i > 0);
        }
        total
    }

    /// Number of partial sums the images are split into: it depends on the sizes alone, so that results do not depend
    /// on the number of threads. It is small where a sum is large.
    fn parts(&self) -> usize {
        ((1 << 20) / (self.depth() * self.channels_out)).clamp(8, 32).min(self.images.max(1))
    }
}

/// All positions of a volume, in memory order.
fn positions([depth, height, width]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..depth).flat_map(move |z| (0..height).flat_map(move |y| (0..width).map(move |x| [z, y, x])))
}

/// The input positions of one axis that are equal modulo the stride, and the part of the kernel that touches them.
#[derive(Debug)]
struct Phase {
    /// The first position.
    first: usize,
    /// Number of positions.
    pixels: usize,
    /// Number of kernel positions that touch each.
    taps: usize,
    /// The first of these kernel positions; the others follow one stride apart.
    first_tap: usize,
    /// The output position that touches the first input position through the first tap.
    shift: usize,
}

impl Phase {
    /// Number of zeros needed before the output.
    fn before(&self) -> usize {
        (self.taps.max(1) - 1).saturating_sub(self.shift)
    }

    /// Number of zeros needed after it. A phase that nothing touches still has a starting point inside.
    fn after(&self, output: usize) -> usize {
        (self.shift + self.pixels).saturating_sub(output)
    }

    /// The first padded output position that the `j`-th input position reads.
    fn first_read(&self, j: usize, before: usize) -> usize {
        before + j + self.shift - (self.taps.max(1) - 1)
    }

    /// The kernel position of the `tap`-th output position read: outputs ascend as the kernel position descends.
    fn kernel(&self, tap: usize, stride: usize) -> usize {
        self.first_tap + (self.taps - 1 - tap) * stride
    }
}

fn phases(window: Window, axis: usize) -> Vec<Phase> {
    let (input, kernel) = (window.input[axis], window.kernel[axis]);
    let (stride, padding) = (window.stride[axis], window.padding[axis]);
    (0..stride.min(input))
        .map(|first| {
            // Output o touches input i through tap i + padding − o · stride.
            let first_tap = (first + padding) % stride;
            Phase {
                first,
                pixels: (input - first).div_ceil(stride),
                taps: kernel.saturating_sub(first_tap).div_ceil(stride),
                first_tap,
                shift: (first + padding - first_tap) / stride,
            }
        })
        .collect()
}

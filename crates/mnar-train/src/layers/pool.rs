//! Max pooling over blocks of two pixels a side.

use super::cpu::{Tracked, contiguous, tensor, values};
use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::sync::Arc;

/// The largest of every 2 × 2 block (2 × 2 × 2 where the depth is above 1), channel by channel; a last odd row,
/// column or slice is left out.
///
/// `x` is n × (pixels · channels) of images of this depth, height and width.
pub fn max_pool(x: Tensor<2>, [d, h, w]: [usize; 3]) -> Tensor<2> {
    let [n, length] = x.dims();
    let blocks = Blocks { input: [d, h, w], channels: length / (d * h * w) };
    if let Ok(x) = x.clone().try_into_primitive::<Flex>() {
        let (output, _) = blocks.forward(values(&contiguous(x)));
        return Tensor::from_primitive::<Flex>(tensor(output, &[n, blocks.output_length()]));
    }
    let Ok(x) = x.clone().try_into_primitive::<Tracked>() else { return blocks.elsewhere(x) };
    let step = MaxPool.prepare::<NoCheckpointing>([x.node()]).compute_bound().stateful();
    let (output, winners) = blocks.forward(values(&contiguous(x.into_primitive())));
    let output = tensor(output, &[n, blocks.output_length()]);
    Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => step.finish((Arc::new(winners), blocks), output),
        OpsKind::UnTracked(step) => step.finish(output),
    })
}

#[derive(Debug)]
struct MaxPool;

impl Backward<Flex, 1> for MaxPool {
    type State = (Arc<Vec<u32>>, Blocks);

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let ([node], (winners, blocks)) = (ops.parents, ops.state);
        let dy = contiguous(gradients.consume::<Flex>(&ops.node));
        let Some(node) = node else { return };
        let mut gradient = vec![0.0; winners.len() / blocks.output_length() * blocks.input_length()];
        gradient
            .par_chunks_mut(blocks.input_length())
            .zip(values(&dy).par_chunks(blocks.output_length()))
            .zip(winners.par_chunks(blocks.output_length()))
            .for_each(|((gradient, dy), winners)| {
                // Blocks do not overlap, so every pixel wins at most once.
                winners.iter().zip(dy).for_each(|(&winner, &dy)| gradient[winner as usize] = dy);
            });
        let n = gradient.len() / blocks.input_length();
        gradients.register::<Flex>(node.id, tensor(gradient, &[n, blocks.input_length()]));
    }
}

#[derive(Clone, Copy, Debug)]
struct Blocks {
    input: [usize; 3],
    channels: usize,
}

impl Blocks {
    /// The side of a block: a flat image is not halved in depth.
    fn side(&self) -> [usize; 3] {
        [if self.input[0] > 1 { 2 } else { 1 }, 2, 2]
    }

    fn output(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.input[axis] / self.side()[axis])
    }

    fn input_length(&self) -> usize {
        self.input.iter().product::<usize>() * self.channels
    }

    fn output_length(&self) -> usize {
        self.output().iter().product::<usize>() * self.channels
    }

    /// The maxima, and where in its image each was found. The first of equals wins.
    fn forward(&self, x: &[f32]) -> (Vec<f32>, Vec<u32>) {
        let n = x.len() / self.input_length();
        let ([od, oh, ow], [_, h, w], [sd, sh, sw]) = (self.output(), self.input, self.side());
        let c = self.channels;
        let mut output = vec![f32::NEG_INFINITY; n * self.output_length()];
        let mut winners = vec![0; output.len()];
        output
            .par_chunks_mut(self.output_length())
            .zip(winners.par_chunks_mut(self.output_length()))
            .zip(x.par_chunks(self.input_length()))
            .for_each(|((output, winners), x)| {
                for (block, (output, winners)) in
                    output.chunks_exact_mut(c).zip(winners.chunks_exact_mut(c)).enumerate()
                {
                    let (z, y, column) = (block / (oh * ow), block / ow % oh, block % ow);
                    debug_assert!(z < od);
                    for (dz, dy, dx) in offsets([sd, sh, sw]) {
                        let at = (((z * sd + dz) * h + y * sh + dy) * w + column * sw + dx) * c;
                        for channel in 0..c {
                            let value = x[at + channel];
                            if value > output[channel] {
                                output[channel] = value;
                                winners[channel] = (at + channel) as u32;
                            }
                        }
                    }
                }
            });
        (output, winners)
    }

    fn elsewhere(&self, x: Tensor<2>) -> Tensor<2> {
        let [n, _] = x.dims();
        let ([d, h, w], [od, oh, ow], [sd, sh, sw]) = (self.input, self.output(), self.side());
        let x = x.reshape([n, d, h, w, self.channels]);
        let x = x.slice([0..n, 0..od * sd, 0..oh * sh, 0..ow * sw, 0..self.channels]);
        let x = x.reshape([n * od, sd, oh, sh, ow, sw, self.channels]);
        x.max_dim(1).max_dim(3).max_dim(5).reshape([n, self.output_length()])
    }
}

fn offsets([sd, sh, sw]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..sd).flat_map(move |z| (0..sh).flat_map(move |y| (0..sw).map(move |x| (z, y, x))))
}

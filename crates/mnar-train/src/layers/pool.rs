//! Pooling: the maximum over blocks of two pixels per side, and the mean over an image.

use super::cpu::{Tracked, contiguous, is_tracked, kernels, lifted, plain, tensor, values};
use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use mnar_kernels::{Isa, Pool};
use std::sync::Arc;

/// The largest value of every 2 × 2 block (2 × 2 × 2 where the depth is above 1), channel by channel; a last odd row,
/// column or slice is ignored.
///
/// `x` is n × (pixels · channels) of images of this depth, height and width.
pub fn max_pool(x: Tensor<2>, image: [usize; 3]) -> Tensor<2> {
    maxima(x, image, f32::NEG_INFINITY)
}

/// [`max_pool`] with a rectifier; applying it before or after the maximum gives the same result.
pub fn rectified_max_pool(x: Tensor<2>, image: [usize; 3]) -> Tensor<2> {
    maxima(x, image, 0.0)
}

/// The mean over all pixels, channel by channel.
pub fn mean_pool(x: Tensor<2>, image: [usize; 3]) -> Tensor<2> {
    let [n, length] = x.dims();
    let pixels = image.iter().product::<usize>();
    let pool = Pool { input: image, side: image, channels: length / pixels };
    let shape = [n, pool.channels];
    let Some(isa) = kernels() else { return means_elsewhere(x, pixels) };
    if let Some(x) = plain(&x) {
        return Tensor::from_primitive::<Flex>(tensor(pool.average(isa, values(&x)), &shape));
    }
    if !is_tracked(&x) {
        return means_elsewhere(x, pixels);
    }
    let x = lifted(x);
    let step = Average.prepare::<NoCheckpointing>([x.node()]).compute_bound().stateful();
    let output = tensor(pool.average(isa, values(&contiguous(x.into_primitive()))), &shape);
    Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => step.finish((pool, isa), output),
        OpsKind::UnTracked(step) => step.finish(output),
    })
}

/// A flat image is not halved in depth.
fn maxima(x: Tensor<2>, image: [usize; 3], floor: f32) -> Tensor<2> {
    let [n, length] = x.dims();
    let side = [if image[0] > 1 { 2 } else { 1 }, 2, 2];
    let pool = Pool { input: image, side, channels: length / image.iter().product::<usize>() };
    let shape = [n, pool.output_len()];
    let Some(isa) = kernels() else { return maxima_elsewhere(x, pool, floor) };
    if let Some(x) = plain(&x) {
        let (output, _) = pool.max(isa, values(&x), floor);
        return Tensor::from_primitive::<Flex>(tensor(output, &shape));
    }
    if !is_tracked(&x) {
        return maxima_elsewhere(x, pool, floor);
    }
    let x = lifted(x);
    let step = Maximum.prepare::<NoCheckpointing>([x.node()]).compute_bound().stateful();
    let (output, winners) = pool.max(isa, values(&contiguous(x.into_primitive())), floor);
    let output = tensor(output, &shape);
    Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => step.finish((Arc::new(winners), pool, isa), output),
        OpsKind::UnTracked(step) => step.finish(output),
    })
}

#[derive(Debug)]
struct Maximum;

impl Backward<Flex, 1> for Maximum {
    type State = (Arc<Vec<u8>>, Pool, Isa);

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let ([node], (winners, pool, isa)) = (ops.parents, ops.state);
        let dy = contiguous(gradients.consume::<Flex>(&ops.node));
        let Some(node) = node else { return };
        let gradient = pool.max_gradient(isa, &winners, values(&dy));
        let n = gradient.len() / pool.input_len();
        gradients.register::<Flex>(node.id, tensor(gradient, &[n, pool.input_len()]));
    }
}

#[derive(Debug)]
struct Average;

impl Backward<Flex, 1> for Average {
    type State = (Pool, Isa);

    fn backward(self, ops: Ops<Self::State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let ([node], (pool, isa)) = (ops.parents, ops.state);
        let dy = contiguous(gradients.consume::<Flex>(&ops.node));
        let Some(node) = node else { return };
        let gradient = pool.average_gradient(isa, values(&dy));
        let n = gradient.len() / pool.input_len();
        gradients.register::<Flex>(node.id, tensor(gradient, &[n, pool.input_len()]));
    }
}

/// On any other device: maxima along the axes of the blocks.
fn maxima_elsewhere(x: Tensor<2>, pool: Pool, floor: f32) -> Tensor<2> {
    let [n, _] = x.dims();
    let ([d, h, w], [od, oh, ow], [sd, sh, sw]) = (pool.input, pool.output(), pool.side);
    let x = x.reshape([n, d, h, w, pool.channels]);
    let x = x.slice([0..n, 0..od * sd, 0..oh * sh, 0..ow * sw, 0..pool.channels]);
    let x = x.reshape([n * od, sd, oh, sh, ow, sw, pool.channels]);
    let x = x.max_dim(1).max_dim(3).max_dim(5).reshape([n, pool.output_len()]);
    if floor == 0.0 { relu(x) } else { x }
}

fn means_elsewhere(x: Tensor<2>, pixels: usize) -> Tensor<2> {
    let [n, length] = x.dims();
    x.reshape([n, pixels, length / pixels]).mean_dim(1).reshape([n, length / pixels])
}

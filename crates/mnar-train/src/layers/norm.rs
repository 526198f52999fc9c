//! Batch normalisation over all pixels of a channel, with the activation that follows it.

use super::conv::{add_up, channel_sums};
use super::cpu::{Tracked, contiguous, tensor, values};
use crate::parameters::Initial;
use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::module::{Module, Param, RunningState};
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::sync::Arc;

/// Batch normalisation followed by a leaky rectifier of the given slope (0 a plain one, 1 none at all).
///
/// With gradients the batch's own statistics are used and remembered; without, the remembered ones.
#[derive(Module, Debug)]
pub struct BatchNorm {
    /// Scale, one a channel.
    pub gamma: Param<Tensor<1>>,
    /// Shift, one a channel.
    pub beta: Param<Tensor<1>>,
    /// Mean of the training batches.
    pub running_mean: RunningState<Tensor<1>>,
    /// Variance of the training batches.
    pub running_var: RunningState<Tensor<1>>,
    momentum: f64,
    slope: f32,
}

/// Added to variances, as PyTorch does.
const EPSILON: f32 = 1e-5;

impl BatchNorm {
    /// Scale 1, shift 0. `momentum` is the weight of a new batch in the running statistics.
    pub fn new(channels: usize, momentum: f64, slope: f32, initial: &mut Initial<'_>) -> Self {
        Self {
            gamma: initial.constant([channels], 1.0),
            beta: initial.constant([channels], 0.0),
            running_mean: RunningState::new(Tensor::zeros([channels], initial.device)),
            running_var: RunningState::new(Tensor::ones([channels], initial.device)),
            momentum,
            slope,
        }
    }

    /// Normalises `x`, n × (pixels · channels).
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let gamma = self.gamma.val();
        let [channels] = gamma.dims();
        let [n, length] = x.dims();
        if !gamma.is_autodiff() {
            let scale = gamma / (self.running_var.value() + EPSILON).sqrt();
            let shift = self.beta.val() - self.running_mean.value() * scale.clone();
            let x = x.reshape([n * length / channels, channels]);
            return self.activate(x * scale.unsqueeze() + shift.unsqueeze()).reshape([n, length]);
        }
        let (y, mean, var) = match x.clone().try_into_primitive::<Tracked>() {
            Ok(_) => tracked(x, gamma, self.beta.val(), self.slope),
            Err(_) => self.elsewhere(x, gamma),
        };
        let count = (n * length / channels) as f64;
        let keep = |running: &RunningState<Tensor<1>>, new: Tensor<1>| {
            // The lifted value keeps no graph: running statistics are data, not parameters.
            let old = running.value_sync().inner();
            let value = old.mul_scalar(1.0 - self.momentum) + new.mul_scalar(self.momentum);
            running.update(Tensor::from_inner(value));
        };
        keep(&self.running_mean, mean);
        keep(&self.running_var, var.mul_scalar(count / (count - 1.0).max(1.0)));
        y
    }

    fn activate(&self, x: Tensor<2>) -> Tensor<2> {
        match self.slope {
            1.0 => x,
            0.0 => burn::tensor::activation::relu(x),
            slope => burn::tensor::activation::leaky_relu(x, slope as f64),
        }
    }

    fn elsewhere(&self, x: Tensor<2>, gamma: Tensor<1>) -> (Tensor<2>, Tensor<1>, Tensor<1>) {
        let ([n, length], [channels]) = (x.dims(), gamma.dims());
        let x = x.reshape([n * length / channels, channels]);
        let mean = x.clone().mean_dim(0);
        let centred = x - mean.clone();
        let var = (centred.clone() * centred.clone()).mean_dim(0);
        let y = centred / (var.clone() + EPSILON).sqrt() * gamma.unsqueeze() + self.beta.val().unsqueeze();
        (self.activate(y).reshape([n, length]), mean.squeeze_dim(0).inner(), var.squeeze_dim(0).inner())
    }
}

/// The output, and the batch's mean and (biased) variance.
fn tracked(x: Tensor<2>, gamma: Tensor<1>, beta: Tensor<1>, slope: f32) -> (Tensor<2>, Tensor<1>, Tensor<1>) {
    let ([n, length], [channels]) = (x.dims(), gamma.dims());
    let same = "one device for the input and the parameters";
    let x = x.try_into_primitive::<Tracked>().expect(same);
    let gamma = gamma.try_into_primitive::<Tracked>().expect(same);
    let beta = beta.try_into_primitive::<Tracked>().expect(same);
    let step = Normalise.prepare::<NoCheckpointing>([x.node(), gamma.node(), beta.node()]).compute_bound().stateful();
    let (x, gamma, beta) =
        (contiguous(x.into_primitive()), contiguous(gamma.into_primitive()), contiguous(beta.into_primitive()));
    let count = (n * length / channels) as f32;
    let mean: Vec<f32> = channel_sums(values(&x), channels).iter().map(|sum| sum / count).collect();
    let var = centred_squares(values(&x), &mean).into_iter().map(|sum| sum / count).collect::<Vec<f32>>();
    let inverse_sd: Vec<f32> = var.iter().map(|var| 1.0 / (var + EPSILON).sqrt()).collect();
    let (scale, shift) = affine(values(&gamma), values(&beta), &mean, &inverse_sd);
    let mut output = vec![0.0; n * length];
    output.par_chunks_mut(channels * BLOCK).zip(values(&x).par_chunks(channels * BLOCK)).for_each(|(y, x)| {
        for (y, x) in y.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
            for c in 0..channels {
                let value = x[c] * scale[c] + shift[c];
                y[c] = if value > 0.0 { value } else { value * slope };
            }
        }
    });
    let output = tensor(output, &[n, length]);
    let moments = [tensor(mean.clone(), &[channels]), tensor(var, &[channels])].map(Tensor::from_primitive::<Flex>);
    let saved = Saved { x, gamma, beta, mean: mean.into(), inverse_sd: inverse_sd.into(), slope };
    let y = Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => step.finish(saved, output),
        OpsKind::UnTracked(step) => step.finish(output),
    });
    let [mean, var] = moments;
    (y, mean, var)
}

/// Pixels a thread takes at a time; fixed, so that sums do not depend on the threads.
const BLOCK: usize = 2048;

/// y = x · scale + shift is the normalised, scaled and shifted value.
fn affine(gamma: &[f32], beta: &[f32], mean: &[f32], inverse_sd: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let scale: Vec<f32> = gamma.iter().zip(inverse_sd).map(|(gamma, inverse)| gamma * inverse).collect();
    let shift = (0..scale.len()).map(|c| beta[c] - mean[c] * scale[c]).collect();
    (scale, shift)
}

fn centred_squares(x: &[f32], mean: &[f32]) -> Vec<f32> {
    let channels = mean.len();
    let partial: Vec<Vec<f32>> = x
        .par_chunks(channels * BLOCK)
        .map(|x| {
            let mut sum = vec![0.0; channels];
            for pixel in x.chunks_exact(channels) {
                for c in 0..channels {
                    sum[c] += (pixel[c] - mean[c]) * (pixel[c] - mean[c]);
                }
            }
            sum
        })
        .collect();
    add_up(partial, channels)
}

#[derive(Clone, Debug)]
struct Saved {
    x: FlexTensor,
    gamma: FlexTensor,
    beta: FlexTensor,
    mean: Arc<[f32]>,
    inverse_sd: Arc<[f32]>,
    slope: f32,
}

#[derive(Debug)]
struct Normalise;

impl Backward<Flex, 3> for Normalise {
    type State = Saved;

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let ([x_node, gamma_node, beta_node], saved) = (ops.parents, ops.state);
        let mut dy = contiguous(gradients.consume::<Flex>(&ops.node));
        let (x, channels) = (values(&saved.x), saved.mean.len());
        let (scale, shift) = affine(values(&saved.gamma), values(&saved.beta), &saved.mean, &saved.inverse_sd);
        // Through the rectifier, and on the way Σ dy and Σ dy·x̂ of every channel.
        let sums: Vec<(Vec<f32>, Vec<f32>)> = dy
            .storage_mut::<f32>()
            .par_chunks_mut(channels * BLOCK)
            .zip(x.par_chunks(channels * BLOCK))
            .map(|(dy, x)| {
                let (mut sum, mut with_x) = (vec![0.0; channels], vec![0.0; channels]);
                for (dy, x) in dy.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
                    for c in 0..channels {
                        let slope = if x[c] * scale[c] + shift[c] > 0.0 { 1.0 } else { saved.slope };
                        dy[c] *= slope;
                        sum[c] += dy[c];
                        with_x[c] += dy[c] * (x[c] - saved.mean[c]) * saved.inverse_sd[c];
                    }
                }
                (sum, with_x)
            })
            .collect();
        let (mut sum, mut with_x) = (vec![0.0; channels], vec![0.0; channels]);
        for (part, part_x) in sums {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            with_x.iter_mut().zip(part_x).for_each(|(sum, part)| *sum += part);
        }
        let shape: Vec<usize> = saved.x.layout().shape().iter().copied().collect();
        if let Some(node) = x_node {
            // dx = γ/σ · (dy − mean(dy) − x̂ · mean(dy·x̂))
            let count = (x.len() / channels) as f32;
            let mut dx = vec![0.0; x.len()];
            let blocks = dx.par_chunks_mut(channels * BLOCK).zip(x.par_chunks(channels * BLOCK));
            blocks.zip(values(&dy).par_chunks(channels * BLOCK)).for_each(|((dx, x), dy)| {
                let pixels = dx.chunks_exact_mut(channels).zip(x.chunks_exact(channels));
                for ((dx, x), dy) in pixels.zip(dy.chunks_exact(channels)) {
                    for c in 0..channels {
                        let normalised = (x[c] - saved.mean[c]) * saved.inverse_sd[c];
                        dx[c] = scale[c] * (dy[c] - (sum[c] + normalised * with_x[c]) / count);
                    }
                }
            });
            gradients.register::<Flex>(node.id, tensor(dx, &shape));
        }
        if let Some(node) = gamma_node {
            gradients.register::<Flex>(node.id, tensor(with_x, &[channels]));
        }
        if let Some(node) = beta_node {
            gradients.register::<Flex>(node.id, tensor(sum, &[channels]));
        }
    }
}

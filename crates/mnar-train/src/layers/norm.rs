//! Batch normalisation over all pixels of a channel, with the activation that follows it.

use super::conv::Conv;
use super::cpu::{Tracked, contiguous, is_tracked, kernels, lifted, plain, tensor, values};
use crate::parameters::Initial;
use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::module::{Module, Param, RunningState};
use burn::tensor::Tensor;
use mnar_kernels::{Isa, Normalised, moments, scale_shift};
use std::sync::Arc;

/// Batch normalisation followed by a leaky rectifier of the given slope (0 is a plain rectifier, 1 none at all).
///
/// With gradients, the batch's own statistics are used and remembered; without gradients, the remembered ones.
#[derive(Module, Debug)]
pub struct BatchNorm {
    /// Scale, one per channel.
    pub gamma: Param<Tensor<1>>,
    /// Shift, one per channel.
    pub beta: Param<Tensor<1>>,
    /// Running mean over the training batches.
    pub running_mean: RunningState<Tensor<1>>,
    /// Running variance over the training batches.
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
        self.forward_with_recipe(x).0
    }

    /// Normalises, then convolves. Where gradients are tracked, the normalised values, which are as large as the input,
    /// are not kept for the backward pass but recomputed when needed.
    pub fn forward_into(&self, conv: &Conv, x: Tensor<2>) -> Tensor<2> {
        match self.forward_with_recipe(x) {
            (x, Some(recipe)) => conv.forward_normalised(x, recipe),
            (x, None) => conv.forward(x),
        }
    }

    fn forward_with_recipe(&self, x: Tensor<2>) -> (Tensor<2>, Option<Recipe>) {
        let gamma = self.gamma.val();
        let [channels] = gamma.dims();
        let [n, length] = x.dims();
        if !gamma.is_autodiff() {
            let scale = gamma / (self.running_var.value() + EPSILON).sqrt();
            let shift = self.beta.val() - self.running_mean.value() * scale.clone();
            return (self.scale_and_shift(x, scale, shift), None);
        }
        let (y, recipe, [mean, var]) = match kernels() {
            Some(isa) if is_tracked(&gamma) => tracked(x, gamma, self.beta.val(), self.slope, isa),
            _ => self.elsewhere(x, gamma),
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
        (y, recipe)
    }

    fn scale_and_shift(&self, x: Tensor<2>, scale: Tensor<1>, shift: Tensor<1>) -> Tensor<2> {
        let ([n, length], [channels]) = (x.dims(), scale.dims());
        if let (Some(isa), Some(x), Some(scale), Some(shift)) = (kernels(), plain(&x), plain(&scale), plain(&shift)) {
            let y = scale_shift(isa, values(&x), values(&scale), values(&shift), self.slope);
            return Tensor::from_primitive::<Flex>(tensor(y, &[n, length]));
        }
        let x = x.reshape([n * length / channels, channels]);
        self.activate(x * scale.unsqueeze() + shift.unsqueeze()).reshape([n, length])
    }

    fn activate(&self, x: Tensor<2>) -> Tensor<2> {
        match self.slope {
            1.0 => x,
            0.0 => burn::tensor::activation::relu(x),
            slope => burn::tensor::activation::leaky_relu(x, slope as f64),
        }
    }

    fn elsewhere(&self, x: Tensor<2>, gamma: Tensor<1>) -> Normalisation {
        let ([n, length], [channels]) = (x.dims(), gamma.dims());
        let x = x.reshape([n * length / channels, channels]);
        let mean = x.clone().mean_dim(0);
        let centred = x - mean.clone();
        let var = (centred.clone() * centred.clone()).mean_dim(0);
        let y = centred / (var.clone() + EPSILON).sqrt() * gamma.unsqueeze() + self.beta.val().unsqueeze();
        (self.activate(y).reshape([n, length]), None, [mean.squeeze_dim(0).inner(), var.squeeze_dim(0).inner()])
    }
}

/// The output, how to recompute it, and the batch's mean and (biased) variance.
type Normalisation = (Tensor<2>, Option<Recipe>, [Tensor<1>; 2]);

fn tracked(x: Tensor<2>, gamma: Tensor<1>, beta: Tensor<1>, slope: f32, isa: Isa) -> Normalisation {
    let ([n, length], [channels]) = (x.dims(), gamma.dims());
    let (x, gamma, beta) = (lifted(x), lifted(gamma), lifted(beta));
    let step = Normalise.prepare::<NoCheckpointing>([x.node(), gamma.node(), beta.node()]).compute_bound().stateful();
    let (x, gamma, beta) =
        (contiguous(x.into_primitive()), contiguous(gamma.into_primitive()), contiguous(beta.into_primitive()));
    let (mean, var) = moments(isa, values(&x), channels);
    let inverse_sd: Vec<f32> = var.iter().map(|var| 1.0 / (var + EPSILON).sqrt()).collect();
    let saved = Recipe { x, gamma, beta, mean: mean.clone().into(), inverse_sd: inverse_sd.into(), slope, isa };
    let output = tensor(saved.make(), &[n, length]);
    let y = Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => step.finish(saved.clone(), output),
        OpsKind::UnTracked(step) => step.finish(output),
    });
    (y, Some(saved), [mean, var].map(|moment| Tensor::from_primitive::<Flex>(tensor(moment, &[channels]))))
}

/// What is needed to normalise again; the input is shared, not copied.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    x: FlexTensor,
    gamma: FlexTensor,
    beta: FlexTensor,
    mean: Arc<[f32]>,
    inverse_sd: Arc<[f32]>,
    slope: f32,
    isa: Isa,
}

impl Recipe {
    /// Recomputes the output.
    pub(super) fn make(&self) -> Vec<f32> {
        self.normalised().forward(self.isa)
    }

    fn normalised(&self) -> Normalised<'_> {
        Normalised {
            x: values(&self.x),
            mean: &self.mean,
            inverse_sd: &self.inverse_sd,
            gamma: values(&self.gamma),
            beta: values(&self.beta),
            slope: self.slope,
        }
    }
}

#[derive(Debug)]
struct Normalise;

impl Backward<Flex, 3> for Normalise {
    type State = Recipe;

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let (nodes, saved) = (ops.parents, ops.state);
        let dy = contiguous(gradients.consume::<Flex>(&ops.node));
        let channels = saved.mean.len();
        let shape: Vec<usize> = saved.x.layout().shape().iter().copied().collect();
        let ours = saved.normalised().backward(saved.isa, values(&dy));
        let all = [tensor(ours.x, &shape), tensor(ours.gamma, &[channels]), tensor(ours.beta, &[channels])];
        for (node, gradient) in nodes.into_iter().zip(all) {
            if let Some(node) = node {
                gradients.register::<Flex>(node.id, gradient);
            }
        }
    }
}

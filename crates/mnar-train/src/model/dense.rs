//! Fully connected layers.

use super::NetworkModule;
use crate::layers::{Activation, dense};
use crate::parameters::Initial;
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// A fully connected layer: x W + b.
#[derive(Module, Debug)]
pub struct Dense {
    /// Weights, inputs × outputs.
    pub weight: Param<Tensor<2>>,
    /// One bias per output.
    pub bias: Param<Tensor<1>>,
}

impl Dense {
    /// Weights are uniform on ±1/√inputs, as PyTorch initialises them.
    pub fn new(inputs: usize, outputs: usize, initial: &mut Initial<'_>) -> Self {
        let bound = 1.0 / (inputs as f64).sqrt();
        Self { weight: initial.uniform([inputs, outputs], bound), bias: initial.uniform([outputs], bound) }
    }

    /// Applies the layer.
    pub fn forward(&self, x: Tensor<2>, activation: Activation) -> Tensor<2> {
        dense(x, self.weight.val(), self.bias.val(), activation)
    }
}

/// Layers with rectifiers between them; without a hidden layer, a softmax regression.
#[derive(Module, Debug)]
pub struct Mlp {
    /// The layers, from the input to the logits.
    pub layers: Vec<Dense>,
}

impl Mlp {
    /// A network with random weights.
    pub fn new(inputs: usize, hidden: &[usize], classes: usize, initial: &mut Initial<'_>) -> Self {
        let widths: Vec<usize> = [inputs].iter().chain(hidden).chain(&[classes]).copied().collect();
        Self { layers: widths.windows(2).map(|pair| Dense::new(pair[0], pair[1], initial)).collect() }
    }
}

impl NetworkModule for Mlp {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let last = self.layers.len() - 1;
        self.layers
            .iter()
            .enumerate()
            .fold(x, |x, (i, layer)| layer.forward(x, if i < last { Activation::Rectifier } else { Activation::None }))
    }
}

//! Stochastic gradient methods: SGD with momentum, and Adam.
//!
//! A single pass over the numbers of a parameter takes the step and updates the average, where a chain of tensor
//! operations would read and write them ten times. The state consists of plain vectors in the order of the network's
//! parameters, so a checkpoint stores it bit for bit.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Gradients, Tensor};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Settings of an optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Optimiser {
    /// SGD with PyTorch's momentum: v ← μ v + g, θ ← θ − γ v (with Nesterov's look-ahead, θ ← θ − γ (g + μ v)).
    Sgd {
        /// The momentum μ.
        momentum: f32,
        /// Whether to use Nesterov's look-ahead.
        nesterov: bool,
        /// Weight decay, added to the gradient: decay · θ.
        weight_decay: f32,
    },
    /// Adam, with decoupled weight decay.
    Adam {
        /// Weight of the past in the mean of the gradients.
        beta1: f32,
        /// Weight of the past in the mean of their squares.
        beta2: f32,
        /// Decoupled weight decay: θ ← θ − γ · decay · θ.
        weight_decay: f32,
    },
}

impl Optimiser {
    /// Adam with the usual constants.
    pub fn adam() -> Self {
        Self::Adam { beta1: 0.9, beta2: 0.999, weight_decay: 0.0 }
    }

    /// SGD with momentum 0.9.
    pub fn sgd() -> Self {
        Self::Sgd { momentum: 0.9, nesterov: false, weight_decay: 0.0 }
    }
}

/// Adam's guard against division by 0, as in PyTorch.
const EPSILON: f32 = 1e-8;

/// The memory of the optimiser, and the running average of the weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptimiserState {
    /// Number of steps taken.
    pub steps: u64,
    /// First moments (or momentum), one vector per trained tensor.
    pub first: Vec<Vec<f32>>,
    /// Second moments, for Adam.
    pub second: Vec<Vec<f32>>,
    /// Averages of all tensors, running statistics included.
    pub average: Vec<Vec<f32>>,
}

/// Parameters with at least this many numbers are worth two threads.
const PARALLEL: usize = 1 << 15;

impl OptimiserState {
    /// Takes one step and updates the average: average ← decay · average + (1 − decay) · θ.
    pub fn step<M: Module>(
        &mut self,
        network: M,
        gradients: Gradients,
        optimiser: Optimiser,
        learning_rate: f64,
        decay: f64,
    ) -> M {
        self.steps += 1;
        let mut stepper = Stepper { state: self, gradients, optimiser, learning_rate, decay, trained: 0, all: 0 };
        network.map(&mut stepper)
    }
}

struct Stepper<'a> {
    state: &'a mut OptimiserState,
    gradients: Gradients,
    optimiser: Optimiser,
    learning_rate: f64,
    decay: f64,
    trained: usize,
    all: usize,
}

impl ModuleMapper for Stepper<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let gradient = param.val().grad_remove(&mut self.gradients);
        let all = self.all;
        self.all += 1;
        let Some(gradient) = gradient else {
            // Running statistics have no gradient but are part of the average.
            let values: Vec<f32> = param.val().inner().into_data().iter::<f32>().collect();
            self.average(all, &values);
            return param;
        };
        let (id, tensor, mapper) = param.consume();
        let (shape, device) = (tensor.dims(), tensor.device());
        let mut values = into_vec(tensor.inner());
        let gradient = into_vec(gradient);
        let i = self.trained;
        self.trained += 1;
        if self.state.first.len() == i {
            self.state.first.push(vec![0.0; values.len()]);
            let second = if matches!(self.optimiser, Optimiser::Adam { .. }) { values.len() } else { 0 };
            self.state.second.push(vec![0.0; second]);
        }
        self.update(i, &mut values, &gradient);
        self.average(all, &values);
        let tensor = Tensor::from_data(burn::tensor::TensorData::new(values, shape), &device).require_grad();
        Param::from_mapped_value(id, tensor, mapper)
    }
}

impl Stepper<'_> {
    fn update(&mut self, i: usize, values: &mut [f32], gradient: &[f32]) {
        let rate = self.learning_rate as f32;
        let chunk = if values.len() >= PARALLEL { values.len().div_ceil(2) } else { values.len().max(1) };
        let first = &mut self.state.first[i];
        match self.optimiser {
            Optimiser::Sgd { momentum, nesterov, weight_decay } => {
                let work =
                    values.par_chunks_mut(chunk).zip(gradient.par_chunks(chunk)).zip(first.par_chunks_mut(chunk));
                work.for_each(|((values, gradient), velocity)| {
                    for ((value, gradient), velocity) in values.iter_mut().zip(gradient).zip(velocity) {
                        let gradient = gradient + weight_decay * *value;
                        *velocity = momentum * *velocity + gradient;
                        *value -= rate * if nesterov { gradient + momentum * *velocity } else { *velocity };
                    }
                });
            }
            Optimiser::Adam { beta1, beta2, weight_decay } => {
                let t = self.state.steps as i32;
                let rate = rate / (1.0 - beta1.powi(t));
                let correction = 1.0 / (1.0 - beta2.powi(t)).sqrt();
                let shrink = 1.0 - self.learning_rate as f32 * weight_decay;
                let second = &mut self.state.second[i];
                let work =
                    values.par_chunks_mut(chunk).zip(gradient.par_chunks(chunk)).zip(first.par_chunks_mut(chunk));
                work.zip(second.par_chunks_mut(chunk)).for_each(|(((values, gradient), first), second)| {
                    for (((value, gradient), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
                        *m = beta1 * *m + (1.0 - beta1) * gradient;
                        *v = beta2 * *v + (1.0 - beta2) * gradient * gradient;
                        *value = *value * shrink - rate * *m / (v.sqrt() * correction + EPSILON);
                    }
                });
            }
        }
    }

    fn average(&mut self, i: usize, values: &[f32]) {
        if self.state.average.len() == i {
            self.state.average.push(values.to_vec());
            return;
        }
        // An average over t steps cannot remember more than t steps: early averages follow the weights.
        let t = self.state.steps as f64;
        let decay = self.decay.min(t / (t + 10.0)) as f32;
        for (average, value) in self.state.average[i].iter_mut().zip(values) {
            *average = decay * *average + (1.0 - decay) * value;
        }
    }
}

fn into_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data();
    data.try_into_vec::<f32>().expect("networks consist of f32")
}

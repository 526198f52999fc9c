//! Fully connected layers, with the rectifier that follows them.

use super::cpu::{Tracked, contiguous, is_tracked, kernels, lifted, plain, tensor, values};
use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::tensor::activation::relu;
use burn::tensor::{Tensor, module::linear};
use mnar_kernels::{Dense, Isa, channel_sums, rectifier_gradient};

/// The activation that follows a fully connected layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// No activation.
    None,
    /// Negative values become 0.
    Rectifier,
}

impl Activation {
    fn slope(self) -> f32 {
        match self {
            Self::None => 1.0,
            Self::Rectifier => 0.0,
        }
    }
}

/// x · weight + bias, activated. `x` is n × inputs, `weight` inputs × outputs.
pub fn dense(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, activation: Activation) -> Tensor<2> {
    let Some(isa) = kernels() else { return elsewhere(x, weight, bias, activation) };
    if is_tracked(&weight) {
        tracked(x, weight, bias, activation, isa)
    } else if let (Some(x), Some(weight), Some(bias)) = (plain(&x), plain(&weight), plain(&bias)) {
        Tensor::from_primitive::<Flex>(forward(&x, &weight, &bias, activation, isa))
    } else {
        elsewhere(x, weight, bias, activation)
    }
}

fn tracked(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, activation: Activation, isa: Isa) -> Tensor<2> {
    let (x, weight, bias) = (lifted(x), lifted(weight), lifted(bias));
    let step = Multiply.prepare::<NoCheckpointing>([x.node(), weight.node(), bias.node()]).compute_bound().stateful();
    let (x, weight) = (contiguous(x.into_primitive()), contiguous(weight.into_primitive()));
    let output = forward(&x, &weight, &contiguous(bias.into_primitive()), activation, isa);
    Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => {
            // The output shows where the rectifier was active.
            let rectified = (activation == Activation::Rectifier).then(|| output.clone());
            step.finish((x, weight, rectified, isa), output)
        }
        OpsKind::UnTracked(step) => step.finish(output),
    })
}

#[derive(Debug)]
struct Multiply;

impl Backward<Flex, 3> for Multiply {
    type State = (FlexTensor, FlexTensor, Option<FlexTensor>, Isa);

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let [x_node, weight_node, bias_node] = ops.parents;
        let (x, weight, rectified, isa) = ops.state;
        let mut output_gradient = contiguous(gradients.consume::<Flex>(&ops.node));
        let sizes = sizes(&x, &weight);
        if let Some(y) = rectified {
            let before = rectifier_gradient(isa, values(&y), values(&output_gradient), Activation::Rectifier.slope());
            output_gradient = tensor(before, &[sizes.rows, sizes.outputs]);
        }
        let dy = values(&output_gradient);
        if let Some(node) = x_node {
            let gradient = sizes.input_gradient(isa, dy, values(&weight));
            gradients.register::<Flex>(node.id, tensor(gradient, &[sizes.rows, sizes.inputs]));
        }
        if let Some(node) = weight_node {
            let gradient = sizes.weight_gradient(isa, values(&x), dy);
            gradients.register::<Flex>(node.id, tensor(gradient, &[sizes.inputs, sizes.outputs]));
        }
        if let Some(node) = bias_node {
            let gradient = channel_sums(isa, dy, sizes.outputs);
            gradients.register::<Flex>(node.id, tensor(gradient, &[sizes.outputs]));
        }
    }
}

fn sizes(x: &FlexTensor, weight: &FlexTensor) -> Dense {
    let ([rows, _], [inputs, outputs]) = (x.layout().shape().dims::<2>(), weight.layout().shape().dims::<2>());
    Dense { rows, inputs, outputs }
}

fn forward(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor, activation: Activation, isa: Isa) -> FlexTensor {
    let sizes = sizes(x, weight);
    let output = sizes.forward(isa, values(x), values(weight), Some(values(bias)), activation.slope());
    tensor(output, &[sizes.rows, sizes.outputs])
}

/// On any other device: burn's own product.
fn elsewhere(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, activation: Activation) -> Tensor<2> {
    let y = linear(x, weight, Some(bias));
    match activation {
        Activation::None => y,
        Activation::Rectifier => relu(y),
    }
}

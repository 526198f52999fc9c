//! Convolution.

use super::cpu::{Tracked, contiguous, is_tracked, kernels, lifted, plain, tensor, values};
use super::norm::Recipe;
use crate::parameters::Initial;
use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::module::conv3d;
use burn::tensor::ops::ConvOptions;
use mnar_kernels::{Convolution, Isa, Window, channel_sums};

/// A convolution with bias. Input and output are n × (pixels · channels), channels last.
#[derive(Module, Debug)]
pub struct Conv {
    /// (kernel pixels · input channels) × output channels.
    pub weight: Param<Tensor<2>>,
    /// One bias per channel, if the layer has a bias.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    window: Window,
}

impl Conv {
    /// A layer with bias; weights are uniform on ±1/√fan-in, as PyTorch initialises them.
    pub fn new(window: Window, channels_in: usize, channels_out: usize, initial: &mut Initial<'_>) -> Self {
        let fan_in = window.kernel_pixels() * channels_in;
        let bound = 1.0 / (fan_in as f64).sqrt();
        Self {
            weight: initial.uniform([fan_in, channels_out], bound),
            bias: Some(initial.uniform([channels_out], bound)),
            window,
        }
    }

    /// A layer without bias; weights are normal with variance 2/(kernel pixels · output channels), the initialisation
    /// of residual networks.
    pub fn residual(window: Window, channels_in: usize, channels_out: usize, initial: &mut Initial<'_>) -> Self {
        let sd = (2.0 / (window.kernel_pixels() * channels_out) as f64).sqrt();
        let weight = initial.normal([window.kernel_pixels() * channels_in, channels_out], sd);
        Self { weight, bias: None, window }
    }

    /// Convolves.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        conv(x, self.weight.val(), self.bias.as_ref().map(Param::val), self.window)
    }

    /// Convolves the output of a batch norm, which is recomputed for the gradient instead of being kept.
    pub(super) fn forward_normalised(&self, x: Tensor<2>, recipe: Recipe) -> Tensor<2> {
        convolve(x, self.weight.val(), self.bias.as_ref().map(Param::val), self.window, Some(recipe))
    }
}

/// Convolves `x`, n × (input pixels · channels), with `weight`, (kernel pixels · channels in) × channels out.
pub fn conv(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>, window: Window) -> Tensor<2> {
    convolve(x, weight, bias, window, None)
}

fn convolve(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    window: Window,
    recipe: Option<Recipe>,
) -> Tensor<2> {
    let channels = weight.dims()[1];
    let bias = bias.unwrap_or_else(|| Tensor::zeros([channels], &x.device()));
    let Some(isa) = kernels() else { return elsewhere(x, weight, bias, window) };
    if is_tracked(&weight) {
        tracked([x, weight], bias, window, recipe, isa)
    } else if let (Some(x), Some(weight), Some(bias)) = (plain(&x), plain(&weight), plain(&bias)) {
        Tensor::from_primitive::<Flex>(forward(&x, &weight, &bias, window, isa))
    } else {
        elsewhere(x, weight, bias, window)
    }
}

fn tracked(
    [x, weight]: [Tensor<2>; 2],
    bias: Tensor<1>,
    window: Window,
    recipe: Option<Recipe>,
    isa: Isa,
) -> Tensor<2> {
    let (x, weight, bias) = (lifted(x), lifted(weight), lifted(bias));
    let step = Convolve.prepare::<NoCheckpointing>([x.node(), weight.node(), bias.node()]).compute_bound().stateful();
    let (x, weight) = (contiguous(x.into_primitive()), contiguous(weight.into_primitive()));
    let output = forward(&x, &weight, &contiguous(bias.into_primitive()), window, isa);
    Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => step.finish(
            (recipe.map_or(Input::Kept(x), |recipe| Input::Made(Box::new(recipe))), weight, window, isa),
            output,
        ),
        OpsKind::UnTracked(step) => step.finish(output),
    })
}

/// The input as the backward pass needs it.
#[derive(Clone, Debug)]
enum Input {
    Kept(FlexTensor),
    Made(Box<Recipe>),
}

#[derive(Debug)]
struct Convolve;

impl Backward<Flex, 3> for Convolve {
    type State = (Input, FlexTensor, Window, Isa);

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let [x_node, weight_node, bias_node] = ops.parents;
        let (x, weight, window, isa) = ops.state;
        let output_gradient = contiguous(gradients.consume::<Flex>(&ops.node));
        let (dy, sizes) = (values(&output_gradient), sizes(&output_gradient, &weight, window));
        if let Some(node) = x_node {
            let gradient = sizes.input_gradient(isa, dy, values(&weight));
            let shape = [sizes.images, window.input_pixels() * sizes.channels_in];
            gradients.register::<Flex>(node.id, tensor(gradient, &shape));
        }
        if let Some(node) = weight_node {
            let gradient = match x {
                Input::Kept(x) => sizes.weight_gradient(isa, values(&x), dy),
                Input::Made(recipe) => sizes.weight_gradient(isa, &recipe.make(), dy),
            };
            let shape = [window.kernel_pixels() * sizes.channels_in, sizes.channels_out];
            gradients.register::<Flex>(node.id, tensor(gradient, &shape));
        }
        if let Some(node) = bias_node {
            let gradient = channel_sums(isa, dy, sizes.channels_out);
            gradients.register::<Flex>(node.id, tensor(gradient, &[sizes.channels_out]));
        }
    }
}

/// `rows` has one row per image: the input, or the gradient of the output.
fn sizes(rows: &FlexTensor, weight: &FlexTensor, window: Window) -> Convolution {
    let ([images, _], [columns, channels_out]) =
        (rows.layout().shape().dims::<2>(), weight.layout().shape().dims::<2>());
    Convolution { images, window, channels_in: columns / window.kernel_pixels(), channels_out }
}

fn forward(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor, window: Window, isa: Isa) -> FlexTensor {
    let sizes = sizes(x, weight, window);
    let output = sizes.forward(isa, values(x), values(weight), Some(values(bias)), 1.0);
    tensor(output, &[sizes.images, window.output_pixels() * sizes.channels_out])
}

/// On any other device: burn's own convolution, which expects channels first.
fn elsewhere(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, window: Window) -> Tensor<2> {
    let ([n, _], [columns, channels_out]) = (x.dims(), weight.dims());
    let channels_in = columns / window.kernel_pixels();
    let ([d, h, w], [kd, kh, kw]) = (window.input, window.kernel);
    let x = x.reshape([n, d, h, w, channels_in]).permute([0, 4, 1, 2, 3]);
    let weight = weight.reshape([kd, kh, kw, channels_in, channels_out]).permute([4, 3, 0, 1, 2]);
    let options = ConvOptions::new(window.stride, window.padding, [1, 1, 1], 1);
    let y = conv3d(x, weight, Some(bias), options);
    y.permute([0, 2, 3, 4, 1]).reshape([n, window.output_pixels() * channels_out])
}

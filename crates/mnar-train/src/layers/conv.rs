//! Convolution: windows gathered image by image into a small scratch, then one matrix product an image.
//!
//! The scratch of one image stays in the cache and nothing but input and output lives through the step, where
//! unfolding the whole batch would write and keep k² copies of it.

use super::cpu::{Tracked, contiguous, tensor, values};
use super::window::Window;
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
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// A convolution with bias. Input and output are n × (pixels · channels), channels last.
#[derive(Module, Debug)]
pub struct Conv {
    /// (kernel pixels · input channels) × output channels.
    pub weight: Param<Tensor<2>>,
    /// One a channel, where the layer has a bias.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    window: Window,
}

impl Conv {
    /// With bias; uniform on ±1/√fan-in, as PyTorch starts.
    pub fn new(window: Window, channels_in: usize, channels_out: usize, initial: &mut Initial<'_>) -> Self {
        let fan_in = window.kernel_pixels() * channels_in;
        let bound = 1.0 / (fan_in as f64).sqrt();
        Self {
            weight: initial.uniform([fan_in, channels_out], bound),
            bias: Some(initial.uniform([channels_out], bound)),
            window,
        }
    }

    /// Without bias; normal with variance 2/(kernel pixels · output channels), as residual networks start.
    pub fn residual(window: Window, channels_in: usize, channels_out: usize, initial: &mut Initial<'_>) -> Self {
        let sd = (2.0 / (window.kernel_pixels() * channels_out) as f64).sqrt();
        let weight = initial.normal([window.kernel_pixels() * channels_in, channels_out], sd);
        Self { weight, bias: None, window }
    }

    /// Convolves.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        conv(x, self.weight.val(), self.bias.as_ref().map(Param::val), self.window)
    }
}

/// Convolves `x`, n × (input pixels · channels), with `weight`, (kernel pixels · channels in) × channels out.
pub fn conv(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>, window: Window) -> Tensor<2> {
    let channels = weight.dims()[1];
    let bias = bias.unwrap_or_else(|| Tensor::zeros([channels], &x.device()));
    if weight.clone().try_into_primitive::<Tracked>().is_ok() {
        tracked(x, weight, bias, window)
    } else if let (Ok(x), Ok(weight), Ok(bias)) = (
        x.clone().try_into_primitive::<Flex>(),
        weight.clone().try_into_primitive::<Flex>(),
        bias.clone().try_into_primitive::<Flex>(),
    ) {
        let (x, weight, bias) = (contiguous(x), contiguous(weight), contiguous(bias));
        Tensor::from_primitive::<Flex>(forward(&x, &weight, &bias, window))
    } else {
        elsewhere(x, weight, bias, window)
    }
}

fn tracked(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, window: Window) -> Tensor<2> {
    // The input of a first layer carries no gradient and may not be lifted yet.
    let x = if x.is_autodiff() { x } else { Tensor::from_inner(x) };
    let bias = if bias.is_autodiff() { bias } else { Tensor::from_inner(bias) };
    let same = "one device for the input and the weights";
    let x = x.try_into_primitive::<Tracked>().expect(same);
    let weight = weight.try_into_primitive::<Tracked>().expect(same);
    let bias = bias.try_into_primitive::<Tracked>().expect(same);
    let step =
        Convolution.prepare::<NoCheckpointing>([x.node(), weight.node(), bias.node()]).compute_bound().stateful();
    let (x, weight) = (contiguous(x.into_primitive()), contiguous(weight.into_primitive()));
    let output = forward(&x, &weight, &contiguous(bias.into_primitive()), window);
    Tensor::from_primitive::<Tracked>(match step {
        OpsKind::Tracked(step) => step.finish((x, weight, window), output),
        OpsKind::UnTracked(step) => step.finish(output),
    })
}

#[derive(Debug)]
struct Convolution;

impl Backward<Flex, 3> for Convolution {
    type State = (FlexTensor, FlexTensor, Window);

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let [x_node, weight_node, bias_node] = ops.parents;
        let (x, weight, window) = ops.state;
        let output_gradient = contiguous(gradients.consume::<Flex>(&ops.node));
        let (dy, sizes) = (values(&output_gradient), Sizes::of(&x, &weight, window));
        if let Some(node) = x_node {
            let gradient = input_gradient(dy, values(&weight), window, sizes);
            gradients
                .register::<Flex>(node.id, tensor(gradient, &[sizes.n, window.input_pixels() * sizes.channels_in]));
        }
        if let Some(node) = weight_node {
            let gradient = weight_gradient(values(&x), dy, window, sizes);
            gradients.register::<Flex>(node.id, tensor(gradient, &[sizes.columns, sizes.channels_out]));
        }
        if let Some(node) = bias_node {
            gradients.register::<Flex>(node.id, tensor(channel_sums(dy, sizes.channels_out), &[sizes.channels_out]));
        }
    }
}

#[derive(Clone, Copy)]
struct Sizes {
    n: usize,
    channels_in: usize,
    channels_out: usize,
    /// Kernel pixels · channels in.
    columns: usize,
}

impl Sizes {
    fn of(x: &FlexTensor, weight: &FlexTensor, window: Window) -> Self {
        let (x, weight) = (x.layout().shape().dims::<2>(), weight.layout().shape().dims::<2>());
        let [n, _] = x;
        let [columns, channels_out] = weight;
        Self { n, channels_in: columns / window.kernel_pixels(), channels_out, columns }
    }
}

fn forward(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor, window: Window) -> FlexTensor {
    let sizes = Sizes::of(x, weight, window);
    let pixels = window.output_pixels();
    let mut output = vec![0.0; sizes.n * pixels * sizes.channels_out];
    let (weight, bias) = (matrix(values(weight), sizes.columns), values(bias));
    output
        .par_chunks_mut(pixels * sizes.channels_out)
        .zip(values(x).par_chunks(window.input_pixels() * sizes.channels_in))
        .for_each_init(
            || vec![0.0; pixels * sizes.columns],
            |columns, (output, image)| {
                window.gather(image, sizes.channels_in, columns);
                output.chunks_exact_mut(sizes.channels_out).for_each(|pixel| pixel.copy_from_slice(bias));
                general_mat_mul(1.0, &matrix(columns, pixels), &weight, 1.0, &mut matrix_mut(output, pixels));
            },
        );
    tensor(output, &[sizes.n, pixels * sizes.channels_out])
}

fn input_gradient(dy: &[f32], weight: &[f32], window: Window, sizes: Sizes) -> Vec<f32> {
    let pixels = window.output_pixels();
    let mut gradient = vec![0.0; sizes.n * window.input_pixels() * sizes.channels_in];
    let weight = matrix(weight, sizes.columns);
    gradient
        .par_chunks_mut(window.input_pixels() * sizes.channels_in)
        .zip(dy.par_chunks(pixels * sizes.channels_out))
        .for_each_init(
            || vec![0.0; pixels * sizes.columns],
            |columns, (gradient, dy)| {
                let mut product = matrix_mut(columns, pixels);
                general_mat_mul(1.0, &matrix(dy, pixels), &weight.t(), 0.0, &mut product);
                window.scatter(columns, sizes.channels_in, gradient);
            },
        );
    gradient
}

/// Images whose weight gradients are added up in one go; fixed, so that sums do not depend on the threads.
const IMAGES_A_SUM: usize = 16;

fn weight_gradient(x: &[f32], dy: &[f32], window: Window, sizes: Sizes) -> Vec<f32> {
    let (pixels, image) = (window.output_pixels(), window.input_pixels() * sizes.channels_in);
    let partial: Vec<Vec<f32>> = x
        .par_chunks(IMAGES_A_SUM * image)
        .zip(dy.par_chunks(IMAGES_A_SUM * pixels * sizes.channels_out))
        .map_init(
            || vec![0.0; pixels * sizes.columns],
            |columns, (x, dy)| {
                let mut sum = vec![0.0; sizes.columns * sizes.channels_out];
                for (x, dy) in x.chunks_exact(image).zip(dy.chunks_exact(pixels * sizes.channels_out)) {
                    window.gather(x, sizes.channels_in, columns);
                    let mut sum = matrix_mut(&mut sum, sizes.columns);
                    general_mat_mul(1.0, &matrix(columns, pixels).t(), &matrix(dy, pixels), 1.0, &mut sum);
                }
                sum
            },
        )
        .collect();
    add_up(partial, sizes.columns * sizes.channels_out)
}

/// Σ over pixels, one sum a channel.
pub(super) fn channel_sums(values: &[f32], channels: usize) -> Vec<f32> {
    let partial: Vec<Vec<f32>> = values
        .par_chunks(channels * 8192)
        .map(|values| {
            let mut sum = vec![0.0; channels];
            for pixel in values.chunks_exact(channels) {
                sum.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
            }
            sum
        })
        .collect();
    add_up(partial, channels)
}

/// Partial sums in the order of the rows, whatever thread made them.
pub(super) fn add_up(partial: Vec<Vec<f32>>, len: usize) -> Vec<f32> {
    partial.into_iter().fold(vec![0.0; len], |mut total, part| {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        total
    })
}

fn matrix(values: &[f32], rows: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((rows, values.len() / rows), values).expect("rows divide the length")
}

fn matrix_mut(values: &mut [f32], rows: usize) -> ArrayViewMut2<'_, f32> {
    let columns = values.len() / rows;
    ArrayViewMut2::from_shape((rows, columns), values).expect("rows divide the length")
}

/// Any other device: burn's own convolution, which wants channels first.
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

//! Our layers against burn's own, values and gradients, with the kernels named by `MNAR_KERNELS`: `.ci/run` runs this
//! for each instruction set.
#![allow(clippy::unwrap_used)] // test helpers do not count as tests

use burn::tensor::activation::relu;
use burn::tensor::module::{conv2d, conv3d, linear};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor, TensorData};
use mnar_train::layers::{
    Activation, BatchNorm, Conv, Window, conv, cpu_kernels, dense, max_pool, mean_pool, rectified_max_pool,
    select_cpu_kernels,
};
use mnar_train::parameters::Initial;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Once;

/// Selects the kernels that the environment names. Every test has to call it, or [`random`], before its first layer.
fn select() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(name) = std::env::var("MNAR_KERNELS") {
            select_cpu_kernels(&name).unwrap();
        }
    });
}

fn random<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
    select();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect();
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
}

fn close<const D: usize, const E: usize>(a: Tensor<D>, b: Tensor<E>, what: &str) {
    near(a, b, 1, what);
}

/// Equal to 1e-4 of the largest value; or, for sums of this many terms of size about 1 that may cancel, of their
/// typical size.
fn near<const D: usize, const E: usize>(a: Tensor<D>, b: Tensor<E>, terms: usize, what: &str) {
    let (a, b): (Vec<f32>, Vec<f32>) = (a.into_data().iter().collect(), b.into_data().iter().collect());
    assert_eq!(a.len(), b.len(), "{what}");
    let usual = if terms > 1 { (terms as f32).sqrt() } else { 1e-3 };
    let scale = b.iter().fold(usual, |max, value| max.max(value.abs()));
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-4 * scale, "{what}: {a} against {b} (scale {scale})");
    }
}

fn check_flat(n: usize, [h, w]: [usize; 2], [ci, co]: [usize; 2], k: usize, stride: usize, padding: usize) {
    let window = Window::flat(h, w, k, stride, padding);
    let [_, oh, ow] = window.output();
    let x = random([n, h * w * ci], 1).require_grad();
    let weight = random([k * k * ci, co], 2).require_grad();
    let bias = random([co], 3).require_grad();
    let factor = random([n, oh * ow * co], 4);
    let ours = conv(x.clone(), weight.clone(), Some(bias.clone()), window);
    let mut gradients = (ours.clone() * factor.clone()).sum().backward();
    let ours =
        (ours, x.grad_remove(&mut gradients), weight.grad_remove(&mut gradients), bias.grad_remove(&mut gradients));
    let first = x.clone().reshape([n, h, w, ci]).permute([0, 3, 1, 2]);
    let kernel = weight.clone().reshape([k, k, ci, co]).permute([3, 2, 0, 1]);
    let options = ConvOptions::new([stride; 2], [padding; 2], [1, 1], 1);
    let theirs = conv2d(first, kernel, Some(bias.clone()), options).permute([0, 2, 3, 1]).reshape([n, oh * ow * co]);
    let mut gradients = (theirs.clone() * factor).sum().backward();
    close(ours.0.inner(), theirs.inner(), "output");
    close(ours.1.unwrap(), x.grad_remove(&mut gradients).unwrap(), "input gradient");
    let terms = n * oh * ow;
    near(ours.2.unwrap(), weight.grad_remove(&mut gradients).unwrap(), terms, "weight gradient");
    near(ours.3.unwrap(), bias.grad_remove(&mut gradients).unwrap(), terms, "bias gradient");
}

const CHANNELS: [usize; 7] = [1, 3, 6, 16, 17, 64, 130];

/// Comparing burn with itself would show nothing.
#[test]
fn the_kernels_are_ours() {
    select();
    let kernels = cpu_kernels();
    match std::env::var("MNAR_KERNELS") {
        Ok(asked) => assert_eq!(kernels, asked),
        Err(_) => assert_ne!(kernels, "burn"),
    }
}

#[test]
fn a_large_batch_is_burns() {
    check_flat(300, [9, 8], [6, 17], 3, 1, 1);
}

/// The recomputed normalised values are the ones that were convolved.
#[test]
fn norm_into_convolution_is_one_after_the_other() {
    let device = Device::flex().autodiff();
    let mut initial = Initial::new(0, &device);
    let norm = BatchNorm::new(3, 0.1, 0.1, &mut initial);
    let convolution = Conv::new(Window::flat(6, 5, 3, 1, 1), 3, 4, &mut initial);
    let (x, factor) = (random([7, 90], 1).require_grad(), random([7, 120], 2));
    let gradients = |y: Tensor<2>| {
        let mut gradients = (y.clone() * factor.clone()).sum().backward();
        let weight = convolution.weight.val().grad_remove(&mut gradients).unwrap();
        let gamma = norm.gamma.val().grad_remove(&mut gradients).unwrap();
        (y.inner(), x.grad_remove(&mut gradients).unwrap(), weight, gamma)
    };
    let fused = gradients(norm.forward_into(&convolution, x.clone()));
    let apart = gradients(convolution.forward(norm.forward(x.clone())));
    close(fused.0, apart.0, "output");
    close(fused.1, apart.1, "input gradient");
    close(fused.2, apart.2, "weight gradient");
    close(fused.3, apart.3, "gamma gradient");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn flat_convolution_is_burns(
        n in 1usize..20, h in 7usize..13, w in 7usize..13,
        ci in prop::sample::select(&CHANNELS[..]), co in prop::sample::select(&CHANNELS[..]),
        k in 1usize..8, stride in 1usize..4, padding in 0usize..4,
    ) {
        check_flat(n, [h, w], [ci, co], k, stride, padding.min(k / 2));
    }

    #[test]
    fn fully_connected_is_burns(
        n in 1usize..40, inputs in prop::sample::select(&CHANNELS[..]), outputs in prop::sample::select(&CHANNELS[..]),
        rectified: bool,
    ) {
        let x = random([n, inputs], 1).require_grad();
        let weight = random([inputs, outputs], 2).require_grad();
        let bias = random([outputs], 3).require_grad();
        let factor = random([n, outputs], 4);
        let activation = if rectified { Activation::Rectifier } else { Activation::None };
        let ours = dense(x.clone(), weight.clone(), bias.clone(), activation);
        let theirs = linear(x.clone(), weight.clone(), Some(bias.clone()));
        let theirs = if rectified { relu(theirs) } else { theirs };
        let mut gradients = (ours.clone() * factor.clone()).sum().backward();
        let ours = (
            ours,
            x.grad_remove(&mut gradients).unwrap(),
            weight.grad_remove(&mut gradients).unwrap(),
            bias.grad_remove(&mut gradients).unwrap(),
        );
        let mut gradients = (theirs.clone() * factor).sum().backward();
        close(ours.0.inner(), theirs.inner(), "output");
        near(ours.1, x.grad_remove(&mut gradients).unwrap(), outputs, "input gradient");
        near(ours.2, weight.grad_remove(&mut gradients).unwrap(), n, "weight gradient");
        near(ours.3, bias.grad_remove(&mut gradients).unwrap(), n, "bias gradient");
    }

    #[test]
    fn mean_pooling_is_burns(n in 1usize..5, h in 1usize..9, w in 1usize..9, c in 1usize..9) {
        let x = random([n, h * w * c], 5).require_grad();
        let factor = random([n, c], 6);
        let ours = mean_pool(x.clone(), [1, h, w]);
        let mut gradients = (ours.clone() * factor.clone()).sum().backward();
        let gradient = x.grad_remove(&mut gradients).unwrap();
        let theirs = x.clone().reshape([n, h * w, c]).mean_dim(1).reshape([n, c]);
        let mut gradients = (theirs.clone() * factor).sum().backward();
        close(ours.inner(), theirs.inner(), "output");
        close(gradient, x.grad_remove(&mut gradients).unwrap(), "gradient");
    }

    #[test]
    fn pooling_is_burns(n in 1usize..5, h in 2usize..9, w in 2usize..9, c in 1usize..5, rectified: bool) {
        let x = random([n, h * w * c], 5).require_grad();
        let ours = if rectified { rectified_max_pool(x.clone(), [1, h, w]) } else { max_pool(x.clone(), [1, h, w]) };
        let length = ours.dims()[1];
        let factor = random([n, length], 6);
        let mut gradients = (ours.clone() * factor.clone()).sum().backward();
        let gradient = x.grad_remove(&mut gradients).unwrap();
        // Maxima along the axes of the blocks, which burn differentiates.
        let (oh, ow) = (h / 2, w / 2);
        let even = x.clone().reshape([n, h, w, c]).slice([0..n, 0..2 * oh, 0..2 * ow, 0..c]);
        let theirs = even.reshape([n, oh, 2, ow, 2, c]).max_dim(2).max_dim(4).reshape([n, length]);
        let theirs = if rectified { relu(theirs) } else { theirs };
        let mut gradients = (theirs.clone() * factor).sum().backward();
        close(ours.inner(), theirs.inner(), "output");
        close(gradient, x.grad_remove(&mut gradients).unwrap(), "gradient");
    }
}

#[test]
fn volume_convolution_is_burns() {
    let (n, [d, h, w], ci, co) = (3, [5, 6, 7], 2, 3);
    let window = Window::cubic([d, h, w], 3, 1, 1);
    let x = random([n, d * h * w * ci], 1).require_grad();
    let weight = random([27 * ci, co], 2).require_grad();
    let ours = conv(x.clone(), weight.clone(), None, window);
    let factor = random([n, d * h * w * co], 4);
    let mut gradients = (ours.clone() * factor.clone()).sum().backward();
    let (dx, dw) = (x.grad_remove(&mut gradients).unwrap(), weight.grad_remove(&mut gradients).unwrap());
    let first = x.clone().reshape([n, d, h, w, ci]).permute([0, 4, 1, 2, 3]);
    let kernel = weight.clone().reshape([3, 3, 3, ci, co]).permute([4, 3, 0, 1, 2]);
    let theirs = conv3d(first, kernel, None, ConvOptions::new([1; 3], [1; 3], [1; 3], 1));
    let theirs = theirs.permute([0, 2, 3, 4, 1]).reshape([n, d * h * w * co]);
    let mut gradients = (theirs.clone() * factor).sum().backward();
    close(ours.inner(), theirs.inner(), "output");
    close(dx, x.grad_remove(&mut gradients).unwrap(), "input gradient");
    close(dw, weight.grad_remove(&mut gradients).unwrap(), "weight gradient");
}

/// Against the formula written in tensor operations, which burn differentiates.
#[test]
fn batch_norm_is_its_formula() {
    let device = Device::flex().autodiff();
    for slope in [0.0f32, 0.1, 1.0] {
        let (n, pixels, c) = (5, 12, 3);
        let norm = BatchNorm::new(c, 0.1, slope, &mut Initial::new(0, &device));
        let x = random([n, pixels * c], 7).require_grad();
        let factor = random([n, pixels * c], 8);
        let y = norm.forward(x.clone());
        let mut gradients = (y.clone() * factor.clone()).sum().backward();
        let ours = [
            x.grad_remove(&mut gradients).unwrap().reshape([n * pixels * c]),
            norm.gamma.val().grad_remove(&mut gradients).unwrap(),
            norm.beta.val().grad_remove(&mut gradients).unwrap(),
        ];
        let rows = x.clone().reshape([n * pixels, c]);
        let mean = rows.clone().mean_dim(0);
        let var = (rows.clone() - mean.clone()).square().mean_dim(0);
        let z = (rows - mean) / (var + 1e-5).sqrt() * norm.gamma.val().unsqueeze() + norm.beta.val().unsqueeze();
        let z = z.clone().clamp_min(0.0) - z.neg().clamp_min(0.0) * slope;
        let z = z.reshape([n, pixels * c]);
        let mut gradients = (z.clone() * factor).sum().backward();
        close(y.inner(), z.inner(), "output");
        let [dx, dgamma, dbeta] = ours;
        close(dx, x.grad_remove(&mut gradients).unwrap(), "input gradient");
        close(dgamma, norm.gamma.val().grad_remove(&mut gradients).unwrap(), "gamma gradient");
        close(dbeta, norm.beta.val().grad_remove(&mut gradients).unwrap(), "beta gradient");
    }
}

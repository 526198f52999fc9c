//! Our layers against burn's own, values and gradients.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use burn::tensor::module::{conv2d, conv3d};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor, TensorData};
use mnar_train::layers::{BatchNorm, Window, conv, max_pool};
use mnar_train::parameters::Initial;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn random<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect();
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
}

fn close<const D: usize, const E: usize>(a: Tensor<D>, b: Tensor<E>, what: &str) {
    let (a, b): (Vec<f32>, Vec<f32>) = (a.into_data().iter().collect(), b.into_data().iter().collect());
    assert_eq!(a.len(), b.len(), "{what}");
    let scale = b.iter().fold(1e-3f32, |max, value| max.max(value.abs()));
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
    close(ours.2.unwrap(), weight.grad_remove(&mut gradients).unwrap(), "weight gradient");
    close(ours.3.unwrap(), bias.grad_remove(&mut gradients).unwrap(), "bias gradient");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn flat_convolution_is_burns(
        n in 1usize..20, h in 7usize..13, w in 7usize..13,
        ci in prop::sample::select(vec![1usize, 3, 6, 16]), co in prop::sample::select(vec![1usize, 6, 16, 17]),
        k in 1usize..8, stride in 1usize..4, padding in 0usize..4,
    ) {
        check_flat(n, [h, w], [ci, co], k, stride, padding.min(k / 2));
    }

    #[test]
    fn pooling_is_burns(n in 1usize..5, h in 2usize..9, w in 2usize..9, c in 1usize..5) {
        let x = random([n, h * w * c], 5).require_grad();
        let ours = max_pool(x.clone(), [1, h, w]);
        let length = ours.dims()[1];
        let factor = random([n, length], 6);
        let mut gradients = (ours.clone() * factor.clone()).sum().backward();
        let gradient = x.grad_remove(&mut gradients).unwrap();
        // By maxima along the axes of the blocks, which burn differentiates.
        let (oh, ow) = (h / 2, w / 2);
        let even = x.clone().reshape([n, h, w, c]).slice([0..n, 0..2 * oh, 0..2 * ow, 0..c]);
        let theirs = even.reshape([n, oh, 2, ow, 2, c]).max_dim(2).max_dim(4).reshape([n, length]);
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

//! Convolutions against their definition as sums, on every instruction set of this processor.

mod common;

use common::{available, close, near, random};
use mnar_kernels::{Convolution, Window};
use proptest::prelude::*;

/// Calls `visit(output, input, weight)` with the positions of the three factors of every term, ignoring channels.
fn terms(window: Window, mut visit: impl FnMut(usize, usize, usize)) {
    let ([id, ih, iw], [kd, kh, kw], [od, oh, ow]) = (window.input, window.kernel, window.output());
    for o in 0..od * oh * ow {
        for k in 0..kd * kh * kw {
            let (o3, k3) = ([o / (oh * ow), o / ow % oh, o % ow], [k / (kh * kw), k / kw % kh, k % kw]);
            let at: [Option<usize>; 3] = std::array::from_fn(|axis| {
                (o3[axis] * window.stride[axis] + k3[axis]).checked_sub(window.padding[axis])
            });
            if let [Some(z), Some(y), Some(x)] = at
                && (z < id && y < ih && x < iw)
            {
                visit(o, (z * ih + y) * iw + x, k);
            }
        }
    }
}

fn check(conv: Convolution, slope: f32) {
    let Convolution { images, window, channels_in: ci, channels_out: co } = conv;
    let (inputs, outputs) = (window.input_pixels() * ci, window.output_pixels() * co);
    let x = random(images * inputs, 1);
    let weight = random(window.kernel_pixels() * ci * co, 2);
    let bias = random(co, 3);
    let dy = random(images * outputs, 4);
    let mut y: Vec<f64> = (0..images * outputs).map(|i| f64::from(bias[i % co])).collect();
    let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; weight.len()]);
    for n in 0..images {
        terms(window, |o, i, k| {
            for a in 0..ci {
                for b in 0..co {
                    let (o, i, k) = (n * outputs + o * co + b, n * inputs + i * ci + a, (k * ci + a) * co + b);
                    y[o] += f64::from(x[i]) * f64::from(weight[k]);
                    dx[i] += f64::from(dy[o]) * f64::from(weight[k]);
                    dw[k] += f64::from(dy[o]) * f64::from(x[i]);
                }
            }
        });
    }
    y.iter_mut().for_each(|y| *y *= if *y > 0.0 { 1.0 } else { f64::from(slope) });
    for isa in available() {
        close(&conv.forward(isa, &x, &weight, Some(&bias), slope), &y, &format!("{isa} output"));
        close(&conv.input_gradient(isa, &dy, &weight), &dx, &format!("{isa} input gradient"));
        // Sums of terms of either sign: their rounding error grows with the square root of their number, whatever
        // remains after cancellation.
        let usual = ((images * window.output_pixels()) as f64).sqrt();
        near(&conv.weight_gradient(isa, &x, &dy), &dw, usual, &format!("{isa} weight gradient"));
    }
}

const CHANNELS: [usize; 7] = [1, 3, 6, 16, 17, 64, 130];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn flat(
        images in 1usize..5, height in 1usize..11, width in 1usize..11,
        channels_in in prop::sample::select(&CHANNELS[..]), channels_out in prop::sample::select(&CHANNELS[..]),
        kernel in 1usize..8, stride in 1usize..4, padding in 0usize..4, slope in prop::sample::select(vec![0.0f32, 0.1, 1.0]),
    ) {
        let window = Window::flat(height, width, kernel, stride, padding);
        prop_assume!(window.is_valid());
        check(Convolution { images, window, channels_in, channels_out }, slope);
    }

    #[test]
    fn volumes(
        images in 1usize..4, input in prop::array::uniform3(1usize..6), kernel in prop::array::uniform3(1usize..4),
        stride in prop::array::uniform3(1usize..4), padding in prop::array::uniform3(0usize..3),
        channels_in in prop::sample::select(&CHANNELS[..5]), channels_out in prop::sample::select(&CHANNELS[..5]),
    ) {
        let window = Window { input, kernel, stride, padding };
        prop_assume!(window.is_valid());
        check(Convolution { images, window, channels_in, channels_out }, 1.0);
    }
}

/// Batches of many sizes, whose images are summed in parts.
#[test]
fn batches() {
    for images in [1, 2, 7, 33, 300] {
        check(Convolution { images, window: Window::flat(6, 5, 3, 1, 1), channels_in: 3, channels_out: 6 }, 1.0);
    }
}

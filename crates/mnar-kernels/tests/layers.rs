//! Fully connected layers, batch normalisation and pooling against their definitions, on every instruction set.

mod common;

use common::{available, close, near, random};
use mnar_kernels::{Dense, Normalised, Pool, channel_sums, moments, rectifier_gradient, scale_shift};
use proptest::prelude::*;

const SIZES: [usize; 9] = [1, 2, 3, 6, 16, 17, 64, 130, 400];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn dense(
        rows in prop::sample::select(vec![1usize, 2, 5, 12, 13, 97, 300]), inputs in prop::sample::select(&SIZES[..]),
        outputs in prop::sample::select(&SIZES[..]), slope in prop::sample::select(vec![0.0f32, 0.1, 1.0]),
    ) {
        let layer = Dense { rows, inputs, outputs };
        let (x, weight, bias) = (random(rows * inputs, 1), random(inputs * outputs, 2), random(outputs, 3));
        let dy = random(rows * outputs, 4);
        let mut y: Vec<f64> = (0..rows * outputs).map(|i| f64::from(bias[i % outputs])).collect();
        let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; weight.len()]);
        for r in 0..rows {
            for a in 0..inputs {
                for b in 0..outputs {
                    let (o, i, k) = (r * outputs + b, r * inputs + a, a * outputs + b);
                    y[o] += f64::from(x[i]) * f64::from(weight[k]);
                    dx[i] += f64::from(dy[o]) * f64::from(weight[k]);
                    dw[k] += f64::from(dy[o]) * f64::from(x[i]);
                }
            }
        }
        y.iter_mut().for_each(|y| *y *= if *y > 0.0 { 1.0 } else { f64::from(slope) });
        for isa in available() {
            // Sums of terms of either sign: their rounding error grows with the square root of their number.
            let usual = |terms: usize| (terms as f64).sqrt();
            near(&layer.forward(isa, &x, &weight, Some(&bias), slope), &y, usual(inputs), &format!("{isa} output"));
            near(&layer.input_gradient(isa, &dy, &weight), &dx, usual(outputs), &format!("{isa} input gradient"));
            near(&layer.weight_gradient(isa, &x, &dy), &dw, usual(rows), &format!("{isa} weight gradient"));
        }
    }

    #[test]
    fn batch_norm(pixels in 16usize..2500, channels in prop::sample::select(&SIZES[..8]), slope in 0.0f32..1.2) {
        let n = pixels as f64;
        // Far from zero, where sums of squares would cancel.
        let x: Vec<f32> = random(pixels * channels, 1).into_iter().map(|x| x + 30.0).collect();
        let (gamma, beta, dy) = (random(channels, 2), random(channels, 3), random(x.len(), 4));
        let of = |c: usize| x.iter().skip(c).step_by(channels).map(|&x| f64::from(x));
        let mean: Vec<f64> = (0..channels).map(|c| of(c).sum::<f64>() / n).collect();
        let var: Vec<f64> = (0..channels).map(|c| of(c).map(|x| (x - mean[c]).powi(2)).sum::<f64>() / n).collect();
        let sd: Vec<f64> = var.iter().map(|var| (var + 1e-5).sqrt()).collect();
        let hat: Vec<f64> = x.iter().enumerate().map(|(i, &x)| (f64::from(x) - mean[i % channels]) / sd[i % channels]).collect();
        let before: Vec<f64> =
            hat.iter().enumerate().map(|(i, hat)| hat * f64::from(gamma[i % channels]) + f64::from(beta[i % channels])).collect();
        let slope64 = f64::from(slope);
        let y: Vec<f64> = before.iter().map(|&y| if y > 0.0 { y } else { y * slope64 }).collect();
        let through: Vec<f64> =
            before.iter().zip(&dy).map(|(&y, &dy)| f64::from(dy) * if y > 0.0 { 1.0 } else { slope64 }).collect();
        let (mut dbeta, mut dgamma) = (vec![0.0; channels], vec![0.0; channels]);
        for (i, dy) in through.iter().enumerate() {
            dbeta[i % channels] += dy;
            dgamma[i % channels] += dy * hat[i];
        }
        let dx: Vec<f64> = (0..x.len())
            .map(|i| {
                let c = i % channels;
                f64::from(gamma[c]) / sd[c] * (through[i] - dbeta[c] / n - hat[i] * dgamma[c] / n)
            })
            .collect();
        // A value within rounding of the rectifier's kink may fall on either side of it.
        let corner = before.iter().any(|y| y.abs() < 1e-4);
        for isa in available() {
            let (our_mean, our_var) = moments(isa, &x, channels);
            close(&our_mean, &mean, "mean");
            close(&our_var, &var, "variance");
            let inverse_sd: Vec<f32> = our_var.iter().map(|var| 1.0 / (var + 1e-5).sqrt()).collect();
            let ours = Normalised { x: &x, mean: &our_mean, inverse_sd: &inverse_sd, gamma: &gamma, beta: &beta, slope };
            close(&ours.forward(isa), &y, &format!("{isa} output"));
            let gradients = ours.backward(isa, &dy);
            if !corner {
                close(&gradients.x, &dx, &format!("{isa} input gradient"));
                // Sums of n terms of either sign: their rounding error grows with √n, whatever remains after
                // cancellation.
                near(&gradients.gamma, &dgamma, n.sqrt(), &format!("{isa} gamma gradient"));
                near(&gradients.beta, &dbeta, n.sqrt(), &format!("{isa} beta gradient"));
            }
            let sums: Vec<f64> = mean.iter().map(|mean| mean * n).collect();
            close(&channel_sums(isa, &x, channels), &sums, "sums");
        }
    }

    #[test]
    fn pooling(
        images in 1usize..4, blocks in prop::array::uniform3(1usize..4), side in prop::array::uniform3(1usize..4),
        extra in prop::array::uniform3(0usize..2), channels in prop::sample::select(&SIZES[..7]), rectified: bool,
    ) {
        let input: [usize; 3] = std::array::from_fn(|axis| blocks[axis] * side[axis] + extra[axis].min(side[axis] - 1));
        let pool = Pool { input, side, channels };
        prop_assert_eq!(pool.output(), blocks);
        let floor = if rectified { 0.0 } else { f32::NEG_INFINITY };
        let x = random(images * pool.input_len(), 1);
        let dy = random(images * pool.output_len(), 2);
        let mut most = vec![(f64::from(floor), None); dy.len()];
        let (mut mean, mut dmean, mut dmost) = (vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; x.len()]);
        let share = 1.0 / side.iter().product::<usize>() as f64;
        let [id, ih, iw] = input;
        for (i, &value) in x.iter().enumerate() {
            let (c, pixel) = (i % channels, i / channels);
            let at = [pixel / (ih * iw) % id, pixel / iw % ih, pixel % iw];
            let to: [usize; 3] = std::array::from_fn(|axis| at[axis] / side[axis]);
            if (0..3).all(|axis| to[axis] < blocks[axis]) {
                let image = i / pool.input_len();
                let o = (((image * blocks[0] + to[0]) * blocks[1] + to[1]) * blocks[2] + to[2]) * channels + c;
                mean[o] += f64::from(value) * share;
                dmean[i] = f64::from(dy[o]) * share;
                if f64::from(value) > most[o].0 {
                    most[o] = (f64::from(value), Some(i));
                }
            }
        }
        for (o, winner) in most.iter().enumerate() {
            if let Some(i) = winner.1 {
                dmost[i] = f64::from(dy[o]);
            }
        }
        let most: Vec<f64> = most.into_iter().map(|most| most.0).collect();
        for isa in available() {
            let (ours, winners) = pool.max(isa, &x, floor);
            close(&ours, &most, "maximum");
            close(&pool.max_gradient(isa, &winners, &dy), &dmost, "gradient of the maximum");
            close(&pool.average(isa, &x), &mean, "mean");
            close(&pool.average_gradient(isa, &dy), &dmean, "gradient of the mean");
        }
    }
}

#[test]
fn rectifiers() {
    let (y, dy) = (random(40_000, 1), random(40_000, 2));
    for isa in available() {
        let expected: Vec<f64> =
            y.iter().zip(&dy).map(|(&y, &dy)| if y > 0.0 { f64::from(dy) } else { f64::from(dy * 0.1) }).collect();
        close(&rectifier_gradient(isa, &y, &dy, 0.1), &expected, "gradient");
        let scaled = scale_shift(isa, &y, &[2.0, 3.0], &[0.5, 0.0], 0.0);
        let expected: Vec<f64> =
            y.chunks(2).flat_map(|y| [(2.0 * y[0] + 0.5).max(0.0), (3.0 * y[1]).max(0.0)]).map(f64::from).collect();
        close(&scaled, &expected, "scaled");
    }
}

/// A diverged network must be noticed, not hidden by a maximum or a rectifier.
#[test]
fn not_a_number_stays() {
    let pool = Pool { input: [1, 2, 2], side: [1, 2, 2], channels: 1 };
    for isa in available() {
        for place in 0..4 {
            let mut x = [1.0, 2.0, 3.0, 4.0];
            x[place] = f32::NAN;
            assert!(pool.max(isa, &x, 0.0).0[0].is_nan(), "{isa}, pixel {place}");
        }
        let layer = Dense { rows: 1, inputs: 1, outputs: 1 };
        assert!(layer.forward(isa, &[f32::NAN], &[1.0], None, 0.0)[0].is_nan(), "{isa}");
    }
}

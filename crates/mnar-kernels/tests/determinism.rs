//! The results have the same bits, whatever the number of threads.

mod common;

use common::random;
use mnar_kernels::{Convolution, Dense, Isa, Normalised, Window, moments};

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn everything() -> Vec<Vec<u32>> {
    let isa = Isa::detect();
    let window = Window::flat(9, 9, 3, 1, 1);
    let conv = Convolution { images: 37, window, channels_in: 6, channels_out: 17 };
    let (x, weight) = (random(37 * 81 * 6, 1), random(9 * 6 * 17, 2));
    let dy = random(37 * 81 * 17, 3);
    let layer = Dense { rows: 81 * 37, inputs: 6, outputs: 17 };
    let (mean, var) = moments(isa, &x, 6);
    let norm = Normalised { x: &x, mean: &mean, inverse_sd: &var, gamma: &mean, beta: &var, slope: 0.1 };
    let gradients = norm.backward(isa, &x);
    [
        conv.forward(isa, &x, &weight, None, 0.0),
        conv.input_gradient(isa, &dy, &weight),
        conv.weight_gradient(isa, &x, &dy),
        layer.weight_gradient(isa, &x, &dy),
        norm.forward(isa),
        gradients.x,
        gradients.gamma,
        gradients.beta,
    ]
    .iter()
    .map(|values| bits(values))
    .collect()
}

#[test]
fn threads_do_not_matter() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        pool.install(everything)
    };
    let one = on(1);
    for threads in [2, 3, 8] {
        assert!(on(threads) == one, "{threads} threads");
    }
}

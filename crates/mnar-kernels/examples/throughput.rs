//! Measures the speed of the networks' convolutions: forward, input gradient and weight gradient, in GFLOP/s, the
//! fastest of nine calls.
//!
//! cargo run --release -p mnar-kernels --example throughput
//!
//! Only products with a value of the image count, not those with the zeros around it, of which the input gradient of a
//! convolution without padding has many.

use mnar_kernels::{Convolution, Isa, Window};
use std::hint::black_box;
use std::time::Instant;

/// Seconds of the fastest of nine calls.
fn fastest<T>(mut work: impl FnMut() -> T) -> f64 {
    let seconds = (0..9).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    let convolutions = [
        ("MNIST network, 1st", 472, Window::flat(28, 28, 5, 1, 0), 1, 6),
        ("MNIST network, 2nd", 472, Window::flat(12, 12, 5, 1, 0), 6, 16),
        ("MedMNIST network, 2nd", 192, Window::flat(26, 26, 3, 1, 0), 16, 16),
        ("MedMNIST network, 4th", 192, Window::flat(10, 10, 3, 1, 0), 64, 64),
        ("WideResNet, 32 channels", 64, Window::flat(32, 32, 3, 1, 1), 32, 32),
        ("WideResNet, 64 channels", 64, Window::flat(16, 16, 3, 1, 1), 64, 64),
        ("WideResNet, 128 channels", 64, Window::flat(8, 8, 3, 1, 1), 128, 128),
        ("WideResNet, stride 2", 64, Window::flat(16, 16, 3, 2, 1), 64, 128),
        ("3-D network, 2nd", 16, Window::cubic([14; 3], 3, 1, 1), 16, 32),
        ("3-D network, 3rd", 16, Window::cubic([7; 3], 3, 1, 1), 32, 64),
    ];
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        println!("{isa}, {} threads", rayon::current_num_threads());
        println!("{:<26}{:>16}{:>16}{:>16}", "", "forward", "input gradient", "weight gradient");
        for (name, images, window, channels_in, channels_out) in convolutions {
            let conv = Convolution { images, window, channels_in, channels_out };
            let some = |len: usize| (0..len).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect::<Vec<_>>();
            let x = some(images * window.input_pixels() * channels_in);
            let weight = some(window.kernel_pixels() * channels_in * channels_out);
            let dy = some(images * window.output_pixels() * channels_out);
            let terms = images * window.output_pixels() * window.kernel_pixels() * channels_in * channels_out;
            let shown = [
                fastest(|| conv.forward(isa, &x, &weight, None, 1.0)),
                fastest(|| conv.input_gradient(isa, &dy, &weight)),
                fastest(|| conv.weight_gradient(isa, &x, &dy)),
            ]
            .map(|seconds| format!("{:>16.0}", 2.0 * terms as f64 / seconds / 1e9));
            println!("{name:<26}{}", shown.concat());
        }
    }
}

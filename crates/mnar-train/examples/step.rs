//! Times training steps on request, for `bench/train_step.py`, which times PyTorch's alongside.
//!
//! Reads lines `NETWORK STEPS` from stdin and answers each with the fastest step in seconds and the peak memory in MB.
//! The environment variable `MNAR_KERNELS` selects the kernels, as in the command `mnar`.

use burn::tensor::{Device, Int, Tensor, TensorData};
use mnar_data::ImageShape;
use mnar_train::InputShape;
use mnar_train::layers::select_cpu_kernels;
use mnar_train::loss::cross_entropy;
use mnar_train::model::{Architecture, Network, NetworkModule};
use mnar_train::optimiser::{Optimiser, OptimiserState};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Instant;

/// The same allocator as in the command `mnar`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Bench {
    network: Option<Network>,
    state: OptimiserState,
    x: Tensor<2>,
    y: Tensor<1, Int>,
}

impl Bench {
    fn new(name: &str) -> Option<Self> {
        let volume = ImageShape { depth: 28, height: 28, width: 28, channels: 1 };
        let (architecture, shape, batch, classes) = match name {
            "linear" => (Architecture::Linear, InputShape::Row(784), 256, 10),
            "mlp" => (Architecture::Mlp { hidden: vec![256] }, InputShape::Row(784), 256, 10),
            "mnist" => (Architecture::MnistCnn, InputShape::Image(ImageShape::flat(28, 28, 1)), 472, 10),
            "medmnist" => (Architecture::MedMnistCnn, InputShape::Image(ImageShape::flat(28, 28, 3)), 192, 7),
            "wrn" => (
                Architecture::WideResNet { depth: 28, width: 2 },
                InputShape::Image(ImageShape::flat(32, 32, 3)),
                64,
                10,
            ),
            "cnn3d" => (Architecture::Cnn3d, InputShape::Image(volume), 16, 2),
            _ => return None,
        };
        let device = Device::flex().autodiff();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let x: Vec<f32> = (0..batch * shape.width()).map(|_| rng.random::<f32>() - 0.5).collect();
        let y: Vec<i64> = (0..batch).map(|_| rng.random_range(0..classes as i64)).collect();
        Some(Self {
            network: Some(architecture.build(shape, classes, 0, &device).ok()?),
            state: OptimiserState::default(),
            x: Tensor::from_data(TensorData::new(x, [batch, shape.width()]), &device),
            y: Tensor::from_data(TensorData::new(y, [batch]), &device),
        })
    }

    fn step(&mut self) -> f64 {
        let start = Instant::now();
        let network = self.network.take().expect("put back after every step");
        let loss = cross_entropy(network.forward(self.x.clone()), self.y.clone()).mean();
        let gradients = loss.backward();
        drop(loss);
        self.network = Some(self.state.step(network, gradients, Optimiser::adam(), 1e-3, 0.0));
        start.elapsed().as_secs_f64()
    }
}

fn main() {
    if let Ok(name) = std::env::var("MNAR_KERNELS")
        && let Err(error) = select_cpu_kernels(&name)
    {
        eprintln!("MNAR_KERNELS={name}: {error}");
        std::process::exit(2);
    }
    let mut benches: HashMap<String, Bench> = HashMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(Ok(steps))) = (words.next(), words.next().map(str::parse::<usize>)) else {
            eprintln!("expected a line `NETWORK STEPS`");
            std::process::exit(2);
        };
        if !benches.contains_key(name) {
            match Bench::new(name) {
                Some(bench) => benches.insert(name.to_owned(), bench),
                None => {
                    eprintln!("unknown network `{name}`");
                    std::process::exit(2);
                }
            };
        }
        let bench = benches.get_mut(name).expect("inserted above");
        let fastest = (0..steps).map(|_| bench.step()).fold(f64::INFINITY, f64::min);
        println!("{fastest} {}", peak_memory());
        let _ = std::io::stdout().flush();
    }
}

/// Peak resident memory in MB, 0 where the system does not report it.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

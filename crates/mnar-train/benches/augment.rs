//! `cargo bench -p mnar-train --bench augment`: the two views of the batches drawn in training.
#![allow(missing_docs)]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mnar_data::ImageShape;
use mnar_train::augment::{Augment, Operation, Strong, Weak};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const COLOUR: ImageShape = ImageShape { depth: 1, height: 32, width: 32, channels: 3 };
const DIGITS: ImageShape = ImageShape { depth: 1, height: 28, width: 28, channels: 1 };
const VOLUME: ImageShape = ImageShape { depth: 28, height: 28, width: 28, channels: 1 };

fn images(n: usize, shape: ImageShape) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..n * shape.len()).map(|_| rng.random()).collect()
}

/// FixMatch's batches: 448 unlabelled images (7 times 64 labelled ones); fewer of the larger volumes.
fn views(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("augment");
    for (name, n, shape) in [("448x32x32x3", 448, COLOUR), ("448x28x28x1", 448, DIGITS), ("64x28x28x28", 64, VOLUME)] {
        let batch = images(n, shape);
        let Augment { weak, strong } = Augment::for_shape(shape).orientation_free();
        group.throughput(Throughput::Elements(n as u64));
        let mut step = 0;
        group.bench_function(BenchmarkId::new("weak", name), |b| {
            b.iter_batched_ref(
                || batch.clone(),
                |images| {
                    step += 1;
                    weak.apply(images, shape, 0, step);
                },
                BatchSize::LargeInput,
            )
        });
        group.bench_function(BenchmarkId::new("strong", name), |b| {
            b.iter_batched_ref(
                || batch.clone(),
                |images| {
                    step += 1;
                    strong.apply(images, shape, 0, step);
                },
                BatchSize::LargeInput,
            )
        });
    }
    group.finish();
}

/// One operation at a time, to see which one became slow.
fn operations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("operation");
    let batch = images(448, COLOUR);
    for operation in Operation::COLOUR {
        let strong =
            Strong { weak: Weak::default(), operations: 1, pool: vec![operation], magnitude: 1.0, cutout: 0.0 };
        group.bench_function(format!("{operation:?}"), |b| {
            b.iter_batched_ref(|| batch.clone(), |images| strong.apply(images, COLOUR, 0, 0), BatchSize::LargeInput)
        });
    }
    group.finish();
}

criterion_group!(benches, views, operations);
criterion_main!(benches);

//! `cargo bench -p mnar`: the estimators on tables in memory.
#![allow(missing_docs)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mnar::analysis::{EstimateSettings, Evidence, Features, IntervalMethod};
use mnar::calibrate::Calibration;
use mnar::classify::SoftmaxRegression;
use mnar::crossfit::FoldPlan;
use mnar::estimate::{Estimator, LabelShift, Likelihood};
use mnar::{Class, Labels, PosteriorKind, Posteriors, Sample};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

fn table(n: usize, k: usize) -> (Posteriors, Labels) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut logits = Array2::zeros((n, k));
    let mut y = Vec::with_capacity(n);
    for i in 0..n {
        let class = rng.random_range(0..k);
        for j in 0..k {
            logits[[i, j]] = rng.sample::<f64, _>(StandardNormal) + if j == class { 2.0 } else { 0.0 };
        }
        let phi = 0.05 + 0.1 * class as f64 / k as f64;
        y.push((rng.random::<f64>() < phi).then_some(Class::from(class)));
    }
    let names = (0..k).map(|k| k.to_string()).collect();
    (
        Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).expect("finite logits"),
        Labels::new(y, names).expect("both sides have rows"),
    )
}

fn estimators(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("estimate");
    group.sample_size(10);
    for (n, k) in [(100_000, 10), (1_000_000, 10), (100_000, 100)] {
        let (p, y) = table(n, k);
        let sample = Sample::new(&p, &y).expect("same rows");
        group.throughput(Throughput::Elements((n * k) as u64));
        let name = format!("{n}x{k}");
        group.bench_function(BenchmarkId::new("label_shift", &name), |b| {
            b.iter(|| LabelShift::default().estimate(&sample).expect("estimable"))
        });
        group.bench_function(BenchmarkId::new("likelihood", &name), |b| {
            b.iter(|| Likelihood::default().estimate(&sample).expect("estimable"))
        });
        group.bench_function(BenchmarkId::new("calibrate", &name), |b| {
            b.iter(|| Calibration::default().fit(&sample).expect("estimable"))
        });
    }
    group.finish();
    let (p, y) = table(3000, 3);
    let (x, classifier) = (p.view().to_owned(), SoftmaxRegression::default());
    let features = Features { x: &x, names: &[], classifier: &classifier };
    let settings = EstimateSettings { interval: IntervalMethod::Information, ..Default::default() };
    criterion.bench_function("cross-fit and estimate/3000x3, 5 folds", |b| {
        b.iter(|| {
            let plan = FoldPlan::for_labels(&y, 5, 0).expect("labels in every fold");
            let evidence = Evidence::cross_fit(features, &y, plan, 0, &()).expect("a fit");
            settings.run(&evidence, &()).expect("estimable")
        })
    });
}

criterion_group!(benches, estimators);
criterion_main!(benches);

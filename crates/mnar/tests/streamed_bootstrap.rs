//! The bootstrap of streamed rows: a few passes for all replicates, each of which is what the same weights give in memory.

#![allow(clippy::unwrap_used)]

use mnar::analysis::{About, Calibrate, EstimateSettings, IntervalMethod};
use mnar::calibrate::{Calibrated, Calibration};
use mnar::estimate::{Estimator as _, LabelShift, PhiEstimate};
use mnar::interval::Replicates;
use mnar::keys::{Buckets, draw_weights};
use mnar::rows::{Block, Sums, scan_block};
use mnar::travel::{Partitions, Walk};
use mnar::{Class, Error, Labels, PosteriorKind, Posteriors, Rows, Sample};
use ndarray::Array2;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SEED: u64 = 5;

fn uniform(i: usize, salt: u64) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

struct Table {
    posteriors: Posteriors,
    labels: Labels,
    keys: Vec<f64>,
}

impl Table {
    fn new(n: usize, k: usize, most: f64) -> Self {
        let class: Vec<usize> = (0..n).map(|i| (uniform(i, 1) * k as f64) as usize).collect();
        let logits = Array2::from_shape_fn((n, k), |(i, j)| {
            let signal = if class[i] == j { 2.2 } else { 0.0 };
            1.3 * (signal + 5.0 * (uniform(i, 10 + j as u64) - 0.5)) + 0.1 * j as f64
        });
        let phi = |class: usize| most * (0.2 + 0.8 * class as f64 / (k - 1) as f64);
        let y = (0..n).map(|i| (uniform(i, 3) < phi(class[i])).then(|| Class::from(class[i])));
        let posteriors = Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap();
        let columns: Vec<&[f64]> = (0..k).map(|j| posteriors.column(j)).collect();
        let keys = Buckets::of_bootstrap(SEED).of_rows(&columns, 0);
        let labels = Labels::new(y.collect(), (0..k).map(|k| format!("c{k}")).collect()).unwrap();
        Self { posteriors, labels, keys }
    }

    fn block<T>(&self, rows: std::ops::Range<usize>, visit: impl FnOnce(&Block<'_>) -> T) -> T {
        let columns: Vec<&[f64]> =
            (0..self.labels.n_classes()).map(|k| &self.posteriors.column(k)[rows.clone()]).collect();
        let labels = &self.labels.as_slice()[rows.clone()];
        visit(&Block { columns: &columns, labels, weights: None, given: &[&self.keys[rows]] })
    }

    /// A replicate, all in memory.
    fn replicate(&self, replicate: u64, calibrate: Calibrate) -> PhiEstimate {
        let mut weights = vec![0.0; self.keys.len()];
        draw_weights(&self.keys, SEED, replicate, &mut weights);
        let sample = Sample::new(&self.posteriors, &self.labels).unwrap().weighted(&weights).unwrap();
        match calibrate {
            Calibrate::None => LabelShift::default().estimate(&sample).unwrap(),
            _ => {
                let bcts = &Calibration::default().fit(&sample).unwrap();
                LabelShift::default().estimate(&Calibrated { rows: &sample, bcts }).unwrap()
            }
        }
    }
}

struct Stream<'a> {
    table: &'a Table,
    passes: AtomicUsize,
}

impl Rows for Stream<'_> {
    fn names(&self) -> &[String] {
        self.table.labels.names()
    }

    fn kind(&self) -> PosteriorKind {
        PosteriorKind::Labelled
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        self.passes.fetch_add(1, Relaxed);
        let n = self.table.labels.len();
        let mut total = zero.clone();
        for start in (0..n).step_by(20_000) {
            total.merge(self.table.block(start..(start + 20_000).min(n), |block| scan_block(block, zero)));
        }
        Ok(total)
    }
}

fn differ(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn replicates_are_those_of_a_table_in_memory() {
    let table = Table::new(160_000, 4, 0.3);
    let about = About::from(&table.labels);
    for calibrate in [Calibrate::Auto, Calibrate::None] {
        let interval = IntervalMethod::Bootstrap;
        let settings = EstimateSettings { seed: SEED, replicates: Some(12), interval, calibrate, ..Default::default() };
        let stream = Stream { table: &table, passes: AtomicUsize::new(0) };
        let found: Replicates = settings.streamed_replicates(&stream, 0, &about).unwrap();
        assert_eq!((found.phi.len(), found.failed), (12, 0));
        for (replicate, phi) in (0..).zip(&found.phi) {
            let expected = table.replicate(replicate, calibrate);
            assert!(differ(phi.as_slice(), expected.phi.as_slice()) < 1e-9, "{phi:?} {:?}", expected.phi);
            assert!(differ(found.prevalence[replicate as usize].as_slice(), expected.prevalence.as_slice()) < 1e-9);
        }
        // One that keeps rows, one for the tallies, and two or three for all replicates together.
        let passes = stream.passes.load(Relaxed);
        assert!(passes <= 5, "{passes}");
    }
}

/// The spread of the replicates against the observed information, which takes the calibration as known.
#[test]
fn intervals_are_about_as_wide_as_those_of_the_information() {
    let table = Table::new(60_000, 3, 0.3);
    let about = About::from(&table.labels);
    let stream = Stream { table: &table, passes: AtomicUsize::new(0) };
    let settings = EstimateSettings {
        seed: SEED,
        replicates: Some(100),
        interval: IntervalMethod::Bootstrap,
        calibrate: Calibrate::None,
        ..Default::default()
    };
    let found = settings.run_streamed_bootstrap(&stream, 0, about.clone()).unwrap();
    assert_eq!(found.interval.replicates, 100);
    assert!(stream.passes.load(Relaxed) <= 8, "{}", stream.passes.load(Relaxed));
    let plain = EstimateSettings { interval: IntervalMethod::Information, ..settings.clone() };
    let expected = plain.run_streamed(&stream, about.clone()).unwrap();
    assert!(differ(found.phi.as_slice(), expected.phi.as_slice()) < 1e-9);
    for (found, expected) in found.phi_se.unwrap().iter().zip(expected.phi_se.unwrap()) {
        assert!((found / expected - 1.0).abs() < 0.3, "{found} {expected}");
    }
    assert!(settings.run_streamed(&stream, about.clone()).is_err(), "rows without keys");
    let few = EstimateSettings { replicates: Some(7), ..settings };
    assert!(few.run_streamed_bootstrap(&stream, 0, about).is_err());
}

/// Parts that answer in another order each time.
#[test]
fn partitions_give_the_same_bits_in_any_order() {
    let table = Table::new(120_000, 3, 0.4);
    let about = About::from(&table.labels);
    let settings =
        EstimateSettings { seed: SEED, replicates: Some(8), interval: IntervalMethod::Bootstrap, ..Default::default() };
    let bits = |turn: usize| {
        let walk = |job: &[u8]| {
            let mut starts: Vec<usize> = (0..120_000).step_by(30_000).collect();
            starts.rotate_left(turn);
            let part = |start: usize| {
                let mut walk = Walk::from_bytes(job)?;
                table.block(start..start + 30_000, |block| walk.add(block));
                Ok(walk.to_bytes())
            };
            starts.into_iter().map(part).collect()
        };
        let rows = Partitions::new(table.labels.names().to_vec(), PosteriorKind::Labelled, walk);
        let found = settings.run_streamed_bootstrap(&rows, 0, about.clone()).unwrap();
        let numbers = found.phi_se.iter().chain(&found.prevalence_se).flatten();
        numbers.chain(found.phi.iter()).map(|value| value.to_bits()).collect::<Vec<u64>>()
    };
    assert_eq!(bits(0), bits(1));
    assert_eq!(bits(0), bits(3));
}

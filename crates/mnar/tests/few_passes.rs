//! A streamed estimate takes a few passes over the rows, and finds what an estimate in memory finds.

#![allow(clippy::unwrap_used)]

use mnar::analysis::{About, EstimateSettings, Findings, Given, StreamedColumns};
use mnar::covariates::{ColumnSummary, Covariate, RowCounts};
use mnar::rows::{Block, Sums, scan_block};
use mnar::travel::{Partitions, Walk, WalkRows};
use mnar::{Class, Covariates, Error, Labels, PosteriorKind, Posteriors, Rows, Sample};
use ndarray::Array2;
use std::ops::Range;
use std::sync::Mutex;

fn uniform(i: usize, salt: u64) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

struct Table {
    posteriors: Posteriors,
    labels: Labels,
    site: Vec<f64>,
}

impl Table {
    /// `n` rows of `k` classes, of which a share is labelled that rises from class to class up to `most`.
    fn new(n: usize, k: usize, most: f64) -> Self {
        let class: Vec<usize> = (0..n).map(|i| (uniform(i, 1) * k as f64) as usize).collect();
        let site: Vec<f64> = (0..n).map(|i| f64::from(u8::from(uniform(i, 2) < 0.4))).collect();
        let logits = Array2::from_shape_fn((n, k), |(i, j)| {
            let signal = if class[i] == j { 2.2 } else { 0.0 };
            // Overconfident, and off by class: there is something to calibrate.
            1.3 * (signal + 5.0 * (uniform(i, 10 + j as u64) - 0.5)) + 0.1 * j as f64
        });
        let y = (0..n).map(|i| {
            let phi = most * (0.2 + 0.8 * class[i] as f64 / (k - 1) as f64) * [0.7, 1.0][site[i] as usize];
            (uniform(i, 3) < phi).then(|| Class::from(class[i]))
        });
        Self {
            posteriors: Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap(),
            labels: Labels::new(y.collect(), (0..k).map(|k| format!("c{k}")).collect()).unwrap(),
            site,
        }
    }

    fn sample(&self) -> Sample<'_> {
        Sample::new(&self.posteriors, &self.labels).unwrap()
    }
}

/// A stream of blocks, which remembers the rows that each pass looked at.
struct Stream<'a> {
    table: &'a Table,
    given: Vec<&'a [f64]>,
    passes: Mutex<Vec<WalkRows>>,
}

impl<'a> Stream<'a> {
    fn new(table: &'a Table, given: Vec<&'a [f64]>) -> Self {
        Self { table, given, passes: Mutex::default() }
    }

    fn add<S: Sums>(&self, rows: Range<usize>, zero: &S) -> S {
        let columns: Vec<&[f64]> =
            (0..self.n_classes()).map(|k| &self.table.posteriors.column(k)[rows.clone()]).collect();
        let given: Vec<&[f64]> = self.given.iter().map(|column| &column[rows.clone()]).collect();
        let labels = &self.table.labels.as_slice()[rows];
        scan_block(&Block { columns: &columns, labels, weights: None, given: &given }, zero)
    }

    fn passes(&self) -> usize {
        self.passes.lock().unwrap().len()
    }
}

impl Rows for Stream<'_> {
    fn names(&self) -> &[String] {
        self.table.labels.names()
    }

    fn kind(&self) -> PosteriorKind {
        PosteriorKind::Labelled
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        self.passes.lock().unwrap().push(zero.pack().map_or(WalkRows::All, |walk| walk.rows()));
        let n = self.table.labels.len();
        let mut total = zero.clone();
        for start in (0..n).step_by(20_000) {
            total.merge(self.add(start..(start + 20_000).min(n), zero));
        }
        Ok(total)
    }
}

fn differ(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn assert_same(found: &Findings, expected: &Findings) {
    assert!(found.converged);
    assert!(differ(found.phi.as_slice(), expected.phi.as_slice()) < 1e-9, "{:?} {:?}", found.phi, expected.phi);
    let shares = |found: &Findings| found.prevalence.iter().copied().collect::<Vec<f64>>();
    assert!(differ(&shares(found), &shares(expected)) < 1e-9);
    let errors = |found: &Findings| found.phi_se.clone().unwrap();
    assert!(differ(&errors(found), &errors(expected)) < 1e-9, "{:?} {:?}", found.phi_se, expected.phi_se);
    let (found, expected) = (found.identifiability.as_ref().unwrap(), expected.identifiability.as_ref().unwrap());
    assert!((found.condition / expected.condition - 1.0).abs() < 1e-6);
    assert!((found.smallest_singular_value - expected.smallest_singular_value).abs() < 1e-9);
}

#[test]
fn an_estimate_takes_three_passes() {
    let table = Table::new(400_000, 4, 0.3);
    let about = About::from(&table.labels);
    let settings = EstimateSettings::default();
    let expected = settings.run_streamed(&table.sample(), about.clone()).unwrap();
    let stream = Stream::new(&table, Vec::new());
    let found = settings.run_streamed(&stream, about).unwrap();
    assert_same(&found, &expected);
    let (found, expected) = (found.calibration.unwrap(), expected.calibration.unwrap());
    assert!(differ(&found.biases, &expected.biases) < 1e-9);
    // One that keeps rows, one at the optimum of the sample, and one that confirms it; the calibration needs none.
    assert_eq!(stream.passes(), 3, "{:?}", stream.passes.lock().unwrap());
}

/// 700,000 labelled rows of four numbers are more than are kept of rows that lie elsewhere.
#[test]
fn with_more_labels_than_are_kept_the_calibration_passes_over_them() {
    let table = Table::new(1_300_000, 4, 0.95);
    let about = About::from(&table.labels);
    assert!(about.n_labelled > 600_000, "{}", about.n_labelled);
    let settings = EstimateSettings::default();
    let expected = settings.run_streamed(&table.sample(), about.clone()).unwrap();
    let stream = Stream::new(&table, Vec::new());
    let found = settings.run_streamed(&stream, about).unwrap();
    assert_same(&found, &expected);
    let passes = stream.passes.lock().unwrap();
    let labelled = passes.iter().filter(|rows| **rows == WalkRows::Labelled).count();
    assert!(labelled <= 4, "{passes:?}");
    assert!(passes.len() - labelled <= 3, "{passes:?}");
}

/// A site on which labelling depends beside the class.
#[test]
fn an_estimate_with_columns_takes_few_passes() {
    let table = Table::new(400_000, 3, 0.3);
    let about = About::from(&table.labels);
    let site = Covariate::categorical("site", table.site.iter().map(|site| Some(if *site > 0.5 { "b" } else { "a" })));
    let covariates = Covariates::new(vec![site]).unwrap();
    let mut summary = ColumnSummary::categorical("site", Vec::new(), RowCounts::default());
    for (i, site) in table.site.iter().enumerate() {
        let mut one = RowCounts::default();
        one.add(table.labels.is_labelled(i), 1);
        summary.add_name(Some(if *site > 0.5 { "b" } else { "a" }), one);
    }
    let summaries = [summary];
    let encoder = ColumnSummary::encoder(&summaries, Vec::new()).unwrap();
    let terms = encoder.terms(&covariates).unwrap();
    let terms: Vec<&[f64]> = terms.iter().map(Vec::as_slice).collect();
    let settings = EstimateSettings { given: Given::Columns(vec!["site".to_owned()]), ..Default::default() };
    let columns = StreamedColumns { columns: &summaries, encoder: &encoder };
    let sample = table.sample().given(&terms).unwrap();
    let expected = settings.run_streamed_given(&sample, &sample, columns, about.clone()).unwrap();
    let stream = Stream::new(&table, terms.clone());
    let found = settings.run_streamed_given(&stream, &stream, columns, about).unwrap();
    assert_same(&found, &expected);
    assert!((found.effective_sample_size / expected.effective_sample_size - 1.0).abs() < 1e-9);
    let (found, expected) = (found.mechanism.unwrap(), expected.mechanism.unwrap());
    assert!(differ(&found.terms, &expected.terms) < 1e-9, "{found:?} {expected:?}");
    // One that keeps rows, a tally, three for the mechanism, one for its covariance and one for the weights.
    assert!(stream.passes() <= 7, "{:?}", stream.passes.lock().unwrap());
}

fn bits(found: &Findings) -> Vec<u64> {
    let se = found.phi_se.iter().chain(&found.prevalence_se).flatten();
    found.phi.iter().chain(found.prevalence.iter()).chain(se).map(|value| value.to_bits()).collect()
}

/// Parts of the table, each added up from its bytes, which answer in another order each time.
#[test]
fn partitions_give_the_same_bits_in_any_order() {
    let table = Table::new(300_000, 3, 0.4);
    let about = About::from(&table.labels);
    let settings = EstimateSettings::default();
    let estimate = |turn: usize| {
        let walk = |job: &[u8]| {
            let mut starts: Vec<usize> = (0..300_000).step_by(50_000).collect();
            starts.rotate_left(turn);
            let part = |start: usize| {
                let mut walk = Walk::from_bytes(job)?;
                for from in (start..start + 50_000).step_by(10_000) {
                    let rows = from..from + 10_000;
                    let columns: Vec<&[f64]> = (0..3).map(|k| &table.posteriors.column(k)[rows.clone()]).collect();
                    let labels = &table.labels.as_slice()[rows];
                    walk.add(&Block { columns: &columns, labels, weights: None, given: &[] });
                }
                Ok(walk.to_bytes())
            };
            starts.into_iter().map(part).collect()
        };
        let rows = Partitions::new(table.labels.names().to_vec(), PosteriorKind::Labelled, walk);
        settings.run_streamed(&rows, about.clone()).unwrap()
    };
    let first = estimate(0);
    assert_same(&first, &settings.run_streamed(&table.sample(), about.clone()).unwrap());
    assert_eq!(bits(&first), bits(&estimate(2)));
    assert_eq!(bits(&first), bits(&estimate(5)));
}

/// Rows with few different probabilities, as a small tree gives them.
#[test]
fn rows_with_equal_probabilities_are_sampled_too() {
    let mut table = Table::new(300_000, 3, 0.3);
    let rounded = table.posteriors.view().mapv(|p| (8.0 * p).round() + 0.5);
    let sums = rounded.sum_axis(ndarray::Axis(1)).insert_axis(ndarray::Axis(1));
    table.posteriors = Posteriors::new(rounded / sums, PosteriorKind::Labelled).unwrap();
    let about = About::from(&table.labels);
    let settings = EstimateSettings::default();
    let expected = settings.run_streamed(&table.sample(), about.clone()).unwrap();
    let stream = Stream::new(&table, Vec::new());
    assert_same(&settings.run_streamed(&stream, about).unwrap(), &expected);
    assert!(stream.passes() <= 4, "{:?}", stream.passes.lock().unwrap());
}

/// Classes that the probabilities tell apart without a single error, with more labels than are kept. The calibration then has its
/// optimum far out, where a sample is no help; the estimate is still that of a table in memory.
#[test]
fn separable_classes_with_more_labels_than_are_kept() {
    let mut table = Table::new(1_300_000, 4, 0.95);
    let class = |i: usize| (uniform(i, 1) * 4.0) as usize;
    let sure = |i: usize| 0.7 + 0.25 * uniform(i, 50);
    let p = Array2::from_shape_fn((1_300_000, 4), |(i, k)| if class(i) == k { sure(i) } else { (1.0 - sure(i)) / 3.0 });
    table.posteriors = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
    let about = About::from(&table.labels);
    // Numbers kept of rows that lie elsewhere: 2,000,000.
    assert!(4 * about.n_labelled > 2_000_000, "{}", about.n_labelled);
    let settings = EstimateSettings::default();
    let expected = settings.run_streamed(&table.sample(), about.clone()).unwrap();
    let stream = Stream::new(&table, Vec::new());
    let found = settings.run_streamed(&stream, about).unwrap();
    assert_eq!(found.converged, expected.converged);
    assert!(differ(found.phi.as_slice(), expected.phi.as_slice()) < 1e-9, "{:?} {:?}", found.phi, expected.phi);
    let (ours, theirs) = (found.calibration.unwrap(), expected.calibration.unwrap());
    assert_eq!(ours.converged, theirs.converged);
    let temperature = ours.inverse_temperature / theirs.inverse_temperature;
    assert!((temperature - 1.0).abs() < 1e-6, "{ours:?} {theirs:?}");
    // Every label is where its row says, so phi is the share of labelled rows of each class.
    for k in 0..4 {
        let rows = (0..1_300_000).filter(|&i| class(i) == k).count() as f64;
        let labelled = table.labels.as_slice().iter().flatten().filter(|label| label.index() == k).count() as f64;
        assert!((found.phi[k] - labelled / rows).abs() < 1e-3, "{k}: {} {}", found.phi[k], labelled / rows);
    }
    let passes = stream.passes.lock().unwrap();
    assert!(passes.len() <= 40, "{passes:?}");
}

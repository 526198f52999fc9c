//! Bias-corrected temperature scaling (BCTS) of labelled posteriors, fitted on labelled rows the classifier has not
//! seen: s'(k|x) ∝ exp(a log s(k|x) + b_k).
//!
//! Calibration is what makes label-shift estimates accurate: on MNIST S2 (softmax regression on pixels) it lowers the
//! error of phi from 0.0088 to 0.0027. But with few labels per class, free biases drive the phi of rare classes to 1,
//! so the biases are shrunk: b_k ~ N(0, tau²), with tau² learnt from the data (type-II maximum likelihood in the
//! Laplace approximation) unless given.

mod columns;
mod few;
mod powers;

pub use columns::{CalibratedByColumns, ColumnCalibration};
pub(crate) use columns::{ColumnSums, ThroughColumns};

use crate::error::Error;
use crate::labels::Class;
use crate::mixture::add_to;
use crate::posteriors::{PosteriorKind, Posteriors, Renormalised};
use crate::rows::{Block, Rows, Sums};
use crate::sums::{Tally, weighted_sum};
use crate::travel::{Kind, Walk, bytes, travels};
use nalgebra::{DMatrix, DVector};
use ndarray::{Array2, ShapeBuilder};
pub(crate) use powers::logarithms;
use powers::transform;
use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Smaller probabilities are raised to this value, since log 0 is not finite.
pub const FLOOR: f64 = 1e-12;

/// How strongly the biases are shrunk to 0 and the temperature to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Shrinkage {
    /// The precision of the biases is learnt from the data.
    #[default]
    Learnt,
    /// (bias/2) Σ b_k² + (temperature/2) (a − 1)² is added to the summed log-loss. A precision of 0 means no shrinkage.
    Fixed {
        /// Precision of the biases.
        bias: f64,
        /// Precision of the inverse temperature.
        temperature: f64,
    },
}

/// Settings of the calibration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// How strongly to shrink.
    pub shrinkage: Shrinkage,
    /// Up to this many classes the biases are fitted (a (K+1)² matrix); above it, only the temperature.
    pub full_matrix_classes: usize,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { shrinkage: Shrinkage::Learnt, full_matrix_classes: 256 }
    }
}

/// A fitted calibration, with its effect on the labelled rows it was fitted on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bcts {
    /// a, the inverse temperature.
    pub inverse_temperature: f64,
    /// b, one bias per class.
    pub biases: Vec<f64>,
    /// Precision 1/tau² the biases were shrunk with; infinite where they were not fitted.
    #[serde(deserialize_with = "crate::nullable::number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub bias_precision: f64,
    /// Expected calibration error of the most probable class before calibration.
    #[serde(deserialize_with = "crate::nullable::number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub ece_before: f64,
    /// Expected calibration error after calibration.
    #[serde(deserialize_with = "crate::nullable::number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub ece_after: f64,
    /// Mean log-loss on the labelled rows before calibration.
    #[serde(deserialize_with = "crate::nullable::number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub log_loss_before: f64,
    /// Mean log-loss after calibration.
    #[serde(deserialize_with = "crate::nullable::number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub log_loss_after: f64,
    /// Whether Newton's method converged.
    pub converged: bool,
}

/// Biases this tight (standard deviation 0.01) are as good as zero.
const MAX_LEARNT_PRECISION: f64 = 1e4;

/// Weak shrinkage of the temperature to 1 where the precision is learnt: a separable fold must not send it to infinity.
const LEARNT_TEMPERATURE_PRECISION: f64 = 1.0;

impl Calibration {
    /// Fits on the labelled rows, which the classifier must not have been trained on.
    pub fn fit<R: Rows>(&self, rows: &R) -> Result<Bcts, Error> {
        let k = rows.n_classes();
        if rows.kind() != PosteriorKind::Labelled {
            return Err(Error::WrongPosterior {
                method: "calibration on labelled rows",
                needed: PosteriorKind::Labelled.name(),
                given: rows.kind().name(),
                hint: "labelled rows carry no direct information about the population posterior; leave it uncalibrated",
            });
        }
        let with_biases = k <= self.full_matrix_classes;
        let zero = |a: f64, b: &[f64]| CalibrationSums::at(a, b, with_biases);
        let first = rows.scan(&zero(1.0, &vec![0.0; k]))?;
        if first.n == 0.0 {
            return Err(Error::NoLabels { n: 0 });
        }
        let (log_loss_before, ece_before) = (first.log_loss / first.n, first.bins.expected_error());
        let Minimum { sums, bias_precision, converged } = match rows.samples_labels() {
            true => self.in_few_passes(rows, &first)?,
            false => self.minimise(first, |a, b| rows.scan(&zero(a, b)))?,
        };
        Ok(Bcts {
            inverse_temperature: sums.a,
            bias_precision: if with_biases { bias_precision } else { f64::INFINITY },
            ece_before,
            ece_after: sums.bins.expected_error(),
            log_loss_before,
            log_loss_after: sums.log_loss / sums.n,
            biases: sums.b.to_vec(),
            converged,
        })
    }

    /// Newton's method on the penalised log-loss, whose sums at no calibration are `first`.
    fn minimise(
        &self,
        first: CalibrationSums,
        at: impl Fn(f64, &[f64]) -> Result<CalibrationSums, Error>,
    ) -> Result<Minimum, Error> {
        let with_biases = first.with_biases;
        let (mut a, mut b) = (first.a, first.b.to_vec());
        let mut sums = first;
        let k = b.len();
        let (mut bias_precision, temperature_precision, learn) = match self.shrinkage {
            Shrinkage::Learnt => (1.0, LEARNT_TEMPERATURE_PRECISION, with_biases),
            Shrinkage::Fixed { bias, temperature } => (bias, temperature, false),
        };
        let mut converged = false;
        for iteration in 0..100 {
            let penalty = |a: f64, b: &[f64]| {
                0.5 * bias_precision * b.iter().map(|b| b * b).sum::<f64>()
                    + 0.5 * temperature_precision * (a - 1.0) * (a - 1.0)
            };
            let objective = sums.log_loss + penalty(a, &b);
            let (gradient, hessian) = sums.penalised(a, &b, bias_precision, temperature_precision);
            let Some(step) = solve(&hessian, &gradient) else { break };
            // Backtracking: the log-loss is convex but far from quadratic at first.
            let mut length = 1.0;
            let mut moved = None;
            for _ in 0..40 {
                let trial_a = a - length * step[0];
                let trial_b: Vec<f64> = b
                    .iter()
                    .enumerate()
                    .map(|(j, b)| if with_biases { b - length * step[j + 1] } else { *b })
                    .collect();
                let trial = at(trial_a, &trial_b)?;
                if trial.log_loss + penalty(trial_a, &trial_b) <= objective + 1e-12 * objective.abs() {
                    moved = Some((trial_a, trial_b, trial));
                    break;
                }
                length /= 2.0;
            }
            let Some((trial_a, trial_b, trial)) = moved else { break };
            let change = step.iter().fold(0.0f64, |max, s| max.max((length * s).abs()));
            (a, b, sums) = (trial_a, trial_b, trial);
            let mut precision_change = 0.0;
            // The precision only needs to be right to a few per cent, and settles well within these steps.
            if learn && iteration < 30 {
                // MacKay's fixed point: Σ b² = γ/precision, where γ counts the directions, among the K − 1 that the
                // likelihood can see, that are determined by the labels and not by the prior.
                let (_, hessian) = sums.penalised(a, &b, bias_precision, temperature_precision);
                let prior_share = match hessian.try_inverse() {
                    Some(inverse) => bias_precision * (1..=k).map(|j| inverse[(j, j)]).sum::<f64>(),
                    None => 0.0,
                };
                let determined = (k as f64 - prior_share).max(1e-6);
                let square = b.iter().map(|b| b * b).sum::<f64>();
                let next = (determined / square).clamp(1e-2, MAX_LEARNT_PRECISION);
                precision_change = (next / bias_precision).ln().abs();
                bias_precision = next;
            }
            if change < 1e-9 && precision_change < 1e-2 {
                converged = true;
                break;
            }
        }
        Ok(Minimum { sums, bias_precision, converged })
    }
}

/// Where the log-loss is lowest.
struct Minimum {
    /// The sums there.
    sums: CalibrationSums,
    bias_precision: f64,
    converged: bool,
}

fn solve(hessian: &DMatrix<f64>, gradient: &DVector<f64>) -> Option<DVector<f64>> {
    // Unpenalised biases leave the constant shift undetermined: a tiny ridge picks the shortest step.
    let mut damped = hessian.clone();
    let ridge = 1e-12 * hessian.diagonal().max().max(1.0);
    for j in 0..damped.nrows() {
        damped[(j, j)] += ridge;
    }
    damped.cholesky().map(|cholesky| cholesky.solve(gradient))
}

impl Bcts {
    /// A calibration found earlier, to be applied again; how well it fitted is not known.
    pub fn known(inverse_temperature: f64, biases: Vec<f64>) -> Self {
        let unknown = f64::NAN;
        Self {
            inverse_temperature,
            biases,
            bias_precision: unknown,
            ece_before: unknown,
            ece_after: unknown,
            log_loss_before: unknown,
            log_loss_after: unknown,
            converged: true,
        }
    }

    /// Whether it is a calibration of so many classes, with numbers of a size that can be: for one that was read from a file.
    pub fn is_sound(&self, classes: usize) -> bool {
        let biases = self.biases.len() == classes && self.biases.iter().all(|bias| bias.abs() < 1e6);
        biases && (0.0..1e6).contains(&self.inverse_temperature)
    }

    /// Calibrates probabilities held in memory.
    pub fn apply(&self, posteriors: &Posteriors) -> Result<Posteriors, Error> {
        let mut out = Array2::zeros((posteriors.len(), posteriors.n_classes()).f());
        let columns: Vec<&[f64]> = (0..posteriors.n_classes()).map(|k| posteriors.column(k)).collect();
        let mut target: Vec<&mut [f64]> =
            out.columns_mut().into_iter().map(|column| column.into_slice().expect("columns are contiguous")).collect();
        self.transform(&columns, &mut target);
        Posteriors::new(out, posteriors.kind())
    }

    fn transform(&self, columns: &[&[f64]], out: &mut [&mut [f64]]) {
        transform(self.inverse_temperature, &self.biases, columns, out, &mut []);
    }
}

/// Rows seen through a calibration that is applied as they are read: for tables that do not fit in memory.
pub struct Calibrated<'a, R> {
    /// The rows.
    pub rows: &'a R,
    /// The calibration.
    pub bcts: &'a Bcts,
}

/// Adds the rows of a block with other probabilities, which `transform` computes from the columns and the given numbers.
fn add_transformed<S: Sums>(
    sums: &mut S,
    block: &Block<'_>,
    transform: impl Fn(&[&[f64]], &[&[f64]], &mut [&mut [f64]]),
) {
    // Below the size from which allocators ask the system for memory each time.
    const PART: usize = 1024;
    let k = block.columns.len();
    let mut buffer = vec![0.0; k * PART.min(block.len())];
    for start in (0..block.len()).step_by(PART) {
        let m = PART.min(block.len() - start);
        let columns: Vec<&[f64]> = block.columns.iter().map(|column| &column[start..start + m]).collect();
        let given = block.given_part(start..start + m);
        let mut target: Vec<&mut [f64]> = buffer.chunks_mut(m).take(k).collect();
        transform(&columns, &given, &mut target);
        let columns: Vec<&[f64]> = buffer.chunks(m).take(k).collect();
        sums.add(&Block {
            columns: &columns,
            labels: &block.labels[start..start + m],
            weights: block.weights.map(|weights| &weights[start..start + m]),
            given: &given,
        });
    }
}

/// Sums of calibrated rows.
#[derive(Clone)]
pub(crate) struct Through<S> {
    a: f64,
    b: Arc<[f64]>,
    pub(crate) sums: S,
}

impl<S> Through<S> {
    /// The same sums of rows that are calibrated first.
    pub(crate) fn new(bcts: &Bcts, sums: S) -> Self {
        Self { a: bcts.inverse_temperature, b: bcts.biases.as_slice().into(), sums }
    }
}

type ThroughWalk = Through<Walk>;
bytes!(ThroughWalk { a, b, sums });

impl<S: Sums> Sums for Through<S> {
    fn add(&mut self, block: &Block<'_>) {
        add_transformed(&mut self.sums, block, |columns, _, target| {
            transform(self.a, &self.b, columns, target, &mut [])
        });
    }

    fn merge(&mut self, other: Self) {
        self.sums.merge(other.sums);
    }

    fn pack(&self) -> Option<Walk> {
        let sums = self.sums.pack()?;
        Some(Walk(Kind::Calibrated(Box::new(Through { a: self.a, b: self.b.clone(), sums }))))
    }

    fn unpack(&self, walk: Walk) -> Option<Self> {
        match walk.0 {
            Kind::Calibrated(through) => {
                Some(Self { a: self.a, b: self.b.clone(), sums: self.sums.unpack(through.sums)? })
            }
            _ => None,
        }
    }
}

impl<R: Rows> Rows for Calibrated<'_, R> {
    fn names(&self) -> &[String] {
        self.rows.names()
    }

    fn kind(&self) -> PosteriorKind {
        self.rows.kind()
    }

    fn renormalised(&self) -> Renormalised {
        self.rows.renormalised()
    }

    fn in_memory(&self) -> bool {
        self.rows.in_memory()
    }

    fn counted(&self) -> Option<&Tally> {
        self.rows.counted()
    }

    fn samples_labels(&self) -> bool {
        self.rows.samples_labels()
    }

    fn scan_sample<S: Sums>(&self, zero: &S) -> Option<S> {
        let through = Through::new(self.bcts, zero.clone());
        Some(self.rows.scan_sample(&through)?.sums)
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        Ok(self.rows.scan(&Through::new(self.bcts, zero.clone()))?.sums)
    }
}

/// Reliability of the most probable class in equal-width bins of its probability.
#[derive(Clone, Debug, PartialEq)]
struct Bins {
    n: [f64; 15],
    confidence: [f64; 15],
    correct: [f64; 15],
}

bytes!(Bins { n, confidence, correct });

impl Bins {
    fn add(&mut self, confidence: f64, correct: bool, weight: f64) {
        let bin = ((confidence * 15.0) as usize).min(14);
        self.n[bin] += weight;
        self.confidence[bin] += weight * confidence;
        self.correct[bin] += if correct { weight } else { 0.0 };
    }

    /// Σ_bins (n_b/n) |accuracy − confidence|.
    fn expected_error(&self) -> f64 {
        let gap: f64 = self.confidence.iter().zip(&self.correct).map(|(c, r)| (c - r).abs()).sum();
        gap / self.n.iter().sum::<f64>()
    }
}

/// Log-loss of the labelled rows, its gradient and Hessian in (a, b), and reliability bins.
#[derive(Clone)]
pub(crate) struct CalibrationSums {
    a: f64,
    b: Arc<[f64]>,
    with_biases: bool,
    n: f64,
    log_loss: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
    bins: Box<Bins>,
}

bytes!(CalibrationSums { a, b, with_biases, n, log_loss, gradient, hessian, bins });

impl CalibrationSums {
    fn at(a: f64, b: &[f64], with_biases: bool) -> Self {
        let m = if with_biases { b.len() + 1 } else { 1 };
        Self {
            a,
            b: b.into(),
            with_biases,
            n: 0.0,
            log_loss: 0.0,
            gradient: vec![0.0; m],
            hessian: vec![0.0; m * m],
            bins: Box::new(Bins { n: [0.0; 15], confidence: [0.0; 15], correct: [0.0; 15] }),
        }
    }

    fn penalised(&self, a: f64, b: &[f64], bias: f64, temperature: f64) -> (DVector<f64>, DMatrix<f64>) {
        let m = self.gradient.len();
        let mut gradient = DVector::from_column_slice(&self.gradient);
        let mut hessian = DMatrix::from_fn(m, m, |i, j| self.hessian[i.max(j) * m + i.min(j)]);
        gradient[0] += temperature * (a - 1.0);
        hessian[(0, 0)] += temperature;
        for j in 1..m {
            gradient[j] += bias * b[j - 1];
            hessian[(j, j)] += bias;
        }
        (gradient, hessian)
    }
}

impl CalibrationSums {
    /// Adds labelled rows: their calibrated probabilities, the logarithms of those before, their classes and their weights.
    #[inline(always)]
    fn add_tile(&mut self, p: &[&[f64]], logs: &[&[f64]], classes: &[usize], weights: &[f64]) {
        let (k, m, n) = (p.len(), self.gradient.len(), classes.len());
        let (mut mean, mut square) = ([0.0; TILE], [0.0; TILE]);
        let (mean, square) = (&mut mean[..n], &mut square[..n]);
        for (p, logs) in p.iter().zip(logs) {
            for i in 0..n {
                mean[i] += p[i] * logs[i];
                square[i] += p[i] * logs[i] * logs[i];
            }
        }
        for (square, mean) in square.iter_mut().zip(mean.iter()) {
            *square -= mean * mean;
        }
        self.hessian[0] += weighted_sum(square, weights);
        self.gradient[0] += weighted_sum(mean, weights);
        // The most probable class, the first of them where there are several; a number of the same size as its probability.
        let (mut top, mut best) = ([f64::NEG_INFINITY; TILE], [0.0; TILE]);
        let (top, best) = (&mut top[..n], &mut best[..n]);
        for (j, p) in p.iter().enumerate() {
            let j = j as f64;
            for ((top, best), &p) in top.iter_mut().zip(best.iter_mut()).zip(&p[..n]) {
                (*top, *best) = if p > *top { (p, j) } else { (*top, *best) };
            }
        }
        for (i, (&y, &weight)) in classes.iter().zip(weights).enumerate() {
            self.n += weight;
            self.gradient[0] -= weight * logs[y][i];
            self.bins.add(top[i], best[i] == y as f64, weight);
            // A probability that is 0 or not even normal is taken apart: the logarithm of its logit is exact.
            self.log_loss += weight * if p[y][i] > 1e-300 { -p[y][i].ln() } else { self.far_loss(logs, i, y) };
            if self.with_biases {
                self.gradient[y + 1] -= weight;
            }
        }
        if !self.with_biases {
            return;
        }
        let mut weighted = [0.0; TILE];
        let weighted = &mut weighted[..n];
        for j in 0..k {
            for (i, weighted) in weighted.iter_mut().enumerate() {
                *weighted = weights[i] * p[j][i];
            }
            let mass = weighted_sum(weighted, &ONES);
            self.gradient[j + 1] += mass;
            self.hessian[(j + 1) * m] += weighted_sum(logs[j], weighted) - weighted_sum(mean, weighted);
            for l in 0..=j {
                let diagonal = if j == l { mass } else { 0.0 };
                self.hessian[(j + 1) * m + l + 1] += diagonal - weighted_sum(p[l], weighted);
            }
        }
    }

    /// The log-loss of a row whose label has a probability of about 0.
    fn far_loss(&self, logs: &[&[f64]], i: usize, y: usize) -> f64 {
        let logit = |j: usize| self.a * logs[j][i] + self.b[j];
        let max = (0..logs.len()).map(logit).fold(f64::NEG_INFINITY, f64::max);
        (0..logs.len()).map(|j| (logit(j) - max).exp()).sum::<f64>().ln() - (logit(y) - max)
    }
}

/// Labelled rows that are added at a time.
const TILE: usize = 256;
const ONES: [f64; TILE] = [1.0; TILE];

/// Adds one tile, compiled once per instruction set and dispatched at run time.
struct AddTile<'a> {
    sums: &'a mut CalibrationSums,
    p: &'a [&'a [f64]],
    logs: &'a [&'a [f64]],
    classes: &'a [usize],
    weights: &'a [f64],
}

impl WithSimd for AddTile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.sums.add_tile(self.p, self.logs, self.classes, self.weights);
    }
}

impl Sums for CalibrationSums {
    fn add(&mut self, block: &Block<'_>) {
        let counts = |i: &usize| block.labels[*i].is_some() && block.weight(*i) != 0.0;
        let rows: Vec<usize> = (0..block.len()).filter(counts).collect();
        let k = self.b.len();
        // With thousands of classes, fewer rows fit in the cache.
        let tile = ((1 << 16) / k.max(1)).clamp(16, TILE);
        let mut buffers = vec![0.0; 3 * k * tile.min(rows.len())];
        for rows in rows.chunks(tile) {
            let n = rows.len();
            let (columns, rest) = buffers.split_at_mut(k * n);
            let (p, rest) = rest.split_at_mut(k * n);
            let logs = &mut rest[..k * n];
            for (target, column) in columns.chunks_mut(n).zip(block.columns) {
                target.iter_mut().zip(rows).for_each(|(value, &i)| *value = column[i]);
            }
            let columns: Vec<&[f64]> = columns.chunks(n).collect();
            {
                let (mut p, mut logs): (Vec<&mut [f64]>, Vec<&mut [f64]>) =
                    (p.chunks_mut(n).collect(), logs.chunks_mut(n).collect());
                transform(self.a, &self.b, &columns, &mut p, &mut logs);
            }
            let (p, logs): (Vec<&[f64]>, Vec<&[f64]>) = (p.chunks(n).collect(), logs.chunks(n).collect());
            let classes: Vec<usize> = rows.iter().map(|&i| block.labels[i].map_or(0, Class::index)).collect();
            let weights: Vec<f64> = rows.iter().map(|&i| block.weight(i)).collect();
            let tile = AddTile { sums: self, p: &p, logs: &logs, classes: &classes, weights: &weights };
            Arch::new().dispatch(tile);
        }
    }

    fn merge(&mut self, other: Self) {
        self.n += other.n;
        self.log_loss += other.log_loss;
        add_to(&mut self.gradient, &other.gradient);
        add_to(&mut self.hessian, &other.hessian);
        add_to(&mut self.bins.n, &other.bins.n);
        add_to(&mut self.bins.confidence, &other.bins.confidence);
        add_to(&mut self.bins.correct, &other.bins.correct);
    }

    travels!(Calibration);
}

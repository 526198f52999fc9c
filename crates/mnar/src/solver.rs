//! The solver both likelihoods share. Label shift, the observed likelihood and their profiles are all the concave
//! problem
//!
//! F(v) = Σ_{i∈U} log(v·s_i) + Σ_k a_k log v_k + Σ_k b_k log(1 − v_k) − Σ_k c_k v_k,   v ≥ 0
//!
//! where a holds a prior or a profiled label count, b the label counts of the observed likelihood, and c the multiplier
//! of Σ π_k w_k = 1 (the optimum then satisfies the constraint by itself).

use crate::error::Error;
use crate::estimate::Stop;
use crate::few_passes::{self, OfSample};
use crate::mixture::LogMixture;
use crate::rows::Rows;
use nalgebra::{DMatrix, DVector};

/// Stopping rule, and the largest matrix that may be formed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solver {
    /// Maximum number of Newton or EM steps.
    pub max_iterations: usize,
    /// Stop when no entry moves by more than this, relative to itself (and absolutely below 1e-6).
    pub tolerance: f64,
    /// Up to this many classes a K × K matrix is formed (Newton, covariance); above it, accelerated EM does without
    /// one.
    pub full_matrix_classes: usize,
}

impl Default for Solver {
    fn default() -> Self {
        Self { max_iterations: 500, tolerance: 1e-10, full_matrix_classes: 256 }
    }
}

/// The terms of F other than the mixture.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// a: coefficients of log v_k.
    pub(crate) log_v: Vec<f64>,
    /// b: coefficients of log(1 − v_k).
    pub(crate) log_rest: Vec<f64>,
    /// c: coefficients of −v_k.
    pub(crate) cost: Vec<f64>,
    /// The class whose v is held fixed, if any.
    pub(crate) held: Option<usize>,
}

impl Terms {
    pub(crate) fn value(&self, mixture: f64, v: &[f64]) -> f64 {
        let mut value = mixture;
        for k in 0..v.len() {
            value -= self.cost[k] * v[k];
            // 0 log 0 = 0: such a term vanishes for a class on the boundary.
            if self.log_v[k] > 0.0 {
                value += self.log_v[k] * v[k].ln();
            }
            if self.log_rest[k] > 0.0 {
                value += self.log_rest[k] * (-v[k]).ln_1p();
            }
        }
        value
    }

    fn gradient(&self, mixture: &[f64], v: &[f64]) -> Vec<f64> {
        (0..v.len())
            .map(|k| {
                let mut g = mixture[k] - self.cost[k];
                if self.log_v[k] > 0.0 {
                    g += self.log_v[k] / v[k];
                }
                if self.log_rest[k] > 0.0 {
                    g -= self.log_rest[k] / (1.0 - v[k]);
                }
                g
            })
            .collect()
    }

    /// One step of expectation-maximisation: v_k G_k is the expected number of unlabelled rows of class k.
    fn em_step(&self, gradient: &[f64], v: &[f64]) -> Vec<f64> {
        (0..v.len())
            .map(|k| {
                if self.held == Some(k) {
                    return v[k];
                }
                let expected = v[k] * gradient[k] + self.log_v[k];
                if self.log_rest[k] > 0.0 { expected / (expected + self.log_rest[k]) } else { expected / self.cost[k] }
            })
            .collect()
    }

    /// The negated Hessian of F: that of the mixture plus a diagonal.
    pub(crate) fn hessian(&self, mixture: &LogMixture, v: &[f64]) -> DMatrix<f64> {
        let mut hessian = mixture.hessian();
        for k in 0..v.len() {
            if self.log_v[k] > 0.0 {
                hessian[(k, k)] += self.log_v[k] / (v[k] * v[k]);
            }
            if self.log_rest[k] > 0.0 {
                hessian[(k, k)] += self.log_rest[k] / (1.0 - v[k]).powi(2);
            }
        }
        hessian
    }
}

/// The point where the solver stopped.
pub(crate) struct Solution {
    pub(crate) v: Vec<f64>,
    /// F at v.
    pub(crate) value: f64,
    /// The sums at v, with their Hessian where a matrix may be formed.
    pub(crate) sums: LogMixture,
    pub(crate) stop: Stop,
}

/// Maximises F from a positive starting point. `n_unlabelled` is the total weight of the unlabelled rows.
pub(crate) fn maximise<R: Rows>(
    rows: &R,
    terms: &Terms,
    start: Vec<f64>,
    n_unlabelled: f64,
    solver: &Solver,
) -> Result<Solution, Error> {
    if start.len() > solver.full_matrix_classes {
        return accelerated_em(rows, terms, start, solver);
    }
    let all = Walk { rows, every: 1, n_unlabelled };
    if let Some(sample) = OfSample::new(rows, n_unlabelled) {
        let near = few_passes::start(&sample, terms, start, solver)?;
        let sums = all.sums(&near, true)?;
        return few_passes::finish(&sample, &all, terms, (near, sums), solver);
    }
    // The optimum of every sixteenth tile is within a few thousandths of that of all rows, and sixteen times cheaper.
    if rows.in_memory() && n_unlabelled >= SAMPLE_FROM {
        let sample = Walk { every: 16, ..all };
        let rough = Solver { tolerance: 1e-4, ..*solver };
        let near = em_start(&sample, terms, start).and_then(|near| newton(&sample, terms, near, &rough))?;
        // Newton can leave the boundary, but an interior starting point saves it the way back.
        let inside = near.v.iter().map(|v| v.max(1e-3)).collect();
        return newton(&all, terms, inside, solver);
    }
    newton(&all, terms, em_start(&all, terms, start)?, solver)
}

/// The sums of the mixture at a point, over all rows or over others that stand for them.
pub(crate) trait Evaluate {
    fn sums(&self, v: &[f64], with_hessian: bool) -> Result<LogMixture, Error>;
}

/// From this many unlabelled rows on, the first steps use a sample.
const SAMPLE_FROM: f64 = 200_000.0;

/// All rows, or a sample of them whose sums are scaled up.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a, R> {
    pub(crate) rows: &'a R,
    pub(crate) every: usize,
    pub(crate) n_unlabelled: f64,
}

impl<R: Rows> Evaluate for Walk<'_, R> {
    fn sums(&self, v: &[f64], with_hessian: bool) -> Result<LogMixture, Error> {
        let mut sums = self.rows.scan(&LogMixture::at(v, with_hessian).sampled(self.every))?;
        if self.every > 1 && sums.rows > 0.0 {
            sums.scale(self.n_unlabelled / sums.rows);
        }
        Ok(sums)
    }
}

/// Three EM steps nearly always bring Newton close enough for full steps.
const EM_START: usize = 3;

pub(crate) fn em_start(walk: &impl Evaluate, terms: &Terms, start: Vec<f64>) -> Result<Vec<f64>, Error> {
    let mut v = start;
    for _ in 0..EM_START {
        let sums = walk.sums(&v, false)?;
        v = terms.em_step(&sums.gradient, &v);
    }
    Ok(v)
}

pub(crate) fn newton(walk: &impl Evaluate, terms: &Terms, start: Vec<f64>, solver: &Solver) -> Result<Solution, Error> {
    let k = start.len();
    let mut v = start;
    let mut sums = walk.sums(&v, true)?;
    let mut passes = 1;
    let mut value = terms.value(sums.value, &v);
    for iteration in 1..=solver.max_iterations {
        let gradient = terms.gradient(&sums.gradient, &v);
        let free: Vec<usize> =
            (0..k).filter(|&j| terms.held != Some(j) && !(v[j] == 0.0 && gradient[j] <= 0.0)).collect();
        let direction = newton_direction(&terms.hessian(&sums, &v), &gradient, &free);
        let mut step = feasible_step(terms, &v, &direction);
        let mut accepted = None;
        for _ in 0..50 {
            let trial: Vec<f64> = v.iter().zip(&direction).map(|(v, d)| (v + step * d).max(0.0)).collect();
            let trial_sums = walk.sums(&trial, true)?;
            passes += 1;
            let trial_value = terms.value(trial_sums.value, &trial);
            let expected: f64 = (0..k).map(|j| gradient[j] * (trial[j] - v[j])).sum();
            // Near the optimum the gain is lost in the rounding of the sum over the rows.
            let noise = 1e-13 * (1.0 + value.abs());
            if trial_value >= value + 1e-4 * expected - noise {
                accepted = Some((trial, trial_sums, trial_value));
                break;
            }
            step /= 2.0;
        }
        let Some((trial, trial_sums, trial_value)) = accepted else {
            return Ok(Solution { v, value, sums, stop: Stop::NoProgress { iterations: iteration, passes } });
        };
        let moved = largest_relative_move(&v, &trial);
        (v, sums, value) = (trial, trial_sums, trial_value);
        // A full Newton step squares the relative error, so a step of √tolerance/10 leaves less than the tolerance.
        if moved <= solver.tolerance || (step == 1.0 && moved <= 0.1 * solver.tolerance.sqrt()) {
            // A class that has just reached the boundary must also have a gradient that keeps it there.
            let gradient = terms.gradient(&sums.gradient, &v);
            let scale = 1e-7 * (1.0 + sums.gradient.iter().copied().fold(0.0, f64::max));
            if (0..k).all(|j| terms.held == Some(j) || v[j] > 0.0 || gradient[j] <= scale) {
                return Ok(Solution { v, value, sums, stop: Stop::Converged { iterations: iteration, passes } });
            }
        }
    }
    Ok(Solution { v, value, sums, stop: Stop::MaxIterations { iterations: solver.max_iterations, passes } })
}

pub(crate) fn largest_relative_move(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(a, b)| (a - b).abs() / b.abs().max(1e-6)).fold(0.0, f64::max)
}

/// Solves H d = g over the free classes. A ridge is added only where H is not positive definite in f64, that is where
/// the classifier cannot tell two classes apart (the covariance shows it).
fn newton_direction(hessian: &DMatrix<f64>, gradient: &[f64], free: &[usize]) -> Vec<f64> {
    let mut direction = vec![0.0; gradient.len()];
    if free.is_empty() {
        return direction;
    }
    let h = hessian.select_rows(free).select_columns(free);
    let g = DVector::from_iterator(free.len(), free.iter().map(|&j| gradient[j]));
    let mut ridge = 0.0;
    let d = loop {
        let mut damped = h.clone();
        for j in 0..free.len() {
            damped[(j, j)] += ridge * h[(j, j)].max(f64::MIN_POSITIVE);
        }
        match damped.cholesky() {
            Some(cholesky) => break cholesky.solve(&g),
            None => ridge = if ridge == 0.0 { 1e-12 } else { ridge * 100.0 },
        }
    };
    for (&j, d) in free.iter().zip(d.iter()) {
        direction[j] = *d;
    }
    direction
}

/// The longest step that keeps every logarithm finite, at most 1.
fn feasible_step(terms: &Terms, v: &[f64], direction: &[f64]) -> f64 {
    let mut step = 1.0f64;
    for k in 0..v.len() {
        if terms.log_rest[k] > 0.0 && direction[k] > 0.0 {
            step = step.min(0.99 * (1.0 - v[k]) / direction[k]);
        }
        if terms.log_v[k] > 0.0 && direction[k] < 0.0 {
            step = step.min(0.99 * v[k] / -direction[k]);
        }
    }
    step
}

/// Expectation-maximisation with the squared extrapolation of Varadhan and Roland (2008), in memory linear in K. An
/// extrapolated point that lowers F is replaced by the plain EM point, so F never decreases.
fn accelerated_em<R: Rows>(rows: &R, terms: &Terms, start: Vec<f64>, solver: &Solver) -> Result<Solution, Error> {
    let mut passes = 0;
    let mut evaluate = |v: &[f64]| -> Result<(LogMixture, f64), Error> {
        let sums = rows.scan(&LogMixture::at(v, false))?;
        passes += 1;
        let value = terms.value(sums.value, v);
        Ok((sums, value))
    };
    let mut v = start;
    let (mut sums, mut value) = evaluate(&v)?;
    let mut iterations = 0;
    let converged = loop {
        if iterations == solver.max_iterations {
            break false;
        }
        iterations += 1;
        let first = terms.em_step(&sums.gradient, &v);
        // EM's own step shrinks with its slow rate; the extrapolation covers the remaining distance.
        if largest_relative_move(&v, &first) <= solver.tolerance {
            break true;
        }
        let (first_sums, first_value) = evaluate(&first)?;
        let second = terms.em_step(&first_sums.gradient, &first);
        let (mut step_norm, mut curve_norm) = (0.0, 0.0);
        for k in 0..v.len() {
            let step = first[k] - v[k];
            step_norm += step * step;
            curve_norm += (second[k] - first[k] - step).powi(2);
        }
        let length = if curve_norm > 0.0 { (step_norm / curve_norm).sqrt().max(1.0) } else { 1.0 };
        let extrapolated: Vec<f64> = (0..v.len())
            .map(|k| {
                let step = first[k] - v[k];
                let curve = second[k] - first[k] - step;
                let value = v[k] + 2.0 * length * step + length * length * curve;
                // Stay positive, and below 1 where the logarithm of 1 − v enters.
                let inside = value > 0.0 && (terms.log_rest[k] == 0.0 || value < 1.0);
                if inside { value } else { second[k] }
            })
            .collect();
        let (next_sums, next_value) = evaluate(&extrapolated)?;
        if next_value >= first_value {
            (v, sums, value) = (extrapolated, next_sums, next_value);
        } else {
            let (second_sums, second_value) = evaluate(&second)?;
            (v, sums, value) = (second, second_sums, second_value);
        }
    };
    let stop =
        if converged { Stop::Converged { iterations, passes } } else { Stop::MaxIterations { iterations, passes } };
    Ok(Solution { v, value, sums, stop })
}

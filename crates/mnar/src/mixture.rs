//! The one sum both likelihoods rest on, Σ_{i∈U} log(v·s_i), and the one solver they share.
//!
//! With v = w it is the label-shift likelihood, with v = 1 − phi and s = p the unlabelled part of eq:loglikeli.
//! Both are the concave problem
//!
//! F(v) = Σ_{i∈U} log(v·s_i) + Σ_k a_k log v_k + Σ_k b_k log(1 − v_k) − Σ_k c_k v_k,   v ≥ 0
//!
//! where a holds a prior or a profiled label count, b the label counts of eq:loglikeli, and c the multiplier of
//! Σ π_k w_k = 1 (the optimum then meets the constraint by itself).

use crate::error::Error;
use crate::estimate::Stop;
use crate::rows::{Block, Rows, Sums};
use nalgebra::{DMatrix, DVector};
use pulp::{Arch, Simd, WithSimd};
use std::sync::Arc;

/// Rows handled at a time: a tile of K = 10 classes is 10 KB, well inside the first-level cache.
const TILE: usize = 128;
const LANES: usize = 8;

/// Value, gradient and negated Hessian of Σ_{i∈U} log(v·s_i).
#[derive(Clone)]
pub(crate) struct LogMixture {
    v: Arc<[f64]>,
    with_hessian: bool,
    /// Only every `every`-th tile is added: a sample for the first steps.
    every: usize,
    /// The weight of the rows added.
    rows: f64,
    /// Σ log(v·s_i).
    pub(crate) value: f64,
    /// Σ s_ik / (v·s_i).
    pub(crate) gradient: Vec<f64>,
    /// Σ s_ik s_il / (v·s_i)², row-major, lower triangle filled.
    hessian: Vec<f64>,
}

impl LogMixture {
    pub(crate) fn at(v: &[f64], with_hessian: bool) -> Self {
        let k = v.len();
        Self {
            v: v.into(),
            with_hessian,
            every: 1,
            rows: 0.0,
            value: 0.0,
            gradient: vec![0.0; k],
            hessian: vec![0.0; if with_hessian { k * k } else { 0 }],
        }
    }

    /// Multiplies all sums, to make those of a sample stand for all rows.
    fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.gradient.iter_mut().chain(&mut self.hessian).for_each(|sum| *sum *= factor);
    }

    /// The negated Hessian as a symmetric matrix.
    pub(crate) fn hessian(&self) -> DMatrix<f64> {
        let k = self.v.len();
        DMatrix::from_fn(k, k, |a, b| self.hessian[a.max(b) * k + a.min(b)])
    }

    #[inline(always)]
    fn add_tiles<S: Simd>(&mut self, simd: S, block: &Block<'_>) {
        let mut scaled = vec![[0.0; TILE]; self.v.len()];
        let whole = block.len() / TILE * TILE;
        for start in (0..whole).step_by(TILE * self.every) {
            let column =
                |k: usize| -> &[f64; TILE] { block.columns[k][start..start + TILE].try_into().expect("a whole tile") };
            self.add_tile(simd, column, block, start, TILE, &mut scaled);
        }
        let rest = block.len() - whole;
        if rest > 0 && self.every == 1 {
            let padded: Vec<[f64; TILE]> = block
                .columns
                .iter()
                .map(|column| {
                    let mut tile = [0.0; TILE];
                    tile[..rest].copy_from_slice(&column[whole..]);
                    tile
                })
                .collect();
            self.add_tile(simd, |k| &padded[k], block, whole, rest, &mut scaled);
        }
    }

    /// Adds rows `start..start + m` of the block, whose columns are given as tiles padded with zeros.
    #[inline(always)]
    fn add_tile<'t, S: Simd>(
        &mut self,
        simd: S,
        column: impl Fn(usize) -> &'t [f64; TILE],
        block: &Block<'_>,
        start: usize,
        m: usize,
        scaled: &mut [[f64; TILE]],
    ) {
        let k = self.v.len();
        let mut mixture = [0.0; TILE];
        for (j, &v) in self.v.iter().enumerate() {
            let column = column(j);
            for i in 0..TILE {
                mixture[i] += v * column[i];
            }
        }
        // Labelled rows and the padding count zero times.
        let mut weight = [0.0; TILE];
        for (weight, label) in weight.iter_mut().zip(&block.labels[start..start + m]) {
            *weight = if label.is_none() { 1.0 } else { 0.0 };
        }
        if let Some(weights) = block.weights {
            for (weight, row) in weight.iter_mut().zip(&weights[start..start + m]) {
                *weight *= row;
            }
        }
        self.rows += weight.iter().sum::<f64>();
        let mut factor = [0.0; TILE];
        for i in 0..TILE {
            // A mixture of 1 keeps the logarithm of a row that does not count at zero.
            mixture[i] = if weight[i] == 0.0 { 1.0 } else { mixture[i] };
            factor[i] = 1.0 / mixture[i];
        }
        self.value += if block.weights.is_none() {
            sum_of_logs(&mixture)
        } else {
            weight.iter().zip(&mixture).map(|(weight, mixture)| weight * mixture.ln()).sum()
        };
        if block.weights.is_some() {
            // The Hessian needs √weight twice, the gradient the weight once.
            weight.iter_mut().for_each(|weight| *weight = weight.sqrt());
        }
        for i in 0..TILE {
            factor[i] *= weight[i];
        }
        for j in 0..k {
            let (column, scaled) = (column(j), &mut scaled[j]);
            for i in 0..TILE {
                scaled[i] = column[i] * factor[i];
            }
            self.gradient[j] += dot(simd, scaled, &weight);
        }
        if self.with_hessian {
            for a in (0..k).step_by(2) {
                for b in (0..=a).step_by(2) {
                    // Two by two, so that every load serves two products. Entries above the diagonal are not read.
                    let (a1, b1) = ((a + 1).min(k - 1), (b + 1).min(k - 1));
                    let products = dots(simd, &scaled[a], &scaled[a1], &scaled[b], &scaled[b1]);
                    self.hessian[a * k + b] += products[0];
                    if a1 > a {
                        self.hessian[a1 * k + b] += products[2];
                    }
                    if b1 > b && b1 <= a {
                        self.hessian[a * k + b1] += products[1];
                    }
                    if a1 > a && b1 > b {
                        self.hessian[a1 * k + b1] += products[3];
                    }
                }
            }
        }
    }
}

/// One block to add, compiled once for each instruction set and chosen at run time.
struct AddBlock<'a, 'b> {
    sums: &'a mut LogMixture,
    block: &'a Block<'b>,
}

impl WithSimd for AddBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.sums.add_tiles(simd, self.block);
    }
}

impl Sums for LogMixture {
    fn add(&mut self, block: &Block<'_>) {
        Arch::new().dispatch(AddBlock { sums: self, block });
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.value += other.value;
        add_to(&mut self.gradient, &other.gradient);
        add_to(&mut self.hessian, &other.hessian);
    }
}

/// `total += part`, entry by entry.
pub(crate) fn add_to(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
}

#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f64; TILE], b: &[f64; TILE]) -> f64 {
    let (a, b) = (S::as_simd_f64s(a).0, S::as_simd_f64s(b).0);
    let mut even = simd.splat_f64s(0.0);
    let mut odd = even;
    for (a, b) in a.chunks_exact(2).zip(b.chunks_exact(2)) {
        even = simd.mul_add_e_f64s(a[0], b[0], even);
        odd = simd.mul_add_e_f64s(a[1], b[1], odd);
    }
    simd.reduce_sum_f64s(simd.add_f64s(even, odd))
}

/// a·b, a·b1, a1·b, a1·b1.
#[inline(always)]
fn dots<S: Simd>(simd: S, a: &[f64; TILE], a1: &[f64; TILE], b: &[f64; TILE], b1: &[f64; TILE]) -> [f64; 4] {
    let (a, a1) = (S::as_simd_f64s(a).0, S::as_simd_f64s(a1).0);
    let (b, b1) = (S::as_simd_f64s(b).0, S::as_simd_f64s(b1).0);
    let zero = simd.splat_f64s(0.0);
    let (mut ab, mut ab1, mut a1b, mut a1b1) = (zero, zero, zero, zero);
    for (((&a, &a1), &b), &b1) in a.iter().zip(a1).zip(b).zip(b1) {
        ab = simd.mul_add_e_f64s(a, b, ab);
        ab1 = simd.mul_add_e_f64s(a, b1, ab1);
        a1b = simd.mul_add_e_f64s(a1, b, a1b);
        a1b1 = simd.mul_add_e_f64s(a1, b1, a1b1);
    }
    [ab, ab1, a1b, a1b1].map(|sum| simd.reduce_sum_f64s(sum))
}

/// Σ log x over a tile: the logarithm of products of sixteen, as long as those cannot leave the range of f64
/// (1e-18^16 = 1e-288), one by one otherwise.
#[inline(always)]
fn sum_of_logs(x: &[f64; TILE]) -> f64 {
    let mut low = [f64::INFINITY; LANES];
    let mut high = [0.0f64; LANES];
    let mut product = [1.0; LANES];
    for x in x.chunks_exact(LANES) {
        for l in 0..LANES {
            low[l] = low[l].min(x[l]);
            high[l] = high[l].max(x[l]);
            product[l] *= x[l];
        }
    }
    if low.iter().all(|&low| low > 1e-18) && high.iter().all(|&high| high < 1e18) {
        product.iter().map(|p| p.ln()).sum()
    } else {
        x.iter().map(|x| x.ln()).sum()
    }
}

/// When to stop, and how large a matrix may be formed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solver {
    /// Newton or EM steps at most.
    pub max_iterations: usize,
    /// Stop when no entry moves by more than this, relative to itself (and absolutely below 1e-6).
    pub tolerance: f64,
    /// Up to this many classes a K × K matrix is formed (Newton, covariance); above, accelerated EM without one.
    pub full_matrix_classes: usize,
}

impl Default for Solver {
    fn default() -> Self {
        Self { max_iterations: 500, tolerance: 1e-10, full_matrix_classes: 256 }
    }
}

/// The terms of F besides the mixture.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// a: coefficients of log v_k.
    pub(crate) log_v: Vec<f64>,
    /// b: coefficients of log(1 − v_k).
    pub(crate) log_rest: Vec<f64>,
    /// c: coefficients of −v_k.
    pub(crate) cost: Vec<f64>,
    /// A class whose v is held.
    pub(crate) held: Option<usize>,
}

impl Terms {
    fn value(&self, mixture: f64, v: &[f64]) -> f64 {
        let mut value = mixture;
        for k in 0..v.len() {
            value -= self.cost[k] * v[k];
            // 0 log 0 = 0: a class on the boundary has no such term.
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

    /// The negated Hessian of F: that of the mixture and a diagonal.
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

/// Where the solver ended.
pub(crate) struct Solution {
    pub(crate) v: Vec<f64>,
    /// F at v.
    pub(crate) value: f64,
    /// The sums at v, with their Hessian where a matrix may be formed.
    pub(crate) sums: LogMixture,
    pub(crate) stop: Stop,
}

/// Maximises F from a positive start. `n_unlabelled` is the weight of the unlabelled rows.
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
    // The optimum of every sixteenth tile is within a few thousandths of that of all rows, and sixteen times cheaper.
    if rows.in_memory() && n_unlabelled >= SAMPLE_FROM {
        let sample = Walk { every: 16, ..all };
        let rough = Solver { tolerance: 1e-4, ..*solver };
        let near = em_start(&sample, terms, start).and_then(|near| newton(&sample, terms, near, &rough))?;
        // Newton can leave the boundary, but a start inside spares it the way back.
        let inside = near.v.iter().map(|v| v.max(1e-3)).collect();
        return newton(&all, terms, inside, solver);
    }
    newton(&all, terms, em_start(&all, terms, start)?, solver)
}

/// From this many unlabelled rows on a sample makes the first steps.
const SAMPLE_FROM: f64 = 200_000.0;

/// All rows, or a sample of them whose sums are scaled up.
#[derive(Clone, Copy)]
struct Walk<'a, R> {
    rows: &'a R,
    every: usize,
    n_unlabelled: f64,
}

impl<R: Rows> Walk<'_, R> {
    fn sums(&self, v: &[f64], with_hessian: bool) -> Result<LogMixture, Error> {
        let mut sums = self.rows.scan(&LogMixture { every: self.every, ..LogMixture::at(v, with_hessian) })?;
        if self.every > 1 && sums.rows > 0.0 {
            sums.scale(self.n_unlabelled / sums.rows);
        }
        Ok(sums)
    }
}

/// Three EM steps bring Newton close enough for full steps nearly always.
const EM_START: usize = 3;

fn em_start<R: Rows>(walk: &Walk<'_, R>, terms: &Terms, start: Vec<f64>) -> Result<Vec<f64>, Error> {
    let mut v = start;
    for _ in 0..EM_START {
        let sums = walk.sums(&v, false)?;
        v = terms.em_step(&sums.gradient, &v);
    }
    Ok(v)
}

fn newton<R: Rows>(walk: &Walk<'_, R>, terms: &Terms, start: Vec<f64>, solver: &Solver) -> Result<Solution, Error> {
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
            // Near the optimum the gain drowns in the rounding of the sum over the rows.
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
        // A full Newton step squares the relative error, so one of √tolerance/10 leaves less than the tolerance.
        if moved <= solver.tolerance || (step == 1.0 && moved <= 0.1 * solver.tolerance.sqrt()) {
            // A class that has just been set to the boundary must also want to stay there.
            let gradient = terms.gradient(&sums.gradient, &v);
            let scale = 1e-7 * (1.0 + sums.gradient.iter().copied().fold(0.0, f64::max));
            if (0..k).all(|j| terms.held == Some(j) || v[j] > 0.0 || gradient[j] <= scale) {
                return Ok(Solution { v, value, sums, stop: Stop::Converged { iterations: iteration, passes } });
            }
        }
    }
    Ok(Solution { v, value, sums, stop: Stop::MaxIterations { iterations: solver.max_iterations, passes } })
}

fn largest_relative_move(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(a, b)| (a - b).abs() / b.abs().max(1e-6)).fold(0.0, f64::max)
}

/// Solves H d = g over the free classes; a ridge is added only where H is not positive definite in f64, that is
/// where the classifier cannot tell two classes apart (the covariance then says so).
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

/// Expectation-maximisation with the squared extrapolation of Varadhan and Roland (2008): linear memory in K.
/// An extrapolated point that lowers F is dropped for the plain EM point, so F never falls.
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
        // EM's own step shrinks with its slow rate; the extrapolation covers what is left of the way.
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
                // Keep the sign, and below 1 where 1 − v has a logarithm.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Labels, PosteriorKind, Posteriors, Sample};
    use ndarray::Array2;
    use proptest::prelude::*;

    fn table(n: usize, k: usize, seed: f64) -> (Posteriors, Labels) {
        let logits = Array2::from_shape_fn((n, k), |(i, j)| 2.0 * (seed + 1.3 * i as f64 + 2.7 * j as f64).sin());
        let y = (0..n).map(|i| (i % 4 == 0).then(|| Class::from(i / 4 % k))).collect();
        (
            Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap(),
            Labels::new(y, (0..k).map(|k| k.to_string()).collect()).unwrap(),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Odd sizes exercise the padding of the last tile; the value is compared with a plain sum.
        #[test]
        fn sums_gradient_and_hessian(n in 9usize..700, k in 2usize..7, seed in 0.0f64..10.0, weighted: bool) {
            let (p, y) = table(n, k, seed);
            let weights: Vec<f64> = (0..n).map(|i| (i % 5) as f64 / 2.0).collect();
            let sample = Sample::new(&p, &y).unwrap();
            let sample = if weighted { sample.weighted(&weights).unwrap() } else { sample };
            let v: Vec<f64> = (0..k).map(|j| 0.2 + j as f64 / 3.0).collect();
            let at = |v: &[f64]| sample.scan(&LogMixture::at(v, true)).unwrap();
            let sums = at(&v);
            let plain: f64 = (0..n)
                .filter(|&i| !y.is_labelled(i))
                .map(|i| if weighted { weights[i] } else { 1.0 } * p.row(i).iter().zip(&v).map(|(p, v)| p * v).sum::<f64>().ln())
                .sum();
            prop_assert!((sums.value - plain).abs() < 1e-10 * (1.0 + plain.abs()));
            let h = 1e-5;
            for a in 0..k {
                let (mut up, mut down) = (v.clone(), v.clone());
                up[a] += h;
                down[a] -= h;
                let (up, down) = (at(&up), at(&down));
                let slope = (up.value - down.value) / (2.0 * h);
                prop_assert!((slope - sums.gradient[a]).abs() < 1e-6 * n as f64);
                for b in 0..k {
                    let curve = -(up.gradient[b] - down.gradient[b]) / (2.0 * h);
                    prop_assert!((curve - sums.hessian()[(a, b)]).abs() < 1e-5 * n as f64);
                }
            }
        }
    }

    #[test]
    fn products_that_would_underflow_are_summed_one_by_one() {
        assert!((sum_of_logs(&[1e-40; TILE]) - TILE as f64 * 1e-40f64.ln()).abs() < 1e-9);
        assert_eq!(sum_of_logs(&[1.0; TILE]), 0.0);
    }

    /// The number of threads must not change a bit.
    #[test]
    fn sums_do_not_depend_on_threads() {
        let (p, y) = table(30_000, 4, 0.3);
        let sample = Sample::new(&p, &y).unwrap();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sample.scan(&LogMixture::at(&[0.4, 0.9, 1.1, 2.0], true)).unwrap())
        };
        let (one, three) = (with(1), with(3));
        assert_eq!(one.value.to_bits(), three.value.to_bits());
        assert_eq!(one.hessian, three.hessian);
    }
}

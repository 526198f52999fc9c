//! Few passes over a stream: between two of them, the likelihood is maximised in memory on a sample that was kept of the rows,
//! corrected so that it has the value, slope and curvature of all rows at the last point.
//!
//! What the correction leaves out is the difference of third derivatives, about a hundredth of them with 50,000 rows. Newton's
//! method squares an error; this squares it and takes a hundredth, so an optimum of the sample that is off by 1e-2 is off
//! by some 1e-6 after one pass over all rows and exact after another.

use crate::error::Error;
use crate::estimate::Stop;
use crate::mixture::LogMixture;
use crate::rows::{Block, Rows, Sums};
use crate::solver::{Evaluate, Solution, Solver, Terms, em_start, largest_relative_move, newton};
use nalgebra::{DMatrix, DVector};

/// The sample alone, its sums scaled up to all rows.
pub(crate) struct OfSample<'a, R> {
    rows: &'a R,
    n_unlabelled: f64,
}

/// Adds nothing up.
#[derive(Clone)]
struct Nothing;

impl Sums for Nothing {
    fn add(&mut self, _: &Block<'_>) {}
    fn merge(&mut self, _: Self) {}
}

impl<'a, R: Rows> OfSample<'a, R> {
    /// `None` where no sample was kept.
    pub(crate) fn new(rows: &'a R, n_unlabelled: f64) -> Option<Self> {
        rows.scan_sample(&Nothing).map(|_| Self { rows, n_unlabelled })
    }
}

impl<R: Rows> Evaluate for OfSample<'_, R> {
    fn sums(&self, v: &[f64], with_hessian: bool) -> Result<LogMixture, Error> {
        let zero = LogMixture::at(v, with_hessian);
        let mut sums = self.rows.scan_sample(&zero).unwrap_or(zero);
        if sums.rows > 0.0 {
            sums.scale(self.n_unlabelled / sums.rows);
        }
        Ok(sums)
    }
}

/// What all rows have beyond the sample at one point.
struct Gap {
    at: Vec<f64>,
    value: f64,
    gradient: DVector<f64>,
    /// Of the negated Hessian.
    hessian: DMatrix<f64>,
}

impl Gap {
    fn new(at: &[f64], all: &LogMixture, sample: &LogMixture) -> Self {
        let vector = |values: &[f64]| DVector::from_column_slice(values);
        Self {
            at: at.to_vec(),
            value: all.value - sample.value,
            gradient: vector(&all.gradient) - vector(&sample.gradient),
            hessian: all.hessian() - sample.hessian(),
        }
    }
}

/// The sample with the value, gradient and Hessian of all rows at one point.
struct Corrected<'a, R> {
    sample: &'a OfSample<'a, R>,
    gap: &'a Gap,
}

impl<R: Rows> Evaluate for Corrected<'_, R> {
    fn sums(&self, v: &[f64], with_hessian: bool) -> Result<LogMixture, Error> {
        let Gap { at, value, gradient, hessian } = self.gap;
        let mut sums = self.sample.sums(v, with_hessian)?;
        let off = DVector::from_iterator(v.len(), v.iter().zip(at).map(|(v, at)| v - at));
        let bent = hessian * &off;
        sums.value += value + gradient.dot(&off) - 0.5 * off.dot(&bent);
        sums.gradient.iter_mut().zip((gradient - bent).iter()).for_each(|(sum, more)| *sum += more);
        if with_hessian {
            sums.bend(hessian);
        }
        Ok(sums)
    }
}

/// A point near the optimum over all rows, away from the boundary: that of the sample.
pub(crate) fn start<R: Rows>(
    sample: &OfSample<'_, R>,
    terms: &Terms,
    from: Vec<f64>,
    solver: &Solver,
) -> Result<Vec<f64>, Error> {
    // Far more precisely than the sample knows it.
    let rough = Solver { tolerance: 1e-6, ..*solver };
    let near = em_start(sample, terms, from).and_then(|near| newton(sample, terms, near, &rough))?;
    Ok(near.v.iter().map(|v| v.max(1e-3)).collect())
}

/// The optimum over all rows from a point near it and their sums there.
pub(crate) fn finish<R: Rows>(
    sample: &OfSample<'_, R>,
    all: &impl Evaluate,
    terms: &Terms,
    (mut v, mut sums): (Vec<f64>, LogMixture),
    solver: &Solver,
) -> Result<Solution, Error> {
    // Where it takes more, the sample is no help, and plain steps take over.
    const MOST: usize = 6;
    let mut passes = 1;
    // What a pass leaves of an error is its square times this: a hundredth, or more where two moves say so. On 10^7 rows the moves
    // were 4e-2, 4e-5 and 3e-11, the last of which the first two foretell.
    let (mut rate, mut last) = (0.01_f64, None);
    for iterations in 1..=MOST {
        let value = terms.value(sums.value, &v);
        let gap = Gap::new(&v, &sums, &sample.sums(&v, true)?);
        let next = newton(&Corrected { sample, gap: &gap }, terms, v.clone(), solver)?;
        if !next.stop.converged() {
            break;
        }
        let moved = largest_relative_move(&v, &next.v);
        rate = last.map_or(rate, |last: f64| rate.max(moved / (last * last)));
        // With one move alone the rate is a guess, so that much less than the tolerance must be left.
        let most = if last.is_some() { solver.tolerance } else { 0.01 * solver.tolerance };
        // Standard errors, of the order of 1/√n, follow from the curvature, which is off by that times the move itself.
        let curved = last.is_none() || rate * moved <= 5e-10 * sums.rows.sqrt();
        if rate * moved * moved <= most && curved {
            return Ok(Solution { stop: Stop::Converged { iterations, passes }, ..next });
        }
        let next_sums = all.sums(&next.v, true)?;
        passes += 1;
        last = Some(moved);
        // All rows must agree that this is better, up to the rounding of the sums; else the sample is misleading.
        if terms.value(next_sums.value, &next.v) < value - 1e-13 * (1.0 + value.abs()) {
            break;
        }
        (v, sums) = (next.v, next_sums);
    }
    let inside = v.iter().map(|v| v.max(1e-3)).collect();
    let mut solution = newton(all, terms, inside, solver)?;
    solution.stop = solution.stop.after(passes);
    Ok(solution)
}

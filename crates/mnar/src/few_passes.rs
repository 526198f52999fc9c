//! Few passes over a stream: between two of them, the likelihood is maximised in memory on a sample that was kept of the rows,
//! corrected so that it has the value, slope and curvature of all rows at the last point.
//!
//! What the correction leaves out is the difference of third derivatives, about a hundredth of them with 50,000 rows. Newton's
//! method squares an error; this squares it and takes a hundredth, so an optimum of the sample that is off by 1e-2 is off
//! by some 1e-6 after one pass over all rows and exact after another.

use crate::calibrate::{Bcts, add_calibrated};
use crate::error::Error;
use crate::estimate::Stop;
use crate::mixture::{LogMixture, add_to};
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
#[derive(Clone, Debug)]
pub struct Gap {
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

/// The mixture at a point near the optimum, under a calibration near that of all rows: what the pass that keeps rows sums too.
#[derive(Clone)]
pub(crate) struct Look {
    calibration: Option<(f64, Vec<f64>)>,
    at: Vec<f64>,
    mixture: LogMixture,
    /// How the gradient turns with the inverse temperature of the calibration.
    turn: Vec<f64>,
}

impl Look {
    pub(crate) fn new(calibration: Option<&Bcts>, at: Vec<f64>) -> Self {
        let calibration = calibration.map(|bcts| (bcts.inverse_temperature, bcts.biases.clone()));
        Self { calibration, mixture: LogMixture::at(&at, true), turn: vec![0.0; at.len()], at }
    }

    /// The same without rows.
    pub(crate) fn emptied(&self) -> Self {
        let mixture = LogMixture::at(&self.at, true);
        Self { mixture, turn: vec![0.0; self.at.len()], calibration: self.calibration.clone(), at: self.at.clone() }
    }

    /// How the gradient changes when the calibration does.
    fn change(&self, bcts: Option<&Bcts>) -> Option<DVector<f64>> {
        let k = self.at.len();
        let (a, b, bcts) = match (&self.calibration, bcts) {
            (None, None) => return Some(DVector::zeros(k)),
            (Some((a, b)), Some(bcts)) => (a, b, bcts),
            _ => return None,
        };
        let hessian = self.mixture.hessian();
        // With s ∝ exp(a log p + b), d(s_k/m)/db_j = 1[j = k] s_k/m − v_j s_j s_k/m².
        let moved: Vec<f64> = bcts.biases.iter().zip(b).map(|(to, from)| to - from).collect();
        Some(DVector::from_fn(k, |row, _| {
            let by_others: f64 = (0..k).map(|j| self.at[j] * hessian[(row, j)] * moved[j]).sum();
            self.turn[row] * (bcts.inverse_temperature - a) + self.mixture.gradient[row] * moved[row] - by_others
        }))
    }

    /// What these sums, of all rows, have beyond those of a sample, moved to another calibration.
    pub(crate) fn beyond(&self, mut sample: Self, bcts: Option<&Bcts>) -> Option<Gap> {
        if sample.mixture.rows == 0.0 {
            return None;
        }
        let scale = self.mixture.rows / sample.mixture.rows;
        sample.mixture.scale(scale);
        sample.turn.iter_mut().for_each(|turn| *turn *= scale);
        let mut gap = Gap::new(&self.at, &self.mixture, &sample.mixture);
        gap.gradient += self.change(bcts)? - sample.change(bcts)?;
        Some(gap)
    }
}

impl Sums for Look {
    fn add(&mut self, block: &Block<'_>) {
        match &self.calibration {
            Some((a, b)) => add_calibrated(&mut self.mixture, &mut self.turn, (*a, b), block),
            None => self.mixture.add(block),
        }
    }

    fn merge(&mut self, other: Self) {
        self.mixture.merge(other.mixture);
        add_to(&mut self.turn, &other.turn);
    }
}

/// A point near the optimum over all rows, away from the boundary: that of the sample, corrected where a pass has already looked at
/// all rows.
pub(crate) fn start<R: Rows>(
    sample: &OfSample<'_, R>,
    terms: &Terms,
    from: Vec<f64>,
    solver: &Solver,
) -> Result<Vec<f64>, Error> {
    let inside = |near: Solution| near.v.iter().map(|v| v.max(1e-3)).collect();
    if let Some(gap) = sample.rows.gap(None) {
        let from = gap.at.clone();
        let near = newton(&Corrected { sample, gap: &gap }, terms, from, solver)?;
        if near.stop.converged() {
            return Ok(inside(near));
        }
    }
    em_start(sample, terms, from).and_then(|near| newton(sample, terms, near, solver)).map(inside)
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
    for iterations in 1..=MOST {
        let value = terms.value(sums.value, &v);
        let gap = Gap::new(&v, &sums, &sample.sums(&v, true)?);
        let next = newton(&Corrected { sample, gap: &gap }, terms, v.clone(), solver)?;
        if !next.stop.converged() {
            break;
        }
        // What is left is a hundredth of the square of the last move: below 1e-12 by default.
        if largest_relative_move(&v, &next.v) <= solver.tolerance.sqrt() {
            return Ok(Solution { stop: Stop::Converged { iterations, passes }, ..next });
        }
        let next_sums = all.sums(&next.v, true)?;
        passes += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Labels, PosteriorKind, Posteriors, Sample};
    use ndarray::Array2;

    /// How the gradient changes with the calibration, against differences of the gradient itself.
    #[test]
    fn the_gradient_turns_with_the_calibration() {
        let (n, k) = (700, 3);
        let logits = Array2::from_shape_fn((n, k), |(i, j)| 2.0 * (1.3 * i as f64 + 2.7 * j as f64).sin());
        let p = Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap();
        let y = (0..n).map(|i| (i % 4 == 0).then(|| Class::from(i / 4 % k))).collect();
        let y = Labels::new(y, (0..k).map(|k| k.to_string()).collect()).unwrap();
        let sample = Sample::new(&p, &y).unwrap();
        let (a, b) = (1.2, vec![0.1, -0.2, 0.05]);
        let at = vec![0.4, 0.9, 1.6];
        let look = |a: f64, b: &[f64]| sample.scan(&Look::new(Some(&Bcts::known(a, b.to_vec())), at.clone())).unwrap();
        let here = look(a, &b);
        let h = 1e-5;
        for moved in 0..=k {
            let step = |by: f64| {
                let mut b = b.clone();
                let a = if moved == k { a + by } else { a };
                if moved < k {
                    b[moved] += by;
                }
                (a, b)
            };
            let (up, down) = (step(h), step(-h));
            let change = here.change(Some(&Bcts::known(up.0, up.1.clone()))).unwrap() / h;
            let (up, down) = (look(up.0, &up.1), look(down.0, &down.1));
            for j in 0..k {
                let slope = (up.mixture.gradient[j] - down.mixture.gradient[j]) / (2.0 * h);
                assert!((slope - change[j]).abs() < 1e-5 * n as f64, "{moved} {j}: {slope} {}", change[j]);
            }
        }
        assert!(here.change(None).is_none());
    }
}

//! The calibration of a stream with more labelled rows than are kept, in few passes over them: between two passes, it is fitted to
//! the sample, corrected to have the log-loss, slope and curvature of all labelled rows at the last point.

use super::{Calibration, CalibrationSums, Minimum};
use crate::error::Error;
use crate::rows::Rows;
use nalgebra::{DMatrix, DVector};

impl CalibrationSums {
    fn point(&self) -> DVector<f64> {
        let values = std::iter::once(self.a).chain(self.b.iter().copied());
        DVector::from_iterator(self.gradient.len(), values.take(self.gradient.len()))
    }

    fn slope(&self) -> DVector<f64> {
        DVector::from_column_slice(&self.gradient)
    }

    fn bend(&self) -> DMatrix<f64> {
        let m = self.gradient.len();
        DMatrix::from_fn(m, m, |i, j| self.hessian[i.max(j) * m + i.min(j)])
    }
}

/// What all labelled rows have beyond the sample at one point.
struct Correction {
    at: DVector<f64>,
    log_loss: f64,
    slope: DVector<f64>,
    bend: DMatrix<f64>,
}

impl Correction {
    fn new(all: &CalibrationSums, sample: &CalibrationSums) -> Self {
        Self {
            at: all.point(),
            log_loss: all.log_loss - sample.log_loss,
            slope: all.slope() - sample.slope(),
            bend: all.bend() - sample.bend(),
        }
    }

    fn apply(&self, mut sums: CalibrationSums) -> CalibrationSums {
        let off = sums.point() - &self.at;
        let turned = &self.bend * &off;
        sums.log_loss += self.log_loss + self.slope.dot(&off) + 0.5 * off.dot(&turned);
        sums.gradient.iter_mut().zip((&self.slope + turned).iter()).for_each(|(sum, more)| *sum += more);
        let m = sums.gradient.len();
        for i in 0..m {
            (0..=i).for_each(|j| sums.hessian[i * m + j] += self.bend[(i, j)]);
        }
        sums
    }
}

impl Calibration {
    /// The minimum over all labelled rows, from their sums at no calibration.
    pub(super) fn in_few_passes<R: Rows>(&self, rows: &R, first: &CalibrationSums) -> Result<Minimum, Error> {
        /// Where it takes more, the sample is no help, and plain steps take over.
        const MOST: usize = 6;
        let zero = |a: f64, b: &[f64]| CalibrationSums::at(a, b, first.with_biases);
        let sampled = |a: f64, b: &[f64]| rows.scan_sample(&zero(a, b)).unwrap_or_else(|| zero(a, b));
        let mut all = first.clone();
        // As for the mechanism: what a pass leaves of an error is its square times this, or more where two moves say so.
        let (mut rate, mut last) = (0.01_f64, None);
        for _ in 0..MOST {
            let correction = Correction::new(&all, &sampled(all.a, &all.b));
            let corrected = |a: f64, b: &[f64]| Ok(correction.apply(sampled(a, b)));
            // Always from the same start, so that the precision is learnt along the way that it takes in memory.
            let found = self.minimise(corrected(first.a, &first.b)?, corrected)?;
            let moved = (found.sums.point() - &correction.at).amax();
            rate = last.map_or(rate, |last: f64| rate.max(moved / (last * last)));
            let most = if last.is_some() { 1e-10 } else { 1e-12 };
            if found.converged && rate * moved * moved <= most {
                let sums = CalibrationSums { n: all.n, bins: all.bins, ..found.sums };
                return Ok(Minimum { sums, ..found });
            }
            all = rows.scan(&zero(found.sums.a, &found.sums.b))?;
            last = Some(moved);
        }
        self.minimise(first.clone(), |a, b| rows.scan(&zero(a, b)))
    }
}

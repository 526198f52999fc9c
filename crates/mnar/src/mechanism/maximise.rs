//! Maximises the penalised likelihood of r given x: Newton's method with step halving, and for a stream of which a sample was kept,
//! in few passes over all rows (see `few_passes`).

use super::{Around, ClassAndColumns, FURTHEST, Mechanism, Selection, not_identified};
use crate::error::Error;
use crate::estimate::Stop;
use crate::rows::Rows;
use crate::sums::Tally;
use nalgebra::{DMatrix, DVector};

/// The penalised loss and what else is known at one mechanism.
pub(super) struct Point {
    value: f64,
    gradient: DVector<f64>,
    hessian: DMatrix<f64>,
    /// Of the likelihood alone.
    pub(super) information: DMatrix<f64>,
    /// Σ_U t.
    pub(super) unlabelled: Vec<f64>,
    /// −log likelihood.
    pub(super) loss: f64,
}

/// A maximum, and whether a pass had the tally anyway.
pub(super) struct Maximum {
    pub(super) mechanism: Mechanism,
    pub(super) point: Point,
    pub(super) stop: Stop,
}

/// Priors, as a parabola.
struct Prior {
    centre: DVector<f64>,
    penalty: DMatrix<f64>,
}

impl Prior {
    fn point(&self, theta: &DVector<f64>, sums: Selection) -> Point {
        let off = theta - &self.centre;
        let pull = &self.penalty * &off;
        Point {
            value: sums.loss + 0.5 * off.dot(&pull),
            gradient: sums.gradient() + pull,
            hessian: sums.hessian() + &self.penalty,
            information: sums.information(),
            loss: sums.loss,
            unlabelled: sums.unlabelled,
        }
    }
}

impl Point {
    /// The same, corrected by what all rows have beyond the sample at another point, `off` away.
    fn corrected(mut self, off: &DVector<f64>, all: &Self, sample: &Self) -> Self {
        let (slope, bend) = (&all.gradient - &sample.gradient, &all.hessian - &sample.hessian);
        let turned = bend * off;
        let more = all.value - sample.value + slope.dot(off) + 0.5 * off.dot(&turned);
        self.value += more;
        self.loss += more;
        self.gradient += slope + turned;
        self.hessian += &all.hessian - &sample.hessian;
        self.information += &all.information - &sample.information;
        let pairs = all.unlabelled.iter().zip(&sample.unlabelled);
        self.unlabelled.iter_mut().zip(pairs).for_each(|(mass, (all, sample))| *mass += all - sample);
        self
    }
}

impl ClassAndColumns {
    pub(super) fn maximise<R: Rows>(
        &self,
        rows: &R,
        terms: usize,
        tally: &Tally,
        around: &Around<'_>,
    ) -> Result<Maximum, Error> {
        let k = tally.counts.len();
        let centre = (tally.n_labelled() / tally.n_unlabelled).ln();
        let prior = Prior {
            centre: DVector::from_fn(k + terms, |i, _| if i < k { centre } else { 0.0 }),
            penalty: self.penalty(k, terms),
        };
        let zero = |theta: &DVector<f64>| Selection::at(&Mechanism::from_parameters(theta, k), 0).tilted(around.tilt);
        let all = |theta: &DVector<f64>| Ok(prior.point(theta, rows.scan(&zero(theta))?));
        let start = around.start.map_or_else(|| prior.centre.clone(), Mechanism::parameters);
        let enough = 1e-6 * tally.n();
        let sampled = |theta: &DVector<f64>| rows.scan_sample(&zero(theta)).map(|sums| prior.point(theta, sums));
        let found = match sampled(&start) {
            None => self.newton(all, start, enough)?,
            Some(_) => {
                let sample = |theta: &DVector<f64>| sampled(theta).ok_or_else(not_identified);
                self.in_few_passes(all, sample, start, enough)?
            }
        };
        let (theta, point, stop) = found;
        Ok(Maximum { mechanism: Mechanism::from_parameters(&theta, k), point, stop })
    }

    /// The maximum over all rows, mostly by steps on the sample.
    fn in_few_passes(
        &self,
        all: impl Fn(&DVector<f64>) -> Result<Point, Error>,
        sample: impl Fn(&DVector<f64>) -> Result<Point, Error>,
        start: DVector<f64>,
        enough: f64,
    ) -> Result<(DVector<f64>, Point, Stop), Error> {
        // Where it takes more, the sample is no help, and plain steps take over.
        const MOST: usize = 6;
        let (mut theta, _, _) = self.newton(&sample, start, enough)?;
        let mut here = all(&theta)?;
        let mut passes = 1;
        for iterations in 1..=MOST {
            let there = sample(&theta)?;
            let corrected = |next: &DVector<f64>| Ok(sample(next)?.corrected(&(next - &theta), &here, &there));
            let Ok((next, point, stop)) = self.newton(corrected, theta.clone(), enough) else { break };
            // The expected classes are off by about a hundredth of the last move.
            if stop.converged() && (&next - &theta).amax() <= 1e-8 {
                return Ok((next, point, Stop::Converged { iterations, passes }));
            }
            let found = all(&next)?;
            passes += 1;
            if !stop.converged() || found.value > here.value + 1e-13 * (1.0 + here.value.abs()) {
                break;
            }
            (theta, here) = (next, found);
        }
        let (theta, point, stop) = self.newton(all, theta, enough)?;
        Ok((theta, point, stop.after(passes)))
    }

    /// Newton's method with step halving.
    fn newton(
        &self,
        at: impl Fn(&DVector<f64>) -> Result<Point, Error>,
        start: DVector<f64>,
        enough: f64,
    ) -> Result<(DVector<f64>, Point, Stop), Error> {
        let mut theta = start;
        let mut here = at(&theta)?;
        let mut passes = 1;
        for iterations in 1..=self.max_iterations {
            // Newton where the Hessian allows it, else scoring with the expected information, which never points uphill.
            let newton = here.hessian.clone().cholesky();
            let scoring = || (&here.information + self.penalty_like(&here)).cholesky();
            let step = match newton.or_else(scoring) {
                Some(cholesky) => -cholesky.solve(&here.gradient),
                None => return Err(not_identified()),
            };
            // A step of more than two units on the logit scale leaves the region in which the information holds.
            let longest = step.amax();
            let step = if longest > 2.0 { step * (2.0 / longest) } else { step };
            let mut factor = 1.0;
            loop {
                let next = (&theta + &step * factor).map(|value| value.clamp(-FURTHEST, FURTHEST));
                let there = at(&next)?;
                passes += 1;
                if there.value <= here.value || factor < 1e-6 {
                    let moved = (&next - &theta).amax();
                    let stuck = there.value > here.value;
                    let flat = here.gradient.amax() <= enough;
                    if !stuck {
                        (theta, here) = (next, there);
                    }
                    if moved <= self.tolerance || (stuck && flat) {
                        return Ok((theta, here, Stop::Converged { iterations, passes }));
                    }
                    if stuck {
                        return Ok((theta, here, Stop::NoProgress { iterations, passes }));
                    }
                    break;
                }
                factor /= 2.0;
            }
        }
        Ok((theta, here, Stop::MaxIterations { iterations: self.max_iterations, passes }))
    }

    fn penalty_like(&self, point: &Point) -> DMatrix<f64> {
        let (k, all) = (point.unlabelled.len(), point.gradient.len());
        self.penalty(k, all - k)
    }
}

//! Bootstrap and profile-likelihood intervals. The bootstrap resamples labelled and unlabelled rows together and runs the
//! whole estimate again; the profile likelihood is for a single class.

use crate::error::Error;
use crate::estimate::{Likelihood, PhiEstimate, normal_quantile};
use crate::labels::Class;
use crate::phi::Phi;
use crate::progress::{Progress, Stage};
use crate::rows::Rows;
use crate::shares::ClassShares;
use crate::solver::{Solver, Terms, maximise};
use crate::sums::Tally;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use rayon::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Settings of a bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Number of replicates.
    pub replicates: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// A time after which no replicate is started, once there are this many of them.
    pub until: Option<(Instant, usize)>,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { replicates: 200, seed: 0, until: None }
    }
}

/// Replicates of phi and of the class shares.
#[derive(Clone, Debug)]
pub struct Replicates {
    /// phi of each replicate.
    pub phi: Vec<Phi>,
    /// Class shares of each replicate.
    pub prevalence: Vec<ClassShares>,
    /// Replicates whose estimate failed and were left out (a class lost its labels, for instance).
    pub failed: usize,
}

impl Bootstrap {
    /// Runs `estimate` under random row weights, in parallel; the same seed gives the same replicates on any machine. A
    /// replicate that fails is left out and counted, unless half of them do.
    ///
    /// The weights are independent standard exponentials (the Bayesian bootstrap): every row keeps some weight, so
    /// no class loses its labels and no row is both learnt from and scored by being drawn twice. `estimate` gets the
    /// weights and the number of the replicate, from which it can derive the seed of a new fold plan.
    pub fn run(
        &self,
        n: usize,
        progress: &dyn Progress,
        estimate: impl Fn(&[f64], u64) -> Result<PhiEstimate, Error> + Sync,
    ) -> Result<Replicates, Error> {
        let draws = self.draw(n, progress, estimate)?;
        let (phi, prevalence) = draws.values.into_iter().map(|draw| (draw.phi, draw.prevalence)).unzip();
        Ok(Replicates { phi, prevalence, failed: draws.failed })
    }

    /// Like [`Bootstrap::run`], for anything that can be computed under row weights.
    pub fn draw<T: Send>(
        &self,
        n: usize,
        progress: &dyn Progress,
        compute: impl Fn(&[f64], u64) -> Result<T, Error> + Sync,
    ) -> Result<Draws<T>, Error> {
        progress.begin(Stage::Bootstrap, self.replicates as u64, 0);
        let done = AtomicUsize::new(0);
        let over = || self.until.is_some_and(|(at, fewest)| done.load(Relaxed) >= fewest && Instant::now() >= at);
        let results: Vec<Result<T, Error>> = (0..self.replicates as u64)
            .into_par_iter()
            .filter(|_| !over())
            .map(|replicate| {
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
                rng.set_stream(replicate + 1);
                let weights: Vec<f64> = Exp1.sample_iter(&mut rng).take(n).collect();
                let value = compute(&weights, replicate);
                done.fetch_add(1, Relaxed);
                progress.step();
                value
            })
            .collect();
        progress.end();
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        let made = results.len();
        let mut draws = Draws { values: Vec::with_capacity(results.len()), failed: 0 };
        let mut first_error = None;
        for result in results {
            match result {
                Ok(value) => draws.values.push(value),
                Err(error) => {
                    draws.failed += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if draws.values.len() * 2 < made => Err(error),
            _ => Ok(draws),
        }
    }
}

/// What a bootstrap drew.
#[derive(Clone, Debug)]
pub struct Draws<T> {
    /// The replicates that did not fail.
    pub values: Vec<T>,
    /// The number of those that did.
    pub failed: usize,
}

impl Replicates {
    /// Intervals around `estimate` for phi: Student's t on the logit scale with the replicates' spread. Where replicates
    /// pile up at the boundary phi = 1 there is no such shape, and their percentiles are given.
    pub fn phi_intervals(&self, estimate: &Phi, level: f64) -> Vec<(f64, f64)> {
        self.phi_intervals_resting_on(estimate, level, None)
    }

    /// The same for the class shares.
    pub fn prevalence_intervals(&self, estimate: &ClassShares, level: f64) -> Vec<(f64, f64)> {
        self.prevalence_intervals_resting_on(estimate, level, None)
    }

    /// Intervals of phi; `rows` is the number of rows that each class's rests on.
    pub(crate) fn phi_intervals_resting_on(&self, estimate: &Phi, level: f64, rows: Option<&[f64]>) -> Vec<(f64, f64)> {
        intervals(&columns(&self.phi, Phi::as_slice), estimate.as_slice(), level, rows)
    }

    /// The same for the class shares.
    pub(crate) fn prevalence_intervals_resting_on(
        &self,
        estimate: &ClassShares,
        level: f64,
        rows: Option<&[f64]>,
    ) -> Vec<(f64, f64)> {
        intervals(&columns(&self.prevalence, ClassShares::as_slice), estimate.as_slice(), level, rows)
    }

    /// Standard deviations of phi over the replicates.
    pub fn phi_standard_errors(&self) -> Vec<f64> {
        standard_deviations(&columns(&self.phi, Phi::as_slice))
    }

    /// Standard deviations of the class shares over the replicates.
    pub fn prevalence_standard_errors(&self) -> Vec<f64> {
        standard_deviations(&columns(&self.prevalence, ClassShares::as_slice))
    }

    /// Percentile intervals.
    pub fn phi_percentiles(&self, level: f64) -> Vec<(f64, f64)> {
        columns(&self.phi, Phi::as_slice).into_iter().map(|values| percentile_interval(values, level)).collect()
    }
}

/// The values of each class over the replicates.
fn columns<T>(replicates: &[T], values: impl Fn(&T) -> &[f64]) -> Vec<Vec<f64>> {
    let k = replicates.first().map_or(0, |first| values(first).len());
    (0..k).map(|j| replicates.iter().map(|replicate| values(replicate)[j]).collect()).collect()
}

fn standard_deviations(columns: &[Vec<f64>]) -> Vec<f64> {
    columns.iter().map(|values| mean_and_sd(values).1).collect()
}

pub(crate) fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt())
}

fn percentile_interval(mut values: Vec<f64>, level: f64) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |q: f64| {
        let position = q * (values.len() - 1) as f64;
        let low = position.floor() as usize;
        let high = position.ceil() as usize;
        values[low] + (position - low as f64) * (values[high] - values[low])
    };
    (at((1.0 - level) / 2.0), at((1.0 + level) / 2.0))
}

/// The spread of replicates under exponential weights, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The standard deviation, corrected for the few rows that it rests on.
    pub(crate) sd: f64,
    /// Its degrees of freedom.
    pub(crate) freedom: f64,
}

impl Spread {
    /// Fewer rows, or degrees of freedom, than this say nothing anymore.
    const FEWEST: f64 = 4.0;

    /// The standard deviation `sd` of `count` replicates of a number that rests on `rows` rows: σ⁴/Σu⁴, if u are the
    /// influences of the rows and σ² is the variance. A handful of rows that weigh much make up most of the variance then, and
    ///
    /// - it is not well known: by Satterthwaite's formula it has twice as many degrees of freedom as there are rows;
    /// - the replicates show too little of it. The mean of m rows has a variance of s²/(m − 1), where s² is their mean squared
    ///   deviation; weights of the exponential distribution show s²/(m + 1).
    pub(crate) fn resting_on(rows: f64, sd: f64, count: usize) -> Self {
        let most = count as f64 - 1.0;
        let freedom = (1.0 / (0.5 / rows + 1.0 / most)).clamp(Self::FEWEST.min(most), most);
        let rows = rows.max(Self::FEWEST);
        Self { sd: if rows.is_finite() { sd * ((rows + 1.0) / (rows - 1.0)).sqrt() } else { sd }, freedom }
    }
}

fn intervals(columns: &[Vec<f64>], estimate: &[f64], level: f64, rows: Option<&[f64]>) -> Vec<(f64, f64)> {
    columns
        .iter()
        .zip(estimate)
        .enumerate()
        .map(|(k, (values, &centre))| {
            let logit = |p: f64| (p / (1.0 - p)).ln();
            let back = |x: f64| 1.0 / (1.0 + (-x).exp());
            let on_boundary = values.iter().filter(|value| **value >= 1.0).count() as f64 / values.len() as f64;
            let inside: Vec<f64> = values.iter().copied().filter(|value| *value < 1.0 && *value > 0.0).collect();
            // With a mass at 1 the normal shape is gone: the percentiles remain.
            if on_boundary > (1.0 - level) / 4.0 || centre >= 1.0 || inside.len() < values.len() / 2 {
                let (low, high) = percentile_interval(values.clone(), level);
                return (low.min(centre), high.max(centre));
            }
            // Few replicates know the spread roughly: 20 of them widen the interval by 7%.
            let sd = mean_and_sd(&inside.iter().copied().map(logit).collect::<Vec<_>>()).1;
            let spread = Spread::resting_on(rows.map_or(f64::INFINITY, |rows| rows[k]), sd, inside.len());
            let half = t_quantile(level, spread.freedom as usize) * spread.sd;
            (back(logit(centre) - half), back(logit(centre) + half))
        })
        .collect()
}

/// Wilson's interval of a share that was seen among `rows` rows, which may be an effective number. It stays inside
/// [0, 1] and is not empty at 0 of n.
pub fn wilson(share: f64, rows: f64, level: f64) -> (f64, f64) {
    wilson_at(share, rows, normal_quantile(level))
}

/// The same with a quantile instead of a level.
pub(crate) fn wilson_at(share: f64, rows: f64, z: f64) -> (f64, f64) {
    let scale = 1.0 + z * z / rows;
    let middle = (share + z * z / (2.0 * rows)) / scale;
    let half = z / scale * (share * (1.0 - share) / rows + z * z / (4.0 * rows * rows)).sqrt();
    ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
}

/// The two-sided quantile of Student's t.
pub(crate) fn t_quantile(level: f64, freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64)
        .map_or_else(|_| normal_quantile(level), |t| t.inverse_cdf(0.5 + level / 2.0))
}

/// Which likelihood to profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileOf {
    /// The observed likelihood for fixed theta, of population posteriors.
    Population,
    /// Label counts and the label-shift mixture jointly, of labelled posteriors.
    LabelShift,
}

/// The profile-likelihood interval of a single phi_k: all values whose likelihood, the rest being refitted, is
/// within the chi-square(1) quantile of the best. Conditional on the classifier.
pub fn profile_interval<R: Rows>(
    rows: &R,
    of: ProfileOf,
    class: Class,
    level: f64,
    solver: &Solver,
) -> Result<(f64, f64), Error> {
    let tally = Tally::of(rows)?;
    let profile = Profile { rows, of, class: class.index(), tally: &tally, solver };
    let (phi, best, start) = profile.optimum()?;
    let cut = ChiSquared::new(1.0).expect("one degree of freedom").inverse_cdf(level) / 2.0;
    let deficit = |phi: f64| -> Result<f64, Error> { Ok(best - profile.value(phi, &start)? - cut) };
    let lower = {
        // The count term n_k log phi sends the likelihood to −∞ as phi → 0, so a bracket exists.
        let mut low = phi / 2.0;
        while deficit(low)? < 0.0 {
            low /= 2.0;
        }
        bisect(&deficit, phi, low)?
    };
    const TOP: f64 = 1.0 - 1e-9;
    let upper = if phi >= TOP || deficit(TOP)? <= 0.0 { 1.0 } else { bisect(&deficit, phi, TOP)? };
    Ok((lower, upper))
}

/// Up to this many numbers are walked over a hundred times or so for the intervals of classes at their bound: seconds.
const AFFORDABLE: usize = 40_000_000;

/// [`PhiEstimate::conf_int`], and by profile likelihood for classes at the bound 1, which have no normal limit. NaN where
/// that would take long (many rows, classes and bounds) or does not converge. Conditional on the classifier.
pub fn information_intervals<R: Rows>(
    rows: &R,
    of: ProfileOf,
    estimate: &PhiEstimate,
    level: f64,
) -> Option<Vec<(f64, f64)>> {
    let mut intervals = estimate.conf_int(level)?;
    let numbers = estimate.tally.n() as usize * intervals.len() * estimate.clipped.len();
    if rows.in_memory() && numbers <= AFFORDABLE {
        for &class in &estimate.clipped {
            if let Ok(interval) = profile_interval(rows, of, class, level, &Solver::default()) {
                intervals[class.index()] = interval;
            }
        }
    }
    Some(intervals)
}

/// The point between `inside` (deficit < 0) and `outside` (> 0) where the deficit is zero.
fn bisect(deficit: &impl Fn(f64) -> Result<f64, Error>, mut inside: f64, mut outside: f64) -> Result<f64, Error> {
    for _ in 0..200 {
        let middle = 0.5 * (inside + outside);
        if (inside - outside).abs() <= 1e-12 * inside.abs() || middle == inside || middle == outside {
            break;
        }
        if deficit(middle)? < 0.0 {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    Ok(0.5 * (inside + outside))
}

struct Profile<'a, R> {
    rows: &'a R,
    of: ProfileOf,
    class: usize,
    tally: &'a Tally,
    solver: &'a Solver,
}

impl<R: Rows> Profile<'_, R> {
    /// phi_k at the optimum, the log-likelihood there, and a start for the constrained problems.
    fn optimum(&self) -> Result<(f64, f64, Vec<f64>), Error> {
        let n = self.tally.n();
        match self.of {
            ProfileOf::Population => {
                let solution = Likelihood { solver: *self.solver }.solve(self.rows, self.tally)?;
                Ok((1.0 - solution.v[self.class], solution.value, positive(solution.v)))
            }
            ProfileOf::LabelShift => {
                let pi = self.tally.labelled_shares();
                let terms = Terms {
                    log_v: vec![0.0; pi.len()],
                    log_rest: vec![0.0; pi.len()],
                    cost: pi.iter().map(|pi| n * pi).collect(),
                    held: None,
                };
                // v_j = β_j/π_j, so that Σ β_j s_j/π_j = v·s; alpha is n_j/n.
                let solution = maximise(
                    self.rows,
                    &terms,
                    vec![self.tally.n_unlabelled / n; pi.len()],
                    self.tally.n_unlabelled,
                    self.solver,
                )?;
                let k = self.class;
                let (alpha, beta) = (self.tally.counts[k] / n, pi[k] * solution.v[k]);
                let at_k = self.tally.counts[k] * alpha.ln() - n * alpha;
                Ok((alpha / (alpha + beta), solution.value + at_k, positive(solution.v)))
            }
        }
    }

    /// The log-likelihood with phi_k held and the rest refitted, up to the same constant as [`Profile::optimum`].
    fn value(&self, phi: f64, start: &[f64]) -> Result<f64, Error> {
        let (k, n) = (self.class, self.tally.n());
        match self.of {
            ProfileOf::Population => {
                let terms = Terms { held: Some(k), ..Likelihood::terms(self.tally) };
                let mut start = start.to_vec();
                start[k] = 1.0 - phi;
                Ok(maximise(self.rows, &terms, start, self.tally.n_unlabelled, self.solver)?.value)
            }
            ProfileOf::LabelShift => {
                // β_k = α_k (1−phi)/phi: n_k log α_k − n(α_k + β_k) becomes n_k log v_k − n π_k v_k/(1−phi).
                let pi = self.tally.labelled_shares();
                let count = self.tally.counts[k];
                let mut terms = Terms {
                    log_v: vec![0.0; pi.len()],
                    log_rest: vec![0.0; pi.len()],
                    cost: pi.iter().map(|pi| n * pi).collect(),
                    held: None,
                };
                terms.log_v[k] = count;
                terms.cost[k] = n * pi[k] / (1.0 - phi);
                let solution = maximise(self.rows, &terms, start.to_vec(), self.tally.n_unlabelled, self.solver)?;
                Ok(solution.value + count * (pi[k] * phi / (1.0 - phi)).ln())
            }
        }
    }
}

/// A start away from the boundary, where the multiplicative EM step would stay for ever.
fn positive(v: Vec<f64>) -> Vec<f64> {
    v.into_iter().map(|v| v.max(1e-3)).collect()
}

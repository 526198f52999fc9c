//! Tests whose reference distribution refits the classifier: the paper's likelihood ratio, and the distance of the moment
//! estimator from a constant mechanism, which the paper leaves as future work.
//!
//! Under MCAR the fitted posterior is the law of every label. So complete labels are drawn from it, labels are kept
//! at the MCAR rate, the classifier is fitted again and both statistics are computed again: the classifier's own
//! error is then in the reference as well.

use super::likelihood_ratio::likelihood_ratio_statistic;
use super::{TestResult, chi_square_p, drawn_p};
use crate::error::Error;
use crate::labels::{Class, Labels};
use crate::posteriors::Posteriors;
use crate::progress::{Progress, Stage};
use crate::rows::Sample;
use crate::solver::Solver;
use crate::sums::Tally;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Settings of the bootstrap tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapTest {
    /// Number of replicates.
    pub replicates: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// Solver of the likelihood.
    pub solver: Solver,
}

impl Default for BootstrapTest {
    fn default() -> Self {
        Self { replicates: 199, seed: 0, solver: Solver::default() }
    }
}

/// Both tests, from the same replicates.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapTests {
    /// The likelihood ratio.
    pub likelihood_ratio: TestResult,
    /// The moment estimator.
    pub moments: TestResult,
    /// Mask draws repeated because a class got fewer than two labels.
    pub redrawn: usize,
}

/// Masks are drawn again until every class has this many labels, so that each fold's classifier can know it.
const MIN_LABELS: usize = 2;
const MAX_REDRAWS: usize = 1000;

impl BootstrapTest {
    /// `refit` learns from labels and gives every row posteriors of a classifier that has not seen it. It also gets
    /// the number of the replicate (0 for the data themselves), to draw its folds from.
    pub fn run(
        &self,
        labels: &Labels,
        progress: &dyn Progress,
        refit: impl Fn(&Labels, u64) -> Result<Posteriors, Error> + Sync,
    ) -> Result<BootstrapTests, Error> {
        progress.begin(Stage::Bootstrap, self.replicates as u64, 0);
        let tests = self.tests(labels, progress, refit);
        progress.end();
        tests
    }

    fn tests(
        &self,
        labels: &Labels,
        progress: &dyn Progress,
        refit: impl Fn(&Labels, u64) -> Result<Posteriors, Error> + Sync,
    ) -> Result<BootstrapTests, Error> {
        let posteriors = refit(labels, 0)?;
        let observed = self.statistics(&posteriors, labels)?;
        let draws = (1..=self.replicates as u64)
            .into_par_iter()
            .map(|replicate| {
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
                rng.set_stream(replicate);
                let (drawn, redrawn) = draw_labels(&posteriors, labels, &mut rng)?;
                let refitted = refit(&drawn, replicate)?;
                let statistics = self.statistics(&refitted, &drawn)?;
                progress.step();
                Ok((statistics, redrawn))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let condition = "valid if the classifier is near the truth, for its fitted posterior draws the reference; a strongly shrunk one makes it reject too often";
        let result = |test: &'static str, statistic: f64, df: Option<usize>, pick: fn(&Statistics) -> f64| {
            let reference: Vec<f64> = draws.iter().map(|(statistics, _)| pick(statistics)).collect();
            TestResult {
                test: test.into(),
                statistic,
                df,
                p_value: drawn_p(statistic, &reference),
                p_value_chi_square: df.map(|df| chi_square_p(statistic, df)),
                draws: reference.len(),
                condition: condition.into(),
            }
        };
        let df = labels.n_classes() - 1;
        Ok(BootstrapTests {
            likelihood_ratio: result("lrt-bootstrap", observed.likelihood_ratio, Some(df), |s| s.likelihood_ratio),
            moments: result("moments-bootstrap", observed.moments, None, |s| s.moments),
            redrawn: draws.iter().map(|(_, redrawn)| redrawn).sum(),
        })
    }

    fn statistics(&self, posteriors: &Posteriors, labels: &Labels) -> Result<Statistics, Error> {
        let sample = Sample::new(posteriors, labels)?;
        Ok(Statistics {
            likelihood_ratio: likelihood_ratio_statistic(&sample, &self.solver)?,
            moments: moment_statistic(&Tally::of(&sample)?),
        })
    }
}

struct Statistics {
    likelihood_ratio: f64,
    moments: f64,
}

/// n Σ_k p_k (phi_k − phi)² / (phi (1 − phi)) with phi_k = c_k/p_k (the moment estimator) and phi = n_l/n: Pearson's
/// distance of the moment estimator from the constant mechanism.
fn moment_statistic(tally: &Tally) -> f64 {
    let n = tally.n();
    let constant = tally.n_labelled() / n;
    let sum: f64 = (0..tally.counts.len())
        .map(|k| {
            let share = (tally.labelled_mass[k] + tally.unlabelled_mass[k]) / n;
            share * (tally.counts[k] / n / share - constant).powi(2)
        })
        .sum();
    n * sum / (constant * (1.0 - constant))
}

/// Complete labels by a posterior, kept at the MCAR rate; and how often the mask was drawn again.
pub(super) fn draw_labels(
    posteriors: &Posteriors,
    labels: &Labels,
    rng: &mut ChaCha8Rng,
) -> Result<(Labels, usize), Error> {
    let n = labels.len();
    let rate = labels.n_labelled() as f64 / n as f64;
    let complete: Vec<Class> = (0..n)
        .map(|i| {
            let mut left: f64 = rng.random();
            let row = posteriors.row(i);
            let k = row.iter().position(|p| {
                left -= p;
                left < 0.0
            });
            // Rounding can leave a sliver beyond the last class.
            Class::from(k.unwrap_or(row.len() - 1))
        })
        .collect();
    for redrawn in 0..MAX_REDRAWS {
        let y = complete.iter().map(|class| (rng.random::<f64>() < rate).then_some(*class)).collect();
        let drawn = Labels::allow_degenerate(y, labels.names().to_vec())?;
        if drawn.n_unlabelled() > 0 && drawn.counts().iter().all(|&count| count >= MIN_LABELS) {
            return Ok((drawn, redrawn));
        }
    }
    let rarest = (0..labels.n_classes()).min_by_key(|&k| labels.counts()[k]).expect("at least two classes");
    Err(Error::TooFewLabels {
        class: labels.names()[rarest].clone(),
        found: labels.counts()[rarest],
        needed: 10,
        purpose: "the bootstrap test, which redraws the labels,",
    })
}

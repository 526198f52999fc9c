//! The test of informative labels, with the checks that say whether to believe it.

use super::{About, EstimateSettings, Given, IN_SAMPLE, Recipe, Watch, renormalised};
use crate::crossfit::{FoldPlan, cross_fit};
use crate::diagnose::{Needed, labels_for_power};
use crate::error::Error;
use crate::linear::{SoftmaxRegression, Standardise};
use crate::posteriors::Posteriors;
use crate::rows::Sample;
use crate::solver::Solver;
use crate::sums::Tally;
use crate::test::{
    BootstrapTest, InSampleCheck, PermutationTest, ProfiledRatio, SelfMaskingCheck, TestResult, in_sample_check,
    likelihood_ratio, self_masking_check,
};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The test asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestMethod {
    /// The one whose size holds for the table at hand: the permutation test.
    #[default]
    Auto,
    /// Permute which rows are labelled, within folds.
    Permutation,
    /// The paper's likelihood ratio: on features with the classifier profiled, on predictions with chi-square alone.
    Lrt,
    /// The likelihood ratio with a bootstrap reference that refits.
    LrtBootstrap,
    /// The moment estimator's distance from a constant mechanism, with a bootstrap reference that refits.
    MomentsBootstrap,
}

/// Settings of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestSettings {
    /// The test.
    pub method: TestMethod,
    /// The level below which it rejects.
    pub level: f64,
    /// Permutations of the permutation test.
    pub permutations: usize,
    /// Replicates of the bootstrap tests.
    pub replicates: usize,
    /// Folds of the bootstrap tests that refit on the logits of predictions.
    pub folds: usize,
    /// The classifier of tests that refit.
    pub regression: SoftmaxRegression,
    /// Asks how many labels would give the permutation test this power.
    pub power: Option<f64>,
    /// Seed of every draw.
    pub seed: u64,
}

impl Default for TestSettings {
    fn default() -> Self {
        Self {
            method: TestMethod::Auto,
            level: 0.05,
            permutations: 9999,
            replicates: 199,
            folds: 5,
            regression: SoftmaxRegression::default(),
            power: None,
            seed: 0,
        }
    }
}

/// What a test found.
#[derive(Clone, Debug, Serialize)]
pub struct TestFindings {
    /// The test.
    #[serde(flatten)]
    pub result: TestResult,
    /// Its level.
    pub level: f64,
    /// Does it reject?
    pub reject: bool,
    /// The rows.
    #[serde(flatten)]
    pub about: About,
    /// Folds of the predictions.
    pub folds: usize,
    /// Has the classifier seen the labelled rows?
    pub in_sample: Option<InSampleCheck>,
    /// Does the class alone explain who is labelled?
    pub self_masking: Option<SelfMaskingCheck>,
    /// phi as an estimate with default settings has it, where there is one.
    #[serde(skip)]
    pub phi: Option<Vec<f64>>,
    /// Labels that would give the power asked for.
    pub labels_for_power: Option<Needed>,
    /// Seed of every draw.
    pub seed: u64,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

impl TestSettings {
    /// Tests whether the labels are informative.
    pub fn run(&self, given: &Given<'_>, watch: &dyn Watch) -> Result<TestFindings, Error> {
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(out_of_range("the level", self.level, "between 0 and 1"));
        }
        if self.permutations == 0 {
            return Err(out_of_range("the number of permutations", self.permutations, "at least 1"));
        }
        let sample = Sample::new(given.posteriors, given.labels)?;
        let tally = Tally::of(&sample)?;
        let result = self.result(given, &sample, watch)?;
        let in_sample = in_sample_check(&sample).ok();
        let mut warnings = Vec::new();
        match &given.features {
            Some(_) => warnings.extend(given.redrawn()),
            None if in_sample.is_some_and(|check| check.suspicious) => warnings.push(IN_SAMPLE.to_owned()),
            None => {}
        }
        warnings.extend(renormalised(given.posteriors.renormalised()));
        let labels_for_power = match self.power {
            None => None,
            Some(power) => {
                let test = PermutationTest { permutations: 1, seed: self.seed }.run(&sample, &given.plan)?;
                labels_for_power(&tally, test.statistic, test.df.unwrap_or(1), self.level, power)?
            }
        };
        Ok(TestFindings {
            level: self.level,
            reject: result.p_value <= self.level,
            about: About::from(given.labels),
            folds: given.plan.n_folds(),
            in_sample,
            self_masking: self_masking_check(&sample).ok(),
            phi: default_phi(given).ok(),
            labels_for_power,
            seed: self.seed,
            warnings,
            result,
        })
    }

    fn result(&self, given: &Given<'_>, sample: &Sample<'_>, watch: &dyn Watch) -> Result<TestResult, Error> {
        match (self.method, &given.features) {
            (TestMethod::Auto | TestMethod::Permutation, _) => {
                PermutationTest { permutations: self.permutations, seed: self.seed }.run(sample, &given.plan)
            }
            // On raw data theta is profiled, as eq:stattest_ll has it; predictions are taken as they are.
            (TestMethod::Lrt, Some(features)) => {
                let ratio = ProfiledRatio {
                    regression: self.regression,
                    replicates: self.replicates,
                    seed: self.seed,
                    ..Default::default()
                };
                watch.begins("bootstrap", self.replicates);
                let result = ratio.run_with(features.x, given.labels, || watch.step());
                watch.ends();
                result
            }
            (TestMethod::Lrt, None) => likelihood_ratio(sample, &Solver::default()),
            (TestMethod::LrtBootstrap | TestMethod::MomentsBootstrap, _) => self.bootstrap(given, watch),
        }
    }

    /// The bootstrap tests refit: the classifier on the features, or, where only predictions are given, a softmax
    /// regression on their logits.
    fn bootstrap(&self, given: &Given<'_>, watch: &dyn Watch) -> Result<TestResult, Error> {
        let logits;
        let (x, folds) = match &given.features {
            Some(features) => (features.x, given.plan.n_folds()),
            None => {
                logits = standardised_logits(given.posteriors)?;
                (logits.view(), self.folds)
            }
        };
        let test = BootstrapTest { replicates: self.replicates, seed: self.seed, ..Default::default() };
        watch.begins("bootstrap", self.replicates + 1);
        let tests = test.run(given.labels, |labels, replicate| {
            if watch.stopped() {
                return Err(Error::Interrupted);
            }
            let plan = FoldPlan::for_labels(labels, folds, self.seed.wrapping_add(replicate << 20))?;
            let posteriors = cross_fit(x, labels, &plan, &self.regression, None);
            watch.step();
            posteriors
        });
        watch.ends();
        if watch.stopped() {
            return Err(Error::Interrupted);
        }
        let tests = tests?;
        Ok(if self.method == TestMethod::LrtBootstrap { tests.likelihood_ratio } else { tests.moments })
    }
}

/// phi as an estimate with default settings has it, without intervals: words for a verdict.
fn default_phi(given: &Given<'_>) -> Result<Vec<f64>, Error> {
    let recipe = Recipe::new(&EstimateSettings::default(), given.posteriors.kind())?;
    let (estimate, _) = recipe.run(given.posteriors, given.labels, None)?;
    Ok(estimate.phi.as_slice().to_vec())
}

fn standardised_logits(posteriors: &Posteriors) -> Result<Array2<f64>, Error> {
    let mut logits = posteriors.view().mapv(|p| p.max(crate::calibrate::FLOOR).ln());
    for mut row in logits.rows_mut() {
        let mean = row.mean().unwrap_or(0.0);
        row.mapv_inplace(|value| value - mean);
    }
    Ok(Standardise::learn(logits.view())?.apply(logits.view()))
}

fn out_of_range(name: &'static str, value: impl ToString, range: &'static str) -> Error {
    Error::OutOfRange { name, value: value.to_string(), range }
}

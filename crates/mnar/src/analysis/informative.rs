//! The test of whether labels are informative, and the checks of its conditions.

use super::{About, EstimateSettings, Evidence, Features, Given, Labelling, Verdict, renormalised};
use crate::classify::{SoftmaxRegression, Standardise};
use crate::crossfit::FoldPlan;
use crate::diagnose::{Needed, labels_for_power};
use crate::error::Error;
use crate::phi::Phi;
use crate::posteriors::Posteriors;
use crate::progress::Progress;
use crate::rows::{Rows, Sample};
use crate::solver::Solver;
use crate::sums::Tally;
use crate::test::{
    BootstrapTest, FoldScores, InSampleCheck, PermutationTest, ProfiledRatio, SelfMaskingCheck, TestResult,
    in_sample_check, likelihood_ratio, self_masking_check,
};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The test of whether labels are informative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum TestMethod {
    /// The one whose size holds for the table at hand: the permutation test.
    #[default]
    Auto,
    /// Permute which rows are labelled, within folds.
    Permutation,
    /// The paper's likelihood ratio: on features with the classifier profiled, a bootstrap reference and chi-square
    /// beside it; on predictions with chi-square alone.
    Lrt,
    /// The likelihood ratio with a bootstrap reference that refits.
    LrtBootstrap,
    /// The moment estimator's distance from a constant mechanism, with a bootstrap reference that refits.
    MomentsBootstrap,
}

/// Settings of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    /// Columns that labelling may depend on besides the class.
    pub given: Given,
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
            given: Given::Auto,
            power: None,
            seed: 0,
        }
    }
}

/// A test and its decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestDecision {
    /// The test.
    #[serde(flatten)]
    pub result: TestResult,
    /// The level at which it decides.
    pub level: f64,
    /// Whether it rejects that labels are missing completely at random.
    pub reject: bool,
}

/// What a test found.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TestFindings {
    /// The test and its decision.
    #[serde(flatten)]
    pub decision: TestDecision,
    /// The rows.
    #[serde(flatten)]
    pub about: About,
    /// The number of folds of the predictions.
    pub folds: usize,
    /// Whether the classifier seems to have seen the labelled rows.
    pub in_sample: Option<InSampleCheck>,
    /// Whether the class alone explains who is labelled.
    pub self_masking: Option<SelfMaskingCheck>,
    /// What decided who got labelled, where the posteriors can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The questions behind the verdict, and their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labelling: Option<Labelling>,
    /// phi as an estimate with default settings has it, where there is one.
    #[serde(skip)]
    pub phi: Option<Phi>,
    /// How many labels would give the power asked for.
    pub labels_for_power: Option<Needed>,
    /// Seed of every draw.
    pub seed: u64,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

impl TestSettings {
    /// Tests whether the labels are informative, and decides.
    pub fn decide(&self, evidence: &Evidence<'_>, progress: &dyn Progress) -> Result<TestDecision, Error> {
        self.check_ranges()?;
        let sample = Sample::new(&evidence.posteriors, evidence.labels)?;
        Tally::of(&sample)?;
        let result = self.result(evidence, &sample, progress)?;
        Ok(TestDecision { level: self.level, reject: result.p_value <= self.level, result })
    }

    /// The decision, with checks of its conditions.
    pub fn run(&self, evidence: &Evidence<'_>, progress: &dyn Progress) -> Result<TestFindings, Error> {
        let decision = self.decide(evidence, progress)?;
        let sample = Sample::new(&evidence.posteriors, evidence.labels)?;
        let in_sample = in_sample_check(&sample).ok();
        let mut warnings = evidence.warnings(in_sample);
        warnings.extend(renormalised(evidence.posteriors.renormalised()));
        let labels_for_power = match self.power {
            None => None,
            Some(power) => {
                let test = PermutationTest { permutations: 1, seed: self.seed }.run(&sample, &evidence.plan)?;
                labels_for_power(&Tally::of(&sample)?, test.statistic, test.df.unwrap_or(1), self.level, power)?
            }
        };
        let found = match self.why().run(evidence, progress) {
            Ok(found) => Some(found),
            Err(
                error @ (Error::Cancelled
                | Error::Settings(_)
                | Error::UnknownCovariate { .. }
                | Error::UnusableCovariate { .. }),
            ) => return Err(error),
            // The test stands without an estimate.
            Err(error) => {
                warnings.push(format!("there is no verdict on what decided who got labelled: {error}"));
                None
            }
        };
        let (verdict, labelling, phi) = match found {
            Some(found) => (found.verdict, found.labelling, Some(found.phi)),
            None => (None, None, None),
        };
        Ok(TestFindings {
            verdict,
            labelling,
            decision,
            about: About::from(evidence.labels),
            folds: evidence.plan.n_folds(),
            in_sample,
            self_masking: self_masking_check(&sample).ok(),
            phi,
            labels_for_power,
            seed: self.seed,
            warnings,
        })
    }

    /// The test in flat memory, in two passes over rows that stay where they are: the statistic of the permutation test, against
    /// the chi-square limit of its permutations. `fold` is the position of the number of a row's fold among the given columns,
    /// and the number of folds.
    pub fn run_streamed<R: Rows>(
        &self,
        rows: &R,
        about: About,
        fold: Option<(usize, usize)>,
    ) -> Result<TestFindings, Error> {
        self.check_ranges()?;
        if !matches!(self.method, TestMethod::Auto | TestMethod::Permutation) {
            return Err(Error::Settings(
                "streamed rows have the permutation test only; ask for that, or load the table",
            ));
        }
        if matches!(self.given, Given::Columns(_)) {
            return Err(Error::Settings(
                "the verdict on columns needs the table in memory; estimate the mechanism by these columns instead",
            ));
        }
        let tally = Tally::of(rows)?;
        let result =
            FoldScores::of(rows, fold.map(|(column, _)| column), fold.map_or(1, |(_, folds)| folds))?.test()?;
        let labels_for_power = match self.power {
            None => None,
            Some(power) => labels_for_power(&tally, result.statistic, result.df.unwrap_or(1), self.level, power)?,
        };
        let mut warnings = vec![
            "the table was streamed: the checks of held-out predictions and of self-masking were not run".to_owned(),
        ];
        warnings.extend(renormalised(rows.renormalised()));
        Ok(TestFindings {
            verdict: None,
            labelling: None,
            decision: TestDecision { level: self.level, reject: result.p_value <= self.level, result },
            about,
            folds: fold.map_or(1, |(_, folds)| folds),
            in_sample: None,
            self_masking: None,
            phi: None,
            labels_for_power,
            seed: self.seed,
            warnings,
        })
    }

    /// The estimate that answers what decided who got labelled.
    fn why(&self) -> EstimateSettings {
        EstimateSettings {
            given: self.given.clone(),
            permutations: self.permutations,
            seed: self.seed,
            ..Default::default()
        }
    }

    fn result(
        &self,
        evidence: &Evidence<'_>,
        sample: &Sample<'_>,
        progress: &dyn Progress,
    ) -> Result<TestResult, Error> {
        match (self.method, &evidence.features) {
            (TestMethod::Auto | TestMethod::Permutation, _) => evidence.chance(self.permutations, self.seed),
            // With features, theta is profiled as the paper's statistic has it; predictions are taken as they are.
            (TestMethod::Lrt, Some(features)) => {
                let ratio = ProfiledRatio {
                    regression: self.regression,
                    replicates: self.replicates,
                    seed: self.seed,
                    ..Default::default()
                };
                ratio.run(features.x.view(), evidence.labels, progress)
            }
            (TestMethod::Lrt, None) => likelihood_ratio(sample, &Solver::default()),
            (TestMethod::LrtBootstrap | TestMethod::MomentsBootstrap, _) => self.bootstrap(evidence, progress),
        }
    }

    /// The bootstrap tests refit: the classifier on the features, or, where only predictions are given, a softmax
    /// regression on their logits.
    fn bootstrap(&self, evidence: &Evidence<'_>, progress: &dyn Progress) -> Result<TestResult, Error> {
        let logits;
        let (features, folds) = match &evidence.features {
            Some(features) => (Features { classifier: &self.regression, ..*features }, Some(&evidence.plan)),
            None => {
                logits = standardised_logits(&evidence.posteriors)?;
                (Features { x: &logits, names: &[], classifier: &self.regression }, None)
            }
        };
        let test = BootstrapTest { replicates: self.replicates, seed: self.seed, ..Default::default() };
        let tests = test.run(evidence.labels, progress, |labels, replicate| {
            let seed = self.seed.wrapping_add(replicate << 20);
            let plan = match folds {
                Some(plan) => plan.drawn_again(labels, seed)?,
                None => FoldPlan::for_labels(labels, self.folds, seed)?,
            };
            features.posteriors(labels, &plan, None, seed, &())
        })?;
        Ok(if self.method == TestMethod::LrtBootstrap { tests.likelihood_ratio } else { tests.moments })
    }
}

fn standardised_logits(posteriors: &Posteriors) -> Result<Array2<f64>, Error> {
    let mut logits = posteriors.view().mapv(|p| p.max(crate::calibrate::FLOOR).ln());
    for mut row in logits.rows_mut() {
        let mean = row.mean().unwrap_or(0.0);
        row.mapv_inplace(|value| value - mean);
    }
    Ok(Standardise::learn(logits.view())?.apply(logits.view()))
}

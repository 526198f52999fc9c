//! From a table of features to phi in one call: cross-fit softmax regression, calibrate, estimate by label shift.
//! Bootstraps call it again and again with other row weights.

use crate::calibrate::{Bcts, Calibration};
use crate::crossfit::{FoldPlan, cross_fit};
use crate::error::Error;
use crate::estimate::{Estimator, LabelShift, PhiEstimate};
use crate::labels::Labels;
use crate::linear::SoftmaxRegression;
use crate::posteriors::Posteriors;
use crate::rows::Sample;
use ndarray::ArrayView2;

/// Settings of the pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// Number of folds.
    pub folds: usize,
    /// The classifier.
    pub regression: SoftmaxRegression,
    /// Its calibration; `None` to leave the posteriors as they are.
    pub calibration: Option<Calibration>,
    /// The estimator.
    pub estimator: LabelShift,
    /// Seed of the folds.
    pub seed: u64,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            folds: 5,
            regression: SoftmaxRegression::default(),
            calibration: Some(Calibration::default()),
            estimator: LabelShift::default(),
            seed: 0,
        }
    }
}

/// What the pipeline made.
#[derive(Clone, Debug)]
pub struct PipelineFit {
    /// The folds.
    pub plan: FoldPlan,
    /// Cross-fitted posteriors as the classifier gave them.
    pub raw: Posteriors,
    /// The calibration, if any.
    pub bcts: Option<Bcts>,
    /// Cross-fitted, calibrated posteriors.
    pub posteriors: Posteriors,
    /// The mechanism.
    pub estimate: PhiEstimate,
}

impl Pipeline {
    /// Runs on features `x` (scaled as the ridge penalty should see them), one row a label.
    pub fn run(&self, x: ArrayView2<'_, f64>, labels: &Labels) -> Result<PipelineFit, Error> {
        self.run_on(x, labels, FoldPlan::for_labels(labels, self.folds, self.seed)?, None)
    }

    /// The same on given folds, each row counting `weights[i]` times.
    pub fn run_on(
        &self,
        x: ArrayView2<'_, f64>,
        labels: &Labels,
        plan: FoldPlan,
        weights: Option<&[f64]>,
    ) -> Result<PipelineFit, Error> {
        let raw = cross_fit(x, labels, &plan, &self.regression, weights)?;
        let (bcts, posteriors) = match self.calibration {
            None => (None, raw.clone()),
            Some(calibration) => {
                let bcts = calibration.fit(&Sample::new(&raw, labels)?.with_weights(weights)?)?;
                let posteriors = bcts.apply(&raw)?;
                (Some(bcts), posteriors)
            }
        };
        let estimate = self.estimator.estimate(&Sample::new(&posteriors, labels)?.with_weights(weights)?)?;
        Ok(PipelineFit { plan, raw, bcts, posteriors, estimate })
    }
}

//! Settings of a training run.

use crate::augment::Augment;
use crate::error::TrainError;
use crate::loss::Stabiliser;
use crate::optimiser::Optimiser;
use serde::{Deserialize, Serialize};

/// How the learning rate decreases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// The learning rate stays constant.
    Constant,
    /// Half a cosine, down to 0 at the last step.
    Cosine,
}

impl Schedule {
    /// The factor of the learning rate at a step out of `steps`.
    pub fn factor(self, step: u64, steps: u64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * step as f64 / steps.max(1) as f64).cos()),
        }
    }
}

/// What the confidence threshold of a class adapts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdRule {
    /// The same threshold for all classes.
    Fixed,
    /// tau_0 (phi_k / max phi)^beta: the most observed class has the highest threshold.
    Phi,
    /// The same with class shares instead of phi (the CADR rule).
    Shares,
}

/// The confidence that a pseudo-label needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// What the threshold adapts to.
    pub rule: ThresholdRule,
    /// The threshold tau_0.
    pub tau: f64,
    /// How strongly the threshold adapts; 0 keeps it fixed.
    pub beta: f64,
}

impl Default for Threshold {
    fn default() -> Self {
        Self { rule: ThresholdRule::Fixed, tau: 0.95, beta: 0.5 }
    }
}

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Number of passes over the labelled rows.
    pub epochs: usize,
    /// Labelled rows per step.
    pub batch_labelled: usize,
    /// Unlabelled rows per step.
    pub batch_unlabelled: usize,
    /// The learning rate at the start.
    pub learning_rate: f64,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// How gradients become steps.
    pub optimiser: Optimiser,
    /// Weight of the past in the averaged weights, which are the ones used to predict; 0 for no averaging.
    pub averaging: f64,
    /// Weight of the unlabelled loss.
    pub lambda: f64,
    /// The confidence that a pseudo-label needs.
    pub threshold: Threshold,
    /// Share of the labelled rows held out to select the epoch by their 1/phi-weighted risk.
    pub validation: f64,
    /// Stop when that risk has not improved for this many epochs.
    pub patience: Option<usize>,
    /// Whether and how the weights are stabilised.
    pub stabiliser: Stabiliser,
    /// The augmented views of images; `None` for plain images.
    pub augment: Option<Augment>,
    /// Estimate a given phi again after every so many epochs, from the model as it stands. A phi of every row is kept.
    pub refresh: Option<usize>,
    /// Seed of the initial weights, the batches and the views.
    pub seed: u64,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            epochs: 100,
            batch_labelled: 64,
            batch_unlabelled: 256,
            learning_rate: 1e-3,
            schedule: Schedule::Cosine,
            optimiser: Optimiser::adam(),
            averaging: 0.99,
            lambda: 1.0,
            threshold: Threshold::default(),
            validation: 0.1,
            patience: None,
            stabiliser: Stabiliser::Exact,
            augment: None,
            refresh: None,
            seed: 0,
        }
    }
}

impl TrainSettings {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), TrainError> {
        let fail = |name, value: String, range| Err(TrainError::Setting { name, value, range });
        if self.epochs == 0 {
            return fail("the number of epochs", "0".into(), "at least 1");
        }
        if self.batch_labelled == 0 || self.batch_unlabelled == 0 {
            return fail("a batch size", "0".into(), "at least 1");
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return fail("the learning rate", self.learning_rate.to_string(), "a positive number");
        }
        if !(0.0..1.0).contains(&self.averaging) {
            return fail("the weight of the past in the average", self.averaging.to_string(), "at least 0 and below 1");
        }
        if !(self.lambda >= 0.0 && self.lambda.is_finite()) {
            return fail("lambda", self.lambda.to_string(), "a finite number, at least 0");
        }
        if !(0.0..=1.0).contains(&self.threshold.tau) {
            return fail("the threshold", self.threshold.tau.to_string(), "from 0 to 1");
        }
        if !(0.0..=0.5).contains(&self.validation) {
            return fail("the share of rows for validation", self.validation.to_string(), "from 0 to 0.5");
        }
        if let Stabiliser::Clip(factor) = self.stabiliser
            && (factor.is_nan() || factor < 1.0)
        {
            return fail("the factor at which weights are clipped", factor.to_string(), "at least 1");
        }
        if let Some(augment) = &self.augment {
            augment.check()?;
        }
        Ok(())
    }
}

//! Progress and cancellation hooks for long work.

use crate::remedy::Remedy;
use serde::{Deserialize, Serialize};

/// What long work tells its caller, and how the caller stops it.
///
/// Every method has a default, so an implementation overrides only what it needs; `()` ignores everything.
pub trait Progress: Sync {
    /// A stage of `steps` steps starts (0 if their number is unknown); `done` of them were done by an earlier, interrupted
    /// run.
    fn begin(&self, _stage: Stage, _steps: u64, _done: u64) {}

    /// One more step of the stage is done.
    fn step(&self) {}

    /// One more epoch of training is done.
    fn epoch(&self, _record: &EpochRecord) {}

    /// The stage is over.
    fn end(&self) {}

    /// Something the user should see while the work goes on.
    fn warn(&self, _message: &str) {}

    /// What the user could do about the last warning.
    fn suggest(&self, _remedy: &Remedy) {}

    /// A part of the work is done. `bytes` gives it to a caller that keeps such parts, so that an interrupted run need not do them
    /// again; the same work has the same name whenever it is done.
    fn keep(&self, _name: &str, _bytes: &dyn Fn() -> Vec<u8>) {}

    /// The part of this name that was kept, by this run or by an earlier, interrupted one.
    fn kept(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }

    /// Whether the caller wants to stop. The work then ends with [`Error::Cancelled`](crate::Error::Cancelled), and what can
    /// be resumed is kept.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}

/// A stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stage {
    /// Reading the data.
    Read,
    /// Training one classifier per fold.
    CrossFit,
    /// Estimating the mechanism.
    Estimate,
    /// Testing whether the labels are informative.
    Test,
    /// Resampling rows, for intervals or for the reference of a test.
    Bootstrap,
    /// Training by the observed likelihood (Algorithm 1 of the paper).
    Likelihood,
    /// Training the debiased model.
    Debiased,
    /// Training the biased model for comparison.
    Baseline,
    /// Writing the results.
    Write,
}

impl Stage {
    /// The name of the stage in file names and progress bars.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::CrossFit => "cross-fit",
            Self::Estimate => "estimate",
            Self::Test => "test",
            Self::Bootstrap => "bootstrap",
            Self::Likelihood => "likelihood",
            Self::Debiased => "debiased",
            Self::Baseline => "baseline",
            Self::Write => "write",
        }
    }
}

/// What one epoch of training showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EpochRecord {
    /// Steps taken so far.
    pub step: u64,
    /// Epochs finished so far.
    pub epoch: usize,
    /// Mean risk over the batches of the epoch.
    pub loss: f64,
    /// Loss of the held-out labelled rows weighted by 1/phi, with the averaged network weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_risk: Option<f64>,
    /// Accuracy on the same rows, weighted in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
    /// Learning rate of the last step.
    pub learning_rate: f64,
    /// The mechanism after the epoch.
    pub phi: Vec<f64>,
    /// Seconds spent training so far.
    pub seconds: f64,
}

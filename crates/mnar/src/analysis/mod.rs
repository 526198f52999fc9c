//! From predictions and labels to all that is said about the mechanism: the estimator that suits the posteriors, its
//! calibration, intervals, checks and warnings. The command line and the Python package both run this, so that the
//! same rows give the same numbers in both, to the last bit.
//!
//! ```
//! use mnar::analysis::{EstimateSettings, Given};
//! use mnar::{Labels, PosteriorKind, Posteriors};
//! use ndarray::Array2;
//!
//! let p = Array2::from_shape_fn((200, 2), |(i, k)| if (i % 2 == 0) == (k == 0) { 0.9 } else { 0.1 });
//! let labels = Labels::from_values((0..200).map(|i| match i % 20 {
//!     0 | 2 | 4 | 6 | 8 => Some("sick"),
//!     1 => Some("well"),
//!     _ => None,
//! }))?;
//! let posteriors = Posteriors::new(p, PosteriorKind::Labelled)?;
//! let findings = EstimateSettings::default().run(&Given::predictions(&posteriors, &labels), &())?;
//! assert!(findings.phi[0] > 2.0 * findings.phi[1]);
//! # Ok::<(), mnar::Error>(())
//! ```

mod findings;
mod informative;
mod intervals;
mod recipe;

pub use findings::{About, Findings, IntervalAbout};
pub use informative::{TestFindings, TestMethod, TestSettings};
pub use intervals::{IntervalKind, IntervalMethod, LEVEL};
pub use recipe::{Calibrate, EstimateSettings, Method, Recipe};

use crate::crossfit::FoldPlan;
use crate::labels::Labels;
use crate::linear::SoftmaxRegression;
use crate::posteriors::Posteriors;
use ndarray::ArrayView2;
use std::borrow::Cow;

/// Predictions of partly labelled rows, and how they came about.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// The labels.
    pub labels: &'a Labels,
    /// Class probabilities of every row, as the classifier gave them.
    pub posteriors: &'a Posteriors,
    /// In which fold each row was held out.
    pub plan: Cow<'a, FoldPlan>,
    /// The features, where the predictions were cross-fitted on them and bootstraps can do so again.
    pub features: Option<Features<'a>>,
}

/// What the predictions were learnt from.
#[derive(Clone, Debug)]
pub struct Features<'a> {
    /// One standardised row a label.
    pub x: ArrayView2<'a, f64>,
    /// The names of the columns.
    pub names: &'a [String],
    /// The classifier.
    pub regression: SoftmaxRegression,
}

impl<'a> Given<'a> {
    /// Predictions of a classifier that has seen none of the rows.
    pub fn predictions(posteriors: &'a Posteriors, labels: &'a Labels) -> Self {
        Self { labels, posteriors, plan: Cow::Owned(FoldPlan::single(labels.len())), features: None }
    }

    /// Cross-fitted predictions.
    pub fn with_folds(self, plan: &'a FoldPlan) -> Self {
        Self { plan: Cow::Borrowed(plan), ..self }
    }

    /// Predictions that were cross-fitted on features, so that bootstraps refit the classifier.
    pub fn with_features(self, features: Features<'a>) -> Self {
        Self { features: Some(features), ..self }
    }

    /// A warning, where folds had to be drawn several times.
    fn redrawn(&self) -> Option<String> {
        let times = self.plan.redrawn();
        (times > 0)
            .then(|| format!("the folds were drawn {} times because a class had all its labels in one fold", times + 1))
    }
}

/// Someone who waits for long work, and may lose patience.
pub trait Watch: Sync {
    /// Work of so many steps begins.
    fn begins(&self, _what: &'static str, _steps: usize) {}
    /// A step is done.
    fn step(&self) {}
    /// Nothing more will come.
    fn ends(&self) {}
    /// Should the work be given up? It then returns [`Error::Interrupted`](crate::Error::Interrupted).
    fn stopped(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl Watch for () {}

/// Said wherever labelled rows are scored with suspicious confidence.
const IN_SAMPLE: &str = "labelled rows are scored with more confidence than unlabelled rows of the same \
classes, as if the classifier had been trained on them (or labels favour easy rows); the results cannot be trusted \
then. Use out-of-fold predictions for the labelled rows and name their folds (--fold on the command line)";

/// Rows that single precision rounded are off by less than this; the result counts them, and nobody needs to worry.
const SINGLE_PRECISION: f64 = 1e-5;

/// Said where rows were slightly off the simplex.
fn renormalised(done: crate::posteriors::Renormalised) -> Option<String> {
    (done.largest_drift > SINGLE_PRECISION).then(|| {
        format!("{} rows did not sum to 1 (off by {:.1e} at most) and were renormalised", done.rows, done.largest_drift)
    })
}

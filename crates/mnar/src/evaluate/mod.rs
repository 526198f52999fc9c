//! How good a model really is, when the labels at hand are a biased selection.
//!
//! Metrics over the labelled rows describe the labelled rows. Here every row counts with the label that is expected of it under
//! the mechanism ([`ExpectedLabels`]): a labelled row with its own label, weighted by 1/phi, and an unlabelled row with its
//! class probabilities given that it is unlabelled, whose error the labelled rows correct. Every metric is a function of these
//! counts. Intervals repeat all of it (calibration, phi, counts, metrics) under random row weights.
//!
//! ```
//! use mnar::analysis::Evidence;
//! use mnar::evaluate::{EvaluateSettings, MetricName, Model, Population, Scores};
//! use mnar::{Labels, PosteriorKind, Posteriors};
//! use ndarray::Array2;
//!
//! // 600 rows, a third of them sick. The sick are recognised in two of three cases, and labelled five times as often.
//! let sick = |i: usize| i % 3 == 0;
//! let flagged = |i: usize| if sick(i) { i % 9 != 0 } else { i % 10 == 1 };
//! let p = Array2::from_shape_fn((600, 2), |(i, k)| if flagged(i) == (k == 1) { 0.8 } else { 0.2 });
//! let label = |i: usize| match (sick(i), i * 7 % 20) {
//!     (true, 0..10) => Some("sick"),
//!     (false, 0..2) => Some("well"),
//!     _ => None,
//! };
//! let labels = Labels::with_names((0..600).map(label), vec!["well".into(), "sick".into()])?;
//! let posteriors = Posteriors::new(p, PosteriorKind::Labelled)?;
//!
//! let model = Model { name: "p_".into(), scores: Scores::Probabilities(&posteriors) };
//! let found = EvaluateSettings::default().run(&Evidence::predictions(&posteriors, &labels), &[model], &())?;
//! let accuracy = found.get(MetricName::Accuracy, None, Population::All).expect("an accuracy");
//! // Most labelled rows are sick, and the sick are harder to recognise.
//! assert!(accuracy.naive < accuracy.corrected);
//! # Ok::<(), mnar::Error>(())
//! ```

mod audit;
mod by_columns;
mod catalogue;
mod decisions;
mod expected;
mod intervals;
mod probabilities;
mod ranking;
mod result;
mod run;
mod streamed;

pub use by_columns::KnownMechanism;
pub use catalogue::MetricName;
pub use expected::{Counted, ExpectedLabels, Population};
pub use result::{CalibrationBin, ConfusionMatrix, Curves, Difference, Evaluation, Metric};
pub(crate) use streamed::MetricSums;
pub use streamed::StreamedModel;

use crate::analysis::EstimateSettings;
use crate::labels::Class;
use crate::posteriors::Posteriors;
use serde::{Deserialize, Serialize};

/// A model to evaluate.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    /// Its name in the results.
    pub name: String,
    /// What it says about every row.
    pub scores: Scores<'a>,
}

/// What a model says about every row. It must not have been trained on the labelled rows that it scores.
#[derive(Clone, Copy, Debug)]
pub enum Scores<'a> {
    /// The probability of every class. They are evaluated as they are; decisions are the most probable class.
    Probabilities(&'a Posteriors),
    /// Decisions alone.
    Decisions(&'a [Class]),
}

/// Settings of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluateSettings {
    /// How the mechanism is estimated, the column that groups the rows, the number of replicates (0 for no intervals; by
    /// default up to 200), and the seed.
    pub estimate: EstimateSettings,
    /// Standard errors of a known phi: the replicates draw it, on the logit scale.
    pub phi_se: Option<Vec<f64>>,
    /// The mechanism by class and columns, if it is known. phi and its standard errors are then those of its classes.
    pub mechanism: Option<KnownMechanism>,
    /// Whether unlabelled rows count with their expected labels. Otherwise labelled rows are weighted by 1/phi and nothing else,
    /// which needs no probabilities but is less precise.
    pub augmented: bool,
    /// Whether there are ROC and calibration curves.
    pub curves: bool,
}

impl Default for EvaluateSettings {
    fn default() -> Self {
        Self { estimate: EstimateSettings::default(), phi_se: None, mechanism: None, augmented: true, curves: false }
    }
}

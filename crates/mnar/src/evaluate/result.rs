//! What an evaluation says.

use super::catalogue::MetricName;
use super::expected::Population;
use crate::analysis::{About, IntervalAbout, Verdict};
use crate::phi::Phi;
use crate::shares::ClassShares;
use serde::{Deserialize, Serialize};

/// A metric of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// The metric.
    pub name: MetricName,
    /// The class that it speaks of; `None` for all classes together.
    pub class: Option<String>,
    /// The group of rows; `None` for all groups.
    pub group: Option<String>,
    /// The model.
    pub model: String,
    /// The rows that it speaks of.
    pub population: Population,
    /// The metric of the labelled rows as they are; `None` where it is not defined.
    pub naive: Option<f64>,
    /// The metric of the population; `None` where it is not defined.
    pub corrected: Option<f64>,
    /// Its 95% interval, where there are replicates.
    pub ci95: Option<(f64, f64)>,
}

/// How much higher a metric of one model is than that of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The metric.
    pub name: MetricName,
    /// The class that it speaks of.
    pub class: Option<String>,
    /// The group of rows.
    pub group: Option<String>,
    /// The rows that it speaks of.
    pub population: Population,
    /// The model.
    pub model: String,
    /// The model that it is compared with: the first one.
    pub than: String,
    /// The difference on the labelled rows.
    pub naive: Option<f64>,
    /// The difference in the population.
    pub corrected: Option<f64>,
    /// Its 95% interval, from the same replicates for both models.
    pub ci95: Option<(f64, f64)>,
}

/// Rows by class and decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfusionMatrix {
    /// The model.
    pub model: String,
    /// The group of rows.
    pub group: Option<String>,
    /// The rows that it speaks of.
    pub population: Population,
    /// `naive[k][d]` labelled rows of class k were taken for class d.
    pub naive: Vec<Vec<f64>>,
    /// The expected number of rows of the population. Cells with few rows can be slightly negative: they are sums of weights of
    /// both signs, and are not changed here.
    pub corrected: Vec<Vec<f64>>,
}

/// Curves of a model in the whole population.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The model.
    pub model: String,
    /// For every class, points (false positive rate, true positive rate).
    pub roc: Vec<Vec<(f64, f64)>>,
    /// Bins of the probability of the most probable class.
    pub calibration: Vec<CalibrationBin>,
}

/// Rows whose most probable class has about the same probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// The number of rows.
    pub rows: f64,
    /// The mean probability.
    pub confidence: f64,
    /// The share of right decisions.
    pub accuracy: f64,
}

/// How good models really are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evaluation {
    /// The rows.
    #[serde(flatten)]
    pub about: About,
    /// Reasons not to rely on the corrected numbers, if there are some.
    pub cautions: Vec<String>,
    /// The models, in the order in which they were given.
    pub models: Vec<String>,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// Every other model compared with the first.
    pub differences: Vec<Difference>,
    /// Confusion matrices.
    pub confusion: Vec<ConfusionMatrix>,
    /// ROC and calibration curves of models that give probabilities.
    pub curves: Vec<Curves>,
    /// The column that groups the rows, where one was named.
    pub by: Option<String>,
    /// P(labelled | class).
    pub phi: Phi,
    /// 95% intervals of phi, where there are replicates.
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// The class shares of the whole population.
    pub prevalence: ClassShares,
    /// How phi was estimated; `known` where it was given, `none` where no label is missing.
    pub method: String,
    /// The columns that labelling depends on besides the class.
    pub given: Vec<String>,
    /// Whether the unlabelled rows count with their expected labels, or the labelled rows are only weighted.
    pub augmented: bool,
    /// How many unweighted labels the labels are worth when they are weighted by 1/phi.
    pub effective_sample_size: f64,
    /// How the intervals were made.
    pub interval: IntervalAbout,
    /// What decided who got labelled, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Seed of every draw.
    pub seed: u64,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

impl Evaluation {
    /// A metric of the first model over all groups.
    pub fn get(&self, name: MetricName, class: Option<&str>, population: Population) -> Option<&Metric> {
        self.metrics.iter().find(|metric| {
            metric.name == name
                && metric.class.as_deref() == class
                && metric.population == population
                && metric.group.is_none()
                && Some(&metric.model) == self.models.first()
        })
    }
}

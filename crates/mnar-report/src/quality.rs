//! How good the classifier of a run is in the whole population: out-of-fold predictions of all labelled rows, evaluated under the
//! mechanism.

use crate::evaluation::words;
use crate::evaluation_page::large_metric;
use crate::report::{Report, Training};
use crate::table::{TextTable, interval, number};
use maud::{Markup, html};
use mnar::analysis::IntervalAbout;
use mnar::evaluate::{Difference, Evaluation, Metric, MetricName, Population};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the numbers are an answer to.
const QUESTION: &str = "How good is the model, corrected for who was labelled?";

/// Metrics of the classifier that was cross-fitted: every labelled row is scored by a classifier that was trained without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct OutOfFold {
    /// The classifier, such as "boosted trees".
    pub classifier: String,
    /// Whether the final model of the run is this classifier, trained on all labels.
    #[serde(default)]
    pub is_final_model: bool,
    /// The number of labels that the corrected metrics rest on.
    pub rows: usize,
    /// How the mechanism was estimated; `audit` where the metrics rest on audited rows.
    pub method: String,
    /// Metrics of the model `debiased`, whose probabilities are corrected for the mechanism, and of `biased`, the same
    /// classifier as the labels taught it.
    pub metrics: Vec<Metric>,
    /// How much higher the metrics of `debiased` are than those of `biased`, on the same rows and replicates.
    pub differences: Vec<Difference>,
    /// How the intervals were made.
    pub interval: IntervalAbout,
}

impl OutOfFold {
    /// The name of the model whose probabilities are corrected for the mechanism.
    pub const DEBIASED: &'static str = "debiased";
    /// The name of the same model without the correction.
    pub const BIASED: &'static str = "biased";

    /// What an evaluation of the models [`OutOfFold::BIASED`] and [`OutOfFold::DEBIASED`] says about all classes together.
    pub fn new(classifier: impl Into<String>, found: Evaluation) -> Self {
        Self {
            classifier: classifier.into(),
            is_final_model: false,
            rows: found.about.n_labelled,
            method: found.method,
            metrics: found.metrics.into_iter().filter(|m| m.class.is_none() && m.group.is_none()).collect(),
            differences: found.differences.into_iter().filter(|d| d.class.is_none() && d.group.is_none()).collect(),
            interval: found.interval,
        }
    }

    /// The same, if the final model of the run is this classifier.
    pub fn with_final_model(self, is_final_model: bool) -> Self {
        Self { is_final_model, ..self }
    }

    /// A metric of the debiased classifier, with its place in the list.
    fn metric(&self, name: MetricName) -> Option<(usize, &Metric)> {
        let is = |metric: &Metric| {
            metric.name == name && metric.model == Self::DEBIASED && metric.population == Population::All
        };
        self.metrics.iter().enumerate().find(|(_, metric)| is(metric))
    }

    /// What the correction adds to a metric.
    fn difference(&self, name: MetricName) -> Option<&Difference> {
        self.differences.iter().find(|difference| {
            difference.name == name && difference.model == Self::DEBIASED && difference.population == Population::All
        })
    }

    /// Which model the numbers belong to.
    fn whose(&self, training: Option<&Training>) -> String {
        let labels = if self.method == "audit" { "audited rows" } else { "labels" };
        let scored = format!(
            "These are the numbers of {}, cross-fitted: every labelled row is scored by a classifier that was trained without \
             it, and its probabilities are corrected for the mechanism. They rest on {} {labels}.",
            self.classifier, self.rows
        );
        let last = match (self.is_final_model, training) {
            (true, _) => " The model of this run is the same classifier, trained on all labels.".to_owned(),
            (false, Some(training)) => {
                let parts = training.parts().unwrap_or_else(|| "a network".to_owned());
                format!(
                    " The model of this run is another one, {parts}: the accuracy on held-out rows is its own, and rests on fewer labels."
                )
            }
            (false, None) => String::new(),
        };
        scored + &last
    }

    /// Shares that must lie between 0 and 1.
    pub(crate) fn shares(&self) -> impl Iterator<Item = f64> + '_ {
        let is_share = |name| !matches!(name, MetricName::LogLoss | MetricName::Brier | MetricName::CalibrationSlope);
        let metrics = self.metrics.iter().filter(move |metric| is_share(metric.name));
        metrics.flat_map(|metric| metric.naive.into_iter().chain(metric.corrected))
    }
}

/// The metrics that are shown; the JSON has more.
const SHOWN: [MetricName; 4] =
    [MetricName::Accuracy, MetricName::BalancedAccuracy, MetricName::Auc, MetricName::LogLoss];

impl Report {
    /// The metrics of the cross-fitted classifier as text.
    pub(crate) fn quality_text(&self) -> String {
        let Some(found) = &self.evaluation else { return String::new() };
        let mut table = TextTable::new(&["", "naive", "corrected", "95% interval", "by debiasing"]);
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), number);
        let between = |ends: Option<(f64, f64)>| ends.map_or("-".to_owned(), interval);
        for name in SHOWN {
            let Some((_, metric)) = found.metric(name) else { continue };
            let difference = found.difference(name);
            table.row(vec![
                words(name, None),
                shown(metric.naive),
                shown(metric.corrected),
                between(metric.ci95),
                difference.and_then(|d| d.corrected).map_or("-".to_owned(), |d| format!("{d:+.4}")),
            ]);
        }
        format!(
            "\n{QUESTION}\n{}{}\n{}Naive: the labelled rows as they are. Corrected: all rows.\n",
            table.render(),
            found.whose(self.training.as_ref()),
            gain(found).map_or_else(String::new, |sentence| sentence + "\n"),
        )
    }

    /// The metrics of the cross-fitted classifier, large.
    pub(crate) fn quality_block(&self) -> Markup {
        let Some(found) = &self.evaluation else { return html! {} };
        html! {
            h3 { (QUESTION) }
            dl.numbers {
                @for name in SHOWN {
                    @if let Some((at, metric)) = found.metric(name) { (large_metric(metric, &format!("evaluation.metrics.{at}"))) }
                }
            }
            @if let Some(sentence) = gain(found) { p { (sentence) } }
            p.quiet { (found.whose(self.training.as_ref())) }
        }
    }
}

/// What debiasing changes, in a sentence.
fn gain(found: &OutOfFold) -> Option<String> {
    let difference = found.difference(MetricName::Accuracy)?;
    let points = |value: f64| format!("{:+.1}", 100.0 * value);
    let change = difference.corrected?;
    let range = difference.ci95.map_or_else(String::new, |(low, high)| {
        format!(" (95% interval {} to {}, on the same rows)", points(low), points(high))
    });
    Some(format!(
        "Correcting its probabilities for who was labelled changes the accuracy by {} percentage points{range}.",
        points(change)
    ))
}

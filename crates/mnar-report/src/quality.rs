//! How good the classifier of a run is in the whole population: out-of-fold predictions of all labelled rows, evaluated under the
//! mechanism.

use crate::evaluation::words;
use crate::figure::{Cell, Table};
use crate::html::table;
use crate::line::{Line, percent};
use crate::report::{Report, Training};
use crate::table::cut;
use crate::words::percents;
use maud::{Markup, html};
use mnar::analysis::IntervalAbout;
use mnar::evaluate::{Difference, Evaluation, Metric, MetricName, Population};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The column that groups the rows, where one was named; the accuracy of every group is among the metrics then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl OutOfFold {
    /// The name of the model whose probabilities are corrected for the mechanism.
    pub const DEBIASED: &'static str = "debiased";
    /// The name of the same model without the correction.
    pub const BIASED: &'static str = "biased";

    /// What an evaluation of the models [`OutOfFold::BIASED`] and [`OutOfFold::DEBIASED`] says about all classes together, and
    /// about the accuracy in groups.
    pub fn new(classifier: impl Into<String>, found: Evaluation) -> Self {
        let kept =
            |metric: &Metric| metric.class.is_none() && (metric.group.is_none() || metric.name == MetricName::Accuracy);
        Self {
            classifier: classifier.into(),
            is_final_model: false,
            rows: found.about.n_labelled,
            method: found.method,
            metrics: found.metrics.into_iter().filter(kept).collect(),
            differences: found.differences.into_iter().filter(|d| d.class.is_none() && d.group.is_none()).collect(),
            interval: found.interval,
            by: found.by,
        }
    }

    /// The same, if the final model of the run is this classifier.
    pub fn with_final_model(self, is_final_model: bool) -> Self {
        Self { is_final_model, ..self }
    }

    /// A metric of the debiased classifier, with its place in the list.
    fn metric(&self, name: MetricName) -> Option<(usize, &Metric)> {
        let is = |metric: &Metric| {
            metric.name == name
                && metric.model == Self::DEBIASED
                && metric.population == Population::All
                && metric.group.is_none()
        };
        self.metrics.iter().enumerate().find(|(_, metric)| is(metric))
    }

    /// What the correction adds to a metric.
    fn difference(&self, name: MetricName) -> Option<&Difference> {
        self.differences.iter().find(|difference| is_gain(difference, name))
    }

    /// What stands above the numbers.
    fn heading(&self) -> String {
        match self.is_final_model {
            true => format!("More about the final model: {}, cross-fitted", self.classifier),
            false => format!("More about the cross-fitted classifier: {}", self.classifier),
        }
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
                match training.debiased.held_out {
                    Some(_) => format!(
                        " The model of this run is another one, {parts}: the accuracy on held-out rows is its own, and rests on fewer labels."
                    ),
                    None => format!(
                        " The model of this run is another one, {parts}, trained on all labels: none was held out to judge it by."
                    ),
                }
            }
            (false, None) => String::new(),
        };
        scored + &last
    }

    /// The accuracy, naive and corrected, for a paper.
    pub(crate) fn sentence(&self) -> String {
        let Some((_, metric)) = self.metric(MetricName::Accuracy) else { return String::new() };
        let (Some(naive), Some(corrected)) = (metric.naive, metric.corrected) else { return String::new() };
        let interval = metric.ci95.map_or_else(String::new, |ends| format!(" (95% interval {})", percents(ends)));
        format!(
            " Corrected for who was labelled, the accuracy of {} is {}{interval}; on the labelled rows as they are it is {}.",
            self.classifier,
            percent(corrected),
            percent(naive)
        )
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

/// What a metric says, for readers who do not know its name.
fn meaning(name: MetricName) -> &'static str {
    match name {
        MetricName::Accuracy => "rows whose most probable class is right",
        MetricName::BalancedAccuracy => "the same, with every class counting alike",
        MetricName::Auc => "how well classes are ranked: 0.5 is guessing, 1 is perfect",
        MetricName::LogLoss => "how far the probabilities are off: lower is better",
        _ => "",
    }
}

impl Report {
    /// The accuracy of the models that were trained and of the classifier that was cross-fitted, one line each: the final model
    /// first, which may be that classifier. Where few rows were held out, its accuracy is a rough guess and comes last: on 23 rows
    /// of the Pima table it was 88%, and 76% by cross-fitting.
    pub(crate) fn quality_lines(&self) -> Vec<Line> {
        let (mut lines, cross_fitted) = (self.held_out_lines(), self.cross_fitted_line());
        let first = self.evaluation.as_ref().is_some_and(|found| found.is_final_model) || self.held_out_is_rough();
        lines.splice(if first { 0..0 } else { lines.len()..lines.len() }, cross_fitted);
        lines
    }

    /// Whether the interval of the final model's accuracy is more than twice as wide as that of the cross-fitted classifier.
    fn held_out_is_rough(&self) -> bool {
        let width = |(low, high): (f64, f64)| high - low;
        let held_out = self.training.as_ref().and_then(|training| training.debiased.held_out?.accuracy_ci95);
        let found = self.evaluation.as_ref().and_then(|found| found.metric(MetricName::Accuracy)?.1.ci95);
        held_out.zip(found).is_some_and(|(held_out, found)| width(held_out) > 2.0 * width(found))
    }

    /// The accuracy of the classifier that was cross-fitted.
    fn cross_fitted_line(&self) -> Option<Line> {
        let found = self.evaluation.as_ref()?;
        let (at, metric) = found.metric(MetricName::Accuracy)?;
        let (corrected, naive) = (metric.corrected?, metric.naive?);
        let whose = match found.is_final_model {
            true => format!("The final model, {}, cross-fitted: accuracy ", found.classifier),
            false => format!("Cross-fitted {}: accuracy ", found.classifier),
        };
        let path = format!("evaluation.metrics.{at}");
        let mut line = Line::new(whose).percent(corrected, format!("{path}.corrected")).words(" among all rows");
        if let Some(ends) = metric.ci95 {
            line = line.words(" (95% interval ").percents(ends, &format!("{path}.ci95")).words(")");
        }
        Some(line.words("; ").percent(naive, format!("{path}.naive")).words(" among the labelled rows."))
    }

    /// The accuracy of the models that were trained, on rows that they have not seen.
    fn held_out_lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let hidden = if self.truth.is_some() { "rows whose labels were hidden" } else { "held-out rows" };
        for (name, path, model) in self.models().into_iter().rev() {
            let Some(held_out) = model.held_out else { continue };
            let whose = match name {
                "debiased" => "The final, debiased model: accuracy ".to_owned(),
                name => format!("The {name} model, for comparison: accuracy "),
            };
            let mut line = Line::new(whose).percent(held_out.accuracy, format!("{path}.held_out.accuracy"));
            if let Some(ends) = held_out.accuracy_ci95 {
                line = line.words(" (").percents(ends, &format!("{path}.held_out.accuracy_ci95")).words(")");
            }
            lines.push(
                line.words(" on ")
                    .number(held_out.rows as f64, held_out.rows.to_string(), format!("{path}.held_out.rows"))
                    .words(format!(" {hidden}.")),
            );
        }
        lines
    }

    /// How good the model is: naive beside corrected, by group where there are groups.
    pub(crate) fn quality_block(&self) -> Markup {
        let training = self.training.as_ref();
        let lines = self.quality_lines();
        html! {
            @if lines.is_empty() { p { "No model was evaluated." } }
            ul.plain { @for line in &lines { li { (line) } } }
            @if let Some(found) = &self.evaluation {
                h3 { (found.heading()) }
                p.quiet { (found.whose(training)) }
                (table(&found.table(), "Metrics of the cross-fitted classifier"))
                p.quiet { "Naive: the labelled rows as they are. Corrected: all rows, each counting with the label that is expected of it. Debiasing: what correcting the probabilities for who was labelled changes." }
                @if let Some(sentence) = gain(found) { p { (sentence) } }
                @if let (Some(by), Some(groups)) = (&found.by, found.group_table()) {
                    h3 { "By " code { (cut(by, 60)) } }
                    (table(&groups, &format!("Metrics by {}", cut(by, 60))))
                }
            }
            @if let Some(parts) = training.and_then(Training::parts) { p { "The debiased model is " (parts) "." } }
            @if let Some(sentence) = training.and_then(|training| training.own_phi(&self.findings)) { p { (sentence) } }
            @if let Some(sentence) = training.and_then(|training| training.refined_phi(&self.findings)) { p { (sentence) } }
        }
    }
}

/// Lines of the table of groups.
const GROUP_LINES: usize = 60;

impl OutOfFold {
    /// All classes and rows together.
    fn table(&self) -> Table {
        let line = |name: MetricName| {
            let (at, metric) = self.metric(name)?;
            let path = format!("evaluation.metrics.{at}");
            let difference = self.differences.iter().position(|d| is_gain(d, name));
            let change = difference.and_then(|at| Some((at, self.differences[at].corrected?)));
            Some(vec![
                Cell::Term { name: words(name, None), meaning: meaning(name) },
                Cell::maybe(metric.naive, format!("{path}.naive")),
                Cell::maybe(metric.corrected, format!("{path}.corrected")),
                Cell::interval(metric.ci95, format!("{path}.ci95")),
                change.map_or_else(
                    || Cell::text("–"),
                    |(at, value)| Cell::Number {
                        value,
                        text: format!("{value:+.4}"),
                        path: Some(format!("evaluation.differences.{at}.corrected")),
                    },
                ),
            ])
        };
        let heading = ["metric", "naive", "corrected", "95% interval", "debiasing"];
        Table { heading: heading.map(str::to_owned).to_vec(), lines: SHOWN.into_iter().filter_map(line).collect() }
    }

    /// The accuracy of every group.
    fn group_table(&self) -> Option<Table> {
        let by = self.by.as_ref()?;
        let is = |metric: &Metric| {
            metric.name == MetricName::Accuracy
                && metric.model == Self::DEBIASED
                && metric.population == Population::All
        };
        let of_groups = self.metrics.iter().enumerate().filter(|(_, metric)| is(metric));
        let line = |(at, metric): (usize, &Metric)| {
            let path = format!("evaluation.metrics.{at}");
            Some(vec![
                Cell::text(metric.group.as_ref()?),
                Cell::maybe(metric.naive, format!("{path}.naive")),
                Cell::maybe(metric.corrected, format!("{path}.corrected")),
                Cell::interval(metric.ci95, format!("{path}.ci95")),
            ])
        };
        let lines: Vec<_> = of_groups.filter_map(line).take(GROUP_LINES).collect();
        let heading = vec![cut(by, 40), "naive accuracy".into(), "corrected".into(), "95% interval".into()];
        (!lines.is_empty()).then_some(Table { heading, lines })
    }
}

fn is_gain(difference: &Difference, name: MetricName) -> bool {
    difference.name == name
        && difference.model == OutOfFold::DEBIASED
        && difference.population == Population::All
        && difference.group.is_none()
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

//! What a run found: one value, from which the text, the JSON and the page are made.

use crate::more_labels::MoreLabels;
use crate::next::NextStep;
use crate::quality::OutOfFold;
use crate::table::number;
use base64::Engine as _;
use mnar::analysis::{Findings, TestDecision};
use mnar::progress::EpochRecord;
use mnar::{ClassShares, Phi};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the JSON layout. Fields may be added under the same number; removing a field or changing its meaning
/// raises it.
pub const SCHEMA: u32 = 2;

/// Everything that a run found, and how to repeat it. `report.json` holds this value.
///
/// In the JSON, the keys of [`Provenance`], [`Findings`] and [`TestDecision`] stand side by side at the top level. The
/// seed and the warnings of the run are those of the findings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Report {
    /// The version of the JSON layout, [`SCHEMA`].
    pub schema: u32,
    /// Where the report comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// What was found about the mechanism.
    #[serde(flatten)]
    pub findings: Findings,
    /// The test of whether the labels are informative, if it was run.
    #[serde(flatten)]
    pub test: Option<TestDecision>,
    /// How good the cross-fitted classifier is in the whole population, if it was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<OutOfFold>,
    /// The models that were trained, if any.
    #[serde(default)]
    pub training: Option<Training>,
    /// The unlabelled rows whose class is least certain, the least certain one first.
    #[serde(default)]
    pub uncertain: Vec<UncertainRow>,
    /// The truth, if labels were hidden on purpose.
    #[serde(default)]
    pub truth: Option<Truth>,
    /// How much labels of rows drawn at random would narrow the intervals, where that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_labels: Option<MoreLabels>,
    /// What to do next, in order, with commands where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextStep>,
}

impl Report {
    /// A report of findings, without a test, models or uncertain rows.
    ///
    /// What the findings hold of single rows is dropped: a report describes rows but does not hold them.
    pub fn new(provenance: Provenance, mut findings: Findings) -> Self {
        findings.calibrated = None;
        findings.row_phi = None;
        Self {
            schema: SCHEMA,
            provenance,
            findings,
            test: None,
            evaluation: None,
            training: None,
            uncertain: Vec::new(),
            truth: None,
            more_labels: None,
            next: Vec::new(),
        }
    }

    /// The same report with the test of whether the labels are informative.
    pub fn with_test(self, test: impl Into<Option<TestDecision>>) -> Self {
        Self { test: test.into(), ..self }
    }

    /// The same report with what the cross-fitted classifier is worth in the whole population.
    pub fn with_evaluation(self, evaluation: impl Into<Option<OutOfFold>>) -> Self {
        Self { evaluation: evaluation.into(), ..self }
    }

    /// The same report with the models that were trained.
    pub fn with_training(self, training: impl Into<Option<Training>>) -> Self {
        Self { training: training.into(), ..self }
    }

    /// The same report with the unlabelled rows whose class is least certain, the least certain one first.
    pub fn with_uncertain(self, uncertain: Vec<UncertainRow>) -> Self {
        Self { uncertain, ..self }
    }

    /// The same report with what more labels would tell.
    pub fn with_more_labels(self, more_labels: impl Into<Option<MoreLabels>>) -> Self {
        Self { more_labels: more_labels.into(), ..self }
    }

    /// The same report with the truth that the labels hide.
    pub fn with_truth(self, truth: impl Into<Option<Truth>>) -> Self {
        Self { truth: truth.into(), ..self }
    }

    /// The names of the classes.
    pub(crate) fn classes(&self) -> &[String] {
        &self.findings.about.classes
    }

    /// Whether every row has a label.
    pub(crate) fn nothing_missing(&self) -> bool {
        self.findings.about.n_labelled == self.findings.about.n
    }

    /// The biased and the debiased model, with their names and their paths in the JSON.
    pub(crate) fn models(&self) -> Vec<(&'static str, &'static str, &Model)> {
        let Some(training) = &self.training else { return Vec::new() };
        let baseline = training.baseline.iter().map(|model| ("biased", "training.baseline", model));
        baseline.chain([("debiased", "training.debiased", &training.debiased)]).collect()
    }
}

/// Where a report comes from: the data, the command, the settings and the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Provenance {
    /// The version of mnar that made the report.
    pub version: String,
    /// The name of the data.
    pub title: String,
    /// When the report was made, as an RFC 3339 time in UTC; empty if unknown.
    #[serde(default)]
    pub created: String,
    /// The command that made the report, if it was a command.
    #[serde(default)]
    pub command: Option<String>,
    /// The settings of the run.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// The device that computed, and for a CPU the instruction set of the kernels.
    pub computed_on: String,
    /// Wall time of the run in seconds.
    pub seconds: f64,
}

impl Provenance {
    /// The provenance of a report on these data, made by this version of mnar on the CPU.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            title: title.into(),
            computed_on: "cpu".to_owned(),
            ..Self::default()
        }
    }

    /// The same with the time at which the report was made, as an RFC 3339 time in UTC.
    pub fn with_created(self, created: impl Into<String>) -> Self {
        Self { created: created.into(), ..self }
    }

    /// The same with the command that made the report.
    pub fn with_command(self, command: impl Into<Option<String>>) -> Self {
        Self { command: command.into(), ..self }
    }

    /// The same with the settings of the run.
    pub fn with_settings(self, settings: Map<String, Value>) -> Self {
        Self { settings, ..self }
    }

    /// The same with the device that computed.
    pub fn with_computed_on(self, computed_on: impl Into<String>) -> Self {
        Self { computed_on: computed_on.into(), ..self }
    }

    /// The same with the wall time of the run.
    pub fn with_seconds(self, seconds: f64) -> Self {
        Self { seconds, ..self }
    }
}

/// The models of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Training {
    /// The mechanism that the weights of the debiased model ended with.
    pub phi: Phi,
    /// The debiased model.
    pub debiased: Model,
    /// The biased model, trained on the labels as they are for comparison.
    #[serde(default)]
    pub baseline: Option<Model>,
    /// Other classifiers that the debiased model is made of, and how much they count; what is left of 1 is the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Weighted>,
}

/// A part of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Weighted {
    /// The name of the classifier, such as "boosted trees".
    pub classifier: String,
    /// How much it counts, from 0 to 1.
    pub weight: f64,
}

/// A weight below this is rounding.
const WHOLE: f64 = 1e-9;

impl Training {
    /// A debiased model and the mechanism that its weights ended with.
    pub fn new(phi: Phi, debiased: Model) -> Self {
        Self { phi, debiased, baseline: None, beside: Vec::new() }
    }

    /// The same with other classifiers that count this much beside the network.
    pub fn with_beside<'a>(self, beside: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let weighted = |(classifier, weight): (&str, f64)| Weighted { classifier: classifier.to_owned(), weight };
        Self { beside: beside.into_iter().map(weighted).collect(), ..self }
    }

    /// Whether the debiased model is this classifier and nothing else.
    pub fn is_alone(&self, classifier: &str) -> bool {
        matches!(self.beside.as_slice(), [only] if only.classifier == classifier && self.network_weight() < WHOLE)
    }

    /// How much the network counts.
    fn network_weight(&self) -> f64 {
        1.0 - self.beside.iter().map(|part| part.weight).sum::<f64>()
    }

    /// phi of the model by class, if it is another one than that of the findings.
    pub(crate) fn own_phi(&self, findings: &Findings) -> Option<String> {
        const SHOWN: usize = 6;
        if self.phi == findings.phi || findings.row_phi.is_some() || findings.mechanism.is_some() {
            return None;
        }
        let classes = findings.about.classes.iter().zip(self.phi.iter());
        let shown: Vec<String> = classes.take(SHOWN).map(|(class, phi)| format!("{class} {}", number(*phi))).collect();
        let more = if self.phi.len() > SHOWN { ", ..." } else { "" };
        Some(format!("The model was trained with phi of its own: {}{more}.", shown.join(", ")))
    }

    /// Which model phi comes from, where the trained one was asked too.
    pub(crate) fn refined_phi(&self, findings: &Findings) -> Option<&'static str> {
        findings.refinement.as_ref().map(|refinement| match refinement.agrees {
            true => "phi and the class shares follow from the trained model, whose estimate agrees with that of the cross-fitted classifier within chance. The intervals are those of the cross-fitted classifier, extended where they did not contain the new estimate.",
            false => "phi and the class shares follow from the cross-fitted classifier. Those of the trained model were not taken over: they differ by more than chance, leave a class without unlabelled rows, or did not converge.",
        })
    }

    /// What the debiased model is made of, where it is not the network alone.
    pub(crate) fn parts(&self) -> Option<String> {
        let network = self.network_weight();
        let mut parts: Vec<(&str, f64)> =
            self.beside.iter().map(|part| (part.classifier.as_str(), part.weight)).collect();
        if network >= WHOLE {
            parts.push(("network", network));
        }
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        match (self.beside.is_empty(), parts.as_slice()) {
            (true, _) => None,
            (_, [(only, _)]) => Some(format!("made of {only}")),
            (_, parts) => {
                let said: Vec<String> =
                    parts.iter().map(|(name, weight)| format!("{:.0}% {name}", 100.0 * weight)).collect();
                said.split_last().map(|(last, first)| format!("{} and {last}", first.join(", ")))
            }
        }
    }

    /// The same with a biased model for comparison.
    pub fn with_baseline(self, baseline: impl Into<Option<Model>>) -> Self {
        Self { baseline: baseline.into(), ..self }
    }
}

/// How a model was trained, and how well it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Model {
    /// Why training ended.
    pub ended: Ended,
    /// The epoch whose weights were chosen; 0 for a model that is not trained in epochs.
    pub chosen_epoch: usize,
    /// The temperature by which logits are divided.
    pub temperature: f64,
    /// The number of steps at which an entry of phi above 1 was set to 1.
    pub clipped_steps: u64,
    /// Scores of the held-out rows, if any were held out.
    pub held_out: Option<HeldOut>,
    /// The accuracy on the held-out rows of each class, unweighted; null for a class without held-out rows.
    pub held_out_accuracy_per_class: Vec<Option<f64>>,
    /// What every epoch showed.
    pub history: Vec<EpochRecord>,
}

impl Model {
    /// A model of `classes` classes without a history, held-out rows or a temperature.
    pub fn new(ended: Ended, classes: usize) -> Self {
        Self {
            ended,
            chosen_epoch: 0,
            temperature: 1.0,
            clipped_steps: 0,
            held_out: None,
            held_out_accuracy_per_class: vec![None; classes],
            history: Vec::new(),
        }
    }

    /// The same model with the record of its epochs, and the epoch whose weights were chosen.
    pub fn with_history(self, history: Vec<EpochRecord>, chosen_epoch: usize) -> Self {
        Self { history, chosen_epoch, ..self }
    }

    /// The same model with the temperature by which its logits are divided.
    pub fn with_temperature(self, temperature: f64) -> Self {
        Self { temperature, ..self }
    }

    /// The same model with the number of steps at which an entry of phi above 1 was set to 1.
    pub fn with_clipped_steps(self, clipped_steps: u64) -> Self {
        Self { clipped_steps, ..self }
    }

    /// The same model with its scores on held-out rows, one accuracy per class.
    pub fn with_held_out(self, held_out: HeldOut, accuracy_per_class: Vec<Option<f64>>) -> Self {
        Self { held_out: Some(held_out), held_out_accuracy_per_class: accuracy_per_class, ..self }
    }
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Ended {
    /// All epochs were trained.
    Finished,
    /// The held-out risk stopped falling.
    EarlyStop,
    /// The caller interrupted it.
    Interrupted,
}

/// Scores of held-out rows. In a run these are labelled rows weighted by 1/phi to stand for the population; where the
/// truth is known, they are the rows whose labels were hidden.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct HeldOut {
    /// The number of rows.
    pub rows: usize,
    /// Estimated accuracy in the population.
    pub accuracy: f64,
    /// Its 95% interval; older reports have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_ci95: Option<(f64, f64)>,
    /// Estimated log-loss in the population.
    pub log_loss: f64,
}

impl HeldOut {
    /// Scores of `rows` rows, and the interval of their accuracy.
    pub fn new(rows: usize, accuracy: f64, accuracy_ci95: (f64, f64), log_loss: f64) -> Self {
        Self { rows, accuracy, accuracy_ci95: Some(accuracy_ci95), log_loss }
    }
}

/// An unlabelled row whose class is uncertain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct UncertainRow {
    /// The number of the row, from 1.
    pub row: usize,
    /// The name of the row's file, if it has one.
    pub name: Option<String>,
    /// The most probable classes, given that the row is unlabelled.
    pub classes: Vec<Guess>,
    /// The row's image as a `data:` URL, if it has one.
    pub thumbnail: Option<String>,
}

impl UncertainRow {
    /// The number of rows that a report usually shows.
    pub const SHOWN: usize = 12;
    /// The number of classes that a report usually shows for each row.
    pub const GUESSES: usize = 3;

    /// The row with this number, counted from 1, and its most probable classes; `png` is its image.
    ///
    /// ```
    /// use mnar_report::{Guess, UncertainRow};
    /// let row = UncertainRow::new(3, None, vec![Guess::new("sick", 0.55)], Some(vec![2]));
    /// assert_eq!(row.thumbnail.as_deref(), Some("data:image/png;base64,Ag=="));
    /// ```
    pub fn new(row: usize, name: Option<String>, classes: Vec<Guess>, png: Option<Vec<u8>>) -> Self {
        let url =
            |png: Vec<u8>| format!("data:image/png;base64,{}", base64::engine::general_purpose::STANDARD.encode(png));
        Self { row, name, classes, thumbnail: png.map(url) }
    }
}

/// A class and its probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Guess {
    /// The class.
    pub class: String,
    /// P(class | row, unlabelled).
    pub probability: f64,
}

impl Guess {
    /// A class and its probability.
    pub fn new(class: impl Into<String>, probability: f64) -> Self {
        Self { class: class.into(), probability }
    }
}

/// The truth behind labels that were hidden on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Truth {
    /// The mechanism that hid the labels.
    pub phi: Phi,
    /// The class shares of all rows.
    pub prevalence: ClassShares,
    /// The error of the estimated phi, Σ(φ̂−φ)²/Σφ².
    pub phi_normalised_mse: f64,
    /// The same error of a constant mechanism.
    pub constant_normalised_mse: f64,
}

impl Truth {
    /// The mechanism, the class shares, and the normalised errors of the estimated phi and of a constant mechanism.
    pub fn new(phi: Phi, prevalence: ClassShares, phi_normalised_mse: f64, constant_normalised_mse: f64) -> Self {
        Self { phi, prevalence, phi_normalised_mse, constant_normalised_mse }
    }
}

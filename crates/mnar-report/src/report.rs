//! What a run found: one value, from which the text, the JSON and the page are made.

use mnar::Sample;
use mnar::calibrate::Bcts;
use mnar::diagnose::{Identifiability, ReliabilityBin, SensitivityPoint, reliability};
use mnar::nullable;
use mnar::test::{SelfMaskingCheck, TestResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the JSON's layout. Fields may be added under the same number; a field that goes or changes its
/// meaning raises it.
pub const SCHEMA: u32 = 1;

/// All that a run found. `report.json` is this.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The version of this layout.
    pub schema: u32,
    /// Of mnar.
    pub version: String,
    /// What the data are called.
    pub title: String,
    /// When it was made, in UTC.
    #[serde(default)]
    pub created: String,
    /// The command that makes it again.
    #[serde(default)]
    pub command: Option<String>,
    /// The classes.
    pub classes: Vec<String>,
    /// Rows.
    pub n: usize,
    /// Labelled rows.
    pub n_labelled: usize,
    /// By class.
    pub labelled_per_class: Vec<usize>,
    /// P(labelled | class), by cross-fitting.
    pub phi: Vec<f64>,
    /// Its standard errors; null at the bound 1.
    #[serde(default, deserialize_with = "nullable::numbers")]
    #[schemars(with = "Option<Vec<Option<f64>>>")]
    pub phi_se: Option<Vec<f64>>,
    /// Its intervals; null at the bound 1 where there is none.
    #[serde(default, deserialize_with = "nullable::intervals")]
    #[schemars(with = "Option<Vec<(Option<f64>, Option<f64>)>>")]
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// P(class).
    pub prevalence: Vec<f64>,
    /// Its intervals.
    #[serde(default, deserialize_with = "nullable::intervals")]
    #[schemars(with = "Option<Vec<(Option<f64>, Option<f64>)>>")]
    pub prevalence_ci95: Option<Vec<(f64, f64)>>,
    /// How intervals were made.
    pub interval: IntervalKind,
    /// The estimator of phi.
    pub method: String,
    /// Did it converge?
    pub converged: bool,
    /// MCAR against MNAR; nothing where all labels are there.
    #[serde(flatten)]
    pub result: Option<Test>,
    /// Is self-masking believable?
    #[schemars(with = "Option<serde_json::Value>")]
    pub self_masking: Option<SelfMaskingCheck>,
    /// Are the classes told apart?
    #[schemars(with = "Option<serde_json::Value>")]
    pub identifiability: Option<Identifiability>,
    /// Labelled rows are worth so many unweighted ones.
    pub effective_sample_size: Option<f64>,
    /// Of the cross-fitted classifier, on labelled rows.
    pub out_of_fold_accuracy: Option<f64>,
    /// Does the cross-fitted classifier mean what it says?
    #[serde(default)]
    pub calibration: Option<Calibration>,
    /// Of labelled rows out of fold: `confusion[k][j]` of class k were taken for class j.
    #[serde(default)]
    pub confusion: Option<Vec<Vec<usize>>>,
    /// How phi and the shares move when labels also depend on how easy a row is.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub sensitivity: Vec<SensitivityPoint>,
    /// phi that the debiased model's weights ended with.
    pub training_phi: Vec<f64>,
    /// The debiased model.
    pub debiased: Option<Model>,
    /// The biased one.
    pub baseline: Option<Model>,
    /// Unlabelled rows whose class is least certain.
    #[serde(default)]
    pub uncertain: Vec<UncertainRow>,
    /// Where labels were hidden on purpose: what they hide.
    #[serde(default)]
    pub truth: Option<Truth>,
    /// The effective settings.
    pub settings: serde_json::Value,
    /// Of every draw.
    pub seed: u64,
    /// What computed: the device, and on the CPU the instruction set of the kernels.
    pub computed_on: String,
    /// Wall time of this call.
    pub seconds: f64,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// How intervals were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalKind {
    /// Every replicate fits the classifier again.
    BootstrapWithRefit,
    /// Rows are drawn again, taking the classifier as given.
    Bootstrap,
    /// From the profile likelihood, taking the classifier as given.
    Profile,
    /// From the information, taking the classifier as given.
    Information,
    /// All labels are there: nothing is estimated.
    None,
}

impl From<mnar::analysis::IntervalKind> for IntervalKind {
    fn from(kind: mnar::analysis::IntervalKind) -> Self {
        use mnar::analysis::IntervalKind as Made;
        match kind {
            Made::BootstrapWithRefit => Self::BootstrapWithRefit,
            Made::Bootstrap => Self::Bootstrap,
            Made::Profile => Self::Profile,
            Made::Information => Self::Information,
        }
    }
}

/// A test of MCAR.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Test {
    /// Its name.
    pub test: String,
    /// The statistic.
    pub statistic: f64,
    /// Its degrees of freedom, where it has some.
    pub df: Option<usize>,
    /// The p-value.
    pub p_value: f64,
    /// The p-value of the chi-square approximation, where the one above is drawn.
    pub p_value_chi_square: Option<f64>,
    /// Permutations or replicates behind the p-value; 0 for a formula.
    pub draws: usize,
    /// When the p-value can be trusted.
    pub condition: String,
}

impl From<&TestResult> for Test {
    fn from(result: &TestResult) -> Self {
        Self {
            test: result.test.to_owned(),
            statistic: result.statistic,
            df: result.df,
            p_value: result.p_value,
            p_value_chi_square: result.p_value_chi_square,
            draws: result.draws,
            condition: result.condition.to_owned(),
        }
    }
}

/// How sure the cross-fitted classifier is, and how often it is right.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Expected calibration error before bias-corrected temperature scaling.
    pub error_before: f64,
    /// The same after.
    pub error_after: f64,
    /// Labelled rows by their confidence, before.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub before: Vec<ReliabilityBin>,
    /// The same after.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub after: Vec<ReliabilityBin>,
}

/// Bins of the reliability diagram.
const RELIABILITY_BINS: usize = 10;

/// How many times the odds of a label of the easiest row may be those of the hardest: the points of the sensitivity
/// curve.
pub const ODDS_FACTORS: [f64; 9] = [0.1, 0.2, 0.33, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0];

impl Calibration {
    /// Of the scores of labelled rows as they came and as they are after the calibration.
    pub fn of(bcts: &Bcts, raw: &Sample<'_>, calibrated: &Sample<'_>) -> Self {
        Self {
            error_before: bcts.ece_before,
            error_after: bcts.ece_after,
            before: reliability(raw, RELIABILITY_BINS),
            after: reliability(calibrated, RELIABILITY_BINS),
        }
    }
}

/// How a model was trained, and how it does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// Why training ended.
    pub ended: String,
    /// The epoch whose weights were chosen.
    pub chosen_epoch: usize,
    /// Logits are divided by this.
    pub temperature: f64,
    /// Steps at which a phi above 1 was set to 1.
    pub clipped_steps: u64,
    /// On held-out labelled rows, weighted by 1/phi to stand for the population.
    pub held_out: Option<HeldOut>,
    /// The same, class by class (unweighted within a class); nothing for a class without held-out rows.
    pub held_out_accuracy_per_class: Vec<Option<f64>>,
    /// Every epoch.
    pub history: Vec<EpochRecord>,
}

/// Weighted scores of held-out rows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeldOut {
    /// Rows.
    pub rows: usize,
    /// Estimated accuracy in the population.
    pub accuracy: f64,
    /// Estimated log-loss in the population.
    pub log_loss: f64,
}

/// What one epoch showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochRecord {
    /// Steps taken so far.
    pub step: u64,
    /// Epochs finished so far.
    pub epoch: usize,
    /// Mean risk of the epoch's batches.
    pub loss: f64,
    /// 1/phi-weighted loss of the held-out labelled rows, by the averaged weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_risk: Option<f64>,
    /// 1/phi-weighted accuracy of the same rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
    /// Learning rate of the last step.
    pub learning_rate: f64,
    /// The mechanism as it stands.
    pub phi: Vec<f64>,
    /// Seconds spent training so far.
    pub seconds: f64,
}

/// An unlabelled row whose class is uncertain.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UncertainRow {
    /// Its number, from 1.
    pub row: usize,
    /// Its file, where it has one.
    pub name: Option<String>,
    /// The most probable classes, given that the row is unlabelled.
    pub classes: Vec<Guess>,
    /// The image as a `data:` address.
    pub thumbnail: Option<String>,
}

/// A class and its probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guess {
    /// The class.
    pub class: String,
    /// P(class | row, unlabelled).
    pub probability: f64,
}

/// What was hidden, where labels were hidden on purpose.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Truth {
    /// The mechanism.
    pub phi: Vec<f64>,
    /// The class shares.
    pub prevalence: Vec<f64>,
    /// Σ(φ̂−φ)²/Σφ².
    pub phi_normalised_mse: f64,
    /// The same of a constant mechanism.
    pub constant_normalised_mse: f64,
}

/// A report that cannot be read or drawn.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Not the JSON of a report.
    #[error("this is not the report of a run: {why}; run `mnar fit` or `mnar demo` again")]
    NotAReport {
        /// What is wrong in it.
        why: String,
    },
    /// Written by a later version.
    #[error("the report has layout {found}, and this version of mnar knows {known}; use a newer mnar")]
    TooNew {
        /// In the file.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// Lengths that do not agree.
    #[error("the report speaks of {classes} classes, but `{field}` has {found} values")]
    Uneven {
        /// The number of classes.
        classes: usize,
        /// Which field.
        field: &'static str,
        /// Its length.
        found: usize,
    },
    /// A figure could not be drawn.
    #[error("figure {figure}: {why}")]
    Drawing {
        /// Which.
        figure: String,
        /// Why.
        why: String,
    },
}

impl From<serde_json::Error> for ReportError {
    fn from(error: serde_json::Error) -> Self {
        Self::NotAReport { why: error.to_string() }
    }
}

impl Report {
    /// From `report.json`.
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        struct Layout {
            schema: u32,
        }
        // First the number alone: a later layout need not have today's fields.
        let Layout { schema: found } = serde_json::from_str(text)?;
        if found > SCHEMA {
            return Err(ReportError::TooNew { found, known: SCHEMA });
        }
        let report: Self = serde_json::from_str(text)?;
        report.check()?;
        Ok(report)
    }

    /// As `report.json`.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self)?))
    }

    /// The JSON schema of the layout.
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Self);
        format!("{}\n", serde_json::to_string_pretty(&schema).unwrap_or_default())
    }

    /// Does every list have one value a class?
    fn check(&self) -> Result<(), ReportError> {
        let classes = self.classes.len();
        let lengths = [
            ("labelled_per_class", Some(self.labelled_per_class.len())),
            ("phi", Some(self.phi.len())),
            ("prevalence", Some(self.prevalence.len())),
            ("phi_ci95", self.phi_ci95.as_ref().map(Vec::len)),
            ("prevalence_ci95", self.prevalence_ci95.as_ref().map(Vec::len)),
            ("confusion", self.confusion.as_ref().map(Vec::len)),
            ("truth.phi", self.truth.as_ref().map(|truth| truth.phi.len())),
            ("truth.prevalence", self.truth.as_ref().map(|truth| truth.prevalence.len())),
        ];
        let models = [("debiased", &self.debiased), ("baseline", &self.baseline)];
        let of_models = models.map(|(name, model)| (name, model.as_ref().map(|m| m.held_out_accuracy_per_class.len())));
        for (field, found) in lengths.into_iter().chain(of_models) {
            if let Some(found) = found.filter(|found| *found != classes) {
                return Err(ReportError::Uneven { classes, field, found });
            }
        }
        Ok(())
    }
}

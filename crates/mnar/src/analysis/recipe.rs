//! The settings of an estimate, and which estimator they lead to.

use super::findings::fits_matrices;
use super::groups::{GroupMasses, Groups};
use super::{Evidence, IntervalMethod, ScoredBy};
use crate::calibrate::{Bcts, Calibrated, Calibration, ColumnCalibration, Shrinkage};
use crate::diagnose::doubt;
use crate::error::Error;
use crate::estimate::{
    ConfusionInversion, Estimator as _, KnownPhi, LabelShift, Likelihood, Moments, PhiEstimate, SharePrior, Shares,
};
use crate::labels::Labels;
use crate::mechanism::{ClassAndColumns, MechanismEstimate, projected_scores};
use crate::phi::Phi;
use crate::posteriors::{PosteriorKind, Posteriors};
use crate::rows::{Rows, Sample};
use crate::sums::{SecondMoments, Tally};
use serde::{Deserialize, Serialize};

/// The estimator of the mechanism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Label shift for labelled posteriors, maximum likelihood for population posteriors.
    #[default]
    Auto,
    /// Maximum likelihood of label shift between labelled and unlabelled rows, for labelled posteriors.
    LabelShift,
    /// Maximum likelihood, for population posteriors.
    Likelihood,
    /// The paper's moment estimator.
    Moments,
    /// Inversion of the confusion matrix of held-out labelled rows.
    Confusion,
    /// A mechanism that is known beforehand.
    Known,
}

/// Whether labelled posteriors are calibrated on the labelled rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Calibrate {
    /// Calibrate for the label-shift estimator only.
    #[default]
    Auto,
    /// Calibrate by bias-corrected temperature scaling.
    Bcts,
    /// Take the probabilities as they are.
    None,
}

/// Which columns labelling may depend on besides the class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "GivenSpelling", into = "GivenSpelling")]
pub enum Given {
    /// Those that the data show it to depend on, if they are among the columns at hand.
    #[default]
    Auto,
    /// None: the class alone.
    None,
    /// These.
    Columns(Vec<String>),
}

/// A word or a list of columns.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum GivenSpelling {
    Word(String),
    Columns(Vec<String>),
}

impl TryFrom<GivenSpelling> for Given {
    type Error = Error;

    fn try_from(spelling: GivenSpelling) -> Result<Self, Error> {
        match spelling {
            GivenSpelling::Word(word) => word.parse(),
            GivenSpelling::Columns(columns) => Given::columns(columns),
        }
    }
}

impl From<Given> for GivenSpelling {
    fn from(given: Given) -> Self {
        match given {
            Given::Auto => Self::Word("auto".to_owned()),
            Given::None => Self::Word("none".to_owned()),
            Given::Columns(columns) => Self::Columns(columns),
        }
    }
}

impl Given {
    /// These columns, of which there must be some.
    pub fn columns(columns: Vec<String>) -> Result<Self, Error> {
        if columns.is_empty() || columns.iter().any(String::is_empty) {
            return Err(Error::Settings("name the columns that labelling may depend on, or say `auto` or `none`"));
        }
        Ok(Self::Columns(columns))
    }
}

impl std::str::FromStr for Given {
    type Err = Error;

    /// `auto`, `none`, or columns separated by commas.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            list => Self::columns(list.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }
}

/// Settings of an estimate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EstimateSettings {
    /// The estimator.
    pub method: Method,
    /// Known class shares of the population, for [`Method::Moments`].
    pub shares: Option<Shares>,
    /// The mechanism, for [`Method::Known`].
    pub phi: Option<Phi>,
    /// Calibration.
    pub calibrate: Calibrate,
    /// Precision of the biases of the calibration. `None` learns it from the data.
    pub bias_precision: Option<f64>,
    /// How many rows the labelled rows' shares count for as a prior of the unlabelled rows' shares. `None` takes
    /// [`PRIOR_ROWS_PER_CLASS`] for label shift with a classifier that is cross-fitted here, more where labels are too few to say which
    /// classes it confuses, and no prior otherwise.
    pub prior_weight: Option<f64>,
    /// How intervals are made.
    pub interval: IntervalMethod,
    /// Replicates of a bootstrap. `None` takes 200, or fewer where refitting the classifier takes long: as many as fit into 40
    /// seconds of work on two cores, which depends on the size of the table and not on the clock.
    pub replicates: Option<usize>,
    /// Seconds after which a bootstrap ends, if it has 8 replicates by then. The number that it reached depends on the machine;
    /// it is in the findings, and asking for that number gives the same result again.
    pub budget: Option<f64>,
    /// Odds factors of the sensitivity analysis, which is left out if there are none. [`ODDS_FACTORS`] is a good choice.
    pub sensitivity: Vec<f64>,
    /// Computes how many labels would give intervals of phi this wide.
    pub width: Option<f64>,
    /// Columns that labelling may depend on besides the class.
    pub given: Given,
    /// A column: class shares and phi are given for each of its groups too.
    pub by: Option<String>,
    /// Permutations of the tests of what decided who got labelled.
    pub permutations: usize,
    /// Whether the findings describe the classifier on the labelled rows: accuracy, reliability, confusion matrix.
    pub describe_classifier: bool,
    /// Seed of every draw.
    pub seed: u64,
}

impl Default for EstimateSettings {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            shares: None,
            phi: None,
            calibrate: Calibrate::Auto,
            bias_precision: None,
            prior_weight: None,
            interval: IntervalMethod::Auto,
            replicates: None,
            budget: None,
            sensitivity: Vec::new(),
            width: None,
            given: Given::Auto,
            by: None,
            permutations: 9999,
            describe_classifier: false,
            seed: 0,
        }
    }
}

/// Rows per class that the labelled shares count for, as a prior of the unlabelled ones, where the classifier is cross-fitted. Without
/// any, a class that few unlabelled rows resemble has no share at all, and a phi of 1. On small tables that happens by chance: over
/// masks of the vowel table the prior lowers the error of phi from 0.14 to 0.07, and over masks of the Pima table from 0.03 to 0.016.
/// Intervals are made without it.
pub const PRIOR_ROWS_PER_CLASS: f64 = 3.0;

/// Odds factors of a sensitivity curve: how many times the odds of a label of the easiest row may be those of the hardest.
pub const ODDS_FACTORS: [f64; 9] = [0.1, 0.2, 0.33, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0];

impl EstimateSettings {
    /// Refuses settings that do not go together, or not with posteriors of this kind.
    pub fn check(&self, kind: PosteriorKind) -> Result<(), Error> {
        Recipe::new(self, kind).map(drop)
    }

    /// The same settings with everything that a report shows: the sensitivity curve where the estimator has one, and the
    /// description of the classifier.
    pub fn for_report(mut self, kind: PosteriorKind) -> Self {
        self.describe_classifier = true;
        let label_shift = choose(&self, kind).is_ok_and(|estimator| estimator == Chosen::LabelShift);
        if self.sensitivity.is_empty() && label_shift {
            self.sensitivity = ODDS_FACTORS.to_vec();
        }
        self
    }
}

/// What to compute once the posteriors are there. Bootstraps repeat it.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    estimator: Chosen,
    calibration: Option<Calibration>,
    pub(super) prior: SharePrior,
    /// Whether the prior was taken without being asked for.
    by_default: bool,
    kind: PosteriorKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Chosen {
    LabelShift,
    Likelihood,
    Moments(Shares),
    Confusion,
    Known(Phi),
}

impl Recipe {
    /// The estimator for posteriors of this kind; what would be inconsistent is refused.
    pub(super) fn new(settings: &EstimateSettings, kind: PosteriorKind) -> Result<Self, Error> {
        settings.check_ranges()?;
        let estimator = choose(settings, kind)?;
        let label_shift = estimator == Chosen::LabelShift;
        let weight = settings.prior_weight.unwrap_or(0.0);
        if weight != 0.0 && !label_shift {
            return Err(Error::Settings("a prior weight goes with the method label-shift, the only one with a prior"));
        }
        if !(weight >= 0.0 && weight.is_finite()) {
            return Err(Error::OutOfRange {
                name: "the prior weight",
                value: weight.to_string(),
                range: "a number of rows, at least 0",
            });
        }
        if let Some(factor) = settings.sensitivity.iter().find(|factor| !(factor.is_finite() && **factor > 0.0)) {
            return Err(Error::OutOfRange {
                name: "an odds factor",
                value: factor.to_string(),
                range: "a positive number (1 means the labels depend on the class alone)",
            });
        }
        if !settings.sensitivity.is_empty() && !label_shift {
            return Err(Error::Settings("the sensitivity analysis goes with the method label-shift"));
        }
        let calibrated = match settings.calibrate {
            Calibrate::None => false,
            Calibrate::Auto => label_shift,
            Calibrate::Bcts if kind == PosteriorKind::Population => {
                return Err(Error::Settings(
                    "labelled rows cannot calibrate population posteriors; leave the calibration at auto",
                ));
            }
            Calibrate::Bcts => true,
        };
        let prior = if weight == 0.0 { SharePrior::None } else { SharePrior::Labelled { weight } };
        let shrinkage = match settings.bias_precision {
            Some(bias) => Shrinkage::Fixed { bias, temperature: 1.0 },
            None => Shrinkage::Learnt,
        };
        let calibration = calibrated.then(|| Calibration { shrinkage, ..Default::default() });
        Ok(Self { estimator, calibration, prior, by_default: false, kind })
    }

    /// The same for this evidence: a classifier that was cross-fitted here comes with a prior, unless the settings say which.
    pub(super) fn of(settings: &EstimateSettings, evidence: &Evidence<'_>) -> Result<Self, Error> {
        let recipe = Self::new(settings, evidence.posteriors.kind())?;
        let cross_fitted = evidence.scored_by == ScoredBy::CrossFit;
        if settings.prior_weight.is_some() || !cross_fitted || recipe.estimator != Chosen::LabelShift {
            return Ok(recipe);
        }
        let weight = recipe.default_prior(evidence)?;
        Ok(Self { prior: SharePrior::Labelled { weight }, by_default: true, ..recipe })
    }

    /// The weight of the prior that nobody asked for, in rows. Where the labels do not say which classes the classifier confuses
    /// ([`doubt`]), they decide what can be known, however many rows are unlabelled, and the prior counts as much as
    /// [`PRIOR_ROWS_PER_CLASS`] of as many rows as there are labels. A small doubt is none: on dermaMNIST, where it is 0.1 to 0.2, weights in
    /// proportion to it had errors of phi of 0.17 and 0.21, and in proportion to its square of 0.15 and 0.19 (seeds 101 and 104).
    fn default_prior(&self, evidence: &Evidence<'_>) -> Result<f64, Error> {
        let k = evidence.labels.n_classes();
        let few = PRIOR_ROWS_PER_CLASS * k as f64;
        if !fits_matrices(k) {
            return Ok(few);
        }
        let sample = Sample::new(evidence.posteriors.as_ref(), evidence.labels)?;
        let (tally, zero) = (Tally::of(&sample)?, SecondMoments::of_labels(k));
        let moments = match self.calibration {
            Some(calibration) => Calibrated { rows: &sample, bcts: &calibration.fit(&sample)? }.scan(&zero)?,
            None => sample.scan(&zero)?,
        };
        let per_label = tally.n_unlabelled / tally.n_labelled();
        Ok(few * (doubt(&moments.confusion(), &tally.counts).powi(2) * per_label).max(1.0))
    }

    /// The recipe of the intervals. A prior that nobody asked for steadies the estimate, but must not narrow its intervals: with it,
    /// they would never hold the phi of 1 of a class whose every row is labelled.
    pub(super) fn of_intervals(&self) -> Self {
        match self.by_default {
            true => Self { prior: SharePrior::None, by_default: false, ..self.clone() },
            false => self.clone(),
        }
    }

    /// Whether the prior, if there is one, was asked for.
    pub(super) fn prior_asked_for(&self) -> bool {
        self.prior != SharePrior::None && !self.by_default
    }

    /// Whether there is a prior that nobody asked for.
    pub(super) fn has_default_prior(&self) -> bool {
        self.by_default
    }

    /// The kind of posteriors that it takes.
    pub(super) fn kind(&self) -> PosteriorKind {
        self.kind
    }

    /// The calibration of the posteriors, if any.
    pub(super) fn calibration(&self) -> Option<Calibration> {
        self.calibration
    }

    pub(super) fn chosen(&self) -> &Chosen {
        &self.estimator
    }

    pub(super) fn label_shift(&self) -> LabelShift {
        LabelShift { prior: self.prior, ..Default::default() }
    }

    /// Estimates from posteriors that are calibrated already.
    pub(super) fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        match &self.estimator {
            Chosen::LabelShift => self.label_shift().estimate(rows),
            Chosen::Likelihood => Likelihood::default().estimate(rows),
            Chosen::Moments(shares) => Moments::new(shares.clone()).estimate(rows),
            Chosen::Confusion => ConfusionInversion.estimate(rows),
            Chosen::Known(phi) => KnownPhi(phi.clone()).estimate(rows),
        }
    }

    /// The calibration under row weights, and the posteriors after it; `None` where the recipe has none. A mechanism that
    /// depends on columns takes posteriors that are calibrated within their terms.
    pub(super) fn calibrated(
        &self,
        posteriors: &Posteriors,
        labels: &Labels,
        weights: Option<&[f64]>,
        terms: &[&[f64]],
    ) -> Result<Option<Recalibrated>, Error> {
        let Some(calibration) = self.calibration else { return Ok(None) };
        let sample = Sample::new(posteriors, labels)?.with_weights(weights)?;
        // A class without labels is reported as such, before a calibration fails to converge on it.
        Tally::of(&sample)?;
        let bcts = calibration.fit(&sample)?;
        let posteriors = bcts.apply(posteriors)?;
        if terms.is_empty() {
            return Ok(Some(Recalibrated { bcts, by_columns: None, posteriors }));
        }
        let sample = Sample::new(&posteriors, labels)?.with_weights(weights)?.given(terms)?;
        let by_columns = ColumnCalibration::fit(&sample, terms.len())?;
        let posteriors = by_columns.apply(&posteriors, terms)?;
        Ok(Some(Recalibrated { bcts, by_columns: Some(by_columns), posteriors }))
    }

    /// Calibrates and estimates under row weights, all in memory. With columns, the mechanism depends on them too, and the
    /// directions beside them are scored.
    pub(super) fn run(
        &self,
        posteriors: &Posteriors,
        labels: &Labels,
        weights: Option<&[f64]>,
        given: &GivenColumns<'_>,
    ) -> Result<Ran, Error> {
        let calibration = self.calibrated(posteriors, labels, weights, &given.columns[..given.terms])?;
        let used = calibration.as_ref().map_or(posteriors, |calibration| &calibration.posteriors);
        let sample = Sample::new(used, labels)?.with_weights(weights)?;
        let (mut mechanism, mut scores) = (None, None);
        // Scores are for replicates, which large tables do without; there the check takes a sample of the rows.
        if given.scored && (given.terms > 0 || labels.len() <= SCORED_ROWS) {
            let uncertainty = uncertainty(used);
            let mut columns = given.columns.to_vec();
            columns.push(&uncertainty);
            let sample = sample.given(&columns)?;
            let fitted = ClassAndColumns::default().estimate(&sample, given.terms)?;
            if labels.len() <= SCORED_ROWS {
                scores = projected_scores(&sample, &fitted, given.directions() + 1)?;
            }
            mechanism = Some(fitted);
        }
        let estimate = match &mechanism {
            Some(mechanism) if given.terms > 0 => mechanism.estimate.clone(),
            _ => self.estimate(&sample)?,
        };
        let by_group = given.by.map(|groups| {
            // The odds of being unlabelled by class; what columns add is the same for all classes of a row.
            let odds: Vec<f64> = match &mechanism {
                Some(found) if given.terms > 0 => found.mechanism.classes.iter().map(|a| (-a).exp()).collect(),
                _ => estimate.phi.iter().map(|phi| (1.0 - phi) / phi).collect(),
            };
            groups.masses(used, labels, weights, &odds)
        });
        Ok(Ran { estimate, calibration, mechanism, scores, by_group })
    }
}

/// Tables with more rows than this are checked on a sample of this size, which is plenty.
pub(super) const SCORED_ROWS: usize = 200_000;

/// The terms of a mechanism, and the directions that are scored beside them.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenColumns<'a> {
    /// The terms, then the directions.
    pub(super) columns: Vec<&'a [f64]>,
    /// The number of terms.
    pub(super) terms: usize,
    /// Whether the mechanism is fitted and the directions scored, of which the classifier's uncertainty is always one.
    pub(super) scored: bool,
    /// The groups that shares and phi are given for.
    pub(super) by: Option<&'a Groups>,
}

impl GivenColumns<'_> {
    pub(super) fn directions(&self) -> usize {
        self.columns.len() - self.terms
    }
}

/// Posteriors after their calibration.
pub(super) struct Recalibrated {
    pub(super) bcts: Bcts,
    /// The calibration within the columns that labelling depends on.
    pub(super) by_columns: Option<ColumnCalibration>,
    pub(super) posteriors: Posteriors,
}

/// What a recipe gives.
pub(super) struct Ran {
    pub(super) estimate: PhiEstimate,
    pub(super) calibration: Option<Recalibrated>,
    /// The mechanism by class and columns, where there are columns or directions.
    pub(super) mechanism: Option<MechanismEstimate>,
    /// The scores of the directions, and last that of the classifier's uncertainty.
    pub(super) scores: Option<Vec<f64>>,
    /// Labelled and expected unlabelled rows per group.
    pub(super) by_group: Option<GroupMasses>,
}

/// How unsure the classifier is of each row: the entropy of its probabilities. A mechanism by class says what r should look
/// like along it; labels that favour easy rows do not fit.
pub(super) fn uncertainty(posteriors: &Posteriors) -> Vec<f64> {
    let mut entropy = vec![0.0; posteriors.len()];
    for k in 0..posteriors.n_classes() {
        for (entropy, &p) in entropy.iter_mut().zip(posteriors.column(k)) {
            if p > 0.0 {
                *entropy -= p * p.ln();
            }
        }
    }
    entropy
}

fn choose(settings: &EstimateSettings, kind: PosteriorKind) -> Result<Chosen, Error> {
    let labelled = kind == PosteriorKind::Labelled;
    if settings.shares.is_some() && settings.method != Method::Moments {
        return Err(Error::Settings(
            "class shares go with the method moments, the only estimator that takes known class shares",
        ));
    }
    if settings.phi.is_some() != (settings.method == Method::Known) {
        return Err(Error::Settings(
            "phi and the method known go together: the known mechanism, one probability per class",
        ));
    }
    Ok(match (settings.method, &settings.shares, &settings.phi) {
        (Method::Auto, ..) if labelled => Chosen::LabelShift,
        (Method::Auto, ..) => Chosen::Likelihood,
        (Method::LabelShift | Method::Confusion, ..) if !labelled => {
            return Err(Error::Settings(
                "this estimator compares labelled with unlabelled rows and needs labelled posteriors; for population posteriors use the method likelihood or moments",
            ));
        }
        (Method::Likelihood, ..) if labelled => {
            return Err(Error::Settings(
                "the method likelihood needs population posteriors p(y|x); for a classifier trained on the labelled rows use label-shift (or auto), or say that the posteriors are of the population",
            ));
        }
        (Method::Moments, None, _) if labelled => {
            return Err(Error::Settings(
                "the method moments on labelled posteriors is inconsistent: a classifier trained on the labelled rows repeats their class shares; give the known shares, or use label-shift, or say that the posteriors are of the population",
            ));
        }
        (Method::LabelShift, ..) => Chosen::LabelShift,
        (Method::Likelihood, ..) => Chosen::Likelihood,
        (Method::Confusion, ..) => Chosen::Confusion,
        (Method::Moments, shares, _) => Chosen::Moments(shares.clone().unwrap_or(Shares::MeanPosterior)),
        (Method::Known, _, Some(phi)) => Chosen::Known(phi.clone()),
        (Method::Known, _, None) => unreachable!("refused above"),
    })
}

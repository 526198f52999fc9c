//! Which estimator runs on what, worked out once from the settings.

use crate::calibrate::{Bcts, Calibration};
use crate::error::Error;
use crate::estimate::{
    ConfusionInversion, Estimator as _, KnownPhi, LabelShift, Likelihood, Moments, PhiEstimate, SharePrior, Shares,
};
use crate::labels::Labels;
use crate::phi::Phi;
use crate::posteriors::{PosteriorKind, Posteriors};
use crate::rows::{Rows, Sample};
use crate::sums::Tally;
use serde::{Deserialize, Serialize};

/// The estimator asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Label shift for labelled posteriors, maximum likelihood for population posteriors.
    #[default]
    Auto,
    /// Labelled against unlabelled rows, for labelled posteriors.
    LabelShift,
    /// Maximum likelihood, for population posteriors.
    Likelihood,
    /// The paper's moment estimator.
    Moments,
    /// By the confusion matrix of held-out labelled rows.
    Confusion,
    /// A mechanism known beforehand.
    Known,
}

/// Whether labelled posteriors are calibrated on the labelled rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrate {
    /// For the label-shift estimator.
    #[default]
    Auto,
    /// By bias-corrected temperature scaling.
    Bcts,
    /// Take them as they are.
    None,
}

/// Settings of an estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimateSettings {
    /// The estimator.
    pub method: Method,
    /// Known class shares of the population, for [`Method::Moments`].
    pub shares: Option<Shares>,
    /// The mechanism, for [`Method::Known`].
    pub phi: Option<Phi>,
    /// Calibration.
    pub calibrate: Calibrate,
    /// How many rows the labelled rows' shares count for as a prior of the unlabelled rows' shares.
    pub prior_weight: f64,
    /// How intervals are made.
    pub interval: super::IntervalMethod,
    /// Replicates of a bootstrap.
    pub replicates: usize,
    /// Odds factors of the sensitivity analysis; none for no analysis.
    pub sensitivity: Vec<f64>,
    /// Asks how many labels would give intervals of phi this wide.
    pub width: Option<f64>,
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
            prior_weight: 0.0,
            interval: super::IntervalMethod::Auto,
            replicates: 200,
            sensitivity: Vec::new(),
            width: None,
            seed: 0,
        }
    }
}

/// What to compute once the posteriors are there; bootstraps repeat it.
#[derive(Clone, Debug)]
pub struct Recipe {
    estimator: Chosen,
    calibration: Option<Calibration>,
    pub(super) prior: SharePrior,
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
    pub fn new(settings: &EstimateSettings, kind: PosteriorKind) -> Result<Self, Error> {
        let estimator = choose(settings, kind)?;
        let label_shift = estimator == Chosen::LabelShift;
        let weight = settings.prior_weight;
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
        Ok(Self { estimator, calibration: calibrated.then(Calibration::default), prior, kind })
    }

    /// The kind of posteriors it is for.
    pub fn kind(&self) -> PosteriorKind {
        self.kind
    }

    /// The calibration of the posteriors, if any.
    pub fn calibration(&self) -> Option<Calibration> {
        self.calibration
    }

    pub(super) fn chosen(&self) -> &Chosen {
        &self.estimator
    }

    pub(super) fn label_shift(&self) -> LabelShift {
        LabelShift { prior: self.prior, ..Default::default() }
    }

    /// Estimates from posteriors that are calibrated already.
    pub fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        match &self.estimator {
            Chosen::LabelShift => self.label_shift().estimate(rows),
            Chosen::Likelihood => Likelihood::default().estimate(rows),
            Chosen::Moments(shares) => Moments::new(shares.clone()).estimate(rows),
            Chosen::Confusion => ConfusionInversion.estimate(rows),
            Chosen::Known(phi) => KnownPhi(phi.clone()).estimate(rows),
        }
    }

    /// Calibrates and estimates under row weights, all in memory.
    pub fn run(
        &self,
        posteriors: &Posteriors,
        labels: &Labels,
        weights: Option<&[f64]>,
    ) -> Result<(PhiEstimate, Option<(Bcts, Posteriors)>), Error> {
        let sample = Sample::new(posteriors, labels)?.with_weights(weights)?;
        let Some(calibration) = self.calibration else {
            return Ok((self.estimate(&sample)?, None));
        };
        // A class without labels is better reported as such than by a calibration that chases it.
        Tally::of(&sample)?;
        let bcts = calibration.fit(&sample)?;
        let calibrated = bcts.apply(posteriors)?;
        let estimate = self.estimate(&Sample::new(&calibrated, labels)?.with_weights(weights)?)?;
        Ok((estimate, Some((bcts, calibrated))))
    }
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
            "phi and the method known go together: the known mechanism, one probability a class",
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

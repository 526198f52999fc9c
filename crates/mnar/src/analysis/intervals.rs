//! Intervals of phi and of the class shares.

use super::recipe::{Chosen, Recipe};
use super::{EstimateSettings, Evidence};
use crate::crossfit::FoldPlan;
use crate::error::Error;
use crate::estimate::{PhiEstimate, SharePrior};
use crate::interval::{Bootstrap, ProfileOf, Replicates, information_intervals, profile_interval};
use crate::labels::Class;
use crate::progress::Progress;
use crate::rows::{Rows, Sample};
use crate::solver::Solver;
use serde::{Deserialize, Serialize};

/// The confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// How intervals are to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// The bootstrap where it is affordable, else the observed information.
    #[default]
    Auto,
    /// From the observed information: instant, conditional on the classifier and its calibration.
    Information,
    /// Resample labelled and unlabelled rows together, calibrate again, and with features refit the classifier.
    Bootstrap,
    /// Profile likelihood, class by class: conditional on the classifier, keeps its shape at phi = 1.
    Profile,
}

/// How intervals were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IntervalKind {
    /// A bootstrap that refits the classifier.
    BootstrapWithRefit,
    /// A bootstrap that takes the classifier as evidence.
    Bootstrap,
    /// Profile likelihood, taking the classifier as evidence.
    Profile,
    /// The observed information, taking the classifier as evidence.
    Information,
    /// No label is missing, so nothing was estimated.
    None,
}

impl IntervalKind {
    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::BootstrapWithRefit => "bootstrap with refit",
            Self::Bootstrap => "bootstrap",
            Self::Profile => "profile likelihood",
            Self::Information => "information",
            Self::None => "none",
        }
    }
}

/// How intervals were made, with the numbers behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct IntervalAbout {
    /// The kind of interval.
    pub kind: IntervalKind,
    /// The confidence level.
    pub level: f64,
    /// The number of replicates of a bootstrap; 0 for other kinds.
    pub replicates: usize,
    /// How many replicates failed and were left out.
    pub failed_replicates: usize,
    /// Whether the intervals take the classifier as evidence.
    pub conditional_on_classifier: bool,
}

impl IntervalAbout {
    pub(super) fn new(kind: IntervalKind) -> Self {
        Self {
            kind,
            level: CONFIDENCE,
            replicates: 0,
            failed_replicates: 0,
            conditional_on_classifier: !matches!(kind, IntervalKind::BootstrapWithRefit | IntervalKind::None),
        }
    }
}

/// Up to this many numbers are walked over by the bootstrap that `auto` chooses: some ten seconds.
const AFFORDABLE: usize = 400_000_000;

/// With fewer replicates, an estimate can lie outside its own interval.
const FEWEST_REPLICATES: usize = 20;

/// Intervals, and how they came about.
pub(super) struct Intervals {
    pub(super) about: IntervalAbout,
    pub(super) phi_se: Option<Vec<f64>>,
    pub(super) phi: Option<Vec<(f64, f64)>>,
    pub(super) prevalence_se: Option<Vec<f64>>,
    pub(super) prevalence: Option<Vec<(f64, f64)>>,
}

impl Intervals {
    pub(super) fn make(
        settings: &EstimateSettings,
        recipe: &Recipe,
        evidence: &Evidence<'_>,
        sample: &Sample<'_>,
        estimate: &PhiEstimate,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let numbers = sample.labels().len().saturating_mul(sample.n_classes()).saturating_mul(settings.replicates);
        let method = match settings.interval {
            IntervalMethod::Auto if matches!(recipe.chosen(), Chosen::Known(_)) => IntervalMethod::Information,
            IntervalMethod::Auto if evidence.features.is_some() || numbers <= AFFORDABLE => IntervalMethod::Bootstrap,
            IntervalMethod::Auto => IntervalMethod::Information,
            asked => asked,
        };
        match method {
            IntervalMethod::Bootstrap => Self::bootstrap(settings, recipe, evidence, estimate, progress),
            IntervalMethod::Profile => Self::profile(sample, recipe, estimate),
            IntervalMethod::Auto | IntervalMethod::Information => {
                let information = Self::information(estimate);
                let at_bounds =
                    likelihood(recipe).and_then(|of| information_intervals(sample, of, estimate, CONFIDENCE));
                Ok(Self { phi: at_bounds.or(information.phi), ..information })
            }
        }
    }

    pub(super) fn information(estimate: &PhiEstimate) -> Self {
        Self {
            about: IntervalAbout::new(IntervalKind::Information),
            phi_se: estimate.standard_errors(),
            phi: estimate.conf_int(CONFIDENCE),
            prevalence_se: estimate.prevalence_standard_errors(),
            prevalence: estimate.prevalence_conf_int(CONFIDENCE),
        }
    }

    fn bootstrap(
        settings: &EstimateSettings,
        recipe: &Recipe,
        evidence: &Evidence<'_>,
        estimate: &PhiEstimate,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        if settings.replicates < FEWEST_REPLICATES {
            return Err(Error::OutOfRange {
                name: "the number of replicates",
                value: settings.replicates.to_string(),
                range: "at least 20 for intervals",
            });
        }
        let replicates = replicates(settings, recipe, evidence, progress)?;
        let kind = match evidence.features {
            Some(_) => IntervalKind::BootstrapWithRefit,
            None => IntervalKind::Bootstrap,
        };
        Ok(Self {
            about: IntervalAbout {
                replicates: settings.replicates,
                failed_replicates: replicates.failed,
                ..IntervalAbout::new(kind)
            },
            phi_se: Some(replicates.phi_standard_errors()),
            phi: Some(replicates.phi_intervals(&estimate.phi, CONFIDENCE)),
            prevalence_se: Some(replicates.prevalence_standard_errors()),
            prevalence: Some(replicates.prevalence_intervals(&estimate.prevalence, CONFIDENCE)),
        })
    }

    fn profile(sample: &Sample<'_>, recipe: &Recipe, estimate: &PhiEstimate) -> Result<Self, Error> {
        let of = likelihood(recipe).ok_or(Error::Settings(
            "profile intervals go with the method label-shift (without a prior) or likelihood",
        ))?;
        let phi = (0..sample.n_classes())
            .map(|k| profile_interval(sample, of, Class::from(k), CONFIDENCE, &Solver::default()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { about: IntervalAbout::new(IntervalKind::Profile), phi: Some(phi), ..Self::information(estimate) })
    }
}

/// What a recipe maximises, where it is a likelihood.
fn likelihood(recipe: &Recipe) -> Option<ProfileOf> {
    match recipe.chosen() {
        Chosen::LabelShift if recipe.prior == SharePrior::None => Some(ProfileOf::LabelShift),
        Chosen::Likelihood => Some(ProfileOf::Population),
        _ => None,
    }
}

fn replicates(
    settings: &EstimateSettings,
    recipe: &Recipe,
    evidence: &Evidence<'_>,
    progress: &dyn Progress,
) -> Result<Replicates, Error> {
    let labels = evidence.labels;
    let bootstrap = Bootstrap { replicates: settings.replicates, seed: settings.seed };
    bootstrap.run(labels.len(), progress, |weights, replicate| {
        let refitted;
        let posteriors = match &evidence.features {
            None => evidence.posteriors.as_ref(),
            Some(features) => {
                // New folds as well: their draw is part of what makes the estimate vary.
                let seed = settings.seed.wrapping_add((replicate + 1) << 20);
                let plan = FoldPlan::for_labels(labels, evidence.plan.n_folds(), seed)?;
                refitted = features.posteriors(labels, &plan, Some(weights), seed, &())?;
                &refitted
            }
        };
        recipe.run(posteriors, labels, Some(weights)).map(|(estimate, _)| estimate)
    })
}

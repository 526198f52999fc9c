//! Intervals of phi and of the class shares.

use super::recipe::{Chosen, Recipe};
use super::{Given, IntervalAbout, Watch};
use crate::crossfit::{FoldPlan, cross_fit};
use crate::error::Error;
use crate::estimate::{PhiEstimate, SharePrior};
use crate::interval::{Bootstrap, ProfileOf, Replicates, information_intervals, profile_interval};
use crate::labels::Class;
use crate::rows::{Rows, Sample};
use crate::solver::Solver;
use serde::{Deserialize, Serialize};

/// The level of every interval.
pub const LEVEL: f64 = 0.95;

/// How intervals are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// The bootstrap where it is affordable, else from the observed information.
    #[default]
    Auto,
    /// From the observed information: instant, conditional on the classifier and its calibration.
    Information,
    /// Resample labelled and unlabelled rows together, calibrate again, and with features refit the classifier.
    Bootstrap,
    /// Profile likelihood, class by class.
    Profile,
}

/// How intervals were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalKind {
    /// A bootstrap that refits the classifier.
    BootstrapWithRefit,
    /// A bootstrap that takes the classifier as given.
    Bootstrap,
    /// Profile likelihood.
    Profile,
    /// The observed information.
    Information,
}

impl IntervalKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::BootstrapWithRefit => "bootstrap with refit",
            Self::Bootstrap => "bootstrap",
            Self::Profile => "profile likelihood",
            Self::Information => "information",
        }
    }
}

/// Up to this many numbers are walked over by the bootstrap that `auto` chooses: some ten seconds.
const AFFORDABLE: usize = 400_000_000;

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
        settings: &super::EstimateSettings,
        recipe: &Recipe,
        given: &Given<'_>,
        sample: &Sample<'_>,
        estimate: &PhiEstimate,
        watch: &dyn Watch,
    ) -> Result<Self, Error> {
        let numbers = sample.labels().len() * sample.n_classes() * settings.replicates;
        let method = match settings.interval {
            IntervalMethod::Auto if matches!(recipe.chosen(), Chosen::Known(_)) => IntervalMethod::Information,
            IntervalMethod::Auto if given.features.is_some() || numbers <= AFFORDABLE => IntervalMethod::Bootstrap,
            IntervalMethod::Auto => IntervalMethod::Information,
            asked => asked,
        };
        match method {
            IntervalMethod::Bootstrap => Self::bootstrap(settings, recipe, given, estimate, watch),
            IntervalMethod::Profile => Self::profile(sample, recipe, estimate),
            IntervalMethod::Auto | IntervalMethod::Information => {
                let information = Self::information(estimate);
                let at_bounds = likelihood(recipe).and_then(|of| information_intervals(sample, of, estimate, LEVEL));
                Ok(Self { phi: at_bounds.or(information.phi), ..information })
            }
        }
    }

    pub(super) fn information(estimate: &PhiEstimate) -> Self {
        Self {
            about: IntervalAbout::new(IntervalKind::Information),
            phi_se: estimate.standard_errors(),
            phi: estimate.conf_int(LEVEL),
            prevalence_se: estimate.prevalence_standard_errors(),
            prevalence: estimate.prevalence_conf_int(LEVEL),
        }
    }

    fn bootstrap(
        settings: &super::EstimateSettings,
        recipe: &Recipe,
        given: &Given<'_>,
        estimate: &PhiEstimate,
        watch: &dyn Watch,
    ) -> Result<Self, Error> {
        let replicates = replicates(settings, recipe, given, watch)?;
        let kind = match given.features {
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
            phi: Some(replicates.phi_intervals(estimate.phi.as_slice(), LEVEL)),
            prevalence_se: Some(replicates.prevalence_standard_errors()),
            prevalence: Some(replicates.prevalence_intervals(&estimate.prevalence, LEVEL)),
        })
    }

    fn profile(sample: &Sample<'_>, recipe: &Recipe, estimate: &PhiEstimate) -> Result<Self, Error> {
        let of = likelihood(recipe).ok_or(Error::Settings(
            "profile intervals go with the method label-shift (without a prior) or likelihood",
        ))?;
        let phi = (0..sample.n_classes())
            .map(|k| profile_interval(sample, of, Class::from(k), LEVEL, &Solver::default()))
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
    settings: &super::EstimateSettings,
    recipe: &Recipe,
    given: &Given<'_>,
    watch: &dyn Watch,
) -> Result<Replicates, Error> {
    let labels = given.labels;
    watch.begins("bootstrap", settings.replicates);
    let bootstrap = Bootstrap { replicates: settings.replicates, seed: settings.seed };
    let replicates = bootstrap.run_unless(
        || watch.stopped(),
        labels.len(),
        |weights, replicate| {
            let refitted;
            let posteriors = match &given.features {
                None => given.posteriors,
                Some(features) => {
                    // New folds as well: their draw is part of what makes the estimate vary.
                    let seed = settings.seed.wrapping_add((replicate + 1) << 20);
                    let plan = FoldPlan::for_labels(labels, given.plan.n_folds(), seed)?;
                    refitted = cross_fit(features.x, labels, &plan, &features.regression, Some(weights))?;
                    &refitted
                }
            };
            let estimate = recipe.run(posteriors, labels, Some(weights)).map(|(estimate, _)| estimate);
            watch.step();
            estimate
        },
    );
    watch.ends();
    replicates
}

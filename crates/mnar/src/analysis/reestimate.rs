//! The mechanism under other row weights: what a bootstrap of anything that rests on the mechanism repeats.

use super::evidence::Refits;
use super::recipe::{Chosen, Recipe};
use super::{EstimateSettings, Evidence};
use crate::covariates::Design;
use crate::error::Error;
use crate::estimate::PhiEstimate;
use crate::evaluate::ExpectedLabels;
use crate::interval::{Bootstrap, Draws};
use crate::labels::{Class, Labels};
use crate::mechanism::{ClassAndColumns, Mechanism, orthogonal_mechanism};
use crate::phi::Phi;
use crate::posteriors::Posteriors;
use crate::progress::Progress;
use crate::rows::Sample;
use std::borrow::Cow;

/// Rows times squared classes up to which there is a second opinion.
const LARGEST: usize = 20_000_000;

/// Calibrates and estimates again, with a mechanism by class and, if there are some, by columns.
pub(crate) struct Reestimate<'a> {
    recipe: Recipe,
    /// The recipe under row weights: without a prior that nobody asked for, which must not narrow what replicates show.
    of_replicates: Recipe,
    posteriors: &'a Posteriors,
    labels: &'a Labels,
    design: Option<Design>,
}

/// A mechanism, and the labels that are expected under it.
pub(crate) struct Reestimated<'a> {
    pub(crate) expected: ExpectedLabels<'a>,
    pub(crate) estimate: PhiEstimate,
}

impl EstimateSettings {
    /// Computes something under `count` draws of random row weights, from the posteriors of classifiers that were refitted with
    /// them where they were cross-fitted here. `compute` gets these posteriors, the weights and the number of the draw.
    pub(super) fn repeated<T: Send>(
        &self,
        evidence: &Evidence<'_>,
        given: &[String],
        count: usize,
        progress: &dyn Progress,
        compute: impl Fn(&Reestimate<'_>, &Posteriors, &[f64], u64) -> Result<T, Error> + Sync,
    ) -> Result<Draws<T>, Error> {
        let again = Reestimate::new(self, evidence, given)?;
        let refits = Refits::new(evidence, 0, self.seed)?;
        let bootstrap = Bootstrap { replicates: count, seed: self.seed, until: None };
        bootstrap.draw(evidence.plan.n_different(), progress, |weights, replicate| {
            let weights = &evidence.plan.weights_of_rows(weights);
            let posteriors = match &refits {
                Some(refits) => refits.posteriors(weights, replicate, progress)?,
                None => Cow::Borrowed(evidence.posteriors.as_ref()),
            };
            compute(&again, &posteriors, weights, replicate)
        })
    }
}

impl<'a> Reestimate<'a> {
    /// With the given columns in the mechanism.
    pub(crate) fn new(
        settings: &EstimateSettings,
        evidence: &'a Evidence<'_>,
        given: &[String],
    ) -> Result<Self, Error> {
        let posteriors = evidence.posteriors.as_ref();
        let recipe = Recipe::of(settings, evidence)?;
        let design = match (given, evidence.covariates) {
            ([], _) => None,
            (given, Some(columns)) => {
                let products = columns.products(given)?;
                Some(Design::with_products(&columns.usable(given, evidence.labels)?, products)?)
            }
            (given, None) => {
                return Err(Error::UnknownCovariate { name: given[0].clone(), known: Vec::new() });
            }
        };
        Ok(Self { of_replicates: recipe.of_intervals(), recipe, posteriors, labels: evidence.labels, design })
    }

    /// The labels that are expected if the mechanism solves equations that need not believe the probabilities. `None` where the
    /// mechanism is not estimated from labelled posteriors, or the table is large.
    pub(crate) fn second_opinion(&self) -> Result<Option<ExpectedLabels<'a>>, Error> {
        let numbers = self.labels.len().saturating_mul(self.labels.n_classes().pow(2));
        if *self.recipe.chosen() != Chosen::LabelShift || numbers > LARGEST {
            return Ok(None);
        }
        let calibrated = self.calibrated(self.posteriors, None)?;
        let used = calibrated.as_ref().unwrap_or(self.posteriors);
        let sample = Sample::new(used, self.labels)?;
        let (terms, columns): (&[Vec<f64>], Vec<&[f64]>) = match &self.design {
            None => (&[], Vec::new()),
            Some(design) => (design.columns(), design.columns().iter().map(Vec::as_slice).collect()),
        };
        let sample = sample.given(&columns)?;
        let start = match &self.design {
            None => Mechanism::of_classes(&self.recipe.estimate(&sample)?.phi),
            Some(design) => ClassAndColumns::default().estimate(&sample, design.len())?.mechanism,
        };
        let mechanism = orthogonal_mechanism(&sample, &start);
        ExpectedLabels::by_columns(used, self.labels, &mechanism, terms).map(Some)
    }

    /// P(labelled | class, columns) of every labelled row under row weights, with posteriors of the same rows.
    pub(crate) fn phi_of_labelled(&self, posteriors: &Posteriors, weights: &[f64]) -> Result<Vec<f64>, Error> {
        let calibrated = self.calibrated(posteriors, Some(weights))?;
        let sample =
            Sample::new(calibrated.as_ref().unwrap_or(posteriors), self.labels)?.with_weights(Some(weights))?;
        let Some(design) = &self.design else {
            let phi = self.of_replicates.estimate(&sample)?.phi;
            return Ok(self.labels.labelled().map(|(_, class)| phi[class.index()]).collect());
        };
        let columns: Vec<&[f64]> = design.columns().iter().map(Vec::as_slice).collect();
        let mechanism = ClassAndColumns::default().estimate(&sample.given(&columns)?, design.len())?.mechanism;
        let of = |(row, class): (usize, Class)| mechanism.phi(class.index(), columns.iter().map(|column| column[row]));
        Ok(self.labels.labelled().map(of).collect())
    }

    /// The mechanism under row weights. `known` replaces a mechanism by class that is known beforehand.
    pub(crate) fn at(&self, weights: Option<&[f64]>, known: Option<&Phi>) -> Result<Reestimated<'a>, Error> {
        self.of(self.posteriors, weights, known)
    }

    /// The same with other posteriors of the same rows.
    pub(crate) fn of(
        &self,
        posteriors: &Posteriors,
        weights: Option<&[f64]>,
        known: Option<&Phi>,
    ) -> Result<Reestimated<'a>, Error> {
        let calibrated = self.calibrated(posteriors, weights)?;
        let used = calibrated.as_ref().unwrap_or(posteriors);
        let sample = Sample::new(used, self.labels)?.with_weights(weights)?;
        let Some(design) = &self.design else {
            let recipe = if weights.is_some() { &self.of_replicates } else { &self.recipe };
            let mut estimate = recipe.estimate(&sample)?;
            if let Some(phi) = known {
                estimate.phi = phi.clone();
            }
            let expected = ExpectedLabels::by_class(used, self.labels, &estimate.phi)?;
            return Ok(Reestimated { expected, estimate });
        };
        let columns: Vec<&[f64]> = design.columns().iter().map(Vec::as_slice).collect();
        let found = ClassAndColumns::default().estimate(&sample.given(&columns)?, design.len())?;
        let expected = ExpectedLabels::by_columns(used, self.labels, &found.mechanism, design.columns())?;
        Ok(Reestimated { expected, estimate: found.estimate })
    }

    /// The labels that are expected under a mechanism that is known, whose terms are `terms`. Probabilities are calibrated under
    /// the row weights.
    pub(crate) fn expected(
        &self,
        weights: Option<&[f64]>,
        mechanism: &Mechanism,
        terms: &[Vec<f64>],
    ) -> Result<ExpectedLabels<'a>, Error> {
        let calibrated = self.calibrated(self.posteriors, weights)?;
        ExpectedLabels::by_columns(calibrated.as_ref().unwrap_or(self.posteriors), self.labels, mechanism, terms)
    }

    /// Calibrated posteriors, where the recipe has a calibration.
    fn calibrated(&self, posteriors: &Posteriors, weights: Option<&[f64]>) -> Result<Option<Posteriors>, Error> {
        let terms: Vec<&[f64]> = self.design.iter().flat_map(|design| design.columns()).map(Vec::as_slice).collect();
        let calibrated = self.recipe.calibrated(posteriors, self.labels, weights, &terms)?;
        Ok(calibrated.map(|calibration| calibration.posteriors))
    }
}

//! Intervals of phi and of the class shares.

use super::evidence::Refits;
use super::groups::GroupMasses;
use super::labelling::holm;
use super::recipe::{Chosen, GivenColumns, Recipe};
use super::{EstimateSettings, Evidence};
use crate::classify::Classifier;
use crate::error::Error;
use crate::estimate::{PhiEstimate, SharePrior, logit_interval, normal_quantile};
use crate::interval::{
    Bootstrap, Draws, ProfileOf, Replicates, Spread, information_intervals, profile_interval, wilson,
};
use crate::labels::{Class, Labels};
use crate::mechanism::{Mechanism, orthogonal_estimate};
use crate::phi::Phi;
use crate::progress::Progress;
use crate::rows::{Rows, Sample};
use crate::shares::ClassShares;
use crate::solver::Solver;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};
use std::borrow::Cow;
use std::time::{Duration, Instant};

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
    /// A jackknife over random buckets of rows, taking the classifier and its calibration as evidence.
    Jackknife,
    /// The count of the labels, with class shares that are known.
    Count,
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
            Self::Jackknife => "jackknife",
            Self::Count => "binomial",
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
    pub(crate) fn new(kind: IntervalKind) -> Self {
        Self {
            kind,
            level: CONFIDENCE,
            replicates: 0,
            failed_replicates: 0,
            conditional_on_classifier: !matches!(
                kind,
                IntervalKind::BootstrapWithRefit | IntervalKind::Count | IntervalKind::None
            ),
        }
    }
}

/// Up to this many numbers are walked over by the bootstrap that `auto` chooses: some ten seconds.
const AFFORDABLE: usize = 400_000_000;

/// Fewer replicates know too little about the spread. Eight widen an interval by a fifth (Student's t).
pub(super) const FEWEST_REPLICATES: usize = 8;
/// As many replicates as are worth having.
pub(super) const REPLICATES: usize = 200;
/// Seconds of work, on each of two cores, that a bootstrap is planned for.
const PLANNED_SECONDS: f64 = 40.0;
const CORES: f64 = 2.0;
/// Seconds that a replicate takes per probability beside the refits, for calibration and estimate.
const SECONDS_PER_PROBABILITY: f64 = 2e-7;

/// Intervals, and how they came about.
pub(super) struct Intervals {
    pub(super) about: IntervalAbout,
    pub(super) phi_se: Option<Vec<f64>>,
    pub(super) phi: Option<Vec<(f64, f64)>>,
    pub(super) prevalence_se: Option<Vec<f64>>,
    pub(super) prevalence: Option<Vec<(f64, f64)>>,
}

impl IntervalMethod {
    /// The method that `auto` comes to, and the number of replicates.
    pub(super) fn resolve(
        self,
        settings: &EstimateSettings,
        recipe: &Recipe,
        evidence: &Evidence<'_>,
    ) -> (Self, usize) {
        let numbers = evidence.labels.len().saturating_mul(evidence.labels.n_classes());
        let replicates = settings.replicates.unwrap_or_else(|| planned(evidence));
        let affordable = match evidence.features {
            Some(_) => replicates > 0,
            None => numbers.saturating_mul(replicates) <= AFFORDABLE,
        };
        let method = match self {
            Self::Auto if matches!(recipe.chosen(), Chosen::Known(_)) => Self::Information,
            Self::Auto if affordable => Self::Bootstrap,
            Self::Auto => Self::Information,
            asked => asked,
        };
        (method, if settings.replicates.is_some() { replicates } else { replicates.max(FEWEST_REPLICATES) })
    }
}

/// As many replicates as fit into the work that is planned for them; 0 if even the fewest take three times as long.
fn planned(evidence: &Evidence<'_>) -> usize {
    let Some(features) = &evidence.features else { return REPLICATES };
    let (labels, folds) = (evidence.labels, evidence.plan.n_folds() as f64);
    let trained_on = (labels.n_labelled() as f64 * (folds - 1.0) / folds) as usize;
    let fit = features.classifier.seconds(trained_on, features.x.ncols(), labels.n_classes());
    let per_replicate = folds * fit + SECONDS_PER_PROBABILITY * (labels.len() * labels.n_classes()) as f64;
    let affordable = PLANNED_SECONDS * CORES / per_replicate;
    match affordable {
        few if few * 3.0 < FEWEST_REPLICATES as f64 => 0,
        many => (many as usize).clamp(FEWEST_REPLICATES, REPLICATES),
    }
}

/// One replicate of a bootstrap.
pub(super) struct Draw {
    phi: Phi,
    prevalence: ClassShares,
    /// The effects of the terms of the columns.
    pub(super) terms: Vec<f64>,
    /// The scores of the directions that were looked at.
    pub(super) scores: Option<Vec<f64>>,
    /// Rows per group and class.
    pub(super) by_group: Option<GroupMasses>,
}

impl Intervals {
    /// Intervals around an estimate of the recipe, from the replicates if that is how they are made; `by_columns` is its
    /// mechanism, if it depends on columns.
    pub(super) fn make(
        method: IntervalMethod,
        recipe: &Recipe,
        evidence: &Evidence<'_>,
        sample: &Sample<'_>,
        estimate: &PhiEstimate,
        by_columns: Option<&Mechanism>,
        draws: Option<Draws<Draw>>,
    ) -> Result<Self, Error> {
        match (method, draws) {
            (_, Some(draws)) => Ok(Self::bootstrap(evidence, sample, estimate, by_columns, draws)),
            (IntervalMethod::Profile, _) if by_columns.is_some() => Err(Error::Settings(
                "profile intervals are for mechanisms by class alone; use the bootstrap or the information",
            )),
            (IntervalMethod::Profile, _) => Self::profile(sample, recipe, estimate),
            _ if by_columns.is_some() => Ok(Self::information(estimate)),
            _ => {
                let information = Self::information(estimate);
                let at_bounds =
                    likelihood(recipe).and_then(|of| information_intervals(sample, of, estimate, CONFIDENCE));
                let mut all = Self { phi: at_bounds.or(information.phi), ..information };
                all.shares_at_bounds(estimate);
                Ok(all)
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

    /// The share of a class whose phi is at its bound 1 follows from the interval of phi, because the observed information
    /// knows nothing of the other side of the bound: share = (n_k/n)/phi.
    fn shares_at_bounds(&mut self, estimate: &PhiEstimate) {
        let (Some(phi), Some(shares)) = (&self.phi, &mut self.prevalence) else { return };
        let n = estimate.tally.n();
        let z = normal_quantile(CONFIDENCE);
        for k in estimate.clipped.iter().map(|class| class.index()) {
            let labelled = estimate.tally.counts[k] / n;
            let half = z * (labelled * (1.0 - labelled) / n).sqrt();
            let (low, high) = ((labelled - half).max(0.0) / phi[k].1, ((labelled + half) / phi[k].0).min(1.0));
            if low.is_finite() && high.is_finite() {
                shares[k] = (low.min(estimate.prevalence[k]), high.max(estimate.prevalence[k]));
            }
        }
    }

    /// Leaves out what the label counts rule out: a share is at least that of the rows that carry its label, and so is phi, which is that
    /// over the share of the class. The counts have chance in them too (Wilson). Where a classifier knows nothing, intervals on
    /// the logit scale would have phi begin at 1e-63.
    pub(super) fn within_counts(&mut self, labels: &Labels, estimate: &PhiEstimate) {
        let n = labels.len() as f64;
        let least = |rows: usize| wilson(rows as f64 / n, n, CONFIDENCE).0;
        for (k, &count) in labels.counts().iter().enumerate() {
            let (own, others) = (least(count), least(labels.n_labelled() - count));
            if let Some(phi) = &mut self.phi {
                phi[k].0 = phi[k].0.max(own.min(estimate.phi[k]));
            }
            if let Some(shares) = &mut self.prevalence {
                let share = estimate.prevalence[k];
                shares[k] = (shares[k].0.max(own.min(share)), shares[k].1.min((1.0 - others).max(share)));
            }
        }
    }

    /// Extends the intervals to this estimate, where they were made around another.
    pub(super) fn hold(&mut self, estimate: &PhiEstimate) {
        extend(&mut self.phi, estimate.phi.as_slice());
        extend(&mut self.prevalence, estimate.prevalence.as_slice());
    }

    fn bootstrap(
        evidence: &Evidence<'_>,
        sample: &Sample<'_>,
        estimate: &PhiEstimate,
        by_columns: Option<&Mechanism>,
        draws: Draws<Draw>,
    ) -> Self {
        let failed = draws.failed;
        let (phi, prevalence) = draws.values.into_iter().map(|draw| (draw.phi, draw.prevalence)).unzip();
        let kind = match evidence.features {
            Some(_) => IntervalKind::BootstrapWithRefit,
            None => IntervalKind::Bootstrap,
        };
        let replicates = Replicates { phi, prevalence, failed };
        let rows = by_columns.map(|mechanism| rows_behind(sample, mechanism, &replicates.prevalence_standard_errors()));
        Self::of_kind(kind, estimate, replicates, rows.as_deref())
    }

    /// From replicates that take the classifier as evidence.
    pub(super) fn of_replicates(estimate: &PhiEstimate, replicates: Replicates) -> Self {
        Self::of_kind(IntervalKind::Bootstrap, estimate, replicates, None)
    }

    fn of_kind(kind: IntervalKind, estimate: &PhiEstimate, replicates: Replicates, rows: Option<&[f64]>) -> Self {
        let (failed, made) = (replicates.failed, replicates.phi.len());
        let corrected = |errors: Vec<f64>| match rows {
            Some(rows) => {
                errors.into_iter().zip(rows).map(|(se, &rows)| Spread::resting_on(rows, se, made).sd).collect()
            }
            None => errors,
        };
        Self {
            about: IntervalAbout { replicates: made + failed, failed_replicates: failed, ..IntervalAbout::new(kind) },
            phi_se: Some(corrected(replicates.phi_standard_errors())),
            phi: Some(replicates.phi_intervals_resting_on(&estimate.phi, CONFIDENCE, rows)),
            prevalence_se: Some(corrected(replicates.prevalence_standard_errors())),
            prevalence: Some(replicates.prevalence_intervals_resting_on(&estimate.prevalence, CONFIDENCE, rows)),
        }
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

/// Extends intervals, if there are any, so that they hold these values.
pub(super) fn extend(intervals: &mut Option<Vec<(f64, f64)>>, values: &[f64]) {
    for ((low, high), value) in intervals.iter_mut().flatten().zip(values) {
        (*low, *high) = (low.min(*value), high.max(*value));
    }
}

impl Intervals {
    /// Widens the intervals to include those of the orthogonal equations, which need not believe the classifier's
    /// probabilities: where classes can hardly be told apart, where the two disagree, and where a bootstrap does not show what the
    /// classifier has not learnt, because it refits nothing or [refits do not show it](Classifier::refits_suffice). Returns whether
    /// there was a sign of trouble.
    ///
    /// With predictions of trees on the Pima table, intervals of the likelihood alone held the class shares in 88% of draws. With
    /// trees that learnt from 450 labels of the Satellite table and were refitted, they held the share of a soil that looks like
    /// others in 74%.
    pub(super) fn widen(
        &mut self,
        sample: &Sample<'_>,
        estimate: &PhiEstimate,
        mechanism: &Mechanism,
        refitted: Option<&dyn Classifier<Array2<f64>>>,
        poor: bool,
    ) -> Result<bool, Error> {
        let effects = mechanism.classes.len() + mechanism.terms.len();
        let numbers = sample.labels().len().saturating_mul(effects.pow(2));
        let (Some(phi), Some(shares)) = (&mut self.phi, &mut self.prevalence) else { return Ok(false) };
        // A second estimate, for which a table that large has no need unless its classes look alike.
        if numbers > if poor { AFFORDABLE } else { AFFORDABLE / 20 } {
            return Ok(false);
        }
        let other = orthogonal_estimate(sample, mechanism)?;
        let z = normal_quantile(CONFIDENCE);
        let p: Vec<f64> = (0..shares.len())
            .map(|k| {
                let off = (estimate.prevalence[k] - other.prevalence[k]).abs() / other.prevalence_se[k];
                2.0 * Normal::standard().sf(off)
            })
            .collect();
        let disagree = holm(&p).iter().any(|p| *p <= super::LEVEL);
        let unlearnt = match self.about.kind {
            IntervalKind::Bootstrap => true,
            IntervalKind::BootstrapWithRefit => refitted.is_some_and(|classifier| !classifier.refits_suffice()),
            _ => false,
        };
        if !poor && !disagree && !unlearnt {
            return Ok(false);
        }
        let back = |x: f64| 1.0 / (1.0 + (-x).exp());
        for k in 0..shares.len() {
            let logit = (other.phi[k] / (1.0 - other.phi[k])).ln();
            let half = z * other.logit_phi_se[k];
            phi[k] = (phi[k].0.min(back(logit - half)), phi[k].1.max(back(logit + half)));
            let (low, high) = logit_interval(other.prevalence[k], other.prevalence_se[k], CONFIDENCE);
            shares[k] = (shares[k].0.min(low), shares[k].1.max(high));
        }
        complements(shares);
        Ok(poor || disagree)
    }
}

/// The number of labelled rows that each class's share rests on where labelling depends on columns, σ⁴/Σu⁴, with σ the standard
/// error and u the influence of a label. A label stands for exp(−a_y − b'z) unlabelled rows, many where labels are rare, and moves
/// the share of class k by what the classifier did not know: 1[y=k] − p(k | x, unlabelled).
///
/// Where sites were tied to six classes of the Satellite table, a handful of labels from two of three sites decided, and replicates
/// showed four fifths of the spread of the shares.
fn rows_behind(sample: &Sample<'_>, mechanism: &Mechanism, errors: &[f64]) -> Vec<f64> {
    let (labels, given) = (sample.labels(), sample.given_columns());
    let n = labels.len() as f64;
    let odds: Vec<f64> = mechanism.classes.iter().map(|a| (-a).exp()).collect();
    let mut fourth = vec![0.0; odds.len()];
    for (row, class) in labels.labelled() {
        let terms: f64 = mechanism.terms.iter().zip(given).map(|(b, column)| b * column[row]).sum();
        let stands_for = odds[class.index()] * (-terms).exp() / n;
        let s = sample.posteriors().row(row);
        let total: f64 = s.iter().zip(&odds).map(|(s, odds)| s * odds).sum();
        for k in 0..odds.len() {
            let unknown = f64::from(u8::from(class.index() == k)) - s[k] * odds[k] / total;
            fourth[k] += (stands_for * unknown).powi(4);
        }
    }
    errors.iter().zip(fourth).map(|(se, fourth)| se.powi(4) / fourth).collect()
}

/// The shares of two classes add up to one, so that an interval of one says the same of the other. The equations estimate each
/// class by itself: what either interval holds is kept in both.
fn complements(shares: &mut [(f64, f64)]) {
    if let [one, two] = shares {
        *one = (one.0.min(1.0 - two.1), one.1.max(1.0 - two.0));
        *two = (1.0 - one.1, 1.0 - one.0);
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

/// Repeats the whole estimate on resampled rows, with a mechanism that depends on the given columns.
pub(super) fn replicates(
    settings: &EstimateSettings,
    count: usize,
    recipe: &Recipe,
    evidence: &Evidence<'_>,
    given: &GivenColumns<'_>,
    refits: Option<&Refits<'_>>,
    progress: &dyn Progress,
) -> Result<Draws<Draw>, Error> {
    if count < FEWEST_REPLICATES {
        return Err(Error::OutOfRange {
            name: "the number of replicates",
            value: count.to_string(),
            range: "at least 8 for intervals",
        });
    }
    let labels = evidence.labels;
    let until = settings.budget.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    let bootstrap =
        Bootstrap { replicates: count, seed: settings.seed, until: until.map(|at| (at, FEWEST_REPLICATES)) };
    bootstrap.draw(evidence.plan.n_different(), progress, |weights, replicate| {
        let weights = &evidence.plan.weights_of_rows(weights);
        let posteriors = match refits {
            None => Cow::Borrowed(evidence.posteriors.as_ref()),
            Some(refits) => refits.posteriors(weights, replicate, progress)?,
        };
        let ran = recipe.run(&posteriors, labels, Some(weights), given)?;
        Ok(Draw {
            phi: ran.estimate.phi,
            prevalence: ran.estimate.prevalence,
            terms: ran.mechanism.map_or_else(Vec::new, |found| found.mechanism.terms),
            scores: ran.scores,
            by_group: ran.by_group,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;
    use crate::posteriors::{PosteriorKind, Posteriors};

    #[test]
    fn a_share_rests_on_the_labels_that_stand_for_many_rows() {
        // A classifier that knows nothing, and labels that stand for one row at one site and for ten at the other.
        let posteriors = Posteriors::new(Array2::from_elem((120, 2), 0.5), PosteriorKind::Labelled).expect("halves");
        let labels = Labels::from_values((0..120).map(|i| (i < 40).then_some(if i % 2 == 0 { "a" } else { "b" })));
        let labels = labels.expect("labels");
        let rare: Vec<f64> = (0..120).map(|i| f64::from(u8::from(!(4..=60).contains(&i)))).collect();
        let columns = [rare.as_slice()];
        let sample = Sample::new(&posteriors, &labels).and_then(|sample| sample.given(&columns)).expect("sample");
        let rows = |effect: f64| {
            let mechanism = Mechanism { classes: vec![0.0, 0.0], terms: vec![effect] };
            let squares: f64 = (0..40).map(|i| ((-effect * rare[i]).exp() * 0.5 / 120.0).powi(2)).sum();
            rows_behind(&sample, &mechanism, &[squares.sqrt(); 2])
        };
        // With equal weights on all 40 labels, and mostly on the four that stand for ten rows: (4·10² + 36)² / (4·10⁴ + 36).
        for (found, expected) in [(rows(0.0), 40.0), (rows(-f64::ln(10.0)), 436.0_f64.powi(2) / 40_036.0)] {
            assert!(found.iter().all(|rows| (rows - expected).abs() < 1e-9), "{found:?} {expected}");
        }
    }
}

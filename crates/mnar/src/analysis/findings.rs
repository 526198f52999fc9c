//! All that is said about a mechanism, in one record.

use super::intervals::{IntervalKind, Intervals, LEVEL};
use super::recipe::{EstimateSettings, Recipe};
use super::{Given, IN_SAMPLE, Watch, renormalised};
use crate::calibrate::{Bcts, Calibrated};
use crate::diagnose::{
    Identifiability, Needed, SensitivityPoint, Verdict, effective_sample_size, few_labels, identifiability,
    labels_for_width, sensitivity,
};
use crate::error::Error;
use crate::estimate::{PhiEstimate, Stop};
use crate::labels::Labels;
use crate::posteriors::{PosteriorKind, Posteriors, Renormalised};
use crate::rows::{Rows, Sample};
use crate::solver::Solver;
use crate::sums::Tally;
use crate::test::{InSampleCheck, SelfMaskingCheck, in_sample_check, self_masking_check};
use serde::Serialize;

/// The rows a result rests on.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// Number of rows.
    pub n: usize,
    /// Number of labelled rows.
    pub n_labelled: usize,
    /// Labels of each class.
    pub labelled_per_class: Vec<usize>,
}

impl From<&Labels> for About {
    fn from(labels: &Labels) -> Self {
        Self {
            classes: labels.names().to_vec(),
            n: labels.len(),
            n_labelled: labels.n_labelled(),
            labelled_per_class: labels.counts().to_vec(),
        }
    }
}

/// How the intervals were made.
#[derive(Clone, Debug, Serialize)]
pub struct IntervalAbout {
    /// In words.
    pub kind: &'static str,
    /// The same for programs.
    #[serde(skip)]
    pub made: IntervalKind,
    /// Their level.
    pub level: f64,
    /// Replicates asked for, where it was a bootstrap.
    pub replicates: usize,
    /// Those that failed and were left out.
    pub failed_replicates: usize,
    /// Does the interval take the classifier as given?
    pub conditional_on_classifier: bool,
}

impl IntervalAbout {
    pub(super) fn new(made: IntervalKind) -> Self {
        Self {
            kind: made.name(),
            made,
            level: LEVEL,
            replicates: 0,
            failed_replicates: 0,
            conditional_on_classifier: made != IntervalKind::BootstrapWithRefit,
        }
    }
}

/// The estimate, its intervals and everything that was checked on the way.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The rows.
    #[serde(flatten)]
    pub about: About,
    /// P(labelled | class).
    pub phi: Vec<f64>,
    /// Its standard errors.
    pub phi_se: Option<Vec<f64>>,
    /// Its 95% intervals.
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// The class shares of the whole population.
    pub prevalence: Vec<f64>,
    /// Their standard errors.
    pub prevalence_se: Option<Vec<f64>>,
    /// Their 95% intervals.
    pub prevalence_ci95: Option<Vec<(f64, f64)>>,
    /// The class shares of the unlabelled rows.
    pub unlabelled_shares: Vec<f64>,
    /// The estimator.
    pub method: String,
    /// What the posteriors were taken for.
    pub posterior: &'static str,
    /// Did the estimator converge?
    pub converged: bool,
    /// Why it stopped.
    #[serde(flatten)]
    pub stop: Stop,
    /// Classes whose phi is at its bound 1.
    pub clipped: Vec<String>,
    /// The weight of the prior, in rows.
    pub prior_weight: f64,
    /// How the intervals were made.
    pub interval: IntervalAbout,
    /// The calibration, where there was one.
    pub calibration: Option<Bcts>,
    /// How many unweighted labels the 1/phi weights are worth.
    pub effective_sample_size: f64,
    /// Can the classifier tell the classes apart?
    pub identifiability: Option<Identifiability>,
    /// Has the classifier seen the labelled rows?
    pub in_sample: Option<InSampleCheck>,
    /// Does the class alone explain who is labelled?
    pub self_masking: Option<SelfMaskingCheck>,
    /// What if easy rows are labelled more readily?
    pub sensitivity: Option<Vec<SensitivityPoint>>,
    /// Labels that would give intervals of the width asked for.
    pub labels_for_width: Option<Vec<Option<Needed>>>,
    /// Rows slightly off the simplex.
    pub renormalised: Renormalised,
    /// The features, where predictions were cross-fitted on them.
    pub features: Option<Vec<String>>,
    /// Seed of every draw.
    pub seed: u64,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// The posteriors after calibration, where there was one.
    #[serde(skip)]
    pub calibrated: Option<Posteriors>,
}

impl EstimateSettings {
    /// Estimates, and checks all that can be checked.
    pub fn run(&self, given: &Given<'_>, watch: &dyn Watch) -> Result<Findings, Error> {
        self.check()?;
        let (labels, raw) = (given.labels, given.posteriors);
        let recipe = Recipe::new(self, raw.kind())?;
        // Speaks of lengths and classes before any work.
        let raw_sample = Sample::new(raw, labels)?;
        let (estimate, calibration) = recipe.run(raw, labels, None)?;
        let (bcts, calibrated) = calibration.unzip();
        let sample = Sample::new(calibrated.as_ref().unwrap_or(raw), labels)?;
        let matrices = fits_matrices(labels.n_classes());
        let intervals = Intervals::make(self, &recipe, given, &sample, &estimate, watch)?;

        // The checks compare scores, so they take the classifier's own, not the calibrated ones.
        let checked = raw.kind() == PosteriorKind::Labelled && matrices;
        let in_sample = if checked { in_sample_check(&raw_sample).ok() } else { None };
        let self_masking = if checked { self_masking_check(&raw_sample).ok() } else { None };
        let mut warnings = Vec::new();
        if intervals.about.failed_replicates > 0 {
            warnings
                .push(format!("{} bootstrap replicates failed and were left out", intervals.about.failed_replicates));
        }
        match &given.features {
            Some(_) => warnings.extend(given.redrawn()),
            None if in_sample.is_some_and(|check| check.suspicious) => warnings.push(IN_SAMPLE.to_owned()),
            None => {}
        }
        let curve = match self.sensitivity.as_slice() {
            [] => None,
            factors => Some(sensitivity(&sample, &recipe.label_shift(), factors)?),
        };
        let identified = if matrices { Some(identifiability(&sample, &estimate)?) } else { None };
        let parts = Parts {
            about: About::from(labels),
            intervals,
            bcts,
            identifiability: identified,
            renormalised: raw.renormalised(),
            warnings,
        };
        Ok(Findings {
            in_sample,
            self_masking,
            sensitivity: curve,
            features: given.features.as_ref().map(|features| features.names.to_vec()),
            calibrated,
            ..self.assemble(&recipe, estimate, parts)?
        })
    }

    /// The same in flat memory, walking over rows that stay where they are: with intervals from the observed
    /// information, and without the checks that compare rows.
    pub fn run_streamed<R: Rows>(&self, rows: &R, about: About) -> Result<Findings, Error> {
        use super::IntervalMethod::{Auto, Information};
        self.check()?;
        let recipe = Recipe::new(self, rows.kind())?;
        if !matches!(self.interval, Auto | Information) {
            return Err(Error::Settings(
                "streamed rows have intervals from the observed information only; ask for those, or load the table",
            ));
        }
        if !self.sensitivity.is_empty() {
            return Err(Error::Settings("the sensitivity analysis needs the table in memory; load it"));
        }
        let matrices = fits_matrices(rows.n_classes());
        let bcts = match recipe.calibration() {
            Some(calibration) => {
                Tally::of(rows)?;
                Some(calibration.fit(rows)?)
            }
            None => None,
        };
        let (estimate, identifiability) = match &bcts {
            Some(bcts) => estimated(&recipe, &Calibrated { rows, bcts }, matrices)?,
            None => estimated(&recipe, rows, matrices)?,
        };
        let warning = "the table was streamed: the checks of held-out predictions and of self-masking were not run";
        let parts = Parts {
            about,
            intervals: Intervals::information(&estimate),
            bcts,
            identifiability,
            renormalised: rows.renormalised(),
            warnings: vec![warning.to_owned()],
        };
        self.assemble(&recipe, estimate, parts)
    }

    fn check(&self) -> Result<(), Error> {
        if self.replicates < 20 {
            return Err(Error::OutOfRange {
                name: "the number of replicates",
                value: self.replicates.to_string(),
                range: "at least 20 for intervals",
            });
        }
        Ok(())
    }

    fn assemble(&self, recipe: &Recipe, estimate: PhiEstimate, parts: Parts) -> Result<Findings, Error> {
        let Parts { about, intervals, bcts, identifiability, renormalised: off, mut warnings } = parts;
        let names = &about.classes;
        let clipped: Vec<String> = estimate.clipped.iter().map(|class| names[class.index()].clone()).collect();
        if !clipped.is_empty() {
            warnings.push(format!(
                "phi of {} is at its bound 1: no unlabelled row seems to belong there; with few labels that is often chance, and a prior weight steadies it",
                quote(&clipped)
            ));
        }
        if !estimate.stop.converged() {
            warnings.push(format!("the estimator stopped before it converged: {:?}", estimate.stop));
        }
        if bcts.as_ref().is_some_and(|bcts| !bcts.converged) {
            warnings.push("the calibration stopped before it converged; compare with no calibration".into());
        }
        warnings.extend(few_labels(names, &about.labelled_per_class));
        if let Some(found) = &identifiability
            && found.verdict != Verdict::Good
        {
            warnings.push(format!(
                "{} (smallest singular value of the confusion matrix {:.3})",
                found.verdict.sentence(),
                found.smallest_singular_value
            ));
        }
        warnings.extend(renormalised(off));
        Ok(Findings {
            labels_for_width: self.labels_for_width(&estimate, intervals.phi_se.as_deref())?,
            phi_se: intervals.phi_se,
            phi_ci95: intervals.phi,
            prevalence_se: intervals.prevalence_se,
            prevalence_ci95: intervals.prevalence,
            method: estimate.method.to_owned(),
            posterior: recipe.kind().name(),
            converged: estimate.stop.converged(),
            clipped,
            prior_weight: estimate.prior_weight,
            interval: intervals.about,
            calibration: bcts,
            effective_sample_size: effective_sample_size(&estimate.tally.counts, &estimate.phi),
            identifiability,
            in_sample: None,
            self_masking: None,
            sensitivity: None,
            renormalised: off,
            features: None,
            seed: self.seed,
            warnings,
            calibrated: None,
            phi: estimate.phi.as_slice().to_vec(),
            prevalence: estimate.prevalence,
            unlabelled_shares: estimate.unlabelled_shares,
            stop: estimate.stop,
            about,
        })
    }

    fn labels_for_width(
        &self,
        estimate: &PhiEstimate,
        se: Option<&[f64]>,
    ) -> Result<Option<Vec<Option<Needed>>>, Error> {
        let Some(width) = self.width else { return Ok(None) };
        let Some(se) = se else {
            return Err(Error::Settings("the labels for a width need standard errors; use bootstrap intervals"));
        };
        let needed = se
            .iter()
            .map(|&se| se.is_finite().then(|| labels_for_width(estimate, se, width, LEVEL)).transpose())
            .collect::<Result<_, _>>()?;
        Ok(Some(needed))
    }
}

/// What is known beside the estimate when the findings are put together.
struct Parts {
    about: About,
    intervals: Intervals,
    bcts: Option<Bcts>,
    identifiability: Option<Identifiability>,
    renormalised: Renormalised,
    warnings: Vec<String>,
}

fn estimated<R: Rows>(
    recipe: &Recipe,
    rows: &R,
    matrices: bool,
) -> Result<(PhiEstimate, Option<Identifiability>), Error> {
    let estimate = recipe.estimate(rows)?;
    let identified = if matrices { Some(identifiability(rows, &estimate)?) } else { None };
    Ok((estimate, identified))
}

/// With more classes, matrices of classes by classes are left out.
fn fits_matrices(classes: usize) -> bool {
    classes <= Solver::default().full_matrix_classes
}

/// Class names for a sentence: the first ones where there are many.
fn quote(classes: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = classes.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match classes.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more classes", shown.join(", ")),
    }
}

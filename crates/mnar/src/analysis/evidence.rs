//! What an analysis starts from.

use super::{Audit, TriedClassifier};
use crate::calibrate::Bcts;
use crate::classify::{Classifier, Training};
use crate::covariates::Covariates;
use crate::crossfit::{CrossFit, FoldPlan};
use crate::error::Error;
use crate::labels::{Class, Labels, RareClass};
use crate::posteriors::{PosteriorKind, Posteriors};
use crate::progress::{Progress, Stage};
use crate::rows::Sample;
use crate::test::{InSampleCheck, PermutationTest, TestResult, affordable_permutations};
use ndarray::{Array2, ShapeBuilder as _};
use std::borrow::Cow;
use std::sync::OnceLock;

/// Labels, the posteriors of the same rows, and how the posteriors came about.
#[derive(Clone)]
pub struct Evidence<'a> {
    /// The labels.
    pub labels: &'a Labels,
    /// Class probabilities of every row, as the classifier gave them.
    pub posteriors: Cow<'a, Posteriors>,
    /// The fold in which each row was held out.
    pub plan: Cow<'a, FoldPlan>,
    /// What is known about who scored the rows.
    pub scored_by: ScoredBy,
    /// The features and the classifier, if bootstraps can refit it.
    pub features: Option<Features<'a>>,
    /// Columns of the same rows that labelling may depend on. The classifier must have seen them.
    pub covariates: Option<&'a Covariates>,
    /// Rows whose label was requested at random. The labels above do not have them, and the classifier has not seen them.
    pub audit: Option<&'a Audit>,
    /// The classifiers that the one behind the posteriors was chosen from; empty if there was no choice.
    pub tried: Vec<TriedClassifier>,
    /// What readers should know about the rows, such as classes that were set aside: warnings of the findings.
    pub notes: Vec<String>,
    /// Classes that were set aside because they have too few labels.
    pub set_aside: Vec<RareClass>,
    /// The permutation test with its permutations and seed, once it is known: a test and an estimate both ask for it.
    pub(super) chance: OnceLock<(usize, u64, TestResult)>,
}

/// What is known about the classifier that scored the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoredBy {
    /// Nothing: the user says that it has not seen the labelled rows.
    Unknown,
    /// The user gave the fold in which each row was held out.
    GivenFolds,
    /// It was cross-fitted here.
    CrossFit,
}

/// What posteriors are learnt from.
#[derive(Clone, Copy)]
pub struct Features<'a> {
    /// One row per label, scaled as the classifier should see them.
    pub x: &'a Array2<f64>,
    /// The names of the columns.
    pub names: &'a [String],
    /// The classifier.
    pub classifier: &'a dyn Classifier<Array2<f64>>,
}

impl<'a> Evidence<'a> {
    /// Predictions of a classifier that has seen none of the rows.
    pub fn predictions(posteriors: &'a Posteriors, labels: &'a Labels) -> Self {
        Self {
            labels,
            posteriors: Cow::Borrowed(posteriors),
            plan: Cow::Owned(FoldPlan::single(labels.len())),
            scored_by: ScoredBy::Unknown,
            features: None,
            covariates: None,
            audit: None,
            tried: Vec::new(),
            notes: Vec::new(),
            set_aside: Vec::new(),
            chance: OnceLock::new(),
        }
    }

    /// The same evidence with columns that labelling may depend on besides the class. The classifier behind the posteriors
    /// must have had them among its features.
    pub fn with_covariates(self, covariates: &'a Covariates) -> Result<Self, Error> {
        if covariates.len() != self.labels.len() && !covariates.is_empty() {
            let (found, expected) = (covariates.len(), self.labels.len());
            return Err(Error::LengthMismatch { what: "the table of columns", found, expected });
        }
        Ok(Self { covariates: Some(covariates), ..self })
    }

    /// The same evidence with an audit, if there is one, which [`Audit::split`] took out of the labels.
    pub fn with_audit(self, audit: impl Into<Option<&'a Audit>>) -> Self {
        Self { audit: audit.into(), ..self }
    }

    /// The same evidence with notes on the rows, which the findings repeat as warnings.
    pub fn with_notes(self, notes: impl IntoIterator<Item = String>) -> Self {
        Self { notes: self.notes.into_iter().chain(notes).collect(), ..self }
    }

    /// The same evidence where classes with too few labels were set aside ([`Labels::without_rare`]). The findings warn of it.
    pub fn with_set_aside(self, classes: &[RareClass]) -> Self {
        let set_aside = classes.to_vec();
        Self { set_aside, ..self }.with_notes(classes.iter().map(RareClass::to_string))
    }

    /// The same predictions, cross-fitted by someone else in these folds.
    pub fn with_folds(self, plan: &'a FoldPlan) -> Self {
        let scored_by = if plan.n_folds() > 1 { ScoredBy::GivenFolds } else { self.scored_by };
        Self { plan: Cow::Borrowed(plan), scored_by, chance: OnceLock::new(), ..self }
    }

    /// The same predictions, cross-fitted by the caller with [`CrossFit`].
    pub fn cross_fitted(self, plan: &'a FoldPlan) -> Self {
        Self { plan: Cow::Borrowed(plan), scored_by: ScoredBy::CrossFit, chance: OnceLock::new(), ..self }
    }

    /// Cross-fits a classifier on features. Bootstraps refit it.
    pub fn cross_fit(
        features: Features<'a>,
        labels: &'a Labels,
        plan: FoldPlan,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        if features.x.nrows() != labels.len() {
            let found = features.x.nrows();
            return Err(Error::LengthMismatch { what: "the table of features", found, expected: labels.len() });
        }
        progress.begin(Stage::CrossFit, 0, 0);
        let posteriors = features.posteriors(labels, &plan, None, seed, progress)?;
        progress.end();
        Ok(Self {
            labels,
            posteriors: Cow::Owned(posteriors),
            plan: Cow::Owned(plan),
            scored_by: ScoredBy::CrossFit,
            features: Some(features),
            covariates: None,
            audit: None,
            tried: Vec::new(),
            notes: Vec::new(),
            set_aside: Vec::new(),
            chance: OnceLock::new(),
        })
    }

    /// Is it chance who is labelled? The permutation test, with fewer permutations where there are very many rows.
    pub(super) fn chance(&self, permutations: usize, seed: u64) -> Result<TestResult, Error> {
        let permutations = affordable_permutations(permutations, self.labels.len());
        match self.chance.get() {
            Some((of, with, result)) if (*of, *with) == (permutations, seed) => Ok(result.clone()),
            _ => {
                let sample = Sample::new(&self.posteriors, self.labels)?;
                let result = PermutationTest { permutations, seed }.run(&sample, &self.plan)?;
                // Only the first one asked for is kept.
                self.chance.get_or_init(|| (permutations, seed, result.clone()));
                Ok(result)
            }
        }
    }

    /// Warnings about the rows and how they were scored.
    pub(super) fn warnings(&self, in_sample: Option<InSampleCheck>) -> Vec<String> {
        self.notes.iter().cloned().chain(self.copies_warning()).chain(self.scoring_warning(in_sample)).collect()
    }

    /// A doubt where probabilities of unknown origin are far too cautious on the labelled rows, as those of a forest are on the
    /// rows that it has learnt from: in three trials with random forests the slopes were 2.1 to 2.4, and accuracies 8 points too high.
    pub(crate) fn too_cautious(&self, calibration: Option<&Bcts>) -> Option<String> {
        const SLOPE: f64 = 2.0;
        let slope = calibration?.inverse_temperature;
        (self.scored_by == ScoredBy::Unknown && slope >= SLOPE).then(|| {
            format!(
                "on the labelled rows, the probabilities are far too cautious (calibration slope {slope:.1}): either the model is, or it was trained on these rows, and then the results cannot be trusted; use out-of-fold predictions, and name the column of their folds"
            )
        })
    }

    /// Rows that appear several times, if they are more than one in a hundred.
    fn copies_warning(&self) -> Option<String> {
        let (copies, n) = (self.plan.copies(), self.labels.len());
        (copies * 100 > n).then(|| {
            format!(
                "{copies} of {n} rows are copies of other rows. They are scored and resampled together, but the test of chance counts every copy: if the same cases were entered again, remove them"
            )
        })
    }

    fn scoring_warning(&self, in_sample: Option<InSampleCheck>) -> Option<String> {
        const SUSPICIOUS: &str = "labelled rows are scored with more confidence than unlabelled rows of the same classes, \
            as if the classifier had been trained on them (or labels favour easy rows); the results cannot be trusted then.";
        let suspicious = in_sample.is_some_and(|check| check.suspicious);
        match self.scored_by {
            ScoredBy::Unknown if suspicious => Some(format!(
                "{SUSPICIOUS} Use out-of-fold predictions for the labelled rows, and name the column of their folds"
            )),
            ScoredBy::GivenFolds if suspicious => {
                Some(format!("{SUSPICIOUS} Check that the model of a fold was trained without the rows of that fold"))
            }
            ScoredBy::CrossFit if self.plan.redrawn() > 0 => Some(format!(
                "the folds were drawn {} times because a class had all its labels in one fold",
                self.plan.redrawn() + 1
            )),
            _ => None,
        }
    }
}

impl Features<'_> {
    /// Cross-fitted posteriors.
    pub(super) fn posteriors(
        &self,
        labels: &Labels,
        plan: &FoldPlan,
        weights: Option<&[f64]>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Posteriors, Error> {
        let cross_fit = CrossFit { classifier: self.classifier, x: self.x, seed };
        Ok(cross_fit.run(labels, plan, weights, progress)?.posteriors)
    }
}

/// Up to this many probabilities of refitted classifiers are kept: 160 MB.
const KEPT: usize = 20_000_000;

/// The posteriors of a bootstrap's refitted classifiers. They are kept where memory allows, because every step of the
/// search for columns needs the same ones.
pub(super) struct Refits<'a> {
    features: Features<'a>,
    labels: &'a Labels,
    plan: FoldPlan,
    seed: u64,
    started: Option<Box<dyn Classifier<Array2<f64>>>>,
    kept: Vec<OnceLock<Posteriors>>,
}

impl<'a> Refits<'a> {
    /// None if there is no classifier to refit.
    pub(super) fn new(evidence: &Evidence<'a>, replicates: usize, seed: u64) -> Result<Option<Self>, Error> {
        let Some(features) = evidence.features else { return Ok(None) };
        let labels = evidence.labels;
        let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        let training = Training { rows: &rows, classes: &classes, n_classes: labels.n_classes(), weights: None };
        let started = features.classifier.started(features.x, &training)?;
        let numbers = labels.len().saturating_mul(labels.n_classes()).saturating_mul(replicates);
        let kept = if numbers <= KEPT { replicates } else { 0 };
        let kept = (0..kept).map(|_| OnceLock::new()).collect();
        Ok(Some(Self { features, labels, plan: evidence.plan.clone().into_owned(), seed, started, kept }))
    }

    /// The posteriors of a replicate, whose rows have these weights.
    pub(super) fn posteriors(
        &self,
        weights: &[f64],
        replicate: u64,
        progress: &dyn Progress,
    ) -> Result<Cow<'_, Posteriors>, Error> {
        let kept = self.kept.get(replicate as usize);
        if let Some(posteriors) = kept.and_then(OnceLock::get) {
            return Ok(Cow::Borrowed(posteriors));
        }
        let name = format!("refit {replicate}");
        let earlier = progress.kept(&name).and_then(|bytes| from_bytes(&bytes, self.labels));
        let posteriors = match earlier {
            Some(posteriors) => posteriors,
            None => {
                let posteriors = self.refitted(weights, replicate)?;
                progress.keep(&name, &|| to_bytes(&posteriors));
                posteriors
            }
        };
        Ok(match kept {
            Some(kept) => Cow::Borrowed(kept.get_or_init(|| posteriors)),
            None => Cow::Owned(posteriors),
        })
    }

    fn refitted(&self, weights: &[f64], replicate: u64) -> Result<Posteriors, Error> {
        // New folds as well: their draw is part of what makes the estimate vary.
        let seed = self.seed.wrapping_add((replicate + 1) << 20);
        let plan = self.plan.drawn_again(self.labels, seed)?;
        let classifier = self.started.as_deref().unwrap_or(self.features.classifier);
        let features = Features { classifier, ..self.features };
        features.posteriors(self.labels, &plan, Some(weights), seed, &())
    }
}

/// Probabilities as their bytes, class by class.
fn to_bytes(posteriors: &Posteriors) -> Vec<u8> {
    let columns = (0..posteriors.n_classes()).flat_map(|k| posteriors.column(k));
    columns.flat_map(|p| p.to_le_bytes()).collect()
}

/// Reads them back; `None` where the bytes are not probabilities of these rows and classes.
fn from_bytes(bytes: &[u8], labels: &Labels) -> Option<Posteriors> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    let p: Vec<f64> = numbers.iter().map(|number| f64::from_le_bytes(*number)).collect();
    let p = Array2::from_shape_vec((labels.len(), labels.n_classes()).f(), p).ok()?;
    rest.is_empty().then(|| Posteriors::new(p, PosteriorKind::Labelled).ok()).flatten()
}

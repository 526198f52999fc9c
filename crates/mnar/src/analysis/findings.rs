//! Everything that is said about a mechanism, in one record.

use super::intervals::{CONFIDENCE, IntervalAbout, IntervalKind, Intervals};
use super::labelling::{ColumnEffect, Labelling, lost_class, no_labels, unexplained};
use super::recipe::{EstimateSettings, Given, Ran, Recipe};
use super::search::Searched;
use super::tilt::Tilt;
use super::verdict::{Circumstances, Verdict as LabellingVerdict};
use super::{AuditFindings, ByGroup, Evidence, GroupFindings, Refinement, ScoredBy, TriedClassifier, renormalised};
use crate::calibrate::{Bcts, Calibrated, ColumnCalibration};
use crate::diagnose::{
    Identifiability, Needed, ReliabilityBin, SensitivityPoint, Verdict, confusion, effective_sample_size, few_labels,
    identifiability, labels_for_width, reliability,
};
use crate::error::Error;
use crate::estimate::{PhiEstimate, Shares, Stop};
use crate::kept::Few;
use crate::labels::Labels;
use crate::mechanism::Mechanism;
use crate::nullable;
use crate::phi::Phi;
use crate::positive::PositiveBound;
use crate::posteriors::{PosteriorKind, Posteriors, Renormalised};
use crate::progress::Progress;
use crate::rows::{Rows, Sample};
use crate::shares::ClassShares;
use crate::solver::Solver;
use crate::sums::Tally;
use crate::test::{InSampleCheck, SelfMaskingCheck, in_sample_check, self_masking_check};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The rows that a result rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct About {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The number of rows.
    pub n: usize,
    /// The number of labelled rows.
    pub n_labelled: usize,
    /// The number of labels of each class.
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

/// How the classifier does on the labelled rows, which it must not have seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ClassifierFindings {
    /// The share of the labelled rows whose most probable class is their label.
    pub out_of_fold_accuracy: f64,
    /// Labelled rows by the confidence of the classifier, before calibration.
    pub reliability_before: Vec<ReliabilityBin>,
    /// The same after calibration.
    pub reliability_after: Vec<ReliabilityBin>,
    /// `confusion[k][j]` labelled rows of class k were taken for class j.
    pub confusion: Vec<Vec<usize>>,
}

/// The number of bins of a reliability diagram.
const RELIABILITY_BINS: usize = 10;

impl ClassifierFindings {
    fn new(raw: &Sample<'_>, calibrated: &Sample<'_>) -> Self {
        let right = raw.labels().labelled().filter(|(row, class)| {
            let p = raw.posteriors().row(*row);
            p.iter().all(|other| *other <= p[class.index()])
        });
        // Reliability speaks of labelled rows, so it needs a posterior of labelled rows.
        let bins = |sample: &Sample<'_>| match sample.kind() {
            PosteriorKind::Labelled => reliability(sample, RELIABILITY_BINS),
            PosteriorKind::Population => Vec::new(),
        };
        Self {
            out_of_fold_accuracy: right.count() as f64 / raw.labels().n_labelled() as f64,
            reliability_before: bins(raw),
            reliability_after: bins(calibrated),
            confusion: confusion(calibrated),
        }
    }
}

/// The estimate, its intervals and everything that was checked on the way.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Findings {
    /// The rows.
    #[serde(flatten)]
    pub about: About,
    /// P(labelled | class).
    pub phi: Phi,
    /// Standard errors of phi; null for a class at the bound 1.
    #[serde(default, deserialize_with = "nullable::numbers")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Option<f64>>>"))]
    pub phi_se: Option<Vec<f64>>,
    /// 95% intervals of phi; null for a class at the bound 1 that has none.
    #[serde(default, deserialize_with = "nullable::intervals")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<(Option<f64>, Option<f64>)>>"))]
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// The class shares of the whole population.
    pub prevalence: ClassShares,
    /// Standard errors of the class shares.
    #[serde(default, deserialize_with = "nullable::numbers")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Option<f64>>>"))]
    pub prevalence_se: Option<Vec<f64>>,
    /// 95% intervals of the class shares.
    #[serde(default, deserialize_with = "nullable::intervals")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<(Option<f64>, Option<f64>)>>"))]
    pub prevalence_ci95: Option<Vec<(f64, f64)>>,
    /// The class shares of the unlabelled rows.
    pub unlabelled_shares: ClassShares,
    /// The estimator; "none" if no label is missing.
    pub method: String,
    /// The kind of posteriors that the estimate rests on.
    pub posterior: PosteriorKind,
    /// Whether the estimator converged.
    pub converged: bool,
    /// Why the estimator stopped.
    #[serde(flatten)]
    pub stop: Stop,
    /// Classes whose phi is at its bound 1.
    pub clipped: Vec<String>,
    /// The weight of the prior, in rows.
    pub prior_weight: f64,
    /// Whether nobody asked for that prior: the intervals are made without it then.
    #[serde(default)]
    pub prior_by_default: bool,
    /// How the intervals were made.
    pub interval: IntervalAbout,
    /// The calibration, where there was one.
    pub calibration: Option<Bcts>,
    /// The calibration after it, within the columns that labelling depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_calibration: Option<ColumnCalibration>,
    /// How many unweighted labels the labels are worth when they are weighted by 1/phi.
    pub effective_sample_size: f64,
    /// How well the classifier tells the classes apart.
    pub identifiability: Option<Identifiability>,
    /// Whether the classifier seems to have seen the labelled rows.
    pub in_sample: Option<InSampleCheck>,
    /// Whether the class alone explains who is labelled.
    pub self_masking: Option<SelfMaskingCheck>,
    /// How phi and the shares would move if easy rows were labelled more readily.
    pub sensitivity: Option<Vec<SensitivityPoint>>,
    /// The breakdown point: the odds factor, nearest to 1, at which the effect of the class would be gone if easy rows (above
    /// 1) or hard rows (below 1) were labelled more readily; null if it is beyond 20, or was not asked for.
    #[serde(default)]
    pub breakdown: Option<f64>,
    /// How many labels would give intervals of the width asked for, class by class.
    pub labels_for_width: Option<Vec<Option<Needed>>>,
    /// The classifier on the labelled rows, where a description was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier: Option<ClassifierFindings>,
    /// The classifiers that the one behind the posteriors was chosen from, where there was a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedClassifier>,
    /// Rows whose probabilities did not quite sum to one.
    pub renormalised: Renormalised,
    /// The features, where the classifier was cross-fitted on them.
    pub features: Option<Vec<String>>,
    /// Seed of every draw.
    pub seed: u64,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// What decided who got labelled; `None` where it was not asked (known mechanisms, population posteriors).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<LabellingVerdict>,
    /// The questions behind the verdict, and their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labelling: Option<Labelling>,
    /// What an audit says, where there is one: class shares and phi rest on it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditFindings>,
    /// The column that groups the rows, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByGroup>,
    /// Class shares and phi per group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<GroupFindings>>,
    /// The effects of columns where the rows were streamed; otherwise they are part of `labelling`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<ColumnEffect>,
    /// The mechanism by class and columns, where it depends on columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// What a model that was trained afterwards says about phi, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<Refinement>,
    /// What the data say by themselves where only one class is ever labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<PositiveBound>,
    /// The posteriors after calibration, where there was one.
    #[serde(skip)]
    pub calibrated: Option<Arc<Posteriors>>,
    /// P(labelled | class, columns) of every row, where the mechanism depends on columns.
    #[serde(skip)]
    pub row_phi: Option<Arc<[Phi]>>,
}

impl Findings {
    /// What can be said where no label is missing: phi is 1, and the class shares are counted.
    pub fn nothing_missing(labels: &Labels, seed: u64) -> Self {
        let shares = ClassShares::of_counts(labels.counts());
        let warning = "all labels are there: nothing is missing, so no mechanism was estimated or tested";
        Self {
            about: About::from(labels),
            phi: Phi::all_labelled(labels.n_classes()),
            phi_se: None,
            phi_ci95: None,
            prevalence: shares.clone(),
            prevalence_se: None,
            prevalence_ci95: None,
            unlabelled_shares: shares,
            method: "none".to_owned(),
            posterior: PosteriorKind::Labelled,
            converged: true,
            stop: Stop::ClosedForm,
            clipped: Vec::new(),
            prior_weight: 0.0,
            prior_by_default: false,
            interval: IntervalAbout::new(IntervalKind::None),
            calibration: None,
            column_calibration: None,
            effective_sample_size: labels.n_labelled() as f64,
            identifiability: None,
            in_sample: None,
            self_masking: None,
            sensitivity: None,
            breakdown: None,
            labels_for_width: None,
            classifier: None,
            tried: Vec::new(),
            renormalised: Renormalised::default(),
            features: None,
            seed,
            warnings: vec![warning.to_owned()],
            calibrated: None,
            verdict: None,
            labelling: None,
            audit: None,
            by: None,
            groups: None,
            effects: Vec::new(),
            mechanism: None,
            row_phi: None,
            refinement: None,
            positive: None,
        }
    }
}

/// P(r=1|x) = 1/(1 + Σ_y s(y|x) (1 − phi_y)/phi_y) of every row, from labelled posteriors.
fn expected_rates(posteriors: &Posteriors, phi: &Phi, rows: Option<&[Phi]>) -> Vec<f64> {
    let rate = |row: usize| {
        let phi = rows.map_or(phi, |rows| &rows[row]);
        let odds: f64 = posteriors.row(row).iter().zip(phi.iter()).map(|(s, phi)| s * (1.0 - phi) / phi).sum();
        1.0 / (1.0 + odds)
    };
    (0..posteriors.len()).map(rate).collect()
}

/// The odds that a labelled row had of not being labelled; unlabelled rows count once.
fn unlabelled_odds(labels: &Labels, phi: &[Phi]) -> Vec<f64> {
    let mut odds = vec![1.0; labels.len()];
    for (row, class) in labels.labelled() {
        let phi = phi[row][class.index()];
        odds[row] = (1.0 - phi) / phi;
    }
    odds
}

impl EstimateSettings {
    /// Estimates the mechanism, and checks all that can be checked.
    pub fn run(&self, evidence: &Evidence<'_>, progress: &dyn Progress) -> Result<Findings, Error> {
        let (labels, raw) = (evidence.labels, evidence.posteriors.as_ref());
        let recipe = Recipe::of(self, evidence)?;
        self.check_draws(labels.n_classes())?;
        // Checks lengths and classes before any work.
        let raw_sample = Sample::new(raw, labels)?;
        let found = self.search(&recipe, evidence, progress)?;
        let Searched { ran, alone, mut intervals, mut labelling, groups, identified: shadow, row_phi, terms } = found;
        let (by, groups) = groups.unzip();
        let Ran { estimate, calibration, mechanism, .. } = ran;
        // A prior that nobody asked for must not hide from the checks what the data do not say.
        let unshrunk = alone.as_ref().unwrap_or(&estimate);
        let used = calibration.as_ref().map_or(raw, |calibration| &calibration.posteriors);
        let sample = Sample::new(used, labels)?;
        let matrices = fits_matrices(labels.n_classes());

        // The checks compare scores, so they take the classifier's own: calibration on the same labels would hide part of a
        // misfit.
        let checked = raw.kind() == PosteriorKind::Labelled && matrices;
        let in_sample = if checked { in_sample_check(&raw_sample).ok() } else { None };
        let unlabelled_odds = row_phi.as_deref().map(|rows| unlabelled_odds(labels, rows));
        let comparable = raw_sample.with_weights(unlabelled_odds.as_deref())?;
        let self_masking = if checked { self_masking_check(&comparable).ok() } else { None };
        let mut warnings = Vec::new();
        if intervals.about.failed_replicates > 0 {
            warnings.push(format!(
                "{} of {} bootstrap replicates failed and were left out",
                intervals.about.failed_replicates, intervals.about.replicates
            ));
        }
        warnings.extend(evidence.warnings(in_sample));
        warnings.extend(evidence.too_cautious(calibration.as_ref().map(|calibration| &calibration.bcts)));
        if evidence.scored_by == ScoredBy::CrossFit && intervals.about.kind == IntervalKind::Information {
            warnings.push(
                "the intervals take the classifier as given and are too short if it was learnt from few labels"
                    .to_owned(),
            );
        }
        let by_columns = mechanism.as_ref().map(|found| &found.mechanism).filter(|_| !terms.is_empty());
        let tilt = Tilt::new(&sample, by_columns.filter(|_| !self.sensitivity.is_empty()), &terms);
        let curve = match self.sensitivity.as_slice() {
            [] => None,
            factors => match tilt.curve(&sample, &recipe, factors) {
                Ok(curve) => Some(curve),
                Err(error) => {
                    warnings.push(format!("there is no sensitivity curve: {error}"));
                    None
                }
            },
        };
        let identified = if matrices { Some(identifiability(&sample, unshrunk)?) } else { None };
        let columns: Vec<&[f64]> = terms.iter().map(Vec::as_slice).collect();
        let start = by_columns.cloned().unwrap_or_else(|| Mechanism::of_classes(&unshrunk.phi));
        if let Some(identified) = identified.as_ref().filter(|_| labelling.is_some())
            && intervals.widen(
                &sample.given(&columns)?,
                unshrunk,
                &start,
                evidence.features.map(|features| features.classifier),
                identified.verdict == Verdict::Poor,
            )?
        {
            warnings.push(
                "the intervals are widened: they also cover what follows if the classifier's probabilities are off"
                    .to_owned(),
            );
        }
        intervals.within_counts(labels, &estimate);
        let described = self.describe_classifier && matrices;
        let classifier = described.then(|| ClassifierFindings::new(&raw_sample, &sample));
        let parts = Parts {
            about: About::from(labels),
            intervals,
            bcts: calibration.as_ref().map(|calibration| calibration.bcts.clone()),
            by_columns: calibration.as_ref().and_then(|calibration| calibration.by_columns.clone()),
            identifiability: identified,
            renormalised: raw.renormalised(),
            warnings,
        };
        // Some fifty estimates: seconds at most.
        let affordable = labels.len().saturating_mul(labels.n_classes() + terms.len()) <= 2_000_000;
        let breakdown = match curve {
            Some(_) if labelling.is_some() && affordable => tilt.breakdown(&sample, &recipe, &estimate.phi),
            _ => None,
        };
        let audited = match evidence.audit {
            None => None,
            Some(audit) => {
                let population = population(&sample, &unshrunk.phi, row_phi.as_deref())?;
                let se = parts.intervals.prevalence_se.as_deref();
                Some(audit.estimate(&population, labels, &unshrunk.prevalence, se)?)
            }
        };
        let verdict = labelling.as_mut().map(|labelling| {
            let expected = expected_rates(used, &unshrunk.phi, row_phi.as_deref());
            labelling.verdict(&Circumstances {
                classes: labels.names(),
                phi: &estimate.phi,
                self_masking: self_masking.as_ref().map(|check| check.p_value),
                identified: shadow,
                audit: audited.as_ref().map(|audited| &audited.findings),
                unexplained: evidence.covariates.and_then(|columns| unexplained(columns, labels, &expected)),
                no_labels: evidence.covariates.and_then(|columns| no_labels(columns, labels, &labelling.given)),
                lost_class: lost_class(&evidence.set_aside, &unshrunk.phi, labels.len()),
            })
        });
        let mut found = Findings {
            verdict,
            labelling,
            by,
            groups,
            mechanism: mechanism.map(|found| found.mechanism).filter(|mechanism| !mechanism.terms.is_empty()),
            row_phi: row_phi.map(Arc::from),
            in_sample,
            self_masking,
            breakdown,
            sensitivity: curve,
            classifier,
            tried: evidence.tried.clone(),
            features: evidence.features.map(|features| features.names.to_vec()).filter(|names| !names.is_empty()),
            calibrated: calibration.map(|calibration| Arc::new(calibration.posteriors)),
            ..self.assemble(&recipe, estimate, parts)?
        };
        if let Some(rows) = &found.row_phi {
            // Kish's formula with the weight of every labelled row.
            let weights = labels.labelled().map(|(row, class)| 1.0 / rows[row][class.index()]);
            let (sum, squares) = weights.fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
            found.effective_sample_size = sum * sum / squares;
        }
        if let Some(audited) = audited {
            // A mechanism that the audit contradicts gives no weights by row.
            found.row_phi = found.row_phi.filter(|_| !audited.findings.contradicts);
            found.effective_sample_size = effective_sample_size(
                &found.about.labelled_per_class.iter().map(|&count| count as f64).collect::<Vec<_>>(),
                &audited.phi,
            );
            if found.groups.is_some() {
                found.warnings.push(match audited.findings.contradicts {
                    true => "there are no shares per group: they would rest on the mechanism that the audit contradicts".to_owned(),
                    false => "the shares per group rest on the mechanism, which the audit does not contradict, and need not add up to those of the audit".to_owned(),
                });
                if audited.findings.contradicts {
                    (found.by, found.groups) = (None, None);
                }
            }
            found.method = "audit".to_owned();
            (found.phi, found.phi_se, found.phi_ci95) = (audited.phi, Some(audited.phi_se), Some(audited.phi_ci95));
            found.prevalence = audited.prevalence;
            (found.prevalence_se, found.prevalence_ci95) = (Some(audited.prevalence_se), Some(audited.prevalence_ci95));
            found.audit = Some(audited.findings);
        }
        Ok(found)
    }

    /// The same in flat memory, walking over rows that stay where they are: with intervals from the observed
    /// information, and without the checks that compare rows.
    pub fn run_streamed<R: Rows>(&self, rows: &R, about: About) -> Result<Findings, Error> {
        let recipe = self.check_streamed(rows.kind())?;
        if matches!(self.given, Given::Columns(_)) {
            return Err(Error::Settings("the streamed rows come without the columns that labelling depends on"));
        }
        let few = &Few::of(rows, 0, &about)?;
        let (estimate, parts) = self.streamed_parts(&recipe, few, about)?;
        self.assemble(&recipe, estimate, parts)
    }

    /// The estimate by class, with intervals from the observed information.
    pub(super) fn streamed_parts<R: Rows>(
        &self,
        recipe: &Recipe,
        rows: &Few<'_, R>,
        about: About,
    ) -> Result<(PhiEstimate, Parts), Error> {
        let matrices = fits_matrices(rows.n_classes());
        let bcts = match recipe.calibration() {
            Some(calibration) => {
                Tally::of(rows)?;
                Some(calibration.fit(rows)?)
            }
            None => None,
        };
        let (estimate, identifiability) = match &bcts {
            Some(bcts) => estimated(recipe, &Calibrated { rows, bcts }, matrices)?,
            None => estimated(recipe, rows, matrices)?,
        };
        let warning = "the table was streamed: the checks of held-out predictions and of self-masking were not run";
        let parts = Parts {
            about,
            intervals: Intervals::information(&estimate),
            bcts,
            by_columns: None,
            identifiability,
            renormalised: rows.renormalised(),
            warnings: vec![warning.to_owned()],
        };
        Ok((estimate, parts))
    }

    pub(super) fn assemble(&self, recipe: &Recipe, estimate: PhiEstimate, parts: Parts) -> Result<Findings, Error> {
        let Parts { about, intervals, bcts, by_columns, identifiability, renormalised: off, mut warnings } = parts;
        let names = &about.classes;
        let clipped: Vec<String> = estimate.clipped.iter().map(|class| names[class.index()].clone()).collect();
        let contradiction = self.contradiction(&about);
        if let (None, false) = (&contradiction, clipped.is_empty()) {
            warnings.push(at_bound(&clipped));
        }
        warnings.extend(contradiction);
        if !estimate.stop.converged() {
            warnings.push(not_converged(&estimate.stop));
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
            posterior: recipe.kind(),
            converged: estimate.stop.converged(),
            clipped,
            prior_weight: estimate.prior_weight,
            prior_by_default: recipe.has_default_prior() && estimate.prior_weight > 0.0,
            interval: intervals.about,
            calibration: bcts,
            column_calibration: by_columns,
            effective_sample_size: effective_sample_size(&estimate.tally.counts, &estimate.phi),
            identifiability,
            in_sample: None,
            self_masking: None,
            sensitivity: None,
            breakdown: None,
            renormalised: off,
            features: None,
            classifier: None,
            tried: Vec::new(),
            seed: self.seed,
            warnings,
            calibrated: None,
            verdict: None,
            labelling: None,
            audit: None,
            by: None,
            groups: None,
            effects: Vec::new(),
            mechanism: None,
            row_phi: None,
            refinement: None,
            positive: None,
            phi: estimate.phi,
            prevalence: estimate.prevalence,
            unlabelled_shares: estimate.unlabelled_shares,
            stop: estimate.stop,
            about,
        })
    }

    /// What is wrong with a mechanism, or with class shares, that the user states and the labels rule out.
    pub fn contradiction(&self, about: &About) -> Option<String> {
        // Standard errors: nobody states such numbers to the last row.
        const FAR: f64 = 4.0;
        let n = about.n as f64;
        let counts = || about.labelled_per_class.iter().map(|&count| count as f64);
        if let Some(phi) = self.phi.as_ref().filter(|phi| phi.len() == about.classes.len()) {
            // Every label stands for 1/phi rows.
            let rows: f64 = counts().zip(phi.iter()).map(|(count, phi)| count / phi).sum();
            let variance: f64 = counts().zip(phi.iter()).map(|(count, phi)| count * (1.0 - phi) / (phi * phi)).sum();
            return ((rows - n).abs() > FAR * variance.sqrt() + 0.5).then(|| {
                format!(
                    "the given phi contradict the data: with them the labels stand for {rows:.0} rows, and there are {n}; the shares are right only if the phi are right up to a common factor, and the weights do not add up"
                )
            });
        }
        let Some(Shares::Known(shares)) = &self.shares else { return None };
        let k = (0..shares.len()).find(|&k| {
            let (count, expected) = (about.labelled_per_class[k] as f64, n * shares[k]);
            count - expected > FAR * (expected * (1.0 - shares[k])).sqrt() + 0.5
        })?;
        Some(format!(
            "the given shares contradict the data: {:.1}% of all rows carry the label `{}`, whose share is said to be {:.1}%",
            100.0 * about.labelled_per_class[k] as f64 / n,
            about.classes[k],
            100.0 * shares[k]
        ))
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
            .map(|&se| se.is_finite().then(|| labels_for_width(estimate, se, width, CONFIDENCE)).transpose())
            .collect::<Result<_, _>>()?;
        Ok(Some(needed))
    }
}

/// What is said of an estimator that did not converge.
pub(super) fn not_converged(stop: &Stop) -> String {
    format!("the estimator stopped before it converged: {stop:?}")
}

/// What is said of classes whose phi is at its bound.
pub(super) fn at_bound(clipped: &[String]) -> String {
    format!(
        "phi of {} is at its bound 1: no unlabelled row seems to belong there; with few labels that is often chance, and a prior weight makes it steadier",
        quote(clipped)
    )
}

/// p(y|x) ∝ s(y|x)/phi(y, z) of all rows.
fn population(sample: &Sample<'_>, phi: &Phi, row_phi: Option<&[Phi]>) -> Result<Posteriors, Error> {
    let (n, k) = (sample.labels().len(), phi.len());
    let mut p = ndarray::Array2::zeros((n, k));
    for (row, mut p) in p.rows_mut().into_iter().enumerate() {
        let phi = row_phi.map_or(phi, |rows| &rows[row]);
        let s = sample.posteriors().row(row);
        let total: f64 = (0..k).map(|k| s[k] / phi[k]).sum();
        (0..k).for_each(|k| p[k] = s[k] / phi[k] / total);
    }
    Posteriors::new(p, PosteriorKind::Population)
}

/// What is known beside the estimate when the findings are put together.
pub(super) struct Parts {
    pub(super) about: About,
    pub(super) intervals: Intervals,
    pub(super) bcts: Option<Bcts>,
    pub(super) by_columns: Option<ColumnCalibration>,
    pub(super) identifiability: Option<Identifiability>,
    pub(super) renormalised: Renormalised,
    pub(super) warnings: Vec<String>,
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
pub(super) fn fits_matrices(classes: usize) -> bool {
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

//! Prediction sets: what a run keeps for them, and the sets of new rows.

use crate::classifiers::{EncodedTable, SavedClassifier, TableModels};
use crate::error::RunError;
use mnar::analysis::{Evidence, Findings};
use mnar::calibrate::Bcts;
use mnar::conformal::{Conformal, SetKind};
use mnar::progress::Progress;
use mnar::{Phi, PosteriorKind, Posteriors};
use mnar_data::{AtomicFile, TableEncoder};
use mnar_train::Propensity;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the folder of a model.
const FILE: &str = "sets.json";

/// Which sets of classes to predict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetOptions {
    /// The probability that a set contains the true class, such as 0.9.
    pub level: f64,
    /// What that probability is about.
    pub kind: SetKind,
}

/// The classifier that was cross-fitted, trained on all labelled rows, and how it scored those rows when it had not seen them.
/// The network and the trees of the model have seen all of them, so their scores promise nothing about new rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedSets {
    classifier: SavedClassifier,
    calibration: Option<Bcts>,
    scores: Conformal,
}

impl SavedSets {
    /// From the classifier behind the findings.
    pub(crate) fn new(
        models: &TableModels,
        evidence: &Evidence<'_>,
        findings: &Findings,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        let classifier = models.trained(evidence, seed, progress)?;
        let phi = Propensity::new(&findings.phi, findings.row_phi.as_deref());
        let posteriors = findings.calibrated.as_deref().unwrap_or(&evidence.posteriors);
        let population = population(posteriors, &phi)?;
        let scores = Conformal::new(&population, evidence.labels, |row| phi.of(row))?;
        Ok(Self { classifier, calibration: findings.calibration.clone(), scores })
    }

    /// Writes it into the folder of a model.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_string(self).map_err(|error| broken(folder, error))?;
        Ok(AtomicFile::write_text(&folder.join(FILE), &(text + "\n"))?)
    }

    /// Reads it back, if the model has one.
    pub(crate) fn load(folder: &Path, encoder: &TableEncoder, classes: usize) -> Result<Option<Self>, RunError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        let read: Self = serde_json::from_str(&text).map_err(|error| broken(folder, error))?;
        read.classifier.check(encoder, classes).map_err(|why| broken(folder, why))?;
        let calibrated = read.calibration.as_ref().is_none_or(|bcts| bcts.biases.len() == classes);
        match read.scores.n_classes() == classes && calibrated {
            true => Ok(Some(read)),
            false => Err(broken(folder, "it has other classes than the model")),
        }
    }

    /// The set of every row: for each class, whether it belongs to the set.
    pub(crate) fn sets(
        &self,
        table: EncodedTable<'_>,
        phi: &Propensity<'_>,
        options: SetOptions,
    ) -> Result<Vec<Vec<bool>>, RunError> {
        let posteriors = Posteriors::new(self.classifier.predict_proba(table)?, PosteriorKind::Labelled)?;
        let calibrated = self.calibration.as_ref().map(|bcts| bcts.apply(&posteriors)).transpose()?;
        let population = population(calibrated.as_ref().unwrap_or(&posteriors), phi)?;
        let miss = 1.0 - options.level;
        let set = |row: usize| self.scores.set(population.row(row), phi.of(row), options.kind, miss);
        Ok((0..population.len()).map(set).collect())
    }

    /// Warnings about classes that are in every set.
    pub(crate) fn warning(&self, classes: &[String], options: SetOptions) -> Option<String> {
        let always = self.scores.always_in(options.kind, 1.0 - options.level);
        if always.is_empty() {
            return None;
        }
        let names: Vec<String> = always.iter().map(|class| format!("`{}`", classes[class.index()])).collect();
        Some(format!(
            "every set contains {}: with so few labels, no row can be ruled out at this level",
            names.join(", ")
        ))
    }
}

/// p(y | x) ∝ p(y | x, labelled) / phi of every row.
fn population(labelled: &Posteriors, phi: &Propensity<'_>) -> Result<Posteriors, mnar::Error> {
    let mut p = Array2::zeros((labelled.len(), labelled.n_classes()));
    for (row, mut to) in p.rows_mut().into_iter().enumerate() {
        let phi: &Phi = phi.of(row);
        to.iter_mut().zip(labelled.of_population(row, phi)).for_each(|(to, p)| *to = p);
    }
    Posteriors::new(p, PosteriorKind::Population)
}

fn broken(folder: &Path, why: impl ToString) -> RunError {
    RunError::BrokenModel { path: folder.join(FILE), why: why.to_string() }
}

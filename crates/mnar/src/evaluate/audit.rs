//! Metrics that rest on an audit: rows whose label was requested at random.
//!
//! The audited rows are labelled by a mechanism that is known: each of n rows with the probability m/n, whatever its class. So
//! nothing about the other labels has to be believed, and the probabilities of all rows make the metrics more precise.

use super::{EvaluateSettings, Evaluation, Model, Population};
use crate::analysis::{Audit, Calibrate, EstimateSettings, Evidence, Given, Method};
use crate::error::Error;
use crate::labels::Labels;
use crate::phi::Phi;
use crate::progress::Progress;

impl EvaluateSettings {
    /// Evaluates models by the audited rows. What is naive remains the metric of the other labelled rows.
    pub(super) fn audited(
        &self,
        audit: &Audit,
        evidence: &Evidence<'_>,
        models: &[Model<'_>],
        progress: &dyn Progress,
    ) -> Result<Evaluation, Error> {
        let labels = audited_labels(audit, evidence.labels)?;
        let share = audit.len() as f64 / labels.len() as f64;
        let settings = self.with_known(Phi::new(vec![share; labels.n_classes()])?);
        let mut found = settings.run(&labelled_by(evidence, &labels)?, models, progress)?;

        // Naive metrics do not depend on phi.
        let mut alone = self.with_known(Phi::new(vec![0.5; labels.n_classes()])?);
        (alone.estimate.replicates, alone.estimate.calibrate) = (Some(0), Calibrate::None);
        alone.curves = false;
        let others = alone.run(&labelled_by(evidence, evidence.labels)?, models, &())?;
        // Rows without an audit are not rows without a label.
        found.metrics.retain(|metric| metric.population == Population::All);
        found.differences.retain(|difference| difference.population == Population::All);
        found.confusion.retain(|matrix| matrix.population == Population::All);
        for metric in &mut found.metrics {
            let same = others.metrics.iter().find(|other| {
                (other.name, &other.class, &other.group, &other.model, other.population)
                    == (metric.name, &metric.class, &metric.group, &metric.model, metric.population)
            });
            metric.naive = same.and_then(|same| same.naive);
        }
        for difference in &mut found.differences {
            let same = others.differences.iter().find(|other| {
                (other.name, &other.class, &other.group, &other.model, other.population)
                    == (difference.name, &difference.class, &difference.group, &difference.model, difference.population)
            });
            difference.naive = same.and_then(|same| same.naive);
        }
        for matrix in &mut found.confusion {
            let same =
                others.confusion.iter().find(|other| (&other.model, &other.group) == (&matrix.model, &matrix.group));
            if let Some(same) = same.filter(|same| same.population == Population::All) {
                matrix.naive.clone_from(&same.naive);
            }
        }
        found.method = "audit".to_owned();
        (found.verdict, found.cautions) = (None, Vec::new());
        found.warnings.insert(0, format!("the corrected metrics rest on the {} audited rows alone", audit.len()));
        Ok(found)
    }

    /// The same settings with a mechanism by class that is known. What goes with an estimate of it, such as a sensitivity
    /// analysis, is left out.
    fn with_known(&self, phi: Phi) -> Self {
        let EstimateSettings { by, replicates, seed, .. } = self.estimate.clone();
        let (method, phi, given) = (Method::Known, Some(phi), Given::None);
        let estimate = EstimateSettings { method, phi, given, by, replicates, seed, ..Default::default() };
        Self { estimate, phi_se: None, mechanism: None, ..self.clone() }
    }
}

/// The predictions and columns of the evidence with other labels.
fn labelled_by<'a>(evidence: &'a Evidence<'a>, labels: &'a Labels) -> Result<Evidence<'a>, Error> {
    let predictions = Evidence::predictions(&evidence.posteriors, labels);
    match evidence.covariates {
        Some(covariates) => predictions.with_covariates(covariates),
        None => Ok(predictions),
    }
}

/// The labels of the audited rows, and no others.
fn audited_labels(audit: &Audit, labels: &Labels) -> Result<Labels, Error> {
    let mut y = vec![None; labels.len()];
    audit.rows().iter().for_each(|&(row, class)| y[row] = Some(class));
    Labels::new(y, labels.names().to_vec())
}

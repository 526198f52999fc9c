//! Cross-fitting with a network: every row is scored by a network that has not seen its label.

use crate::consistency::Entropy;
use crate::error::TrainError;
use crate::examples::Examples;
use crate::mechanism::Method;
use crate::model::{Architecture, Classifier};
use crate::predict::logits;
use crate::settings::TrainSettings;
use crate::trainer::{CheckpointPlan, Ended, Job, Observer, train};
use burn::tensor::Device;
use mnar::calibrate::Calibration;
use mnar::crossfit::FoldPlan;
use mnar::estimate::{Estimator, LabelShift, PhiEstimate};
use mnar::interval::{ProfileOf, information_intervals};
use mnar::{Labels, PosteriorKind, Posteriors, Sample};
use ndarray::Array2;
use std::sync::atomic::AtomicBool;

/// What a fold's network is and how it is trained.
pub struct CrossFit<'a> {
    /// The network.
    pub architecture: &'a Architecture,
    /// Its training; the mechanism plays no part.
    pub settings: &'a TrainSettings,
    /// Where it lives.
    pub device: &'a Device,
    /// Rows outside the data set, to be scored as well.
    pub beyond: Option<&'a Examples>,
    /// Set from outside to stop.
    pub stop: Option<&'a AtomicBool>,
}

/// What the networks of the folds say.
#[derive(Clone, Debug)]
pub struct CrossFitted {
    /// p(y | x, labelled) of every row, by the one network that was trained on the labelled rows of the other folds.
    /// What estimators and tests need: labelled and unlabelled rows are treated alike.
    pub posteriors: Posteriors,
    /// The same for labelled rows; for an unlabelled row, whose label no network has seen, by all of them together
    /// (means of logits). The better guess.
    pub ensemble: Posteriors,
    /// Of the rows outside the data set, by all networks together.
    pub beyond: Option<Posteriors>,
}

/// What follows from cross-fitted posteriors by label shift.
#[derive(Clone, Debug)]
pub struct LabelShifted {
    /// The mechanism.
    pub estimate: PhiEstimate,
    /// 95% intervals of its phi, taking the networks as given.
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// [`CrossFitted::ensemble`], calibrated.
    pub ensemble: Posteriors,
    /// [`CrossFitted::beyond`], calibrated.
    pub beyond: Option<Posteriors>,
}

impl CrossFitted {
    /// phi by label shift from the calibrated posteriors, and the ensemble calibrated in the same way.
    pub fn label_shift(&self, labels: &Labels) -> Result<LabelShifted, TrainError> {
        let calibration = Calibration::default().fit(&Sample::new(&self.posteriors, labels)?)?;
        let calibrated = calibration.apply(&self.posteriors)?;
        let sample = Sample::new(&calibrated, labels)?;
        let estimate = LabelShift::default().estimate(&sample)?;
        let phi_ci95 = information_intervals(&sample, ProfileOf::LabelShift, &estimate, 0.95);
        let beyond = self.beyond.as_ref().map(|beyond| calibration.apply(beyond)).transpose()?;
        Ok(LabelShifted { estimate, phi_ci95, ensemble: calibration.apply(&self.ensemble)?, beyond })
    }
}

impl CrossFit<'_> {
    /// Trains a network a fold on the labelled rows of the others; `None` if it was stopped. `checkpoint` names a
    /// fold's file.
    pub fn run(
        &self,
        examples: &Examples,
        labels: &Labels,
        plan: &FoldPlan,
        checkpoint: &dyn Fn(usize) -> Option<CheckpointPlan>,
        observer: &mut dyn Observer,
    ) -> Result<Option<CrossFitted>, TrainError> {
        let unlabelled: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let mut together = Array2::<f64>::zeros((unlabelled.len(), labels.n_classes()));
        let outside: Vec<usize> = (0..self.beyond.map_or(0, Examples::len)).collect();
        let mut beyond = Array2::<f64>::zeros((outside.len(), labels.n_classes()));
        let mut folds = 0.0;
        let mut scores = Array2::zeros((labels.len(), labels.n_classes()));
        for (fold, members) in plan.members().into_iter().enumerate() {
            let y =
                labels.as_slice().iter().zip(plan.folds()).map(|(y, &f)| y.filter(|_| f as usize != fold)).collect();
            let others = Labels::allow_degenerate(y, labels.names().to_vec())?;
            let settings =
                TrainSettings { seed: self.settings.seed.wrapping_add(fold as u64), ..self.settings.clone() };
            let network = self.architecture.build(examples.shape(), labels.n_classes(), settings.seed, self.device)?;
            let job = Job {
                examples,
                labels: &others,
                method: Method::CompleteCase,
                consistency: &Entropy,
                settings: &settings,
                targets: None,
                validation: None,
                checkpoint: checkpoint(fold),
                stop: self.stop,
            };
            let trained = train(network, &job, observer)?;
            if trained.ended == Ended::Interrupted {
                return Ok(None);
            }
            let fold_scores = logits(&trained.network, examples, &members);
            for (&row, values) in members.iter().zip(fold_scores.rows()) {
                scores.row_mut(row).assign(&values);
            }
            together += &logits(&trained.network, examples, &unlabelled);
            if let Some(examples) = self.beyond {
                beyond += &logits(&trained.network, examples, &outside);
            }
            folds += 1.0;
        }
        let posteriors = Posteriors::from_logits(scores.view(), PosteriorKind::Labelled)?;
        for (&row, values) in unlabelled.iter().zip(together.rows()) {
            scores.row_mut(row).assign(&(&values / folds));
        }
        let ensemble = Posteriors::from_logits(scores.view(), PosteriorKind::Labelled)?;
        let mean = |scores: Array2<f64>| Posteriors::from_logits((scores / folds).view(), PosteriorKind::Labelled);
        let beyond = self.beyond.map(|_| mean(beyond)).transpose()?;
        Ok(Some(CrossFitted { posteriors, ensemble, beyond }))
    }
}

/// Posteriors of all rows, from one network whose logits are divided by `temperature`.
pub fn score<M: Classifier>(
    network: &M,
    examples: &Examples,
    temperature: f64,
    kind: PosteriorKind,
) -> Result<Posteriors, TrainError> {
    let rows: Vec<usize> = (0..examples.len()).collect();
    let scores = logits(network, examples, &rows) / temperature;
    Ok(Posteriors::from_logits(scores.view(), kind)?)
}

//! Networks as classifiers of the core, for cross-fitting and for bootstraps that refit.

use crate::consistency::Entropy;
use crate::error::TrainError;
use crate::examples::Examples;
use crate::method::Method;
use crate::model::{Architecture, Network};
use crate::predict::logits;
use crate::settings::TrainSettings;
use crate::trainer::{CheckpointPlan, Job, train};
use burn::tensor::Device;
use mnar::classify::{Classifier, Fitted, Training};
use mnar::progress::Stage;
use mnar::{Class, Labels, Progress};
use ndarray::Array2;
use std::any::Any;

/// A network that is trained on labelled rows alone, as cross-fitting needs it: the mechanism plays no part.
pub struct NetworkClassifier<'a> {
    /// The network.
    pub architecture: &'a Architecture,
    /// The settings of its training; the seed is that of each fit.
    pub settings: &'a TrainSettings,
    /// The device it is trained on.
    pub device: &'a Device,
    /// Where the state of the fit with this seed is kept, if anywhere.
    pub checkpoint: Option<&'a (dyn Fn(u64) -> CheckpointPlan + Sync)>,
}

impl NetworkClassifier<'_> {
    fn train(
        &self,
        examples: &Examples,
        training: &Training<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<FittedNetwork, TrainError> {
        let mut y = vec![None; examples.len()];
        training.rows.iter().zip(training.classes).for_each(|(&row, &class)| y[row] = Some(class));
        let weights = training.weights.map(|counts| {
            let mut weights = vec![0.0; examples.len()];
            training.rows.iter().zip(counts).for_each(|(&row, &count)| weights[row] = count);
            weights
        });
        let counts = |row: usize| weights.as_ref().is_none_or(|weights| weights[row] > 0.0);
        let mut seen = vec![false; training.n_classes];
        training.rows.iter().zip(training.classes).for_each(|(&row, class)| seen[class.index()] |= counts(row));
        if let Some(k) = seen.iter().position(|seen| !seen) {
            return Err(mnar::Error::ClassNotTrained { class: Class::from(k) }.into());
        }
        // The names of the classes play no part in training.
        let labels = Labels::allow_degenerate(y, (0..training.n_classes).map(|k| k.to_string()).collect())?;
        let settings = TrainSettings { seed, ..self.settings.clone() };
        let network = self.architecture.build(examples.shape(), training.n_classes, seed, self.device)?;
        let job = Job {
            stage: Stage::CrossFit,
            examples,
            labels: &labels,
            weights: weights.as_deref(),
            method: Method::CompleteCase,
            row_phi: None,
            consistency: &Entropy,
            settings: &settings,
            targets: None,
            validation: None,
            checkpoint: self.checkpoint.map(|plan| plan(seed)),
        };
        Ok(FittedNetwork { network: train(network, &job, progress)?.network, n_classes: training.n_classes })
    }
}

impl Classifier<Examples> for NetworkClassifier<'_> {
    fn name(&self) -> &str {
        self.architecture.name()
    }

    fn fit(
        &self,
        x: &Examples,
        training: &Training<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Fitted<Examples>>, mnar::Error> {
        Ok(Box::new(self.train(x, training, seed, progress)?))
    }

    /// A step takes some milliseconds for a table, and longer for images.
    fn seconds(&self, rows: usize, _columns: usize, _classes: usize) -> f64 {
        let steps = self.settings.epochs * (rows / self.settings.batch_labelled.max(1)).max(1);
        5e-3 * steps as f64
    }

    /// A training step uses all cores by itself.
    fn parallel(&self) -> bool {
        false
    }
}

struct FittedNetwork {
    network: Network,
    n_classes: usize,
}

impl Fitted<Examples> for FittedNetwork {
    fn logits(&self, x: &Examples, rows: &[usize]) -> Result<Array2<f64>, mnar::Error> {
        if rows.is_empty() {
            return Ok(Array2::zeros((0, self.n_classes)));
        }
        Ok(logits(&self.network, x, rows))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The network of a fit by [`NetworkClassifier`]; `None` for a model of another kind.
pub fn network_of(fitted: &dyn Fitted<Examples>) -> Option<&Network> {
    fitted.as_any()?.downcast_ref::<FittedNetwork>().map(|fitted| &fitted.network)
}

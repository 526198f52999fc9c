//! The cross-fitted networks of images, which count beside the network that they guided.

use crate::beside::mixed;
use crate::error::RunError;
use mnar::calibrate::Bcts;
use mnar::{PosteriorKind, Posteriors};
use mnar_train::model::Network;
use mnar_train::{Examples, ModelDescription, Propensity, load_networks, logits, save_networks};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "guides.safetensors";

/// How much the networks of the folds count together. On masks of dermaMNIST and MNIST S2 (seeds 100 and 101), 0.3 lowered the log-loss
/// from 0.817 to 0.786, from 0.115 to 0.102 and from 0.127 to 0.099, and half and half was no better where the trained network is the
/// more accurate one.
const WEIGHT: f64 = 0.3;

/// Networks that have learnt from labelled rows alone, each without a fold.
pub struct Guides {
    networks: Vec<Network>,
    about: About,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    weight: f64,
    calibration: Bcts,
}

impl About {
    fn check(&self, classes: usize) -> Result<(), &'static str> {
        if !(0.0..=1.0).contains(&self.weight) {
            return Err("the weight of its networks is not between 0 and 1");
        }
        if !self.calibration.is_sound(classes) {
            return Err("its calibration makes no sense");
        }
        Ok(())
    }
}

impl Guides {
    /// The name of the parts of a model, and how much they count.
    pub(crate) fn weight(&self) -> (&'static str, f64) {
        ("networks of the folds", self.about.weight)
    }

    /// Networks whose logits, averaged, are calibrated like this.
    pub(crate) fn new(networks: Vec<Network>, calibration: Option<&Bcts>, classes: usize) -> Self {
        let calibration = calibration.cloned().unwrap_or_else(|| Bcts::known(1.0, vec![0.0; classes]));
        Self { networks, about: About { weight: WEIGHT, calibration } }
    }

    /// Writes them into the folder of the network.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_string(&self.about).map_err(|error| broken(folder, error))?;
        Ok(save_networks(&folder.join(FILE), &self.networks, text)?)
    }

    /// Reads them back, if there are some. They must be of the same kind as the network.
    pub(crate) fn load(folder: &Path, model: &ModelDescription) -> Result<Option<Self>, RunError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let (networks, text) = load_networks(&path, model, &mnar_train::device::cpu().inner())?;
        let about: About = serde_json::from_str(&text).map_err(|error| broken(folder, error))?;
        about.check(model.classes.len()).map_err(|why| broken(folder, why))?;
        Ok(Some(Self { networks, about }))
    }

    /// p(y | x) of the network and its guides together. `network` has that of the network.
    pub(crate) fn population(
        &self,
        network: &Posteriors,
        examples: &Examples,
        phi: &Propensity<'_>,
    ) -> Result<Posteriors, RunError> {
        let rows: Vec<usize> = (0..examples.len()).collect();
        let mut sum = Array2::zeros((rows.len(), network.n_classes()));
        for guide in &self.networks {
            sum += &logits(guide, examples, &rows);
        }
        let mean = sum / self.networks.len() as f64;
        let labelled = self.about.calibration.apply(&Posteriors::from_logits(mean.view(), PosteriorKind::Labelled)?)?;
        let mut all = Array2::zeros((network.len(), network.n_classes()));
        for (row, mut to) in all.rows_mut().into_iter().enumerate() {
            let parts = [
                (labelled.of_population(row, phi.of(row)), self.about.weight),
                (network.row(row).to_vec(), 1.0 - self.about.weight),
            ];
            to.iter_mut().zip(mixed(parts.into_iter())).for_each(|(to, logit)| *to = logit);
        }
        Ok(Posteriors::from_logits(all.view(), PosteriorKind::Population)?)
    }
}

fn broken(folder: &Path, why: impl ToString) -> RunError {
    RunError::BrokenModel { path: folder.join(FILE), why: why.to_string() }
}

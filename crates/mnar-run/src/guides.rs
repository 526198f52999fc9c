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

    /// What the guides say of these rows together, not calibrated.
    pub(crate) fn together(&self, examples: &Examples) -> Result<Posteriors, RunError> {
        all_together(&self.networks, examples, self.about.calibration.biases.len())
    }

    /// p(y | x) of the network and its guides together. `network` has that of the network, and `together` what the guides say.
    pub(crate) fn population(
        &self,
        network: &Posteriors,
        together: &Posteriors,
        phi: &Propensity<'_>,
    ) -> Result<Posteriors, RunError> {
        let labelled = self.about.calibration.apply(together)?;
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

/// p(y | x, labelled) of every row, from the mean of the logits of all networks.
pub(crate) fn all_together(networks: &[Network], examples: &Examples, classes: usize) -> Result<Posteriors, RunError> {
    let rows: Vec<usize> = (0..examples.len()).collect();
    let mut sum = Array2::zeros((rows.len(), classes));
    for network in networks {
        sum += &logits(network, examples, &rows);
    }
    let mean = sum / networks.len() as f64;
    Ok(Posteriors::from_logits(mean.view(), PosteriorKind::Labelled)?)
}

fn broken(folder: &Path, why: impl ToString) -> RunError {
    RunError::BrokenModel { path: folder.join(FILE), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mnar::{Phi, Posteriors};
    use mnar_data::{ImageShape, Images, Inputs};
    use mnar_train::Encoding;
    use mnar_train::augment::Orientation;
    use mnar_train::model::Architecture;

    const SHAPE: ImageShape = ImageShape { depth: 1, height: 2, width: 2, channels: 1 };

    fn model() -> ModelDescription {
        ModelDescription {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: Architecture::Linear,
            input: mnar_train::InputShape::Image(SHAPE),
            classes: vec!["a".to_owned(), "b".to_owned()],
            phi: Phi::new(vec![0.2, 0.8]).unwrap(),
            by_columns: None,
            temperature: 1.0,
            encoding: Encoding::Images {
                shape: SHAPE,
                mean: vec![0.5],
                sd: vec![0.5],
                orientation: Orientation::default(),
            },
        }
    }

    fn network(seed: u64) -> Network {
        let model = model();
        model.architecture.build(model.input, 2, seed, &mnar_train::device::cpu().inner()).unwrap()
    }

    fn examples() -> Examples {
        let images = Images::new(SHAPE, vec![0, 90, 200, 10, 250, 30, 60, 5], "images").unwrap();
        model().encoding.examples(Inputs::Images(images)).unwrap()
    }

    /// The mean of their logits, divided by phi, counts three parts of ten in the logarithms.
    #[test]
    fn guides_count_three_parts_of_ten() {
        let (networks, examples, model) = ([network(1), network(2)], examples(), model());
        let own = Posteriors::from_logits(logits(&network(3), &examples, &[0, 1]).view(), PosteriorKind::Population);
        let (own, phi) = (own.unwrap(), Propensity::new(&model.phi, None));
        let guides = Guides::new(networks.to_vec(), None, 2);
        let found = guides.population(&own, &guides.together(&examples).unwrap(), &phi).unwrap();
        let mean = (logits(&networks[0], &examples, &[0, 1]) + logits(&networks[1], &examples, &[0, 1])) / 2.0;
        for row in 0..2 {
            let log_ratio = |a: f64, b: f64| (a / b).ln();
            let of_guides = mean[(row, 0)] - mean[(row, 1)] - log_ratio(0.2, 0.8);
            let expected = 0.3 * of_guides + 0.7 * log_ratio(own.row(row)[0], own.row(row)[1]);
            assert!((log_ratio(found.row(row)[0], found.row(row)[1]) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn what_was_saved_is_read_and_nothing_else_is() {
        let home = tempfile::tempdir().unwrap();
        let (folder, model, examples) = (home.path(), model(), examples());
        assert!(Guides::load(folder, &model).unwrap().is_none());
        let guides = Guides::new(vec![network(1), network(2)], None, 2);
        guides.save(folder).unwrap();
        let read = Guides::load(folder, &model).unwrap().unwrap();
        for (before, after) in guides.networks.iter().zip(&read.networks) {
            assert_eq!(logits(before, &examples, &[0, 1]), logits(after, &examples, &[0, 1]));
        }
        let refused = |about: About, networks: &[Network]| {
            Guides { networks: networks.to_vec(), about }.save(folder).unwrap();
            Guides::load(folder, &model).err().unwrap().to_string()
        };
        let about = |weight: f64, biases: usize| About { weight, calibration: Bcts::known(1.0, vec![0.0; biases]) };
        assert!(refused(about(1.5, 2), &[network(1)]).contains("not between 0 and 1"));
        assert!(refused(about(0.3, 3), &[network(1)]).contains("calibration makes no sense"));
        assert!(refused(about(0.3, 2), &[]).contains("holds no network"));
        let larger = Architecture::Mlp { hidden: vec![3] };
        let larger = larger.build(model.input, 2, 0, &mnar_train::device::cpu().inner()).unwrap();
        assert!(refused(about(0.3, 2), &[network(1), larger]).contains("numbers, but the network in"));
    }
}

//! Boosted trees beside the network of a table. Some tables are for networks and some for trees; how much each counts is
//! decided on the labelled rows that the network was not trained on.

use crate::classifiers::EncodedTable;
use crate::error::RunError;
use mnar::classify::{BoostedTrees, Fitted as _, FittedTrees, Training};
use mnar::progress::Progress;
use mnar::{Class, Labels, PosteriorKind, Posteriors};
use mnar_data::{AtomicFile, TableEncoder};
use mnar_train::{Encoding, Examples, ModelDescription, Propensity};
use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the folder of a model.
const FILE: &str = "trees.json";

/// The weights of the trees that are tried. The log of the model's probabilities is that of the network and of the trees, mixed
/// in these parts. The network alone is not among them: its best epoch and its temperature were chosen on the same held-out
/// rows, which flatters it. On a mask of the spam table it won there with weight 0, and had twice the log-loss of the trees on
/// new rows.
const WEIGHTS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];

/// Probabilities below this count as this.
const FLOOR: f64 = 1e-9;

/// Trees, and how much they count beside the network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TreesBeside {
    /// From 0, the network alone, to 1, the trees alone.
    weight: f64,
    trees: FittedTrees,
}

/// Trees before they are trained on all labelled rows: their settings, and what they say of rows that they have not seen.
pub(crate) struct Candidate {
    pub(crate) settings: BoostedTrees,
    /// p(y | x, labelled), out-of-fold.
    pub(crate) out_of_fold: Posteriors,
}

impl Candidate {
    /// Trains the trees on all labelled rows; `None` if they do not count.
    pub(crate) fn train(
        &self,
        table: &Table<'_>,
        labels: &Labels,
        weight: f64,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Option<TreesBeside>, RunError> {
        if weight == 0.0 {
            return Ok(None);
        }
        let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        let training = Training { rows: &rows, classes: &classes, n_classes: labels.n_classes(), weights: None };
        let trees = self.settings.train(&table.columns(), &training, seed, progress)?;
        Ok(Some(TreesBeside { weight, trees }))
    }

    /// log p(y|x) of held-out rows with this weight of the trees, up to a constant per row.
    pub(crate) fn mixed(
        &self,
        phi: &Propensity<'_>,
        held_out: &[usize],
        network: &Array2<f64>,
        weight: f64,
    ) -> Array2<f64> {
        let mut mixed = network.clone();
        for (mut to, &row) in mixed.rows_mut().into_iter().zip(held_out) {
            let trees = self.out_of_fold.of_population(row, phi.of(row));
            let logits = mix(to.iter().copied(), &trees, weight);
            to.iter_mut().zip(logits).for_each(|(to, logit)| *to = logit);
        }
        mixed
    }

    /// The weight of the trees with the lowest 1/phi-weighted log-loss, on rows that neither they nor the network have seen.
    /// `network` has log p(y|x) of these rows, up to a constant per row.
    pub(crate) fn weight(
        &self,
        labels: &Labels,
        phi: &Propensity<'_>,
        held_out: &[usize],
        network: &Array2<f64>,
    ) -> f64 {
        let loss = |weight: f64| -> f64 {
            let mixed = self.mixed(phi, held_out, network, weight);
            let of_row = |(logits, &row): (ArrayView1<'_, f64>, &usize)| {
                let class = labels.get(row)?.index();
                Some((log_sum(&logits) - logits[class]) / phi.of(row)[class])
            };
            mixed.rows().into_iter().zip(held_out).filter_map(of_row).sum()
        };
        let losses = WEIGHTS.map(loss);
        let best = (0..WEIGHTS.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        best.filter(|_| !held_out.is_empty()).map_or(0.5, |best| WEIGHTS[best])
    }
}

/// A table as the trees see it.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    encoder: &'a TableEncoder,
    x: &'a Array2<f32>,
}

impl<'a> Table<'a> {
    /// `None` for images.
    pub(crate) fn new(encoding: &'a Encoding, examples: &'a Examples) -> Option<Self> {
        match (encoding, examples) {
            (Encoding::Table(encoder), Examples::Table(x)) => Some(Self { encoder, x }),
            _ => None,
        }
    }

    /// The table as numbers, and how it became them.
    pub(crate) fn encoded(&self) -> EncodedTable<'a> {
        EncodedTable { encoder: self.encoder, x: self.x.view() }
    }

    fn columns(&self) -> Array2<f64> {
        self.encoder.columns_of(self.x.view())
    }
}

impl TreesBeside {
    /// How much the trees count, from 0 to 1.
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }

    /// Writes the trees into the folder of a model.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_string(self).map_err(|error| broken(folder, error))?;
        Ok(AtomicFile::write_text(&folder.join(FILE), &(text + "\n"))?)
    }

    /// Reads them back, if the model has some. They must be of the same classes and columns as the network.
    pub(crate) fn load(folder: &Path, model: &ModelDescription) -> Result<Option<Self>, RunError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).map_err(|error| broken(folder, error))?;
        let read: Self = serde_json::from_str(&text).map_err(|error| broken(folder, error))?;
        let columns = match &model.encoding {
            Encoding::Table(encoder) => encoder.columns().len(),
            Encoding::Images { .. } => return Err(broken(folder, "the model is of images, which have no trees")),
        };
        if !(0.0..=1.0).contains(&read.weight) {
            return Err(broken(folder, "its weight is not between 0 and 1"));
        }
        if (read.trees.n_classes(), read.trees.n_columns()) != (model.classes.len(), columns) {
            return Err(broken(folder, "it has other classes or columns than the network"));
        }
        Ok(Some(read))
    }

    /// p(y | x) of the network and the trees together. `network` has that of the network.
    pub(crate) fn population(
        &self,
        network: &Posteriors,
        table: &Table<'_>,
        phi: &Propensity<'_>,
    ) -> Result<Posteriors, RunError> {
        let rows: Vec<usize> = (0..network.len()).collect();
        let trees = self.trees.predict_proba(&table.columns(), &rows)?;
        let trees = Posteriors::new(trees, PosteriorKind::Labelled)?;
        let mut mixed = Array2::zeros((network.len(), network.n_classes()));
        for (row, mut to) in mixed.rows_mut().into_iter().enumerate() {
            let network = network.row(row).into_iter().map(|p| p.max(FLOOR).ln());
            let logits = mix(network, &trees.of_population(row, phi.of(row)), self.weight);
            to.iter_mut().zip(logits).for_each(|(to, logit)| *to = logit);
        }
        Ok(Posteriors::from_logits(mixed.view(), PosteriorKind::Population)?)
    }
}

fn broken(folder: &Path, why: impl ToString) -> RunError {
    RunError::BrokenModel { path: folder.join(FILE), why: why.to_string() }
}

/// The log of the geometric mean of two predictions with these parts, up to a constant.
fn mix(network: impl Iterator<Item = f64>, trees: &[f64], weight: f64) -> Vec<f64> {
    network.zip(trees).map(|(logit, p)| (1.0 - weight) * logit + weight * p.max(FLOOR).ln()).collect()
}

fn log_sum(logits: &ArrayView1<'_, f64>) -> f64 {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logits.iter().map(|logit| (logit - top).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array1;

    #[test]
    fn parts_lie_between_the_two() {
        let first = |weight: f64| {
            let network = [0.8f64.ln() + 3.0, 0.2f64.ln() + 3.0].into_iter();
            let logits = Array1::from(mix(network, &[0.2, 0.8], weight));
            (logits[0] - log_sum(&logits.view())).exp()
        };
        assert!((first(0.0) - 0.8).abs() < 1e-12);
        assert!((first(1.0) - 0.2).abs() < 1e-12);
        assert!((first(0.5) - 0.5).abs() < 1e-12);
    }
}

//! Other models of a table beside the network: softmax regression, boosted trees and randomised trees. Some tables are for
//! networks, some for trees and some for straight lines, and with few labels a mixture is better than any of them. How much each
//! counts is decided by its loss on labelled rows that it has not seen.

use crate::classifiers::{EncodedTable, SavedClassifier};
use crate::error::RunError;
use mnar::calibrate::{Bcts, Calibration};
use mnar::classify::{BoostedTrees, RandomisedTrees, SoftmaxRegression};
use mnar::progress::Progress;
use mnar::{Labels, PosteriorKind, Posteriors, Sample};
use mnar_data::{AtomicFile, TableEncoder};
use mnar_train::{Encoding, Examples, ModelDescription, Propensity};
use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the folder of a model.
const FILE: &str = "beside.json";

/// The weights of the other models against the network that are tried. The log of the model's probabilities is that of the network
/// and of the others, mixed in these parts. The network alone is not among them: its best epoch and its temperature were chosen on
/// the same held-out rows, which flatters it. On a mask of the spam table it won there with weight 0, and had twice the log-loss of
/// the trees on new rows.
const WEIGHTS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];

/// The shares of the other models among each other are means of multiples of 1/8.
const STEPS: usize = 8;

/// Probabilities below this count as this.
const FLOOR: f64 = 1e-9;

/// Models, and how much they count beside the network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beside {
    /// From 0, the network alone, to 1, the others alone.
    weight: f64,
    parts: Vec<Part>,
}

/// One of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    /// How much it counts among the others; together they are 1.
    share: f64,
    calibration: Bcts,
    classifier: SavedClassifier,
}

/// A classifier with its settings.
#[derive(Clone, Debug)]
pub(crate) enum Settings {
    Softmax(SoftmaxRegression),
    Trees(BoostedTrees),
    Randomised(RandomisedTrees),
}

/// A model before it is trained on all labelled rows: its settings, and what it says of rows that it has not seen.
pub(crate) struct Candidate {
    settings: Settings,
    calibration: Bcts,
    /// p(y | x, labelled), out-of-fold and calibrated.
    out_of_fold: Posteriors,
}

impl Candidate {
    /// From p(y | x, labelled) out-of-fold. Only a temperature is fitted: probabilities that are too sure or not sure enough would
    /// spoil the mixture, and with few labels a bias per class would learn noise.
    pub(crate) fn new(settings: Settings, out_of_fold: &Posteriors, labels: &Labels) -> Result<Self, mnar::Error> {
        let temperature_alone = Calibration { full_matrix_classes: 0, ..Default::default() };
        let calibration = temperature_alone.fit(&Sample::new(out_of_fold, labels)?)?;
        let out_of_fold = calibration.apply(out_of_fold)?;
        Ok(Self { settings, calibration, out_of_fold })
    }
}

/// All models beside the network.
pub(crate) struct Candidates(pub(crate) Vec<Candidate>);

impl Candidates {
    /// How much each counts: the mean over a grid of shares, in which every point counts exp(−its summed loss) on rows that the
    /// models have not seen, where row i weighs 1/phi, 1 on average. The point with the lowest loss alone would be too sure: with
    /// 150 labels it jumps from mask to mask.
    pub(crate) fn shares(&self, labels: &Labels, phi: &Propensity<'_>) -> Vec<f64> {
        let rows: Vec<(usize, usize)> = labels.labelled().map(|(row, class)| (row, class.index())).collect();
        let weights: Vec<f64> = rows.iter().map(|&(row, class)| 1.0 / phi.of(row)[class]).collect();
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let grid = grid(self.0.len(), STEPS);
        let losses: Vec<f64> = grid
            .iter()
            .map(|shares| {
                let of_row = |(&(row, class), weight): (&(usize, usize), &f64)| {
                    weight / mean * loss(&self.population(shares, row, phi), class)
                };
                rows.iter().zip(&weights).map(of_row).sum()
            })
            .collect();
        let counts = plausible(&losses);
        let share = |part: usize| grid.iter().zip(&counts).map(|(shares, count)| shares[part] * count).sum();
        (0..self.0.len()).map(share).collect()
    }

    /// The share 1 for boosted trees.
    pub(crate) fn trees_alone(&self) -> Vec<f64> {
        let is_trees = |candidate: &Candidate| matches!(candidate.settings, Settings::Trees(_));
        self.0.iter().map(|candidate| f64::from(u8::from(is_trees(candidate)))).collect()
    }

    /// log p(y|x) of a row, mixed with these shares, up to a constant.
    fn population(&self, shares: &[f64], row: usize, phi: &Propensity<'_>) -> Vec<f64> {
        let parts = self.0.iter().zip(shares).filter(|(_, share)| **share > 0.0);
        mixed(parts.map(|(candidate, share)| (candidate.out_of_fold.of_population(row, phi.of(row)), *share)))
    }

    /// log p(y|x) of held-out rows with this weight against the network, up to a constant per row.
    pub(crate) fn mixed(
        &self,
        shares: &[f64],
        phi: &Propensity<'_>,
        held_out: &[usize],
        network: &Array2<f64>,
        weight: f64,
    ) -> Array2<f64> {
        let mut all = network.clone();
        for (mut to, &row) in all.rows_mut().into_iter().zip(held_out) {
            let others = self.population(shares, row, phi);
            to.iter_mut().zip(others).for_each(|(to, other)| *to = (1.0 - weight) * *to + weight * other);
        }
        all
    }

    /// The weight against the network, in the same way, from rows that neither side has seen. `network` has log p(y|x) of these rows,
    /// up to a constant per row.
    pub(crate) fn weight(
        &self,
        shares: &[f64],
        labels: &Labels,
        phi: &Propensity<'_>,
        held_out: &[usize],
        network: &Array2<f64>,
    ) -> f64 {
        let normal = |logits: ArrayView1<'_, f64>| {
            let total = log_sum(logits.iter().copied());
            logits.iter().map(|logit| logit - total).collect::<Vec<f64>>()
        };
        let classes: Vec<(usize, usize)> =
            held_out.iter().filter_map(|&row| Some((row, labels.get(row)?.index()))).collect();
        let weights: Vec<f64> = classes.iter().map(|&(row, class)| 1.0 / phi.of(row)[class]).collect();
        let total = |weight: f64| -> f64 {
            let mixed = self.mixed(shares, phi, held_out, network, weight);
            let of_row = |((logits, (_, class)), weight): ((ArrayView1<'_, f64>, &(usize, usize)), &f64)| {
                weight * loss(&normal(logits), *class)
            };
            mixed.rows().into_iter().zip(&classes).zip(&weights).map(of_row).sum()
        };
        let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        let losses = WEIGHTS.map(|weight| if weights.is_empty() { 0.0 } else { total(weight) / mean });
        WEIGHTS.iter().zip(plausible(&losses)).map(|(weight, count)| weight * count).sum()
    }

    /// Trains the models that count on all labelled rows.
    pub(crate) fn train(
        self,
        table: &Table<'_>,
        labels: &Labels,
        shares: &[f64],
        weight: f64,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Beside, RunError> {
        let kept: Vec<(Candidate, f64)> =
            self.0.into_iter().zip(shares.iter().copied()).filter(|(_, share)| *share > LEAST).collect();
        let total: f64 = kept.iter().map(|(_, share)| share).sum();
        let trained = kept.into_iter().map(|(candidate, share)| {
            let classifier = SavedClassifier::train(&candidate.settings, table.encoded(), labels, seed, progress)?;
            Ok(Part { share: share / total, calibration: candidate.calibration, classifier })
        });
        Ok(Beside { weight, parts: trained.collect::<Result<_, RunError>>()? })
    }
}

/// A model that counts less is left out.
const LEAST: f64 = 0.02;

/// All lists of `parts` multiples of 1/steps that sum to 1.
fn grid(parts: usize, steps: usize) -> Vec<Vec<f64>> {
    fn extend(left: usize, parts: usize, steps: usize, so_far: &mut Vec<f64>, out: &mut Vec<Vec<f64>>) {
        if parts == 1 {
            out.push(so_far.iter().copied().chain([left as f64 / steps as f64]).collect());
            return;
        }
        for here in 0..=left {
            so_far.push(here as f64 / steps as f64);
            extend(left - here, parts - 1, steps, so_far, out);
            so_far.pop();
        }
    }
    let mut out = Vec::new();
    if parts > 0 {
        extend(steps, parts, steps, &mut Vec::new(), &mut out);
    }
    out
}

/// A table as these models see it.
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
}

impl Beside {
    /// The parts of the whole model besides the network, by name, with how much they count.
    pub(crate) fn weights(&self) -> Vec<(&'static str, f64)> {
        self.parts.iter().map(|part| (part.classifier.name(), self.weight * part.share)).collect()
    }

    /// Writes the models into the folder of the network.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_string(self).map_err(|error| broken(folder, error))?;
        Ok(AtomicFile::write_text(&folder.join(FILE), &(text + "\n"))?)
    }

    /// Reads them back, if there are some. They must be of the same classes and columns as the network.
    pub(crate) fn load(folder: &Path, model: &ModelDescription) -> Result<Option<Self>, RunError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).map_err(|error| broken(folder, error))?;
        let read: Self = serde_json::from_str(&text).map_err(|error| broken(folder, error))?;
        let Encoding::Table(encoder) = &model.encoding else {
            return Err(broken(folder, "the model is of images, which have nothing beside the network"));
        };
        read.check(encoder, model.classes.len()).map_err(|why| broken(folder, why))?;
        Ok(Some(read))
    }

    fn check(&self, encoder: &TableEncoder, classes: usize) -> Result<(), &'static str> {
        let shares: f64 = self.parts.iter().map(|part| part.share).sum();
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if !is_share(self.weight) || !self.parts.iter().all(|part| is_share(part.share)) || (shares - 1.0).abs() > 1e-6
        {
            return Err("its weights are not between 0 and 1, or are not 1 together");
        }
        for part in &self.parts {
            part.classifier.check(encoder, classes)?;
            if !part.calibration.is_sound(classes) {
                return Err("a calibration makes no sense");
            }
        }
        Ok(())
    }

    /// p(y | x) of the network and the others together. `network` has that of the network.
    pub(crate) fn population(
        &self,
        network: &Posteriors,
        table: &Table<'_>,
        phi: &Propensity<'_>,
    ) -> Result<Posteriors, RunError> {
        let said = self.parts.iter().map(|part| {
            let p = Posteriors::new(part.classifier.predict_proba(table.encoded())?, PosteriorKind::Labelled)?;
            Ok((part.calibration.apply(&p)?, self.weight * part.share))
        });
        let said = said.collect::<Result<Vec<_>, mnar::Error>>()?;
        let mut all = Array2::zeros((network.len(), network.n_classes()));
        for (row, mut to) in all.rows_mut().into_iter().enumerate() {
            let others = said.iter().map(|(p, weight)| (p.of_population(row, phi.of(row)), *weight));
            let network = (1.0 - self.weight > 0.0).then(|| (network.row(row).to_vec(), 1.0 - self.weight));
            to.iter_mut().zip(mixed(others.chain(network))).for_each(|(to, logit)| *to = logit);
        }
        Ok(Posteriors::from_logits(all.view(), PosteriorKind::Population)?)
    }
}

fn broken(folder: &Path, why: impl ToString) -> RunError {
    RunError::BrokenModel { path: folder.join(FILE), why: why.to_string() }
}

/// The log of the geometric mean of predictions with these parts, normalised.
pub(crate) fn mixed(parts: impl Iterator<Item = (Vec<f64>, f64)>) -> Vec<f64> {
    let mut logits = Vec::new();
    for (p, part) in parts {
        logits.resize(p.len(), 0.0);
        logits.iter_mut().zip(p).for_each(|(to, p)| *to += part * p.max(FLOOR).ln());
    }
    let total = log_sum(logits.iter().copied());
    logits.iter_mut().for_each(|logit| *logit -= total);
    logits
}

/// How much every candidate counts, by its summed loss: exp(−loss), 1 in all.
fn plausible(losses: &[f64]) -> Vec<f64> {
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let counts: Vec<f64> = losses.iter().map(|loss| (least - loss).exp()).collect();
    let total: f64 = counts.iter().sum();
    counts.into_iter().map(|count| count / total).collect()
}

fn loss(log_p: &[f64], class: usize) -> f64 {
    -log_p[class]
}

fn log_sum(logits: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logits.clone().fold(f64::NEG_INFINITY, f64::max);
    top + logits.map(|logit| (logit - top).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_between_the_two() {
        let first = |weight: f64| {
            let parts = [(vec![0.8, 0.2], 1.0 - weight), (vec![0.2, 0.8], weight)];
            mixed(parts.into_iter())[0].exp()
        };
        assert!((first(0.0) - 0.8).abs() < 1e-12);
        assert!((first(1.0) - 0.2).abs() < 1e-12);
        assert!((first(0.5) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn clear_losses_decide_and_others_are_averaged() {
        assert_eq!(plausible(&[3.0, 3.0]), [0.5, 0.5]);
        assert!(plausible(&[900.0, 850.0])[1] > 0.999);
        assert!((plausible(&[1.0, 0.0])[0] - 1.0 / (1.0 + 1f64.exp())).abs() < 1e-12);
    }

    #[test]
    fn a_grid_of_shares() {
        assert_eq!(grid(1, 8), [[1.0]]);
        assert_eq!(grid(2, 2), [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]);
        let three = grid(3, 8);
        assert_eq!(three.len(), 45);
        assert!(three.iter().all(|shares| shares.iter().sum::<f64>() == 1.0));
        assert!(grid(0, 8).is_empty());
    }
}

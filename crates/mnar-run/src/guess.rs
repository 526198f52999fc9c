//! What cross-fitted networks say about labels that are missing, for training that is guided by it.

use crate::error::RunError;
use crate::guides::{Guides, all_together};
use mnar::analysis::Findings;
use mnar::crossfit::CrossFitted;
use mnar::{Labels, Phi, PosteriorKind, Posteriors};
use mnar_train::method::Method;
use mnar_train::model::Network;
use mnar_train::{Examples, Propensity, logits, network_of};
use ndarray::ArrayView1;

/// A phi above this is not believed when missing labels are guessed: a phi of 1 is only an estimate, but taken literally it would
/// mean that no unlabelled row is of that class.
const LARGEST_PHI: f64 = 0.98;

/// Unlabelled rows that calibrate a guided network, and the temperatures that are tried.
const CALIBRATED_ROWS: usize = 2000;
const TEMPERATURES: [f64; 12] = [1.0, 1.1, 1.2, 1.35, 1.5, 1.7, 1.9, 2.2, 2.5, 3.0, 4.0, 5.0];

/// A guided network goes its own way where it is this sure or surer: the least confidence from which on the guess would be right in
/// 95% of the rows. Where classes are well separated that is the lower end; where they overlap, the upper one.
const RIGHT: f64 = 0.95;
const THRESHOLDS: (f64, f64) = (0.5, 0.95);

/// What cross-fitted networks say of every row.
pub struct Guess {
    /// p(y | x, labelled), of networks that have not seen the label of the row.
    posteriors: Posteriors,
    /// p(y | x, labelled), of all networks together.
    together: Posteriors,
    networks: Vec<Network>,
}

impl Guess {
    /// No network has seen the label of an unlabelled row, so all of them together score it, by the mean of their logits. A
    /// labelled row keeps the score of the one network that has not seen its label.
    pub fn new(fitted: &CrossFitted<Examples>, examples: &Examples, labels: &Labels) -> Result<Self, RunError> {
        let networks: Vec<Network> = fitted.models.iter().filter_map(|model| network_of(&**model).cloned()).collect();
        let together = all_together(&networks, examples, labels.n_classes())?;
        let mut posteriors = together.view().to_owned();
        for (row, _) in labels.labelled() {
            posteriors.row_mut(row).assign(&fitted.posteriors.row(row));
        }
        Ok(Self { posteriors: Posteriors::new(posteriors, PosteriorKind::Labelled)?, together, networks })
    }

    /// The networks, to count beside the one that they guide, and what they say of all rows.
    pub fn guides(self, findings: &Findings) -> (Guides, Posteriors) {
        let classes = self.posteriors.n_classes();
        (Guides::new(self.networks, findings.calibration.as_ref(), classes), self.together)
    }

    /// The confidence from which on a network that these targets guide goes its own way. `targets` has one line per row.
    pub fn threshold(targets: &[f32], labels: &Labels) -> f64 {
        let lines = targets.chunks_exact(labels.n_classes()).enumerate();
        let unlabelled = lines.filter(|(row, _)| !labels.is_labelled(*row)).map(|(_, line)| line);
        let mut sure: Vec<f64> = unlabelled.map(|line| f64::from(line.iter().copied().fold(0.0, f32::max))).collect();
        sure.sort_by(|a, b| b.total_cmp(a));
        // The mean confidence of rows falls with every row that is taken in.
        let mut sum = 0.0;
        let taken = sure.iter().enumerate().take_while(|(i, confidence)| {
            sum += **confidence;
            sum >= RIGHT * (i + 1) as f64
        });
        taken.last().map_or(THRESHOLDS.1, |(_, confidence)| confidence.clamp(THRESHOLDS.0, THRESHOLDS.1))
    }

    /// What the logits of a guided network are to be divided by, where no labels were held out to calibrate it: the temperature at
    /// which its p(y | x, unlabelled) are closest to the targets, which are calibrated. At least 1: learning from its own
    /// predictions makes a network overconfident.
    pub fn temperature(
        network: &Network,
        examples: &Examples,
        labels: &Labels,
        targets: &[f32],
        phi: &Propensity<'_>,
    ) -> f64 {
        let unlabelled: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let rows: Vec<usize> =
            unlabelled.iter().copied().step_by(unlabelled.len().div_ceil(CALIBRATED_ROWS).max(1)).collect();
        let scores = logits(network, examples, &rows);
        let classes = labels.n_classes();
        let loss = |temperature: f64| -> f64 {
            let of_row = |(scores, &row): (ArrayView1<'_, f64>, &usize)| {
                let hidden = |phi: &f64| (1.0 - phi.min(LARGEST_PHI)).ln();
                let of_class = scores.iter().zip(phi.of(row).iter());
                let adjusted: Vec<f64> = of_class.map(|(score, phi)| score / temperature + hidden(phi)).collect();
                let top = adjusted.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let log_sum = top + adjusted.iter().map(|score| (score - top).exp()).sum::<f64>().ln();
                let of_targets = adjusted.iter().zip(&targets[row * classes..(row + 1) * classes]);
                of_targets.map(|(score, target)| f64::from(*target) * (log_sum - score)).sum::<f64>()
            };
            scores.rows().into_iter().zip(&rows).map(of_row).sum()
        };
        let losses = TEMPERATURES.map(loss);
        let best = (0..TEMPERATURES.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        best.map_or(1.0, |best| TEMPERATURES[best])
    }

    /// The class probabilities that training with this method compares its unlabelled predictions with, row by row: p(y | x,
    /// unlabelled) where it adjusts logits by phi, p(y | x) where it does not.
    ///
    /// Where labelling depends on columns, the cross-fitted posteriors that know the columns take the place of all networks
    /// together, which do not.
    pub fn targets(&self, findings: &Findings, method: &Method) -> Result<Vec<f32>, RunError> {
        let row_phi = findings.row_phi.as_deref();
        let together = match &findings.calibration {
            Some(calibration) => calibration.apply(&self.posteriors)?,
            None => self.posteriors.clone(),
        };
        let calibrated = findings.calibrated.as_deref().filter(|_| row_phi.is_some()).unwrap_or(&together);
        let propensity = Propensity::new(&findings.phi, row_phi);
        let mut targets = Vec::with_capacity(calibrated.len() * calibrated.n_classes());
        for row in 0..calibrated.len() {
            let believed = Phi::new(propensity.of(row).iter().map(|phi| phi.min(LARGEST_PHI)).collect())?;
            let of_row = match method.adjusts_logits() {
                true => calibrated.given_unlabelled(row, &believed).unwrap_or_else(|| calibrated.row(row).to_vec()),
                false => calibrated.of_population(row, &believed),
            };
            targets.extend(of_row.into_iter().map(|p| p as f32));
        }
        Ok(targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labelled rows do not count, and the mean confidence of the rows that are sure enough is 95%.
    #[test]
    fn sure_is_where_the_guess_is_right_in_95_percent() {
        let labels = |n: usize| Labels::from_values((0..n).map(|i| ["a", "b"].get(i).copied())).unwrap();
        let targets = |sure: &[f32]| -> Vec<f32> {
            let rows = [0.5, 0.5].iter().chain(sure);
            rows.flat_map(|p| [*p, 1.0 - p]).collect()
        };
        let threshold = |sure: &[f32]| Guess::threshold(&targets(sure), &labels(sure.len() + 2));
        // 1, 0.98, 0.9 and 0.88 have a mean of 0.94.
        assert!((threshold(&[0.88, 1.0, 0.9, 0.98]) - 0.9).abs() < 1e-6);
        assert!((threshold(&[0.6; 5]) - 0.95).abs() < 1e-12);
        let mut well_separated = vec![1.0; 99];
        well_separated.push(0.4);
        assert!((threshold(&well_separated) - 0.6).abs() < 1e-6);
        well_separated[99] = 0.5;
        assert!((threshold(&well_separated) - 0.5).abs() < 1e-6);
    }
}

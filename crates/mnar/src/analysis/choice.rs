//! Which classifier the posteriors come from: the one that predicts labels it has not seen best.

use super::Evidence;
use crate::calibrate::Calibration;
use crate::error::Error;
use crate::labels::{Class, Labels};
use crate::posteriors::Posteriors;
use crate::rows::Sample;
use serde::{Deserialize, Serialize};

/// A classifier that was cross-fitted, and how well it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriedClassifier {
    /// Its name, such as "softmax regression".
    pub name: String,
    /// The mean of −log p(y|x) over labelled rows that it had not seen, once it is calibrated.
    pub log_loss: f64,
    /// Whether the posteriors are its own.
    pub chosen: bool,
}

/// Probabilities below this count as this in a log-loss, so that one row cannot decide.
const FLOOR: f64 = 1e-6;

/// −log p(y|x) of every labelled row, calibrated, as the estimate will use it. Of 231 labels of the Pima table, 16 of them of one
/// class, trees that had learnt nothing but the class shares had a loss of 0.256, and softmax regression 0.295 because it
/// was too sure; calibrated it had 0.252.
fn losses(posteriors: &Posteriors, labels: &Labels) -> Result<Vec<f64>, Error> {
    let calibrated = Calibration::default().fit(&Sample::new(posteriors, labels)?)?.apply(posteriors)?;
    let loss = |(row, class): (usize, Class)| -calibrated.row(row)[class.index()].max(FLOOR).ln();
    Ok(labels.labelled().map(loss).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Whether `other` has a lower loss than `best` by more than `margin` standard errors of the difference. Simple classifiers come
/// first. On the Pima table half a standard error took trees in a third of the draws, for no gain; where labels favoured easy
/// rows, the check of that then missed it in 9 of 40 draws instead of 4.
fn better(other: &[f64], best: &[f64], margin: f64) -> bool {
    let gains: Vec<f64> = best.iter().zip(other).map(|(best, other)| best - other).collect();
    let gain = mean(&gains);
    let variance = gains.iter().map(|value| (value - gain).powi(2)).sum::<f64>() / gains.len().max(1) as f64;
    gain > margin * (variance / gains.len().max(1) as f64).sqrt()
}

impl Evidence<'_> {
    /// The evidence of the classifier with the lowest loss on labelled rows that it has not seen, once it is calibrated, among
    /// several that were cross-fitted in the same folds. Earlier ones win ties.
    pub fn best(candidates: Vec<Self>) -> Result<Self, Error> {
        let mut best: Option<(usize, Self, Vec<f64>)> = None;
        let mut tried = Vec::with_capacity(candidates.len());
        for (position, candidate) in candidates.into_iter().enumerate() {
            let losses = losses(&candidate.posteriors, candidate.labels)?;
            let classifier = candidate.features.map(|features| features.classifier);
            let name = classifier.map_or("given", |classifier| classifier.name()).to_owned();
            let margin = classifier.map_or(2.0, |classifier| classifier.margin());
            tried.push(TriedClassifier { name, log_loss: mean(&losses), chosen: false });
            if best.as_ref().is_none_or(|(_, _, best)| better(&losses, best, margin)) {
                best = Some((position, candidate, losses));
            }
        }
        let (chosen, evidence, _) = best.ok_or(Error::Settings("there is no classifier to choose from"))?;
        tried[chosen].chosen = true;
        Ok(Self { tried, ..evidence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posteriors::PosteriorKind;
    use ndarray::Array2;

    #[test]
    fn a_classifier_that_knows_something_beats_one_that_knows_the_shares() {
        // Nine rows in ten are of class a. The first classifier knows that; the second ranks rows well but is far too sure.
        let names = (0..200).map(|row| if row % 10 == 0 { "b" } else { "a" });
        let labels = Labels::from_values(names.map(Some).chain([None::<&str>])).expect("labels");
        let posteriors = |p: &dyn Fn(usize) -> f64| {
            let p = Array2::from_shape_fn((201, 2), |(row, k)| if k == 1 { p(row) } else { 1.0 - p(row) });
            Posteriors::new(p, PosteriorKind::Labelled).expect("probabilities")
        };
        let shares = losses(&posteriors(&|_| 0.1), &labels).expect("losses");
        let sure = posteriors(&|row| if (row % 10 == 0) != (row % 20 == 7) { 0.9999 } else { 0.0001 });
        let raw = labels.labelled().map(|(row, class)| -sure.row(row)[class.index()].ln()).sum::<f64>() / 200.0;
        let sure = losses(&sure, &labels).expect("losses");
        assert!(mean(&shares) < raw && mean(&sure) < mean(&shares), "{} {} {raw}", mean(&shares), mean(&sure));
    }

    #[test]
    fn a_gain_within_the_noise_is_no_gain() {
        let simple = vec![0.5; 100];
        let noisy: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 0.0 } else { 0.98 }).collect();
        assert!(!better(&noisy, &simple, 2.0) && mean(&noisy) < mean(&simple));
        assert!(better(&vec![0.4; 100], &simple, 2.0) && !better(&simple, &simple, 0.0));
    }
}

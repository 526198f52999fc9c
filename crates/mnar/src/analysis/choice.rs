//! Which classifier the posteriors come from: the one that predicts labels it has not seen best.

use super::Evidence;
use crate::error::Error;
use crate::labels::Labels;
use crate::posteriors::Posteriors;
use serde::{Deserialize, Serialize};

/// A classifier that was cross-fitted, and how well it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriedClassifier {
    /// Its name, such as "softmax regression".
    pub name: String,
    /// The mean of −log p(y|x) over labelled rows that it had not seen.
    pub log_loss: f64,
    /// Whether the posteriors are its own.
    pub chosen: bool,
}

/// Probabilities below this count as this in a log-loss, so that one row cannot decide.
const FLOOR: f64 = 1e-6;

/// −log p(y|x) of every labelled row.
fn losses(posteriors: &Posteriors, labels: &Labels) -> Vec<f64> {
    labels.labelled().map(|(row, class)| -posteriors.row(row)[class.index()].max(FLOOR).ln()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Whether `other` has a lower loss than `best` by more than half a standard error of the difference. Simple classifiers come
/// first: they are refitted faster and extrapolate better, and a difference within the noise is no reason to leave them.
fn better(other: &[f64], best: &[f64]) -> bool {
    let gains: Vec<f64> = best.iter().zip(other).map(|(best, other)| best - other).collect();
    let gain = mean(&gains);
    let variance = gains.iter().map(|value| (value - gain).powi(2)).sum::<f64>() / gains.len().max(1) as f64;
    gain > 0.5 * (variance / gains.len().max(1) as f64).sqrt()
}

impl Evidence<'_> {
    /// The evidence of the classifier with the lowest loss on labelled rows that it has not seen, among several that were
    /// cross-fitted in the same folds. Earlier ones win ties.
    pub fn best(candidates: Vec<Self>) -> Result<Self, Error> {
        let mut best: Option<(usize, Self, Vec<f64>)> = None;
        let mut tried = Vec::with_capacity(candidates.len());
        for (position, candidate) in candidates.into_iter().enumerate() {
            let losses = losses(&candidate.posteriors, candidate.labels);
            let name = candidate.features.map_or("given", |features| features.classifier.name()).to_owned();
            tried.push(TriedClassifier { name, log_loss: mean(&losses), chosen: false });
            if best.as_ref().is_none_or(|(_, _, best)| better(&losses, best)) {
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

    #[test]
    fn a_gain_within_the_noise_is_no_gain() {
        let simple = vec![0.5; 100];
        let noisy: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 0.0 } else { 0.98 }).collect();
        assert!(!better(&noisy, &simple) && mean(&noisy) < mean(&simple));
        assert!(better(&vec![0.4; 100], &simple) && !better(&simple, &simple));
    }
}

//! Which classifier the posteriors come from: the one that predicts labels it has not seen best.

use super::{Evidence, Features};
use crate::crossfit::FoldPlan;
use crate::error::Error;
use crate::labels::Labels;
use crate::posteriors::Posteriors;
use crate::progress::Progress;
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

impl<'a> Evidence<'a> {
    /// Cross-fits every candidate in the same folds and keeps the one with the lowest loss on labelled rows that it has not
    /// seen. Earlier candidates win ties.
    pub fn choose(
        candidates: &[Features<'a>],
        labels: &'a Labels,
        plan: &FoldPlan,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let mut best: Option<(usize, Self, Vec<f64>)> = None;
        let mut tried = Vec::with_capacity(candidates.len());
        for (position, candidate) in candidates.iter().enumerate() {
            let evidence = Self::cross_fit(*candidate, labels, plan.clone(), seed, progress)?;
            let losses = losses(&evidence.posteriors, labels);
            tried.push(TriedClassifier {
                name: candidate.classifier.name().to_owned(),
                log_loss: mean(&losses),
                chosen: false,
            });
            if best.as_ref().is_none_or(|(_, _, best)| better(&losses, best)) {
                best = Some((position, evidence, losses));
            }
        }
        let (chosen, evidence, _) = best.ok_or(Error::Settings("there is no classifier to choose from"))?;
        tried[chosen].chosen = true;
        Ok(Self { tried, ..evidence })
    }
}

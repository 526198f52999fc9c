//! The rows an epoch is chosen by, and how a network does on them.

use crate::examples::Examples;
use mnar::Labels;
use ndarray::Array2;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Labelled rows outside the data set whose classes are as frequent as in the population, to choose the epoch by. Who
/// has such rows has little need of a mechanism: this is for comparisons.
#[derive(Clone, Copy)]
pub struct Validation<'a> {
    /// What is best on them.
    pub by: Criterion,
    /// The rows.
    pub examples: &'a Examples,
    /// Their classes.
    pub classes: &'a [usize],
}

/// What the chosen epoch is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The highest accuracy, as in the paper.
    Accuracy,
    /// The smallest log-loss: of a few dozen rows it says far more.
    LogLoss,
}

/// Logits of some rows, with class and weight of each.
pub(crate) type ScoredRows = (Array2<f64>, Vec<(usize, f64)>);

/// Rows for validation: the same share of every class' labels, so that no class is without; a class keeps two labels
/// at least to learn from.
pub(crate) fn held_out(labels: &Labels, share: f64, seed: u64) -> Vec<usize> {
    let mut by_class = vec![Vec::new(); labels.n_classes()];
    labels.labelled().for_each(|(row, class)| by_class[class.index()].push(row));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut rows = Vec::new();
    for mut class in by_class {
        class.shuffle(&mut rng);
        let take = ((class.len() as f64 * share).round() as usize).min(class.len().saturating_sub(2));
        rows.extend_from_slice(&class[..take]);
    }
    rows.sort_unstable();
    rows
}

/// Weighted mean log-loss and accuracy of logits divided by a temperature; `rows` holds class and weight of each.
pub fn weighted_scores(scores: &Array2<f64>, rows: &[(usize, f64)], temperature: f64) -> (f64, f64) {
    let (mut weights, mut risk, mut right) = (0.0, 0.0, 0.0);
    for (&(y, weight), scores) in rows.iter().zip(scores.rows()) {
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = scores.iter().map(|score| ((score - top) / temperature).exp()).sum::<f64>().ln();
        weights += weight;
        risk += weight * (log_sum + (top - scores[y]) / temperature);
        right += if scores[y] == top { weight } else { 0.0 };
    }
    (risk / weights, right / weights)
}

/// The temperature of least risk, at least 1: learning from one's own guesses makes a network too sure, and a few dozen
/// rows that all happen to be right are no reason to make it surer still.
pub(crate) fn calibrating_temperature(scores: &Array2<f64>, rows: &[(usize, f64)]) -> f64 {
    // log T ~ N(0, 1/2²) a priori, against the *effective* number of rows: ten rows, two of them with most of the
    // weight, should not move it far.
    let sum: f64 = rows.iter().map(|(_, weight)| weight).sum();
    let squares: f64 = rows.iter().map(|(_, weight)| weight * weight).sum();
    let effective = sum * sum / squares;
    let objective = |log_t: f64| weighted_scores(scores, rows, log_t.exp()).0 + 2.0 * log_t * log_t / effective;
    golden_section(objective, 0.0, 2.5).exp()
}

/// The minimum of a function with one valley, to 1e-4.
fn golden_section(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut f_a, mut f_b) = (f(a), f(b));
    while high - low > 1e-4 {
        if f_a <= f_b {
            (high, b, f_b) = (b, a, f_a);
            a = high - ratio * (high - low);
            f_a = f(a);
        } else {
            (low, a, f_a) = (a, b, f_b);
            b = low + ratio * (high - low);
            f_b = f(b);
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::arr2;

    #[test]
    fn golden_section_finds_the_valley() {
        assert!((golden_section(|x| (x - 0.7) * (x - 0.7), -1.5, 2.5) - 0.7).abs() < 1e-3);
    }

    #[test]
    fn weights_count_rows() {
        let scores = arr2(&[[2.0, 0.0], [0.0, 0.0]]);
        let (risk, accuracy) = weighted_scores(&scores, &[(0, 3.0), (1, 1.0)], 1.0);
        let expected = (3.0 * (1.0 + (-2.0f64).exp()).ln() + 2f64.ln()) / 4.0;
        assert!((risk - expected).abs() < 1e-12 && accuracy == 1.0);
        let (hot, _) = weighted_scores(&scores, &[(0, 3.0), (1, 1.0)], 2.0);
        assert!((hot - (3.0 * (1.0 + (-1.0f64).exp()).ln() + 2f64.ln()) / 4.0).abs() < 1e-12);
    }

    /// The same share of every class, and two labels left for each.
    #[test]
    fn held_out_rows_leave_two_of_a_class() {
        let y: Vec<Option<&str>> = [vec![Some("a"); 20], vec![Some("b"); 2], vec![None; 5]].concat();
        let labels = Labels::from_values(y).unwrap();
        let rows = held_out(&labels, 0.5, 1);
        assert_eq!(rows.len(), 10);
        assert!(rows.iter().all(|&row| row < 20));
    }
}

//! The rows that select the epoch, and how a network performs on them.

use crate::examples::Examples;
use mnar::Class;
use ndarray::{Array2, ArrayView1};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Labelled rows outside the data set whose classes are as frequent as in the population, to choose the epoch by. With
/// such rows a mechanism is hardly needed: this is for comparisons.
#[derive(Clone, Copy)]
pub struct Validation<'a> {
    /// What the chosen epoch is best at.
    pub by: Criterion,
    /// The rows.
    pub examples: &'a Examples,
    /// Their classes.
    pub classes: &'a [usize],
}

/// What the selected epoch is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The highest accuracy, as in the paper.
    Accuracy,
    /// The smallest log-loss: on a few dozen rows it is far more informative.
    LogLoss,
}

/// Logits of some rows, with the class and weight of each.
pub(crate) type ScoredRows = (Array2<f64>, Vec<(usize, f64)>);

/// Rows for validation, out of labelled rows: the same share of every class, so that no class is without; each class keeps
/// at least two labels to learn from.
pub(crate) fn held_out(labelled: &[(usize, Class)], n_classes: usize, share: f64, seed: u64) -> Vec<usize> {
    let mut by_class = vec![Vec::new(); n_classes];
    labelled.iter().for_each(|(row, class)| by_class[class.index()].push(*row));
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

/// Weighted mean log-loss and accuracy of logits divided by a temperature; `rows` holds the class and weight of each
/// row.
pub fn weighted_scores(scores: &Array2<f64>, rows: &[(usize, f64)], temperature: f64) -> (f64, f64) {
    let weights: f64 = rows.iter().map(|(_, weight)| weight).sum();
    let scored = rows.iter().zip(scores.rows());
    let right: f64 = scored.filter(|((y, _), scores)| scores[*y] == top(scores)).map(|((_, weight), _)| weight).sum();
    (weighted_losses(scores, rows, temperature).iter().sum(), right / weights)
}

/// The contribution of every row to the weighted mean log-loss.
fn weighted_losses(scores: &Array2<f64>, rows: &[(usize, f64)], temperature: f64) -> Vec<f64> {
    let weights: f64 = rows.iter().map(|(_, weight)| weight).sum();
    let loss = |(&(y, weight), scores): (&(usize, f64), ArrayView1<'_, f64>)| {
        let top = top(&scores);
        let log_sum = scores.iter().map(|score| ((score - top) / temperature).exp()).sum::<f64>().ln();
        weight / weights * (log_sum + (top - scores[y]) / temperature)
    };
    rows.iter().zip(scores.rows()).map(loss).collect()
}

fn top(scores: &ArrayView1<'_, f64>) -> f64 {
    scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The epoch that is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Choice {
    /// The epoch whose weights are kept, from 1.
    pub(crate) epoch: usize,
    best: Option<Best>,
}

/// The epoch with the smallest risk.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Best {
    epoch: usize,
    risk: f64,
    /// The contribution of every held-out row to the risk; empty where the smallest risk is kept regardless of chance.
    losses: Vec<f64>,
}

impl Choice {
    /// Standard errors by which a later epoch must be worse for an earlier one to be kept. Of nine settings (three
    /// methods on MNIST S2, dermaMNIST and LIDC) half of one was best on balance: with none a few heavy rows choose, with
    /// two the overfitted last epoch of 490 labels is kept.
    const CLEARLY: f64 = 0.5;

    /// Keeps an epoch that nothing can judge, so that the last one is kept.
    pub(crate) fn take(&mut self, epoch: usize) {
        *self = Self { epoch, best: None };
    }

    /// Keeps this epoch if it is the best so far; returns whether it is kept.
    pub(crate) fn offer_best(&mut self, epoch: usize, risk: f64) -> bool {
        self.offer(epoch, risk, Vec::new())
    }

    /// Keeps this epoch if, by the weighted losses of held-out rows, it is not clearly worse than the best so far;
    /// returns whether it is kept.
    ///
    /// A few rows of a rarely labelled class carry most of the weight, and the smallest of a hundred noisy risks is
    /// often that of an early epoch which happens to be unsure of one of them. So epochs are judged as they would be
    /// used, at the temperature that suits them, and the burden of proof is on the early one: later ones have learnt
    /// more, at a smaller learning rate. Since the rows are the same, chance is measured by the spread of their
    /// differences.
    pub(crate) fn offer_later(&mut self, epoch: usize, scores: &Array2<f64>, rows: &[(usize, f64)]) -> bool {
        let losses = weighted_losses(scores, rows, calibrating_temperature(scores, rows));
        self.offer(epoch, losses.iter().sum(), losses)
    }

    fn offer(&mut self, epoch: usize, risk: f64, losses: Vec<f64>) -> bool {
        let is_best = self.best.as_ref().is_none_or(|best| risk <= best.risk);
        let by_chance = |best: &Best| !losses.is_empty() && !is_clearly_worse(&losses, &best.losses);
        let keep = is_best || self.best.as_ref().is_some_and(by_chance);
        if is_best {
            self.best = Some(Best { epoch, risk, losses });
        }
        if keep {
            self.epoch = epoch;
        }
        keep
    }

    /// The epoch with the smallest risk.
    pub(crate) fn best_epoch(&self) -> usize {
        self.best.as_ref().map_or(self.epoch, |best| best.epoch)
    }
}

/// Whether the sum of the first exceeds that of the second by more than the spread of their differences allows.
fn is_clearly_worse(losses: &[f64], best: &[f64]) -> bool {
    let n = losses.len() as f64;
    let differences: Vec<f64> = losses.iter().zip(best).map(|(loss, best)| loss - best).collect();
    let excess: f64 = differences.iter().sum();
    let squares: f64 = differences.iter().map(|difference| (difference - excess / n).powi(2)).sum();
    // A single row, or none, says nothing about chance.
    let standard_error = if n > 1.0 { (n / (n - 1.0) * squares).sqrt() } else { 0.0 };
    excess > Choice::CLEARLY * standard_error
}

/// The temperature with the smallest risk, at least 1: learning from its own predictions makes a network overconfident,
/// and a few dozen rows that all happen to be right do not justify making it more confident still.
pub(crate) fn calibrating_temperature(scores: &Array2<f64>, rows: &[(usize, f64)]) -> f64 {
    // log T ~ N(0, 1/2²) a priori, against the *effective* number of rows: ten rows, two of which hold most of the
    // weight, should not move it far.
    let sum: f64 = rows.iter().map(|(_, weight)| weight).sum();
    let squares: f64 = rows.iter().map(|(_, weight)| weight * weight).sum();
    let effective = sum * sum / squares;
    let objective = |log_t: f64| weighted_scores(scores, rows, log_t.exp()).0 + 2.0 * log_t * log_t / effective;
    golden_section(objective, 0.0, 2.5).exp()
}

/// The minimum of a unimodal function, to 1e-4.
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

    /// Losses of single rows as logits of two classes, class 0 being right.
    fn scores(losses: &[f64]) -> Array2<f64> {
        Array2::from_shape_fn((losses.len(), 2), |(i, k)| if k == 0 { 0.0 } else { (losses[i].exp() - 1.0).ln() })
    }

    #[test]
    fn a_later_epoch_is_kept_unless_it_is_clearly_worse() {
        let rows = vec![(0, 1.0); 10];
        let mut choice = Choice::default();
        assert!(choice.offer_later(1, &scores(&[0.5; 10]), &rows));
        // Some rows are better and some worse by about as much: chance.
        let mixed: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 0.4 } else { 0.61 }).collect();
        assert!(choice.offer_later(2, &scores(&mixed), &rows));
        assert_eq!((choice.epoch, choice.best_epoch()), (2, 1));
        // Every row is worse: not by chance.
        let worse: Vec<f64> = (0..10).map(|i| 0.6 + 0.001 * f64::from(i)).collect();
        assert!(!choice.offer_later(3, &scores(&worse), &rows));
        assert_eq!((choice.epoch, choice.best_epoch()), (2, 1));
        assert!(choice.offer_later(4, &scores(&[0.4; 10]), &rows));
        assert_eq!((choice.epoch, choice.best_epoch()), (4, 4));
    }

    /// An unsure epoch is not preferred for what a temperature can correct.
    #[test]
    fn epochs_are_judged_at_their_temperature() {
        let rows = vec![(0, 1.0); 40];
        let sure = |margin: f64| {
            let right = |i: usize| i >= 4;
            Array2::from_shape_fn((40, 2), |(i, k)| if (k == 0) == right(i) { margin } else { 0.0 })
        };
        let (unsure, too_sure) = (sure(1.5), sure(12.0));
        assert!(weighted_scores(&too_sure, &rows, 1.0).0 > 2.0 * weighted_scores(&unsure, &rows, 1.0).0);
        let mut choice = Choice::default();
        assert!(choice.offer_later(1, &unsure, &rows) && choice.offer_later(2, &too_sure, &rows));
    }

    #[test]
    fn the_least_risk_is_kept_where_that_is_asked_for() {
        let mut choice = Choice::default();
        assert!(choice.offer_best(1, 0.5) && !choice.offer_best(2, 0.51) && choice.offer_best(3, 0.5));
        assert_eq!((choice.epoch, choice.best_epoch()), (3, 3));
        choice.take(7);
        assert_eq!((choice.epoch, choice.best_epoch()), (7, 7));
    }

    /// The same share of every class, and two labels left for each.
    #[test]
    fn held_out_rows_leave_two_of_a_class() {
        let labelled: Vec<(usize, Class)> = (0..22).map(|row| (row, Class(u32::from(row >= 20)))).collect();
        let rows = held_out(&labelled, 2, 0.5, 1);
        assert_eq!(rows.len(), 10);
        assert!(rows.iter().all(|&row| row < 20));
    }
}

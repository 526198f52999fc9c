//! The number of rounds, chosen by log-loss on held-out rows.

use super::BoostedTrees;
use super::boost::{Booster, check_training};
use super::model::{add_round, bin_rows};
use crate::classify::Training;
use crate::error::Error;
use crate::labels::Class;
use crate::progress::Progress;
use ndarray::Array2;
use rayon::prelude::*;

/// Boosting ends when the held-out log-loss has had its minimum this many rounds ago.
const PATIENCE: usize = 30;

/// Settings chosen by held-out log-loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The best settings, with the best number of rounds.
    pub settings: BoostedTrees,
    /// Their mean log-loss on held-out rows. Slightly optimistic, because it is the smallest of many.
    pub log_loss: f64,
    /// For each candidate, the mean log-loss on held-out rows after 0, 1, 2, … rounds.
    pub curves: Vec<Vec<f64>>,
}

impl BoostedTrees {
    /// A few settings that [`BoostedTrees::tuned`] may choose from, for a number of training rows. Their rounds are the
    /// largest number that is tried.
    pub fn candidates(n: usize) -> Vec<Self> {
        let base = Self::for_rows(n);
        if n <= Self::SMALL { vec![base] } else { vec![Self { rounds: 300, ..base }] }
    }

    /// Chooses settings among the candidates, and their number of rounds, by log-loss on held-out rows: the training rows are
    /// divided into folds, each of which is predicted by trees grown on the others. `folds` has the fold of each training row.
    ///
    /// No rounds at all may be best, where the columns say nothing about the class.
    pub fn tuned(
        candidates: &[Self],
        x: &Array2<f64>,
        training: &Training<'_>,
        folds: &[u32],
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Tuned, Error> {
        let mut best: Option<(f64, BoostedTrees)> = None;
        let mut curves = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let curve = candidate.log_loss_by_rounds(x, training, folds, seed, progress)?;
            for (rounds, &loss) in curve.iter().enumerate() {
                if best.as_ref().is_none_or(|(least, _)| loss < *least) {
                    best = Some((loss, Self { rounds, ..candidate.clone() }));
                }
            }
            curves.push(curve);
        }
        let (log_loss, settings) = best.ok_or(Error::Settings("there are no candidates to choose settings from"))?;
        Ok(Tuned { settings, log_loss, curves })
    }

    /// The weighted mean log-loss on held-out rows after 0, 1, 2, … rounds, in one pass. Ends early when more rounds no longer
    /// help. A class that is absent outside a fold keeps a probability of about one in a million there.
    pub fn log_loss_by_rounds(
        &self,
        x: &Array2<f64>,
        training: &Training<'_>,
        folds: &[u32],
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<f64>, Error> {
        if folds.len() != training.rows.len() {
            let (found, expected) = (folds.len(), training.rows.len());
            return Err(Error::LengthMismatch { what: "the list of folds", found, expected });
        }
        check_training(x, training)?;
        let mut numbers = folds.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let mut runs: Vec<FoldRun<'_>> = numbers
            .par_iter()
            .map(|&fold| FoldRun::new(self, x, training, folds, fold, seed))
            .filter_map(Result::transpose)
            .collect::<Result<_, Error>>()?;
        let total: f64 = runs.iter().map(FoldRun::weight).sum();
        if runs.len() < 2 || total <= 0.0 {
            let (name, value) = ("the number of folds with training rows", runs.len().to_string());
            return Err(Error::OutOfRange { name, value, range: "at least 2" });
        }
        let mut curve = vec![runs.iter().map(FoldRun::loss).sum::<f64>() / total];
        let mut best = 0;
        while curve.len() <= self.rounds && curve.len() - best <= PATIENCE {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let losses: Vec<f64> = runs.par_iter_mut().map(FoldRun::advance).collect();
            curve.push(losses.iter().sum::<f64>() / total);
            if curve[curve.len() - 1] < curve[best] {
                best = curve.len() - 1;
            }
        }
        Ok(curve)
    }
}

/// Trees grown without one fold, and the rows of that fold.
struct FoldRun<'a> {
    booster: Booster<'a>,
    bins: Vec<u8>,
    classes: Vec<Class>,
    weights: Vec<f64>,
    /// Scores of the held-out rows, row by row.
    scores: Vec<f64>,
}

impl<'a> FoldRun<'a> {
    /// None if the other folds are empty.
    fn new(
        settings: &'a BoostedTrees,
        x: &Array2<f64>,
        training: &Training<'_>,
        folds: &[u32],
        fold: u32,
        seed: u64,
    ) -> Result<Option<Self>, Error> {
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..folds.len()).partition(|&t| folds[t] == fold);
        let weight = |t: usize| training.weights.map_or(1.0, |weights| weights[t]);
        if outside.iter().all(|&t| weight(t) <= 0.0) {
            return Ok(None);
        }
        let rows: Vec<usize> = outside.iter().map(|&t| training.rows[t]).collect();
        let classes: Vec<Class> = outside.iter().map(|&t| training.classes[t]).collect();
        let weights: Vec<f64> = outside.iter().map(|&t| weight(t)).collect();
        let part = Training { rows: &rows, classes: &classes, n_classes: training.n_classes, weights: Some(&weights) };
        let booster = Booster::new(settings, x, &part, seed.wrapping_add(u64::from(fold)))?;
        let held_out: Vec<usize> = inside.iter().map(|&t| training.rows[t]).collect();
        Ok(Some(Self {
            bins: bin_rows(booster.columns(), x, &held_out),
            scores: booster.start().repeat(held_out.len()),
            booster,
            classes: inside.iter().map(|&t| training.classes[t]).collect(),
            weights: inside.iter().map(|&t| weight(t)).collect(),
        }))
    }

    fn weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// One more round; the loss after it.
    fn advance(&mut self) -> f64 {
        let trees = self.booster.round();
        add_round(&trees, &self.bins, self.booster.columns().len(), &mut self.scores);
        self.loss()
    }

    /// The weighted sum of the log-loss of the held-out rows.
    fn loss(&self) -> f64 {
        let scores = self.scores.chunks_exact(self.booster.start().len());
        scores.zip(&self.classes).zip(&self.weights).map(|((row, class), weight)| weight * log_loss(row, *class)).sum()
    }
}

/// −log p of a class. A single score is the log-odds of class 1.
fn log_loss(scores: &[f64], class: Class) -> f64 {
    if let [log_odds] = *scores {
        let against = if class.index() == 1 { -log_odds } else { log_odds };
        return against.max(0.0) + (-against.abs()).exp().ln_1p();
    }
    let max = scores.iter().fold(f64::NEG_INFINITY, |max, score| max.max(*score));
    let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
    max + sum.ln() - scores[class.index()]
}

//! The rounds of boosting: scores, derivatives, one tree per class.

use super::bins::{self, BinnedTable, Column};
use super::grow::{Grower, Workspace};
use super::histogram::Sums;
use super::model::{FittedTrees, Tree};
use super::{BoostedTrees, hash};
use crate::classify::Training;
use crate::error::Error;
use crate::labels::Class;
use ndarray::Array2;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Added to each class share before its logarithm is taken: a class of tiny weight starts at one in a million. A part of
/// the total weight, so that it does not depend on the scale of the weights.
const SHARE: f64 = 1e-6;
/// The smallest second derivative of a row: below it, p(1 − p) is rounding.
const MIN_CURVATURE: f64 = 1e-16;

/// Boosting in progress.
pub(super) struct Booster<'a> {
    settings: &'a BoostedTrees,
    seed: u64,
    columns: Vec<Column>,
    table: BinnedTable,
    classes: Vec<Class>,
    weights: Vec<f64>,
    /// The total weight of each class.
    class_weights: Vec<f64>,
    /// The scores before the first round.
    start: Vec<f64>,
    /// Scores of the training rows; one list per class, or a single one (the log-odds of class 1) for two classes.
    scores: Vec<Vec<f64>>,
    n_rounds: u64,
    /// One for each tree that was ever grown at the same time.
    workspaces: Mutex<Vec<Workspace>>,
}

impl<'a> Booster<'a> {
    /// Checks the input and cuts it into bins. Classes may be absent.
    pub(super) fn new(
        settings: &'a BoostedTrees,
        x: &Array2<f64>,
        training: &Training<'_>,
        seed: u64,
    ) -> Result<Self, Error> {
        settings.check(x.ncols())?;
        check_rows(x, training)?;
        let weight = |t: usize| training.weights.map_or(1.0, |weights| weights[t]);
        let counted: Vec<usize> = (0..training.rows.len()).filter(|&t| weight(t) > 0.0).collect();
        let rows: Vec<usize> = counted.iter().map(|&t| training.rows[t]).collect();
        let classes: Vec<Class> = counted.iter().map(|&t| training.classes[t]).collect();
        let weights: Vec<f64> = counted.iter().map(|&t| weight(t)).collect();
        let mut class_weights = vec![0.0; training.n_classes];
        classes.iter().zip(&weights).for_each(|(class, weight)| class_weights[class.index()] += weight);
        let start = start(&class_weights)?;
        let (columns, table) = bins::learn(settings, x, &rows, &weights)?;
        let scores = start.iter().map(|&score| vec![score; rows.len()]).collect();
        let workspaces = Mutex::default();
        Ok(Self {
            settings,
            seed,
            columns,
            table,
            classes,
            weights,
            class_weights,
            start,
            scores,
            n_rounds: 0,
            workspaces,
        })
    }

    /// How the values of each column become bins.
    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The scores before the first round.
    pub(super) fn start(&self) -> &[f64] {
        &self.start
    }

    /// Grows the trees of one more round, one per list of scores.
    pub(super) fn round(&mut self) -> Vec<Tree> {
        let mut scores = std::mem::take(&mut self.scores);
        let first = self.n_rounds * scores.len() as u64;
        let seed = |k: usize| hash(self.seed ^ hash(first + k as u64));
        let trees = if let [log_odds] = scores.as_mut_slice() {
            vec![self.tree_of_two(log_odds, seed(0))]
        } else {
            let probabilities = softmax(&scores);
            let grow = |(k, (scores, p)): (usize, (&mut Vec<f64>, Vec<f64>))| self.tree_of_many(k, scores, &p, seed(k));
            scores.par_iter_mut().zip(probabilities).enumerate().map(grow).collect()
        };
        self.scores = scores;
        self.n_rounds += 1;
        trees
    }

    fn tree_of_two(&self, log_odds: &mut [f64], seed: u64) -> Tree {
        let p: Vec<f64> = log_odds.iter().map(|score| 1.0 / (1.0 + (-score).exp())).collect();
        self.tree(1, log_odds, &p, 1.0, seed)
    }

    /// The curvature is multiplied by K/(K − 1): the diagonal alone would ignore that the scores of the other classes move
    /// too, and take steps that are too long.
    fn tree_of_many(&self, k: usize, scores: &mut [f64], p: &[f64], seed: u64) -> Tree {
        if self.class_weights[k] <= 0.0 {
            return Tree::constant();
        }
        let n_classes = self.class_weights.len() as f64;
        self.tree(k, scores, p, n_classes / (n_classes - 1.0), seed)
    }

    fn tree(&self, k: usize, scores: &mut [f64], p: &[f64], factor: f64, seed: u64) -> Tree {
        let lock = || self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let mut work = lock().pop().unwrap_or_default();
        work.terms.clear();
        work.terms.extend(self.classes.iter().zip(&self.weights).zip(p).map(|((class, &weight), &p)| {
            let truth = if class.index() == k { 1.0 } else { 0.0 };
            let curvature = (factor * p * (1.0 - p)).max(MIN_CURVATURE);
            Sums { gradient: weight * (p - truth), hessian: weight * curvature, weight }
        }));
        // With several classes, the threads have a tree each.
        let parallel = self.start.len() == 1;
        let grower = Grower { settings: self.settings, table: &self.table, parallel };
        let tree = grower.grow(&mut work, seed, scores);
        lock().push(work);
        tree
    }

    /// The model of all rounds so far.
    pub(super) fn into_model(self, rounds: Vec<Vec<Tree>>) -> FittedTrees {
        FittedTrees { n_classes: self.class_weights.len(), columns: self.columns, start: self.start, rounds }
    }
}

/// Refuses training rows that do not fit together or to the table, or that lack a class.
pub(super) fn check_training(x: &Array2<f64>, training: &Training<'_>) -> Result<(), Error> {
    check_rows(x, training)?;
    let mut present = vec![false; training.n_classes];
    for (t, class) in training.classes.iter().enumerate() {
        present[class.index()] |= training.weights.is_none_or(|weights| weights[t] > 0.0);
    }
    match present.iter().position(|present| !present) {
        Some(k) => Err(Error::ClassNotTrained { class: Class::from(k) }),
        None => Ok(()),
    }
}

fn check_rows(x: &Array2<f64>, training: &Training<'_>) -> Result<(), Error> {
    let Training { rows, classes, n_classes, weights } = *training;
    if rows.is_empty() {
        return Err(Error::NoRows);
    }
    let refuse = |name, value: String, range| Err(Error::OutOfRange { name, value, range });
    if n_classes < 2 {
        return refuse("the number of classes", n_classes.to_string(), "at least 2");
    }
    if u32::try_from(rows.len()).is_err() {
        return refuse("the number of training rows", rows.len().to_string(), "below 2^32");
    }
    for (what, found) in
        [("the list of classes", classes.len()), ("the list of weights", weights.map_or(rows.len(), <[f64]>::len))]
    {
        if found != rows.len() {
            return Err(Error::LengthMismatch { what, found, expected: rows.len() });
        }
    }
    if let Some(row) = rows.iter().find(|&&row| row >= x.nrows()) {
        return refuse("the position of a row", row.to_string(), "below the number of rows");
    }
    if let Some(class) = classes.iter().find(|class| class.index() >= n_classes) {
        return refuse("the number of a class", class.index().to_string(), "below the number of classes");
    }
    if let Some(weight) = weights.unwrap_or_default().iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
        return refuse("a weight", weight.to_string(), "finite and at least 0");
    }
    Ok(())
}

/// The logarithms of the class shares, or their difference for two classes.
fn start(class_weights: &[f64]) -> Result<Vec<f64>, Error> {
    let total: f64 = class_weights.iter().sum();
    if !(total.is_finite() && total > 0.0) {
        let value = total.to_string();
        return Err(Error::OutOfRange { name: "the sum of the weights", value, range: "finite and above 0" });
    }
    let smoothed = 1.0 + SHARE * class_weights.len() as f64;
    let logs: Vec<f64> = class_weights.iter().map(|weight| ((weight / total + SHARE) / smoothed).ln()).collect();
    Ok(if let [first, second] = logs[..] { vec![second - first] } else { logs })
}

/// Probabilities from scores, both as one list per class.
fn softmax(scores: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut max = scores[0].clone();
    for class in &scores[1..] {
        max.iter_mut().zip(class).for_each(|(max, score)| *max = max.max(*score));
    }
    let mut p: Vec<Vec<f64>> = scores
        .par_iter()
        .map(|class| class.iter().zip(&max).map(|(score, max)| (score - max).exp()).collect())
        .collect();
    let mut sum = vec![0.0; max.len()];
    for class in &p {
        sum.iter_mut().zip(class).for_each(|(sum, p)| *sum += p);
    }
    p.par_iter_mut().for_each(|class| class.iter_mut().zip(&sum).for_each(|(p, sum)| *p /= sum));
    p
}

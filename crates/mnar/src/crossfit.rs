//! Cross-fitting: every row is scored by a classifier that has not seen it.

use crate::error::Error;
use crate::labels::{Class, Labels};
use crate::linear::SoftmaxRegression;
use crate::posteriors::{PosteriorKind, Posteriors};
use ndarray::{Array2, ArrayView2, Axis};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Which fold each row belongs to.
///
/// Folds are drawn uniformly over *all* rows, without looking at the labels: stratifying by class would break the
/// exchangeability of r within a fold on which the permutation test rests.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldPlan {
    fold: Vec<u32>,
    n_folds: usize,
    /// How many plans were drawn and dropped because a class had all its labels in one fold.
    redrawn: usize,
}

impl FoldPlan {
    /// Folds of nearly equal size, by a seeded uniform draw.
    pub fn uniform(n: usize, n_folds: usize, seed: u64) -> Result<Self, Error> {
        if n_folds < 2 || n_folds > n {
            return Err(Error::OutOfRange {
                name: "the number of folds",
                value: n_folds.to_string(),
                range: "at least 2 and at most the number of rows",
            });
        }
        let mut fold: Vec<u32> = (0..n).map(|i| (i % n_folds) as u32).collect();
        fold.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        Ok(Self { fold, n_folds, redrawn: 0 })
    }

    /// As [`FoldPlan::uniform`], drawn again until no class has all its labels in one fold: a classifier that is
    /// scored on a class must have seen it. With ten labels a class that happens once in two million draws of five
    /// folds; the count is in [`FoldPlan::redrawn`].
    pub fn for_labels(labels: &Labels, n_folds: usize, seed: u64) -> Result<Self, Error> {
        if let Some(k) = labels.counts().iter().position(|&count| count < 2) {
            return Err(Error::TooFewLabels {
                class: labels.names()[k].clone(),
                found: labels.counts()[k],
                needed: 2,
                purpose: "cross-fitting",
            });
        }
        for redrawn in 0.. {
            // Plans of one seed must not be those of its neighbours.
            let plan = Self::uniform(labels.len(), n_folds, seed ^ (redrawn as u64) << 48)?;
            let mut first: Vec<Option<u32>> = vec![None; labels.n_classes()];
            let mut spread = vec![false; labels.n_classes()];
            for (i, class) in labels.labelled() {
                match first[class.index()] {
                    None => first[class.index()] = Some(plan.fold[i]),
                    Some(fold) => spread[class.index()] |= fold != plan.fold[i],
                }
            }
            if spread.iter().all(|spread| *spread) {
                return Ok(Self { redrawn, ..plan });
            }
        }
        unreachable!("two labels land in different folds with positive probability")
    }

    /// A plan made elsewhere: the fold of each row, numbered from 0.
    pub fn given(fold: Vec<u32>) -> Self {
        let n_folds = fold.iter().max().map_or(0, |max| *max as usize + 1);
        Self { fold, n_folds, redrawn: 0 }
    }

    /// All rows in one fold: the classifier was trained elsewhere and has seen none of them.
    pub fn single(n: usize) -> Self {
        Self { fold: vec![0; n], n_folds: 1, redrawn: 0 }
    }

    /// The fold of each row.
    pub fn folds(&self) -> &[u32] {
        &self.fold
    }

    /// Number of folds.
    pub fn n_folds(&self) -> usize {
        self.n_folds
    }

    /// Plans dropped because a class had all its labels in one fold.
    pub fn redrawn(&self) -> usize {
        self.redrawn
    }

    /// The rows of each fold.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.n_folds];
        for (i, &fold) in self.fold.iter().enumerate() {
            members[fold as usize].push(i);
        }
        members
    }
}

/// Labelled posteriors of every row, from softmax regressions that have not seen the row. `weights` counts the rows
/// of a bootstrap.
pub fn cross_fit(
    x: ArrayView2<'_, f64>,
    labels: &Labels,
    plan: &FoldPlan,
    regression: &SoftmaxRegression,
    weights: Option<&[f64]>,
) -> Result<Posteriors, Error> {
    if x.nrows() != labels.len() {
        return Err(Error::LengthMismatch { what: "the table of features", found: x.nrows(), expected: labels.len() });
    }
    let k = labels.n_classes();
    let scored = plan
        .members()
        .into_par_iter()
        .enumerate()
        .map(|(fold, members)| -> Result<(Vec<usize>, Array2<f64>), Error> {
            let (rows, y): (Vec<usize>, Vec<Class>) =
                labels.labelled().filter(|(i, _)| plan.fold[*i] as usize != fold).unzip();
            let row_weights: Option<Vec<f64>> = weights.map(|weights| rows.iter().map(|&i| weights[i]).collect());
            let fit = regression
                .fit(x.select(Axis(0), &rows).view(), &y, k, row_weights.as_deref())
                .map_err(|error| name_class(error, labels))?;
            let logits = fit.logits(x.select(Axis(0), &members).view());
            Ok((members, logits))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut logits = Array2::zeros((labels.len(), k));
    for (members, fold_logits) in scored {
        for (&i, row) in members.iter().zip(fold_logits.rows()) {
            logits.row_mut(i).assign(&row);
        }
    }
    Posteriors::from_logits(logits.view(), PosteriorKind::Labelled)
}

/// The regression knows classes by number only.
fn name_class(error: Error, labels: &Labels) -> Error {
    match error {
        Error::TooFewLabels { class, found, needed, .. } => {
            let name = class
                .strip_prefix("number ")
                .and_then(|number| number.parse::<usize>().ok())
                .map_or(class.clone(), |number| labels.names()[number - 1].clone());
            Error::TooFewLabels { class: name, found, needed, purpose: "the classifier of a fold" }
        }
        other => other,
    }
}

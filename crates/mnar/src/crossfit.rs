//! Cross-fitting: every row is scored by a classifier that has not seen it.

mod copies;

pub use copies::Copies;

use crate::classify::{Classifier, Fitted, Training};
use crate::error::Error;
use crate::labels::{Class, Labels};
use crate::posteriors::{PosteriorKind, Posteriors};
use crate::progress::Progress;
use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Which fold each row belongs to.
///
/// Folds are drawn uniformly over *all* rows, without looking at the labels: stratifying by class would break the
/// exchangeability of r within a fold on which the permutation test rests. Copies of a row may be kept in one fold, which
/// does not look at the labels either.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldPlan {
    fold: Vec<u32>,
    n_folds: usize,
    /// How many plans were drawn and dropped because a class had all its labels in one fold.
    redrawn: usize,
    /// Rows that are kept together.
    copies: Option<Arc<Copies>>,
}

impl FoldPlan {
    /// Labels of a class that cross-fitting needs: one to learn from while another one is scored.
    pub const FEWEST_LABELS: usize = 2;

    /// Folds of nearly equal size, by a seeded uniform draw.
    pub fn uniform(n: usize, n_folds: usize, seed: u64) -> Result<Self, Error> {
        if n_folds < 2 || n_folds > n {
            return Err(Error::OutOfRange {
                name: "the number of folds",
                value: n_folds.to_string(),
                range: "at least 2 and at most the number of rows",
            });
        }
        Ok(Self::drawn(n, n_folds, seed))
    }

    fn drawn(n: usize, n_folds: usize, seed: u64) -> Self {
        let mut fold: Vec<u32> = (0..n).map(|i| (i % n_folds) as u32).collect();
        fold.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        Self { fold, n_folds, redrawn: 0, copies: None }
    }

    /// Like [`FoldPlan::uniform`], drawn again until no class has all its labels in one fold: a classifier that is scored
    /// on a class must have seen it. With ten labels per class and five folds that happens once in two million draws; the
    /// count is in [`FoldPlan::redrawn`].
    pub fn for_labels(labels: &Labels, n_folds: usize, seed: u64) -> Result<Self, Error> {
        Self::keeping_together(None, labels, n_folds, seed)
    }

    /// Like [`FoldPlan::for_labels`], with copies of a row in one fold: a classifier that learnt from one of them would know the
    /// label of the others, and labelled rows would look easier than unlabelled ones. See [`Copies::among`] for what counts as a
    /// copy.
    pub fn for_rows<T: Copy + Into<f64>>(
        x: ArrayView2<'_, T>,
        labels: &Labels,
        n_folds: usize,
        seed: u64,
    ) -> Result<Self, Error> {
        let copies = Copies::among(x).filter(|copies| copies.leave_a_choice(labels, n_folds));
        Self::keeping_together(copies.map(Arc::new), labels, n_folds, seed)
    }

    /// Another draw of the same kind, for other labels of the same rows.
    pub(crate) fn drawn_again(&self, labels: &Labels, seed: u64) -> Result<Self, Error> {
        let copies = self.copies.clone().filter(|copies| copies.leave_a_choice(labels, self.n_folds));
        Self::keeping_together(copies, labels, self.n_folds, seed)
    }

    fn keeping_together(
        copies: Option<Arc<Copies>>,
        labels: &Labels,
        n_folds: usize,
        seed: u64,
    ) -> Result<Self, Error> {
        if let Some(k) = labels.counts().iter().position(|&count| count < Self::FEWEST_LABELS) {
            return Err(Error::TooFewLabels {
                class: labels.names()[k].clone(),
                found: labels.counts()[k],
                needed: Self::FEWEST_LABELS,
                purpose: "cross-fitting",
            });
        }
        for redrawn in 0.. {
            // Plans of one seed must not be those of its neighbours.
            let seed = seed ^ (redrawn as u64) << 48;
            let plan = match &copies {
                None => Self::uniform(labels.len(), n_folds, seed)?,
                Some(copies) => copies.plan(n_folds, seed),
            };
            let mut first: Vec<Option<u32>> = vec![None; labels.n_classes()];
            let mut spread = vec![false; labels.n_classes()];
            for (i, class) in labels.labelled() {
                match first[class.index()] {
                    None => first[class.index()] = Some(plan.fold[i]),
                    Some(fold) => spread[class.index()] |= fold != plan.fold[i],
                }
            }
            if spread.iter().all(|spread| *spread) {
                return Ok(Self { redrawn, copies, ..plan });
            }
        }
        unreachable!("two labels land in different folds with positive probability")
    }

    /// A plan made elsewhere: the fold of each row, numbered from 0.
    pub fn given(fold: Vec<u32>) -> Self {
        let n_folds = fold.iter().max().map_or(0, |max| *max as usize + 1);
        Self { fold, n_folds, redrawn: 0, copies: None }
    }

    /// All rows in one fold: the classifier was trained elsewhere and has seen none of them.
    pub fn single(n: usize) -> Self {
        Self { fold: vec![0; n], n_folds: 1, redrawn: 0, copies: None }
    }

    /// The fold of each row.
    pub fn folds(&self) -> &[u32] {
        &self.fold
    }

    /// The number of folds.
    pub fn n_folds(&self) -> usize {
        self.n_folds
    }

    /// How many plans were dropped because a class had all its labels in one fold.
    pub fn redrawn(&self) -> usize {
        self.redrawn
    }

    /// How many rows are copies of an earlier row, and kept in its fold.
    pub fn copies(&self) -> usize {
        self.copies.as_ref().map_or(0, |copies| copies.group.len() - copies.groups)
    }

    /// How many different rows there are, copies counting as one.
    pub(crate) fn n_different(&self) -> usize {
        self.fold.len() - self.copies()
    }

    /// The weight of every row from those of different rows: copies have the same.
    pub(crate) fn weights_of_rows<'a>(&self, different: &'a [f64]) -> Cow<'a, [f64]> {
        match &self.copies {
            None => Cow::Borrowed(different),
            Some(copies) => copies.group.iter().map(|&group| different[group as usize]).collect(),
        }
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

/// A classifier and the inputs it is cross-fitted on.
pub struct CrossFit<'a, X: ?Sized> {
    /// The classifier.
    pub classifier: &'a dyn Classifier<X>,
    /// The inputs of all rows.
    pub x: &'a X,
    /// Seed of the first fold's classifier; every further fold adds one.
    pub seed: u64,
}

/// What cross-fitting gives.
pub struct CrossFitted<X: ?Sized> {
    /// p(y | x, labelled) of every row, by the one classifier that was not trained on the fold of the row. Labelled and
    /// unlabelled rows are treated alike, as estimators and tests need.
    pub posteriors: Posteriors,
    /// The classifier of each fold.
    pub models: Vec<Box<dyn Fitted<X>>>,
}

impl<X: Sync + ?Sized> CrossFit<'_, X> {
    /// Trains one classifier per fold on the labelled rows of the other folds and scores the rows of the fold with it.
    /// `weights` says how often each row counts in training, as a bootstrap needs.
    pub fn run(
        &self,
        labels: &Labels,
        plan: &FoldPlan,
        weights: Option<&[f64]>,
        progress: &dyn Progress,
    ) -> Result<CrossFitted<X>, Error> {
        let fit = |(fold, members): (usize, Vec<usize>)| -> Result<_, Error> {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let (rows, classes): (Vec<usize>, Vec<Class>) =
                labels.labelled().filter(|(i, _)| plan.fold[*i] as usize != fold).unzip();
            let row_weights: Option<Vec<f64>> = weights.map(|weights| rows.iter().map(|&i| weights[i]).collect());
            let training = Training {
                rows: &rows,
                classes: &classes,
                n_classes: labels.n_classes(),
                weights: row_weights.as_deref(),
            };
            let seed = self.seed.wrapping_add(fold as u64);
            let model = self.classifier.fit(self.x, &training, seed, progress).map_err(|error| match error {
                // The classifier knows classes by number only.
                Error::ClassNotTrained { class } => Error::TooFewLabels {
                    class: labels.name(class).to_owned(),
                    found: 0,
                    needed: 1,
                    purpose: "the classifier of a fold",
                },
                other => other,
            })?;
            let logits = model.logits(self.x, &members)?;
            Ok((members, logits, model))
        };
        let members = plan.members();
        let scored: Vec<_> = if self.classifier.parallel() {
            members.into_par_iter().enumerate().map(fit).collect::<Result<_, _>>()?
        } else {
            members.into_iter().enumerate().map(fit).collect::<Result<_, _>>()?
        };
        let mut logits = Array2::zeros((labels.len(), labels.n_classes()));
        let mut models = Vec::with_capacity(scored.len());
        for (members, fold_logits, model) in scored {
            for (&i, row) in members.iter().zip(fold_logits.rows()) {
                logits.row_mut(i).assign(&row);
            }
            models.push(model);
        }
        Ok(CrossFitted { posteriors: Posteriors::from_logits(logits.view(), PosteriorKind::Labelled)?, models })
    }
}

//! Gradient-boosted trees: the model for tables whose classes are not separated by straight lines, with missing values and
//! categories as they are.
//!
//! Every round adds one tree per class (one tree in all for two classes) that takes a Newton step on the log-loss. Columns
//! are cut into at most 255 bins (`bins.rs`), so that finding a split means adding up gradients per bin (`histogram.rs`) and
//! scanning the bins (`split.rs`). Trees grow leaf by leaf, the most useful split first (`grow.rs`); `boost.rs` runs the rounds
//! and `tune.rs` chooses their number by held-out log-loss.
//!
//! Work is shared among threads by class or by column, never by row, so sums are always taken in the same order: the result
//! is the same to the last bit on any number of threads.

mod bins;
mod boost;
mod grow;
mod histogram;
mod model;
mod split;
#[cfg(test)]
mod tests;
mod tune;

pub use model::FittedTrees;
pub(super) use model::check_table;
pub use tune::Tuned;

use super::{Classifier, Fitted, Training};
use crate::error::Error;
use crate::progress::Progress;
use boost::{Booster, check_training};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Settings of gradient-boosted trees. [`BoostedTrees::for_rows`] chooses them by the number of training rows.
///
/// The table has one row per example. NaN is a missing value: every split sends missing values to the side where they fit
/// better. Only the order of numbers matters, so columns need not be scaled, and an infinity counts as the largest number.
///
/// # Weights
///
/// A weight counts rows: a row of weight 2 is two equal rows, and rows of weight 0 are ignored. Weights are not normalised,
/// so multiplying all of them by a constant is to claim that many times as many rows. The trees then trust the data more,
/// because [`min_weight`](Self::min_weight), [`min_hessian`](Self::min_hessian), [`l2`](Self::l2) and the two settings for
/// categories are in units of rows. With weights that sum to less than twice `min_weight` nothing is split, and every row
/// gets the class shares.
///
/// ```
/// use mnar::classify::{BoostedTrees, Training};
/// use mnar::Class;
/// use ndarray::Array2;
///
/// // Class 1 lies between 20 and 40, which no straight line can say.
/// let x = Array2::from_shape_fn((60, 1), |(i, _)| i as f64);
/// let classes: Vec<Class> = (0..60).map(|i| Class::from((20..40).contains(&i) as usize)).collect();
/// let rows: Vec<usize> = (0..60).collect();
/// let training = Training { rows: &rows, classes: &classes, n_classes: 2, weights: None };
/// let trees = BoostedTrees::for_rows(60).train(&x, &training, 0, &())?;
/// let p = mnar::classify::Fitted::predict_proba(&trees, &x, &[5, 30])?;
/// assert!(p[[0, 1]] < 0.05 && p[[1, 1]] > 0.95);
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoostedTrees {
    /// The number of rounds. Too many overfit: on a noisy table of 300 rows the log-loss was 1.22 after 30 rounds and 1.54
    /// after 100. [`BoostedTrees::tuned`] chooses the number on held-out rows.
    pub rounds: usize,
    /// The part of each Newton step that is taken, above 0 and at most 1.
    pub learning_rate: f64,
    /// The largest number of leaves of a tree, at least 2.
    pub leaves: usize,
    /// The largest number of splits between the root and a leaf, at least 1.
    pub max_depth: usize,
    /// The smallest total weight of the rows in a leaf.
    pub min_weight: f64,
    /// The smallest sum of second derivatives in a leaf: rows that are certain already do not justify a split.
    pub min_hessian: f64,
    /// Ridge penalty on the values of the leaves.
    pub l2: f64,
    /// Further penalty in the search for a split between sets of categories, of which there are many to choose from.
    pub category_l2: f64,
    /// Rows without any preference that are added to each category when categories are sorted.
    pub category_smoothing: f64,
    /// The part of the columns that is tried at each node, above 0 and at most 1. They are drawn for every node anew.
    pub columns_per_node: f64,
    /// The largest number of bins of a numeric column besides the one for missing values, from 2 to 255. For 300 and 1,000 rows
    /// 63 bins were as good as 255, and faster.
    pub max_bins: usize,
    /// Positions of the columns that hold categories, as whole numbers from 0. At prediction a category that was not in
    /// training counts as missing, and so do all but the 255 most frequent ones.
    pub categorical: Vec<usize>,
}

impl Default for BoostedTrees {
    /// The settings for tables of up to [`SMALL`](Self::SMALL) rows.
    fn default() -> Self {
        Self {
            rounds: 150,
            learning_rate: 0.05,
            leaves: 8,
            max_depth: 8,
            min_weight: 5.0,
            min_hessian: 1e-3,
            l2: 1.0,
            category_l2: 5.0,
            category_smoothing: 5.0,
            columns_per_node: 0.3,
            max_bins: 63,
            categorical: Vec::new(),
        }
    }
}

impl BoostedTrees {
    /// What results call boosted trees.
    pub const NAME: &'static str = "boosted trees";

    /// Up to this many training rows the settings for small tables are better.
    pub const SMALL: usize = 2000;

    /// Settings for a number of training rows: small steps and small trees for few rows, larger ones for more.
    pub fn for_rows(n: usize) -> Self {
        if n <= Self::SMALL {
            return Self::default();
        }
        Self {
            rounds: 100,
            learning_rate: 0.1,
            leaves: 16,
            min_weight: 3.0,
            columns_per_node: 0.5,
            max_bins: 255,
            ..Self::default()
        }
    }

    /// Trains on some rows of `x`. [`Classifier::fit`] is the same behind a trait.
    pub fn train(
        &self,
        x: &Array2<f64>,
        training: &Training<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<FittedTrees, Error> {
        check_training(x, training)?;
        let mut booster = Booster::new(self, x, training, seed)?;
        let mut rounds = Vec::with_capacity(self.rounds);
        for _ in 0..self.rounds {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            rounds.push(booster.round());
        }
        Ok(booster.into_model(rounds))
    }

    /// Refuses settings outside their range. `columns` is the number of columns of the table.
    fn check(&self, columns: usize) -> Result<(), Error> {
        let refuse = |name, value: String, range| Err(Error::OutOfRange { name, value, range });
        for (name, value) in [("learning_rate", self.learning_rate), ("columns_per_node", self.columns_per_node)] {
            if !(value > 0.0 && value <= 1.0) {
                return refuse(name, value.to_string(), "above 0 and at most 1");
            }
        }
        for (name, value) in [
            ("min_weight", self.min_weight),
            ("min_hessian", self.min_hessian),
            ("l2", self.l2),
            ("category_l2", self.category_l2),
            ("category_smoothing", self.category_smoothing),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(name, value.to_string(), "finite and at least 0");
            }
        }
        if self.leaves < 2 {
            return refuse("leaves", self.leaves.to_string(), "at least 2");
        }
        if self.max_depth < 1 {
            return refuse("max_depth", self.max_depth.to_string(), "at least 1");
        }
        if !(2..=bins::MAX_BINS).contains(&self.max_bins) {
            return refuse("max_bins", self.max_bins.to_string(), "from 2 to 255");
        }
        if let Some(position) = self.categorical.iter().find(|&&position| position >= columns) {
            return refuse("a position in categorical", position.to_string(), "below the number of columns");
        }
        Ok(())
    }
}

impl Classifier<Array2<f64>> for BoostedTrees {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn fit(
        &self,
        x: &Array2<f64>,
        training: &Training<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Fitted<Array2<f64>>>, Error> {
        Ok(Box::new(self.train(x, training, seed, progress)?))
    }

    fn refits_suffice(&self) -> bool {
        false
    }

    /// Every node of a tree looks at all bins, and every level adds up all rows: 0.2 s for 300 rows of 10 columns and 11 classes,
    /// which is mostly bins, and 0.6 s for 5,000 rows of 36 columns and 6 classes, which is mostly rows.
    fn seconds(&self, rows: usize, columns: usize, classes: usize) -> f64 {
        let trees = self.rounds * if classes == 2 { 1 } else { classes };
        let bins = 2 * self.leaves * self.max_bins.min(rows);
        let sums = (self.leaves as f64).log2() * rows as f64;
        (trees * columns) as f64 * (SECONDS_PER_BIN * bins as f64 + SECONDS_PER_VALUE * sums)
    }
}

/// Seconds that one bin of a column takes at one node of a tree.
const SECONDS_PER_BIN: f64 = 2.5e-9;
/// Seconds that one value of a column takes at one level of a tree.
const SECONDS_PER_VALUE: f64 = 1.3e-9;

/// A hash of 64 bits (SplitMix64): what is drawn for a node depends on its place only, not on the order of the work.
fn hash(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

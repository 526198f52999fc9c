//! Extremely randomised trees (Geurts, Ernst and Wehenkel, 2006): many deep trees with thresholds drawn at random, whose votes are
//! averaged. With a few hundred labels they are hard to beat: on the vowel table with 190 labels of 11 classes they got 70% of new
//! rows right, a random forest 65%, boosted trees 58%.

use super::trees::check_table;
use super::{Classifier, Fitted, Training};
use crate::error::Error;
use crate::progress::Progress;
use ndarray::{Array2, ArrayView1};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Settings of extremely randomised trees.
///
/// At every node as many columns are drawn as the square root of their number, a threshold between the smallest and the largest
/// value is drawn for each, and the split that leaves the purest sides is taken, until all rows of a node are of one class or
/// alike. Values must be finite: gaps are filled and categories spread over columns before, as for softmax regression.
///
/// ```
/// use mnar::classify::{Fitted as _, RandomisedTrees, Training};
/// use mnar::Class;
/// use ndarray::Array2;
///
/// // Class 1 lies between 20 and 40, which no straight line can say.
/// let x = Array2::from_shape_fn((60, 1), |(i, _)| i as f64);
/// let classes: Vec<Class> = (0..60).map(|i| Class::from((20..40).contains(&i) as usize)).collect();
/// let rows: Vec<usize> = (0..60).collect();
/// let training = Training { rows: &rows, classes: &classes, n_classes: 2, weights: None };
/// let trees = RandomisedTrees::default().train(&x, &training, 0, &())?;
/// let p = trees.predict_proba(&x, &[5, 30])?;
/// assert!(p[[0, 1]] < 0.05 && p[[1, 1]] > 0.95);
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomisedTrees {
    /// The number of trees.
    pub trees: usize,
}

impl Default for RandomisedTrees {
    fn default() -> Self {
        Self { trees: 200 }
    }
}

impl RandomisedTrees {
    /// What results call them.
    pub const NAME: &'static str = "randomised trees";

    /// Trains on some rows of `x`. [`Classifier::fit`] is the same behind a trait.
    pub fn train(
        &self,
        x: &Array2<f64>,
        training: &Training<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<FittedRandomised, Error> {
        if self.trees == 0 {
            return Err(Error::OutOfRange { name: "trees", value: "0".to_owned(), range: "at least 1" });
        }
        let sample = Sample::new(x, training)?;
        let shares = sample.shares();
        let grown = (0..self.trees as u64).into_par_iter().map(|tree| {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(tree);
            Ok(sample.grow(rng))
        });
        let trees = grown.collect::<Result<Vec<_>, _>>()?;
        Ok(FittedRandomised { n_columns: x.ncols(), shares, trees })
    }
}

/// The rows that trees are grown from.
struct Sample {
    /// Column by column.
    columns: Vec<Vec<f64>>,
    classes: Vec<u32>,
    weights: Vec<f64>,
    n_classes: usize,
}

impl Sample {
    fn new(x: &Array2<f64>, training: &Training<'_>) -> Result<Self, Error> {
        let Training { rows, classes, n_classes, weights } = *training;
        if classes.len() != rows.len() {
            return Err(Error::LengthMismatch {
                what: "the list of classes",
                found: classes.len(),
                expected: rows.len(),
            });
        }
        if let Some(weights) = weights
            && (weights.len() != rows.len() || weights.iter().any(|weight| !(weight.is_finite() && *weight >= 0.0)))
        {
            return Err(Error::Settings("weights are as many as the rows, finite and not negative"));
        }
        let weight = |t: usize| weights.map_or(1.0, |weights| weights[t]);
        let counted: Vec<usize> = (0..rows.len()).filter(|&t| weight(t) > 0.0).collect();
        if counted.is_empty() {
            return Err(Error::NoRows);
        }
        if let Some(class) = counted.iter().map(|&t| classes[t].index()).find(|class| *class >= n_classes) {
            let value = class.to_string();
            return Err(Error::OutOfRange { name: "a class", value, range: "below the number of classes" });
        }
        check_table(x, rows, x.ncols())?;
        let columns: Vec<Vec<f64>> =
            x.columns().into_iter().map(|column| counted.iter().map(|&t| column[rows[t]]).collect()).collect();
        if columns.iter().flatten().any(|value| !value.is_finite()) {
            return Err(Error::Settings("randomised trees need finite values: fill gaps before"));
        }
        Ok(Self {
            columns,
            classes: counted.iter().map(|&t| classes[t].0).collect(),
            weights: counted.iter().map(|&t| weight(t)).collect(),
            n_classes,
        })
    }

    /// The weight of each class among some rows.
    fn counts(&self, rows: &[u32]) -> Vec<f64> {
        let mut counts = vec![0.0; self.n_classes];
        rows.iter().for_each(|&t| counts[self.classes[t as usize] as usize] += self.weights[t as usize]);
        counts
    }

    fn shares(&self) -> Vec<f64> {
        normalised(self.counts(&(0..self.classes.len() as u32).collect::<Vec<_>>()))
    }

    fn grow(&self, mut rng: ChaCha8Rng) -> Tree {
        let mut tree = Tree::default();
        let mut rows: Vec<u32> = (0..self.classes.len() as u32).collect();
        // Parts of the list of rows, each with the split whose right side it is.
        let mut open = vec![(0, rows.len(), None)];
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        while let Some((from, to, right_of)) = open.pop() {
            if let Some(parent) = right_of {
                let here = tree.column.len() as u32;
                let parent: usize = parent;
                tree.right[parent] = here;
            }
            let part = &mut rows[from..to];
            let counts = self.counts(part);
            let pure = counts.iter().filter(|count| **count > 0.0).count() <= 1;
            match if pure { None } else { self.split(part, &mut order, &mut rng) } {
                None => tree.leaf(&counts),
                Some((column, at)) => {
                    let values = &self.columns[column];
                    let middle = from + partition(part, |t| values[t as usize] <= at);
                    let node = tree.split(column, at);
                    // The left side comes next.
                    open.push((middle, to, Some(node)));
                    open.push((from, middle, None));
                }
            }
        }
        tree
    }

    /// The best of a few random splits; `None` if all rows are alike.
    fn split(&self, rows: &[u32], order: &mut [usize], rng: &mut ChaCha8Rng) -> Option<(usize, f64)> {
        let wanted = ((order.len() as f64).sqrt().round() as usize).max(1);
        let (mut tried, mut best): (usize, Option<(f64, usize, f64)>) = (0, None);
        let mut left = vec![0.0; self.n_classes];
        let all = self.counts(rows);
        order.shuffle(rng);
        for &column in order.iter() {
            if tried == wanted {
                break;
            }
            let values = &self.columns[column];
            let (low, high) = rows.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &t| {
                let value = values[t as usize];
                (low.min(value), high.max(value))
            });
            // A column that does not vary here does not count as tried.
            if low >= high {
                continue;
            }
            tried += 1;
            let drawn = low + rng.random::<f64>() * (high - low);
            // Rounding must not send all rows to the left.
            let at = if drawn < high { drawn } else { low };
            left.fill(0.0);
            for &t in rows.iter().filter(|&&t| values[t as usize] <= at) {
                left[self.classes[t as usize] as usize] += self.weights[t as usize];
            }
            let purity = |counts: &dyn Fn(usize) -> f64| {
                let total: f64 = (0..self.n_classes).map(counts).sum();
                (0..self.n_classes).map(|k| counts(k).powi(2)).sum::<f64>() / total
            };
            let score = purity(&|k| left[k]) + purity(&|k| (all[k] - left[k]).max(0.0));
            if best.is_none_or(|(most, ..)| score > most) {
                best = Some((score, column, at));
            }
        }
        best.map(|(_, column, at)| (column, at))
    }
}

/// Puts those that satisfy the condition first, and returns how many they are. The order within the sides follows from the order
/// before, so it is the same on every machine.
fn partition(rows: &mut [u32], first: impl Fn(u32) -> bool) -> usize {
    let (left, right): (Vec<u32>, Vec<u32>) = rows.iter().partition(|&&t| first(t));
    rows[..left.len()].copy_from_slice(&left);
    rows[left.len()..].copy_from_slice(&right);
    left.len()
}

fn normalised(counts: Vec<f64>) -> Vec<f64> {
    let total: f64 = counts.iter().sum();
    counts.into_iter().map(|count| count / total).collect()
}

/// Column of a leaf whose rows are all of the class in `right`.
const PURE: i32 = -1;
/// Column of a leaf whose class shares are in `mixed`, at the position in `right`.
const MIXED: i32 = -2;

/// A tree, node by node: the left child of a split comes right after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    /// The column that a split asks about; negative for a leaf.
    column: Vec<i32>,
    /// Values up to this go to the left; 0 for a leaf.
    at: Vec<f64>,
    /// The right child of a split.
    right: Vec<u32>,
    /// Class shares of leaves that hold several classes.
    mixed: Vec<Vec<f64>>,
}

impl Tree {
    fn leaf(&mut self, counts: &[f64]) {
        let mut present = (0..counts.len()).filter(|&k| counts[k] > 0.0);
        let first = present.next().unwrap_or(0);
        self.at.push(0.0);
        if present.next().is_none() {
            self.column.push(PURE);
            self.right.push(first as u32);
        } else {
            self.column.push(MIXED);
            self.right.push(self.mixed.len() as u32);
            self.mixed.push(normalised(counts.to_vec()));
        }
    }

    fn split(&mut self, column: usize, at: f64) -> usize {
        self.column.push(column as i32);
        self.at.push(at);
        self.right.push(0);
        self.column.len() - 1
    }

    /// Adds the class shares of the leaf of a row.
    fn add(&self, row: ArrayView1<'_, f64>, to: &mut [f64]) {
        let mut node = 0;
        loop {
            match self.column[node] {
                PURE => return to[self.right[node] as usize] += 1.0,
                MIXED => {
                    let shares = &self.mixed[self.right[node] as usize];
                    return to.iter_mut().zip(shares).for_each(|(to, share)| *to += share);
                }
                column => {
                    let left = row[column as usize] <= self.at[node];
                    node = if left { node + 1 } else { self.right[node] as usize };
                }
            }
        }
    }

    /// Refuses a tree that would lead outside the tree or the table, or round in circles.
    fn check(&self, n_columns: usize, n_classes: usize) -> Result<(), &'static str> {
        let nodes = self.column.len();
        if nodes == 0 || self.at.len() != nodes || self.right.len() != nodes {
            return Err("a tree is not complete");
        }
        for (node, (&column, &right)) in self.column.iter().zip(&self.right).enumerate() {
            let right = right as usize;
            let sound = match column {
                PURE => right < n_classes,
                MIXED => right < self.mixed.len(),
                _ => {
                    usize::try_from(column).is_ok_and(|column| column < n_columns)
                        && self.at[node].is_finite()
                        && node + 1 < nodes
                        && (node + 1..nodes).contains(&right)
                }
            };
            if !sound {
                return Err("a node leads nowhere");
            }
        }
        match self.mixed.iter().all(|shares| shares.len() == n_classes && is_shares(shares)) {
            true => Ok(()),
            false => Err("the shares of a leaf make no sense"),
        }
    }
}

fn is_shares(shares: &[f64]) -> bool {
    shares.iter().all(|share| (0.0..=1.0).contains(share)) && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6
}

/// Trained trees. They can be saved with serde; what is read is checked, so that a broken file is an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct FittedRandomised {
    n_columns: usize,
    /// The class shares of the training rows, which count as one more tree: no class has probability 0.
    shares: Vec<f64>,
    trees: Vec<Tree>,
}

impl FittedRandomised {
    /// The number of classes.
    pub fn n_classes(&self) -> usize {
        self.shares.len()
    }

    /// The number of columns of the table.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }
}

/// A class without rows has this probability, so that its logarithm is finite.
const FLOOR: f64 = 1e-12;

impl Fitted<Array2<f64>> for FittedRandomised {
    fn logits(&self, x: &Array2<f64>, rows: &[usize]) -> Result<Array2<f64>, Error> {
        check_table(x, rows, self.n_columns)?;
        let votes = |&row: &usize| {
            let mut votes = self.shares.clone();
            self.trees.iter().for_each(|tree| tree.add(x.row(row), &mut votes));
            votes
        };
        let votes: Vec<f64> = rows.par_iter().flat_map_iter(votes).collect();
        let total = self.trees.len() as f64 + 1.0;
        let logits = votes.into_iter().map(|votes| (votes / total).max(FLOOR).ln()).collect();
        Ok(Array2::from_shape_vec((rows.len(), self.n_classes()), logits).expect("one line per row"))
    }
}

impl Classifier<Array2<f64>> for RandomisedTrees {
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

    /// Every level of a tree looks at some columns of all rows.
    fn seconds(&self, rows: usize, columns: usize, classes: usize) -> f64 {
        let levels = 2.0 * (rows.max(2) as f64).log2();
        let tried = (columns as f64).sqrt();
        self.trees as f64 * rows as f64 * (levels * tried * SECONDS_PER_VALUE + SECONDS_PER_CLASS * classes as f64)
    }
}

const SECONDS_PER_VALUE: f64 = 8e-9;
const SECONDS_PER_CLASS: f64 = 1e-8;

/// Trees as they are in a file, not yet checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    n_columns: usize,
    shares: Vec<f64>,
    trees: Vec<Tree>,
}

impl TryFrom<Saved> for FittedRandomised {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self, Error> {
        let Saved { n_columns, shares, trees } = saved;
        let broken = |why| Error::BrokenModel { what: "randomised trees", why };
        if shares.len() < 2 || !is_shares(&shares) || trees.is_empty() {
            return Err(broken("the class shares make no sense, or there are no trees"));
        }
        trees.iter().try_for_each(|tree| tree.check(n_columns, shares.len())).map_err(broken)?;
        Ok(Self { n_columns, shares, trees })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Class;

    /// Rows in a square of which the middle is class 1, and a column of noise.
    fn square(n: usize, seed: u64) -> (Array2<f64>, Vec<Class>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let x = Array2::from_shape_fn((n, 3), |_| rng.random::<f64>() * 2.0 - 1.0);
        let classes =
            x.rows().into_iter().map(|row| Class::from(usize::from(row[0].abs() < 0.5 && row[1].abs() < 0.5)));
        let classes = classes.collect();
        (x, classes)
    }

    fn accuracy(fitted: &FittedRandomised, x: &Array2<f64>, classes: &[Class]) -> f64 {
        let rows: Vec<usize> = (0..x.nrows()).collect();
        let p = fitted.predict_proba(x, &rows).unwrap();
        let right = classes.iter().enumerate().filter(|(i, class)| (p[[*i, 1]] > 0.5) == (class.0 == 1)).count();
        right as f64 / classes.len() as f64
    }

    #[test]
    fn a_square_is_learnt_and_the_seed_decides() {
        let (x, classes) = square(400, 1);
        let rows: Vec<usize> = (0..400).collect();
        let training = Training { rows: &rows, classes: &classes, n_classes: 2, weights: None };
        let train = |seed| RandomisedTrees::default().train(&x, &training, seed, &()).unwrap();
        let fitted = train(3);
        // Every tree knows its own rows by heart.
        assert_eq!(accuracy(&fitted, &x, &classes), 1.0);
        let (new, truth) = square(1000, 2);
        assert!(accuracy(&fitted, &new, &truth) > 0.9);
        assert_eq!(train(3), fitted);
        assert_ne!(train(4), fitted);
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| train(3));
        assert_eq!(alone, fitted);
    }

    #[test]
    fn weights_count_rows() {
        let (x, classes) = square(60, 5);
        let rows: Vec<usize> = (0..60).collect();
        // A row of weight 0 is not there, whatever it holds.
        let mut wild = x.clone();
        wild.row_mut(7).fill(f64::MAX);
        let weights: Vec<f64> = (0..60).map(|i| if i == 7 { 0.0 } else { 1.0 }).collect();
        let with = Training { rows: &rows, classes: &classes, n_classes: 2, weights: Some(&weights) };
        let others: Vec<usize> = rows.iter().copied().filter(|&i| i != 7).collect();
        let their: Vec<Class> = others.iter().map(|&i| classes[i]).collect();
        let without = Training { rows: &others, classes: &their, n_classes: 2, weights: None };
        let settings = RandomisedTrees { trees: 20 };
        assert_eq!(settings.train(&wild, &with, 1, &()).unwrap(), settings.train(&x, &without, 1, &()).unwrap());
        // Equal rows cannot be told apart: their leaf holds the shares of their weights.
        let same = Array2::zeros((4, 2));
        let classes: Vec<Class> = [0, 0, 1, 1].map(Class).to_vec();
        let weights = [1.0, 2.0, 1.0, 0.0];
        let training = Training { rows: &[0, 1, 2, 3], classes: &classes, n_classes: 2, weights: Some(&weights) };
        let fitted = settings.train(&same, &training, 0, &()).unwrap();
        let p = fitted.predict_proba(&same, &[0]).unwrap();
        assert!((p[[0, 0]] - 0.75).abs() < 1e-12, "{p}");
    }

    #[test]
    fn what_is_saved_is_checked_when_it_is_read() {
        let (x, classes) = square(80, 6);
        let rows: Vec<usize> = (0..80).collect();
        let training = Training { rows: &rows, classes: &classes, n_classes: 3, weights: None };
        let fitted = RandomisedTrees { trees: 5 }.train(&x, &training, 0, &()).unwrap();
        let saved = serde_json::to_value(&fitted).unwrap();
        let again: FittedRandomised = serde_json::from_value(saved.clone()).unwrap();
        assert_eq!(again.predict_proba(&x, &rows).unwrap(), fitted.predict_proba(&x, &rows).unwrap());
        let spoilt = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut saved = saved.clone();
            change(&mut saved);
            serde_json::from_value::<FittedRandomised>(saved).is_err()
        };
        assert!(spoilt(&|saved| saved["trees"][0]["column"][0] = 3.into()));
        assert!(spoilt(&|saved| saved["trees"][0]["column"][0] = (-3).into()));
        assert!(spoilt(&|saved| saved["trees"][0]["right"][0] = 0.into()));
        assert!(spoilt(&|saved| saved["trees"][0]["right"][0] = 100_000.into()));
        assert!(spoilt(&|saved| saved["trees"][0]["at"] = serde_json::json!([])));
        assert!(spoilt(&|saved| saved["shares"] = serde_json::json!([0.5, 0.9])));
        assert!(spoilt(&|saved| saved["trees"] = serde_json::json!([])));
    }

    #[test]
    fn what_cannot_be_learnt_from_is_refused() {
        let (mut x, classes) = square(10, 7);
        let rows: Vec<usize> = (0..10).collect();
        let settings = RandomisedTrees::default();
        let refused = |x: &Array2<f64>, rows: &[usize], weights: Option<&[f64]>| {
            let training = Training { rows, classes: &classes, n_classes: 2, weights };
            settings.train(x, &training, 0, &()).is_err()
        };
        assert!(!refused(&x, &rows, None));
        assert!(refused(&x, &rows, Some(&[0.0; 10])));
        assert!(refused(&x, &rows, Some(&[-1.0; 10])));
        assert!(refused(&x, &rows[..9], None));
        assert!(refused(&x, &[99; 10], None));
        x[[2, 1]] = f64::NAN;
        assert!(refused(&x, &rows, None));
    }
}

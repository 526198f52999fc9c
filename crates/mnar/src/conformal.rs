//! Prediction sets with a guarantee: sets of classes that contain the true class with a chosen probability.
//!
//! A new row is compared with labelled rows of the same class that the classifier had not seen when it scored them. Under
//! self-masking p(x | y) is the same for labelled, unlabelled and new rows, so the rank of a new row's score among those of
//! its class is uniform, whatever phi is: a set that leaves out a class only if the score ranks in its lowest tenth contains the
//! true class in at least 90% of the rows of every class. Where labelling depends on columns too, labelled rows count with
//! their weights 1/phi(y, z), which makes them stand for all rows of the class.

use crate::error::Error;
use crate::labels::{Class, Labels};
use crate::phi::Phi;
use crate::posteriors::Posteriors;
use serde::{Deserialize, Serialize};

/// What a set of classes promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum SetKind {
    /// The true class is in the set with this probability for every class
    #[default]
    PerClass,
    /// The true class is in the set with this probability on average over the population: smaller sets, which may miss a rare
    /// class more often
    Marginal,
}

/// Scores of labelled rows, against which new rows are ranked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<(f64, f64)>>", into = "Vec<Vec<(f64, f64)>>")]
pub struct Conformal {
    of_class: Vec<Ranked>,
    of_all: Ranked,
}

/// Scores in ascending order, with the weight of each and of all before it.
#[derive(Clone, Debug, PartialEq)]
struct Ranked {
    scores: Vec<f64>,
    weights: Vec<f64>,
    /// The sum of the weights up to each score, from 0.
    sums: Vec<f64>,
}

impl Ranked {
    fn new(mut scored: Vec<(f64, f64)>) -> Self {
        scored.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sums = vec![0.0];
        for (i, (_, weight)) in scored.iter().enumerate() {
            sums.push(sums[i] + weight);
        }
        let (scores, weights) = scored.into_iter().unzip();
        Self { scores, weights, sums }
    }

    /// How extreme a score of this weight is among them: the weight of scores that are no higher, its own included.
    fn p_value(&self, score: f64, weight: f64) -> f64 {
        let below = self.scores.partition_point(|&other| other <= score);
        (self.sums[below] + weight) / (self.sums[self.scores.len()] + weight)
    }
}

impl Conformal {
    /// From p(y | x) of labelled rows, by classifiers that have not seen them. `phi` is the mechanism of a row.
    pub fn new<'a>(posteriors: &Posteriors, labels: &Labels, phi: impl Fn(usize) -> &'a Phi) -> Result<Self, Error> {
        if posteriors.len() != labels.len() {
            let (found, expected) = (posteriors.len(), labels.len());
            return Err(Error::LengthMismatch { what: "the table of probabilities", found, expected });
        }
        let mut scored = vec![Vec::new(); labels.n_classes()];
        for (row, class) in labels.labelled() {
            let k = class.index();
            scored[k].push((posteriors.column(k)[row], 1.0 / phi(row)[k]));
        }
        Self::try_from(scored)
    }

    /// K, the number of classes.
    pub fn n_classes(&self) -> usize {
        self.of_class.len()
    }

    /// Whether each class belongs to the set of a row, with p(y | x) and the mechanism of that row, if the true class may be
    /// missed with probability `miss`.
    pub fn set<'p>(&self, p: impl IntoIterator<Item = &'p f64>, phi: &Phi, kind: SetKind, miss: f64) -> Vec<bool> {
        let of = |(k, &p): (usize, &f64)| {
            let ranked = match kind {
                SetKind::PerClass => &self.of_class[k],
                SetKind::Marginal => &self.of_all,
            };
            ranked.p_value(p, 1.0 / phi[k]) > miss
        };
        p.into_iter().enumerate().map(of).collect()
    }

    /// Classes with so few labels that sets of this kind contain them always.
    pub fn always_in(&self, kind: SetKind, miss: f64) -> Vec<Class> {
        let too_few = |k: &usize| {
            let weights = &self.of_class[*k].weights;
            // The lowest rank there is, with a weight like that of the others.
            let own = weights.iter().copied().fold(f64::INFINITY, f64::min);
            weights.is_empty() || self.of_class[*k].p_value(f64::NEG_INFINITY, own) > miss
        };
        match kind {
            SetKind::PerClass => (0..self.n_classes()).filter(too_few).map(Class::from).collect(),
            SetKind::Marginal => Vec::new(),
        }
    }
}

impl TryFrom<Vec<Vec<(f64, f64)>>> for Conformal {
    type Error = Error;

    /// From score and weight of the labelled rows of each class.
    fn try_from(scored: Vec<Vec<(f64, f64)>>) -> Result<Self, Error> {
        let usable = |(score, weight): &(f64, f64)| (0.0..=1.0).contains(score) && weight.is_finite() && *weight > 0.0;
        if !scored.iter().flatten().all(usable) {
            return Err(Error::BrokenModel { what: "scores", why: "a score or its weight is out of range" });
        }
        let of_all = Ranked::new(scored.iter().flatten().copied().collect());
        Ok(Self { of_class: scored.into_iter().map(Ranked::new).collect(), of_all })
    }
}

impl From<Conformal> for Vec<Vec<(f64, f64)>> {
    fn from(conformal: Conformal) -> Self {
        conformal.of_class.into_iter().map(|of| of.scores.into_iter().zip(of.weights).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posteriors::PosteriorKind;
    use ndarray::Array2;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn p_values_are_weighted_ranks() {
        let ranked = Ranked::new(vec![(0.5, 1.0), (0.1, 1.0), (0.9, 2.0)]);
        assert_eq!(ranked.p_value(0.05, 1.0), 1.0 / 5.0);
        assert_eq!(ranked.p_value(0.1, 1.0), 2.0 / 5.0);
        assert_eq!(ranked.p_value(0.7, 1.0), 3.0 / 5.0);
        assert_eq!(ranked.p_value(0.9, 1.0), 1.0);
    }

    /// Two classes on a line, x | y ~ N(±1, 1), and a row is labelled by its class and by whether z is 0.
    struct World {
        p: Posteriors,
        y: Vec<usize>,
        phi: Vec<Phi>,
        labels: Labels,
    }

    fn world(n: usize, by_column: bool, seed: u64) -> World {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut p, mut y, mut phi, mut labels) = (Array2::zeros((n, 2)), vec![], vec![], vec![]);
        for i in 0..n {
            let class = usize::from(rng.random_bool(0.3));
            let normal: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            let x = normal + if class == 1 { 1.0 } else { -1.0 };
            let odds = (2.0 * x).exp() * 0.3 / 0.7;
            (p[[i, 1]], p[[i, 0]]) = (odds / (1.0 + odds), 1.0 / (1.0 + odds));
            // The column is tied to x: without weights, the labelled rows of a class do not look like the others.
            let often = !by_column || x > 0.0;
            let of_row = Phi::new(if often { vec![0.1, 0.5] } else { vec![0.02, 0.1] }).unwrap();
            labels.push(rng.random_bool(of_row[class]).then_some(Class::from(class)));
            y.push(class);
            phi.push(of_row);
        }
        let labels = Labels::allow_degenerate(labels, vec!["a".into(), "b".into()]).unwrap();
        World { p: Posteriors::new(p, PosteriorKind::Population).unwrap(), y, phi, labels }
    }

    /// The share of new rows of each class whose set contains it, and the mean size of a set.
    fn covered(n: usize, by_column: bool, kind: SetKind, weighted: bool) -> ([f64; 2], f64) {
        let equal = Phi::new(vec![0.5, 0.5]).unwrap();
        let known = world(n, by_column, 1);
        let of_known = |row: usize| if weighted { &known.phi[row] } else { &equal };
        let conformal = Conformal::new(&known.p, &known.labels, of_known).unwrap();
        let world = world(n, by_column, 2);
        let (mut hits, mut counts, mut size) = ([0.0; 2], [0.0; 2], 0.0);
        for row in 0..n {
            let phi = if weighted { &world.phi[row] } else { &equal };
            let set = conformal.set(world.p.row(row), phi, kind, 0.1);
            size += set.iter().filter(|inside| **inside).count() as f64;
            counts[world.y[row]] += 1.0;
            hits[world.y[row]] += f64::from(u8::from(set[world.y[row]]));
        }
        ([hits[0] / counts[0], hits[1] / counts[1]], size / (counts[0] + counts[1]))
    }

    #[test]
    fn sets_cover_every_class_whatever_phi_is() {
        let (per_class, size) = covered(20_000, false, SetKind::PerClass, true);
        // About 1400 and 3000 labelled rows: the standard error of the coverage is at most 0.008.
        assert!(per_class.iter().all(|share| (share - 0.9).abs() < 0.024), "{per_class:?}");
        let (marginal, smaller) = covered(20_000, false, SetKind::Marginal, true);
        assert!(smaller < size && marginal[1] < 0.88, "{marginal:?} {smaller} {size}");
    }

    #[test]
    fn where_columns_decide_too_the_weights_matter() {
        let (per_class, _) = covered(60_000, true, SetKind::PerClass, true);
        assert!(per_class.iter().all(|share| *share > 0.87), "{per_class:?}");
        let (unweighted, _) = covered(60_000, true, SetKind::PerClass, false);
        assert!(unweighted.iter().any(|share| *share < 0.85), "{unweighted:?}");
    }

    #[test]
    fn a_class_with_few_labels_is_in_every_set() {
        let scored = vec![vec![(0.9, 2.0); 30], vec![(0.8, 3.0); 8], Vec::new()];
        let conformal = Conformal::try_from(scored.clone()).unwrap();
        let phi = Phi::new(vec![0.5, 0.3, 0.2]).unwrap();
        assert_eq!(conformal.always_in(SetKind::PerClass, 0.1), [Class(1), Class(2)]);
        assert_eq!(conformal.set(&[1.0, 0.0, 0.0], &phi, SetKind::PerClass, 0.1), [true, true, true]);
        assert_eq!(conformal.set(&[0.1, 0.9, 0.0], &phi, SetKind::PerClass, 0.1), [false, true, true]);
        assert_eq!(Vec::<Vec<(f64, f64)>>::from(conformal), scored);
        assert!(Conformal::try_from(vec![vec![(1.1, 1.0)]]).is_err());
        assert!(Conformal::try_from(vec![vec![(0.5, 0.0)]]).is_err());
    }
}

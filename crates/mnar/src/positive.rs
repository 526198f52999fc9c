//! Positive-unlabelled data: only one class is ever labelled, such as the patients with a diagnosis.
//!
//! If the chance of a label is the same for all rows of that class, P(labelled | x) = phi · p(class | x). The data show the
//! product only: without the share of the class they give bounds, because p(class | x) is at most 1 and phi is at least the
//! largest P(labelled | x). With the share, phi = (n_l / n) / share, and p(class | x) = P(labelled | x) / phi.

use crate::error::Error;
use crate::interval::wilson;
use crate::labels::{Class, Labels};
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF as _};

/// What positive-unlabelled data say by themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PositiveBound {
    /// The only class that is ever labelled.
    pub class: String,
    /// Number of rows.
    pub n: usize,
    /// Number of labelled rows.
    pub n_labelled: usize,
    /// P(labelled | class) is at least this, at the 97.5% level.
    pub phi_at_least: f64,
    /// The share of the class among all rows is at least that of the labels, the lower end of its 95% interval.
    pub share_at_least: f64,
    /// The share is at most this, at the 95% level.
    pub share_at_most: f64,
    /// How many rows the bound of phi comes from: those that look most like labelled ones.
    pub rows: usize,
    /// How many of these are labelled.
    pub labelled: usize,
}

/// What follows from the share of the class.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct KnownShare {
    /// The share of the class among all rows.
    pub share: f64,
    /// P(labelled | class).
    pub phi: f64,
    /// Its 95% interval, which takes the share as exact.
    pub phi_ci95: (f64, f64),
    /// Whether the data contradict the share: with that many positive rows, labels could not be as frequent as the data show.
    pub contradicted: bool,
}

/// The fewest rows that a bound is read off.
const FEWEST_ROWS: usize = 20;
/// How much larger the next set of rows is.
const STEP: f64 = 1.5;
/// What the bound of phi and the interval of the labelling rate may each miss, so that both hold at the 95% level.
const MISS: f64 = 0.025;

impl PositiveBound {
    /// From P(labelled | x) of every row, by a classifier that has not seen the row, and labels of a single class. The
    /// probabilities need not be calibrated: they only rank the rows, and the labels are then counted.
    ///
    /// Among the rows ranked first, labels are as frequent as phi allows or less. Several numbers of first rows are tried,
    /// each at a level divided by their count, and the best bound is kept.
    pub fn new(scores: &[f64], labels: &Labels) -> Result<Self, Error> {
        let n = labels.len();
        if scores.len() != n {
            return Err(Error::LengthMismatch { what: "the list of scores", found: scores.len(), expected: n });
        }
        if labels.n_classes() != 1 || labels.n_labelled() == 0 || labels.n_unlabelled() == 0 {
            return Err(Error::Settings("positive-unlabelled data have labels of one class, and rows without a label"));
        }
        let mut order: Vec<usize> = (0..n).collect();
        // Ties keep the order of the rows, which says nothing about the labels.
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let sizes = sizes(n);
        let level = MISS / sizes.len() as f64;
        let (mut best, mut counted, mut labelled) = ((0.0, n, labels.n_labelled()), 0, 0);
        for size in sizes {
            labelled += order[counted..size].iter().filter(|&&row| labels.is_labelled(row)).count();
            counted = size;
            let bound = at_least(labelled, size, level);
            if bound > best.0 {
                best = (bound, size, labelled);
            }
        }
        let (phi_at_least, rows, labelled) = best;
        let rate = (at_least(labels.n_labelled(), n, MISS), at_most(labels.n_labelled(), n, MISS));
        Ok(Self {
            class: labels.name(Class(0)).to_owned(),
            n,
            n_labelled: labels.n_labelled(),
            phi_at_least,
            share_at_least: rate.0,
            share_at_most: (rate.1 / phi_at_least).min(1.0),
            rows,
            labelled,
        })
    }

    /// phi if this is the share of the class among all rows.
    pub fn with_share(&self, share: f64) -> Result<KnownShare, Error> {
        let rate = self.n_labelled as f64 / self.n as f64;
        if !(share > 0.0 && share < 1.0) {
            let value = share.to_string();
            return Err(Error::OutOfRange { name: "the share of a class", value, range: "between 0 and 1" });
        }
        if share < rate {
            return Err(Error::ShareTooSmall { class: self.class.clone(), share, labelled: rate });
        }
        let phi = rate / share;
        let (low, high) = wilson(rate, self.n as f64, 0.95);
        let phi_ci95 = ((low / share).min(1.0), (high / share).min(1.0));
        Ok(KnownShare { share, phi, phi_ci95, contradicted: share > self.share_at_most })
    }
}

impl KnownShare {
    /// p(class | x) from P(labelled | x), at most 1.
    pub fn probability(&self, labelled: f64) -> f64 {
        (labelled / self.phi).min(1.0)
    }
}

/// How many of the first rows are looked at: 20, 30, 45 and so on, and all.
fn sizes(n: usize) -> Vec<usize> {
    let steps = (0..).map(|step| (FEWEST_ROWS as f64 * STEP.powi(step)) as usize);
    steps.take_while(|&size| size < n).chain([n]).collect()
}

/// Clopper and Pearson's lower bound of a probability.
fn at_least(successes: usize, trials: usize, miss: f64) -> f64 {
    match Beta::new(successes as f64, (trials - successes) as f64 + 1.0) {
        Ok(beta) => beta.inverse_cdf(miss),
        // No success.
        Err(_) => 0.0,
    }
}

/// Clopper and Pearson's upper bound of a probability.
fn at_most(successes: usize, trials: usize, miss: f64) -> f64 {
    1.0 - at_least(trials - successes, trials, miss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    /// Rows with p(class | x) drawn uniformly from these values, and labels with chance phi within the class.
    fn world(n: usize, chances: &[f64], phi: f64, seed: u64) -> (Vec<f64>, Labels) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let scores: Vec<f64> = (0..n).map(|_| chances[rng.random_range(0..chances.len())]).collect();
        let y = scores.iter().map(|&p| (rng.random_bool(p) && rng.random_bool(phi)).then_some(Class(0))).collect();
        (scores, Labels::allow_degenerate(y, vec!["sick".into()]).unwrap())
    }

    #[test]
    fn bounds_of_a_probability_are_those_of_clopper_and_pearson() {
        // R: binom.test(7, 20)$conf.int and binom.test(0, 10)$conf.int
        assert!((at_least(7, 20, 0.025) - 0.153_909_2).abs() < 1e-6);
        assert!((at_most(7, 20, 0.025) - 0.592_189_2).abs() < 1e-6);
        assert_eq!(at_least(0, 10, 0.025), 0.0);
        assert!((at_most(0, 10, 0.025) - 0.308_497_1).abs() < 1e-6);
        assert_eq!(at_most(10, 10, 0.025), 1.0);
    }

    #[test]
    fn the_bound_holds_and_is_near_where_some_rows_are_sure() {
        let draws = 300;
        let (mut held, mut held_share, mut near) = (0, 0, 0);
        for seed in 0..draws {
            let (scores, labels) = world(2000, &[0.02, 0.1, 0.3, 1.0], 0.4, seed);
            let bound = PositiveBound::new(&scores, &labels).unwrap();
            held += usize::from(bound.phi_at_least <= 0.4);
            let share = (0.02 + 0.1 + 0.3 + 1.0) / 4.0;
            held_share += usize::from(bound.share_at_least <= share && share <= bound.share_at_most);
            near += usize::from(bound.phi_at_least > 0.3);
        }
        // Nominal 97.5% and 95%; of 300 draws, 285 and 273 lie two binomial errors below.
        assert!(held >= 287 && held_share >= 277, "{held} {held_share}");
        assert!(near > 250, "{near}");
    }

    #[test]
    fn where_no_row_is_sure_the_bound_is_that_of_the_surest() {
        let (scores, labels) = world(20_000, &[0.1, 0.5], 0.6, 1);
        let bound = PositiveBound::new(&scores, &labels).unwrap();
        assert!(bound.phi_at_least > 0.27 && bound.phi_at_least < 0.3, "{bound:?}");
    }

    #[test]
    fn a_known_share_gives_phi() {
        let (scores, labels) = world(5000, &[0.0, 1.0], 0.3, 2);
        let bound = PositiveBound::new(&scores, &labels).unwrap();
        let known = bound.with_share(0.5).unwrap();
        assert!((known.phi - 0.3).abs() < 0.02 && !known.contradicted, "{known:?}");
        assert!(known.phi_ci95.0 < known.phi && known.phi < known.phi_ci95.1);
        assert_eq!(known.phi, labels.n_labelled() as f64 / 2500.0);
        assert_eq!((known.probability(known.phi / 2.0), known.probability(0.9)), (0.5, 1.0));
        // Labels are 30% of the rows that look like them: they cannot be 20%, as a share of 0.75 would have it.
        assert!(bound.with_share(0.75).unwrap().contradicted);
        let error = bound.with_share(0.1).unwrap_err().to_string();
        assert!(error.contains("the class `sick` is 0.1 of all rows, but"), "{error}");
        assert!(bound.with_share(1.2).is_err());
    }
}

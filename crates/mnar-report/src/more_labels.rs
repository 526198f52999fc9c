//! How much labels of rows drawn at random would narrow the intervals of the class shares.

use mnar::interval::wilson;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sizes of random samples that are worth asking for.
const SIZES: [usize; 5] = [50, 100, 200, 400, 800];
/// How many of them are reported.
const SHOWN: usize = 4;
/// The level of the intervals.
const LEVEL: f64 = 0.95;
/// Predictions are not taken to be worth more than three times the labels: what an estimate from an audit does, too.
const MOST_HELP: f64 = 4.0;

/// What labels of rows that are drawn at random from all rows would tell about the class shares. Such labels need no assumption
/// about the mechanism.
///
/// The intervals are those of an estimate from an audit: the labels of the sample, made more precise by the predictions of
/// all rows. They are computed from the present estimate, so they hold as far as it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct MoreLabels {
    /// By class, the part of the variance of the label that the predictions leave open, from 0 to 1.
    pub unexplained: Vec<f64>,
    /// By class, the width of the present interval, if there is one.
    #[serde(default)]
    pub width_now: Vec<Option<f64>>,
    /// By class, how many labels would halve the present interval; null if all rows are too few.
    #[serde(default)]
    pub to_halve: Vec<Option<usize>>,
    /// What samples of some sizes would give.
    pub samples: Vec<RandomSample>,
}

/// What a random sample of rows would tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct RandomSample {
    /// The number of rows.
    pub labels: usize,
    /// By class, the width of the interval with the help of the predictions.
    pub width: Vec<f64>,
    /// By class, the width of the interval from the sample alone.
    pub width_alone: Vec<f64>,
}

impl MoreLabels {
    /// The class shares, the mean of p(1 − p) over all `rows` rows by class, where p are population probabilities, and the present
    /// intervals.
    ///
    /// ```
    /// use mnar_report::MoreLabels;
    /// // Predictions that say nothing help nothing; certain ones help as much as is granted them.
    /// let more = MoreLabels::new(&[0.2, 0.8], &[0.16, 0.0], 10_000, Some(&[(0.1, 0.3), (0.7, 0.9)]));
    /// let hundred = more.samples.iter().find(|sample| sample.labels == 100).unwrap();
    /// assert!((hundred.width[0] - hundred.width_alone[0]).abs() < 0.01);
    /// assert!(hundred.width[1] < 0.55 * hundred.width_alone[1]);
    /// assert!(more.to_halve[1] < more.to_halve[0]);
    /// ```
    pub fn new(shares: &[f64], open: &[f64], rows: usize, intervals: Option<&[(f64, f64)]>) -> Self {
        let widths = |labels: usize| -> Vec<f64> {
            shares.iter().zip(open).map(|(&share, &open)| width(share, open, labels, rows)).collect()
        };
        let alone = |labels: usize| shares.iter().map(|&share| between(wilson(share, labels as f64, LEVEL))).collect();
        let samples = SIZES
            .into_iter()
            .filter(|&labels| 2 * labels <= rows)
            .take(SHOWN)
            .map(|labels| RandomSample { labels, width: widths(labels), width_alone: alone(labels) })
            .collect();
        let now = |k: usize| intervals.and_then(|all| all.get(k)).copied().map(between).filter(|width| *width > 0.0);
        let width_now: Vec<Option<f64>> = (0..shares.len()).map(now).collect();
        let halving = |k: usize| {
            let wanted = width_now[k]? / 2.0;
            fewest(rows, |labels| width(shares[k], open[k], labels, rows) <= wanted)
        };
        let unexplained = shares.iter().zip(open).map(|(share, open)| part(*open, share * (1.0 - share))).collect();
        Self { unexplained, to_halve: (0..shares.len()).map(halving).collect(), width_now, samples }
    }
}

fn between((low, high): (f64, f64)) -> f64 {
    high - low
}

fn part(open: f64, all: f64) -> f64 {
    if all > 0.0 { (open / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// The width of the interval of a share from so many audited rows of `rows`, where the predictions leave the variance `open`.
fn width(share: f64, open: f64, labels: usize, rows: usize) -> f64 {
    let (m, n) = (labels as f64, rows as f64);
    let all = share * (1.0 - share);
    let explained = (all - open).clamp(0.0, all);
    // How far the predictions are relied on where they are calibrated: their covariance with the label is their variance.
    let reliance = 1.0 / (1.0 + m / n);
    let variance =
        (all - 2.0 * reliance * explained + reliance * reliance * explained) / m + reliance * reliance * explained / n;
    let worth = (all / variance.max(1e-300)).clamp(1.0, MOST_HELP * m);
    between(wilson(share, worth, LEVEL))
}

/// The smallest number from 1 to `most` that is enough.
fn fewest(most: usize, enough: impl Fn(usize) -> bool) -> Option<usize> {
    if most == 0 || !enough(most) {
        return None;
    }
    let (mut low, mut high) = (0, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_labels_never_widen_an_interval() {
        for open in [0.0, 0.05, 0.2, 0.24] {
            let widths: Vec<f64> = [20, 50, 100, 1000, 4000].map(|labels| width(0.4, open, labels, 5000)).to_vec();
            assert!(widths.windows(2).all(|pair| pair[1] < pair[0]), "{widths:?}");
        }
    }

    #[test]
    fn the_number_that_halves_is_the_smallest_one() {
        let more = MoreLabels::new(&[0.3], &[0.1], 4000, Some(&[(0.2, 0.4)]));
        let labels = more.to_halve[0].expect("4000 rows are enough");
        assert!(width(0.3, 0.1, labels, 4000) <= 0.1 && width(0.3, 0.1, labels - 1, 4000) > 0.1);
        assert_eq!(MoreLabels::new(&[0.3], &[0.21], 40, Some(&[(0.29, 0.31)])).to_halve, [None]);
        // Few rows: nothing is promised.
        assert!(MoreLabels::new(&[0.3], &[0.21], 40, None).samples.is_empty());
    }
}

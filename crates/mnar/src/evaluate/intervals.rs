//! Intervals of metrics from the replicates of a bootstrap.

use crate::analysis::CONFIDENCE;
use crate::interval::{Spread, mean_and_sd, t_quantile, wilson_at};

/// On which scale replicates of a metric are about normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// A share of rows, or of pairs of rows.
    Share,
    /// A positive number of any size.
    Positive,
    /// A sum of absolute values, which is in 0..1.
    Between0And1,
    /// Any number.
    Free,
}

/// Labelled rows that a share rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Support {
    pub(super) hits: f64,
    pub(super) of: f64,
}

/// With fewer labelled hits, or misses, the spread of replicates is not to be relied on: where no labelled row of a class is
/// missed, no replicate misses one.
const FEW: f64 = 5.0;

/// Wilson's interval is computed for at least this many rows, and then contains the symmetric one.
const FEWEST_ROWS: f64 = 10.0;

/// The number of products that are summed, at most, for the degrees of freedom of all intervals; larger tables have plenty of them.
const AFFORDABLE: usize = 1_000_000_000;

/// The weights of the labelled rows in every replicate, from which one can tell how many rows an interval really rests on.
pub(super) struct Influences<'a> {
    weights: Vec<&'a [f64]>,
}

impl<'a> Influences<'a> {
    /// For this many metrics; without weights where that would take long.
    pub(super) fn new(weights: impl Iterator<Item = &'a [f64]>, metrics: usize) -> Self {
        let weights: Vec<&[f64]> = weights.collect();
        let rows = weights.first().map_or(0, |weights| weights.len());
        let affordable = rows.saturating_mul(weights.len()).saturating_mul(metrics) <= AFFORDABLE;
        Self { weights: if affordable { weights } else { Vec::new() } }
    }

    /// The replicates' spread, and what it rests on. Rows that are rarely labelled weigh so much that a handful of them can make
    /// up most of the variance. The influence u of a row is the covariance of its weight with the replicates, known up to a noise
    /// of variance σ²/B, which is taken out of Σu⁴.
    fn spread(&self, replicates: &[f64]) -> Spread {
        let count = replicates.len() as f64;
        let (mean, sd) = mean_and_sd(replicates);
        let variance = sd * sd;
        let rows = self.weights.first().map_or(0, |weights| weights.len());
        // With many rows to few replicates the noise hides all influences, and then no row decides by itself.
        let visible = 3.0 * rows as f64 <= count * count;
        let usable = self.weights.len() == replicates.len() && variance > 0.0;
        if !(usable && visible) {
            return Spread::resting_on(f64::INFINITY, sd, replicates.len());
        }
        let mut influence = vec![0.0; rows];
        for (weights, value) in self.weights.iter().zip(replicates) {
            let off = (value - mean) / count;
            influence.iter_mut().zip(*weights).for_each(|(u, weight)| *u += (weight - 1.0) * off);
        }
        let noise = variance / count;
        let moment = |power: i32| influence.iter().map(|u| u.powi(power)).sum::<f64>();
        let fourth = (moment(4) - 6.0 * noise * moment(2) + 3.0 * rows as f64 * noise * noise).max(0.0);
        Spread::resting_on(variance * variance / fourth, sd, replicates.len())
    }
}

/// The interval around `estimate`, from replicates of which those that are undefined are left out, and a variance that they do
/// not show.
pub(super) fn interval(
    estimate: f64,
    replicates: &[f64],
    scale: Scale,
    support: Support,
    unseen: f64,
    influences: &Influences<'_>,
) -> Option<(f64, f64)> {
    let defined: Vec<f64> = replicates.iter().copied().filter(|value| value.is_finite()).collect();
    if !estimate.is_finite() || defined.len() < 2 || defined.len() * 2 < replicates.len() {
        return None;
    }
    let Spread { sd, freedom } = influences.spread(&defined);
    let sd = (sd.powi(2) + unseen).sqrt();
    let t = t_quantile(CONFIDENCE, freedom as usize);
    let interval = match scale {
        Scale::Share => wilson(estimate, sd, t, support),
        Scale::Positive if estimate > 0.0 => {
            let factor = (t * sd / estimate).exp();
            (estimate / factor, estimate * factor)
        }
        Scale::Between0And1 => ((estimate - t * sd).max(0.0), (estimate + t * sd).min(1.0)),
        Scale::Positive | Scale::Free => (estimate - t * sd, estimate + t * sd),
    };
    (interval.0.is_finite() && interval.1.is_finite()).then_some((interval.0.min(estimate), interval.1.max(estimate)))
}

/// The interval of a difference.
pub(super) fn difference(
    estimate: f64,
    replicates: &[f64],
    bounded: bool,
    influences: &Influences<'_>,
) -> Option<(f64, f64)> {
    let (low, high) = interval(estimate, replicates, Scale::Free, Support::default(), 0.0, influences)?;
    Some(if bounded { (low.max(-1.0), high.min(1.0)) } else { (low, high) })
}

/// Wilson's interval of a share with as many rows as would give it this spread, as survey statisticians do (Korn and Graubard):
/// it stays inside 0..1, and is as wide as it should be near the bounds.
fn wilson(p: f64, sd: f64, t: f64, support: Support) -> (f64, f64) {
    let p = p.clamp(0.0, 1.0);
    let spread = p * (1.0 - p) / (sd * sd);
    let few = support.hits < FEW || support.of - support.hits < FEW;
    let n = match spread {
        spread if spread.is_nan() || few => spread.min(support.of.max(1.0)),
        spread => spread,
    };
    // Weights of both signs can spread more than any share of a few rows; below ten rows Wilson's ends run off to the other bound.
    let fewest = support.of.clamp(1.0, FEWEST_ROWS);
    let beside = if n < fewest { t * sd } else { 0.0 };
    let n = n.max(fewest);
    if n.is_infinite() {
        return (p, p);
    }
    let (low, high) = wilson_at(p, n, t);
    (low.min(p - beside).max(0.0), high.max(p + beside).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stay_inside_and_contain_the_estimate() {
        let replicates: Vec<f64> = (0..100).map(|i| 0.98 + 0.0004 * f64::from(i)).collect();
        let enough = Support { hits: 980.0, of: 1000.0 };
        let interval = |estimate: f64, replicates: &[f64], scale: Scale, support: Support| {
            super::interval(estimate, replicates, scale, support, 0.0, &Influences { weights: Vec::new() })
        };
        let (low, high) = interval(0.999, &replicates, Scale::Share, enough).unwrap();
        assert!(low < 0.999 && 0.999 < high && high <= 1.0 && low > 0.7, "{low} {high}");
        // All 20 labelled rows were right: the rule of three says up to 3/20 may be wrong.
        let (low, high) = interval(1.0, &[1.0; 50], Scale::Share, Support { hits: 20.0, of: 20.0 }).unwrap();
        assert!(high == 1.0 && (0.8..0.9).contains(&low), "{low}");
        assert_eq!(interval(f64::NAN, &replicates, Scale::Share, enough), None);
        assert_eq!(interval(0.5, &[f64::NAN; 10], Scale::Share, enough), None);
        let (low, high) = interval(0.01, &replicates, Scale::Positive, enough).unwrap();
        assert!(low > 0.0 && high > 0.01);
    }

    #[test]
    fn a_spread_that_rests_on_two_rows_has_few_degrees_of_freedom() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, Exp1};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let weights: Vec<Vec<f64>> = (0..200).map(|_| Exp1.sample_iter(&mut rng).take(300).collect()).collect();
        let freedom = |influence: &dyn Fn(usize) -> f64| {
            let replicates: Vec<f64> =
                weights.iter().map(|w| w.iter().enumerate().map(|(i, w)| influence(i) * (w - 1.0)).sum()).collect();
            Influences::new(weights.iter().map(Vec::as_slice), 1).spread(&replicates).freedom
        };
        assert!(freedom(&|i| if i % 2 == 0 { 1.0 } else { -1.0 }) > 60.0);
        assert!(freedom(&|i| if i < 2 { 1.0 } else { 0.01 }) < 8.0);
    }

    #[test]
    fn the_spread_of_a_mean_of_few_rows_is_that_of_the_textbook() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, Exp1};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        let weights: Vec<Vec<f64>> = (0..20_000).map(|_| Exp1.sample_iter(&mut rng).take(20).collect()).collect();
        // Ten rows are 1 and ten are -1: the variance of their mean is 1/19, and that of its replicates 1/21.
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mean = |w: &Vec<f64>| w.iter().enumerate().map(|(i, w)| sign(i) * w).sum::<f64>() / w.iter().sum::<f64>();
        let replicates: Vec<f64> = weights.iter().map(mean).collect();
        let plain = mean_and_sd(&replicates).1.powi(2);
        let corrected = Influences::new(weights.iter().map(Vec::as_slice), 1).spread(&replicates).sd.powi(2);
        assert!((plain * 21.0 - 1.0).abs() < 0.03 && (corrected * 19.0 - 1.0).abs() < 0.03, "{plain} {corrected}");
    }

    #[test]
    fn an_ordinary_share_has_wilsons_interval() {
        // 60 of 100: the standard deviation of replicates is sqrt(0.24/100).
        let sd = (0.24f64 / 100.0).sqrt();
        let (low, high) = wilson(0.6, sd, 1.96, Support { hits: 60.0, of: 100.0 });
        assert!((low - 0.502).abs() < 1e-3 && (high - 0.6906).abs() < 1e-3, "{low} {high}");
    }
}

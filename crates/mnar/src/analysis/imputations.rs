//! Multiple imputation: the labels that are missing, drawn several times over.

use super::{EstimateSettings, Evidence};
use crate::error::Error;
use crate::labels::Class;
use crate::posteriors::Posteriors;
use crate::progress::Progress;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Labels of the unlabelled rows, drawn several times. Labels that are known are not drawn.
///
/// An analysis of all rows is run once with every draw, and Rubin's rules put the results together: the estimate is their mean, and
/// its variance is the mean of their variances plus (1 + 1/M) times the variance between them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Imputations {
    /// The unlabelled rows, from 0.
    pub rows: Vec<usize>,
    /// For each draw, the class of each of these rows.
    pub draws: Vec<Vec<Class>>,
    /// Draws whose estimate of the mechanism failed and which were left out.
    pub failed: usize,
}

impl EstimateSettings {
    /// Draws the missing labels `count` times, for a mechanism that depends on the class and these columns.
    ///
    /// Every draw first repeats the estimate under random row weights (the Bayesian bootstrap): the classifier, where it was
    /// cross-fitted here, the calibration and the mechanism. Then it draws every missing label from p(y | x, unlabelled). So the
    /// draws differ by what is not known about the mechanism, and not only by chance.
    pub fn imputations(
        &self,
        evidence: &Evidence<'_>,
        given: &[String],
        count: usize,
        progress: &dyn Progress,
    ) -> Result<Imputations, Error> {
        let labels = evidence.labels;
        let rows: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let draws = self.repeated(evidence, given, count, progress, |again, posteriors, weights, replicate| {
            let expected = again.of(posteriors, Some(weights), None)?.expected;
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ 0x69_6d_70);
            rng.set_stream(replicate + 1);
            Ok(rows.iter().map(|&row| drawn(expected.given_unlabelled(), row, rng.random::<f64>())).collect())
        })?;
        Ok(Imputations { rows, draws: draws.values, failed: draws.failed })
    }
}

/// The class of a row at this quantile of its probabilities.
fn drawn(p: &Posteriors, row: usize, quantile: f64) -> Class {
    let mut left = quantile;
    let mut last = 0;
    for k in 0..p.n_classes() {
        let p = p.column(k)[row];
        if p > 0.0 {
            last = k;
            left -= p;
            if left < 0.0 {
                break;
            }
        }
    }
    // Rounding can leave the sum just below 1.
    Class::from(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Given, IntervalMethod};
    use crate::interval::t_quantile;
    use crate::labels::Labels;
    use crate::posteriors::PosteriorKind;
    use ndarray::Array2;

    /// 30% are of class 1, which is labelled four times as often; scores are what a classifier learns from the labelled rows.
    fn world(seed: u64, n: usize) -> (Posteriors, Labels, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut p, mut y, mut ones) = (Array2::zeros((n, 2)), Vec::new(), 0);
        for i in 0..n {
            let truth = usize::from(rng.random_bool(0.3));
            ones += truth;
            let looks_like_one = (truth == 1) == rng.random_bool(0.85);
            let odds = (0.3 * 0.4) / (0.7 * 0.1) * if looks_like_one { 0.85 / 0.15 } else { 0.15 / 0.85 };
            (p[[i, 1]], p[[i, 0]]) = (odds / (1.0 + odds), 1.0 / (1.0 + odds));
            y.push(rng.random_bool([0.1, 0.4][truth]).then_some(Class::from(truth)));
        }
        let labels = Labels::new(y, vec!["a".into(), "b".into()]).unwrap();
        (Posteriors::new(p, PosteriorKind::Labelled).unwrap(), labels, ones as f64 / n as f64)
    }

    fn settings(seed: u64) -> EstimateSettings {
        EstimateSettings { given: Given::None, interval: IntervalMethod::Information, seed, ..Default::default() }
    }

    /// Rubin's estimate and standard error of the share of class 1 in the population that the rows were drawn from.
    fn rubin(labels: &Labels, found: &Imputations) -> (f64, f64, f64) {
        let n = labels.len() as f64;
        let m = found.draws.len() as f64;
        let shares: Vec<f64> = found
            .draws
            .iter()
            .map(|draw| (labels.counts()[1] + draw.iter().filter(|class| class.index() == 1).count()) as f64 / n)
            .collect();
        let mean = shares.iter().sum::<f64>() / m;
        let between = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (m - 1.0);
        let within = shares.iter().map(|share| share * (1.0 - share) / n).sum::<f64>() / m;
        let more = (1.0 + 1.0 / m) * between;
        let freedom = (m - 1.0) * (1.0 + within / more).powi(2);
        (mean, (within + more).sqrt(), t_quantile(0.95, freedom as usize))
    }

    #[test]
    fn rubins_interval_covers_the_share() {
        let (mut covered, mut naive, draws) = (0, 0, 200);
        for seed in 0..draws {
            let (posteriors, labels, _) = world(seed, 1200);
            let evidence = Evidence::predictions(&posteriors, &labels);
            let found = settings(seed).imputations(&evidence, &[], 20, &()).unwrap();
            assert_eq!((found.draws.len(), found.failed), (20, 0));
            let (mean, se, t) = rubin(&labels, &found);
            covered += u64::from((mean - 0.3).abs() <= t * se);
            naive += u64::from((labels.counts()[1] as f64 / labels.n_labelled() as f64 - 0.3).abs() <= t * se);
        }
        assert!((180..=198).contains(&covered), "{covered} of {draws}");
        assert_eq!(naive, 0);
    }

    #[test]
    fn only_missing_labels_are_drawn_and_the_seed_decides() {
        let (posteriors, labels, _) = world(1, 500);
        let evidence = Evidence::predictions(&posteriors, &labels);
        let draw = |seed: u64| settings(seed).imputations(&evidence, &[], 5, &()).unwrap();
        let found = draw(3);
        assert_eq!(found.rows.len(), labels.n_unlabelled());
        assert!(found.rows.iter().all(|&row| !labels.is_labelled(row)));
        assert_eq!(found, draw(3));
        assert_ne!(found.draws[0], found.draws[1]);
        assert_ne!(found, draw(4));
    }

    #[test]
    fn a_quantile_finds_its_class() {
        let p = Posteriors::new(ndarray::arr2(&[[0.2, 0.0, 0.8]]), PosteriorKind::Population).unwrap();
        let classes = [0.0, 0.19, 0.21, 1.0 - f64::EPSILON / 2.0].map(|quantile| drawn(&p, 0, quantile).index());
        assert_eq!(classes, [0, 0, 2, 2]);
    }
}

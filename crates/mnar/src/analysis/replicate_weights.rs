//! Replicate weights: the estimate's uncertainty in a form that survey software understands.

use super::{EstimateSettings, Evidence};
use crate::error::Error;
use crate::progress::Progress;

/// Weights of the labelled rows in every replicate of a bootstrap; unlabelled rows have none.
///
/// An analysis of the labelled rows with weights 1/phi, repeated with every set of these weights, varies as it would with new
/// rows, a new classifier and a new estimate of the mechanism: the standard deviation of its results is their standard error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReplicateWeights {
    /// The labelled rows, from 0.
    pub rows: Vec<usize>,
    /// For each replicate, the weight of each of these rows.
    pub weights: Vec<Vec<f64>>,
    /// Replicates whose estimate failed and which were left out.
    pub failed: usize,
}

impl EstimateSettings {
    /// Draws replicate weights for a mechanism that depends on the class and these columns. Where the posteriors were
    /// cross-fitted here, the classifier is refitted in every replicate.
    ///
    /// In replicate b a labelled row weighs g/phi_b, with g its random weight in the Bayesian bootstrap, whose mean is 1, and
    /// phi_b the probability that a row of its class and columns is labelled, as estimated with these random weights.
    pub fn replicate_weights(
        &self,
        evidence: &Evidence<'_>,
        given: &[String],
        count: usize,
        progress: &dyn Progress,
    ) -> Result<ReplicateWeights, Error> {
        let labels = evidence.labels;
        let rows: Vec<usize> = labels.labelled().map(|(row, _)| row).collect();
        let draws = self.repeated(evidence, given, count, progress, |again, posteriors, weights, _| {
            let phi = again.phi_of_labelled(posteriors, weights)?;
            let mean = weights.iter().sum::<f64>() / weights.len() as f64;
            Ok(rows.iter().zip(phi).map(|(&row, phi)| weights[row] / mean / phi).collect())
        })?;
        Ok(ReplicateWeights { rows, weights: draws.values, failed: draws.failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Given;
    use crate::labels::{Class, Labels};
    use crate::posteriors::{PosteriorKind, Posteriors};
    use ndarray::Array2;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn the_spread_of_a_weighted_share_is_its_standard_error() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let n = 3000;
        let (mut p, mut y) = (Array2::zeros((n, 2)), Vec::new());
        for i in 0..n {
            let truth = usize::from(rng.random_bool(0.3));
            let phi = [0.1, 0.4][truth];
            // What a classifier learns from the labelled rows, of which 0.3 · 0.4 / (0.3 · 0.4 + 0.7 · 0.1) are of class 1.
            let right = rng.random_bool(0.85);
            let (a, b) = (0.7 * 0.1, 0.3 * 0.4);
            let looks_like_one = (truth == 1) == right;
            let odds = (b / a) * if looks_like_one { 0.85 / 0.15 } else { 0.15 / 0.85 };
            (p[[i, 1]], p[[i, 0]]) = (odds / (1.0 + odds), 1.0 / (1.0 + odds));
            y.push(rng.random_bool(phi).then_some(Class::from(truth)));
        }
        let labels = Labels::new(y, vec!["a".into(), "b".into()]).unwrap();
        let posteriors = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
        let evidence = Evidence::predictions(&posteriors, &labels);
        let settings = EstimateSettings { given: Given::None, ..Default::default() };
        let found = settings.run(&evidence, &()).unwrap();
        let drawn = settings.replicate_weights(&evidence, &[], 200, &()).unwrap();
        assert_eq!((drawn.rows.len(), drawn.weights.len(), drawn.failed), (labels.n_labelled(), 200, 0));
        let share = |weights: &[f64]| {
            let of_one = drawn.rows.iter().zip(weights).filter(|(row, _)| labels.get(**row) == Some(Class(1)));
            of_one.map(|(_, weight)| weight).sum::<f64>() / weights.iter().sum::<f64>()
        };
        let shares: Vec<f64> = drawn.weights.iter().map(|weights| share(weights)).collect();
        let mean = shares.iter().sum::<f64>() / 200.0;
        let sd = (shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / 199.0).sqrt();
        let se = found.prevalence_se.unwrap()[1];
        // Both come from 200 replicates, so each is known to 5%.
        assert!((sd / se - 1.0).abs() < 0.15, "{sd} {se}");
        assert!(
            (mean - found.prevalence[1]).abs() < 3.0 * se / 200f64.sqrt() + 0.002,
            "{mean} {}",
            found.prevalence[1]
        );
    }
}

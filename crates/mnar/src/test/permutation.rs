//! The cross-fitted permutation test.
//!
//! Under MCAR, r is exchangeable within a fold given the scores of a classifier trained outside it. The statistic is
//! the score test of "P(r=1|x) = Σ_k phi_k p(k|x) with equal phi": the labelled rows' sum of posteriors, centred within
//! each fold, squared in the metric of its permutation covariance. Permuting r within folds gives the reference
//! distribution, which is exact for one fold. Scores of different folds depend on each other's labels, but the
//! dependence cancels to first order; the size is measured in `results/`.

use super::{TestResult, chi_square_p, sequential_p};
use crate::crossfit::FoldPlan;
use crate::error::Error;
use crate::rows::{Rows, Sample};
use nalgebra::{DMatrix, Dyn, SymmetricEigen};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Settings of the permutation test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PermutationTest {
    /// The largest number of permutations; fewer are drawn where the p-value is clearly not small. With 0 the p-value is that
    /// of the chi-square limit.
    pub permutations: usize,
    /// Seed of the permutations.
    pub seed: u64,
}

impl Default for PermutationTest {
    fn default() -> Self {
        Self { permutations: 9999, seed: 0 }
    }
}

/// Directions whose permutation variance is below this share of the largest hold only rounding error.
const RELATIVE_RANK: f64 = 1e-10;

/// Up to this many rows are drawn by the permutations of one test: seconds.
const AFFORDABLE_ROWS: usize = 40_000_000;
/// Fewer permutations than this are not worth drawing.
const PRECISE: usize = 199;

/// As many of the permutations as are drawn in seconds. Where too few would be left, none: the rows are many then, and the
/// chi-square limit is as good.
pub(crate) fn affordable_permutations(asked: usize, rows: usize) -> usize {
    match AFFORDABLE_ROWS / rows.max(1) {
        few if few < PRECISE => 0,
        affordable => affordable.min(asked),
    }
}

impl PermutationTest {
    /// Tests whether r depends on the scores within the folds of `plan`.
    pub fn run(&self, sample: &Sample<'_>, plan: &FoldPlan) -> Result<TestResult, Error> {
        let whitened = Whitened::new(sample, plan)?;
        let observed = whitened.statistic(whitened.observed.iter().flatten().copied());
        let chi_square = chi_square_p(observed, whitened.rank);
        let (p_value, draws) = match self.permutations {
            0 => (chi_square, 0),
            most => sequential_p(observed, most, |draw| {
                let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
                rng.set_stream(draw + 1);
                let mut chosen = Vec::new();
                for (members, labelled) in whitened.members.iter().zip(&whitened.observed) {
                    // The scores are centred, so the sums over labelled and unlabelled rows are opposite: draw the
                    // smaller set.
                    let few = labelled.len().min(members.len() - labelled.len());
                    let sign = if few == labelled.len() { 1.0 } else { -1.0 };
                    let drawn = rand::seq::index::sample(&mut rng, members.len(), few);
                    chosen.push((sign, drawn.into_iter().map(|i| members[i]).collect::<Vec<_>>()));
                }
                whitened.signed_statistic(&chosen)
            }),
        };
        Ok(TestResult {
            test: "permutation".into(),
            statistic: observed,
            df: Some(whitened.rank),
            p_value,
            p_value_chi_square: Some(chi_square),
            draws,
            condition: match (draws, plan.n_folds()) {
                (0, _) => LIMIT,
                (_, 1) => "exact if the classifier has seen none of these rows",
                _ => "exact within each fold if the classifier of a fold has seen none of its rows; folds are pooled",
            }
            .into(),
        })
    }
}

/// Scores centred within folds and scaled so that the statistic is a squared length.
struct Whitened {
    /// One row of `rank` numbers per data row.
    z: Vec<f64>,
    rank: usize,
    /// The rows of each fold.
    members: Vec<Vec<usize>>,
    /// The labelled rows of each fold.
    observed: Vec<Vec<usize>>,
}

/// The directions of a covariance, of which only the lower triangle is read, and which of them hold more than rounding error.
pub(super) fn directions(mut covariance: DMatrix<f64>) -> Result<(SymmetricEigen<f64, Dyn>, Vec<usize>), Error> {
    covariance.fill_upper_triangle_with_lower_triangle();
    let eigen = covariance.symmetric_eigen();
    let largest = eigen.eigenvalues.max();
    let kept: Vec<usize> = (0..eigen.eigenvalues.len())
        .filter(|&j| largest > 0.0 && eigen.eigenvalues[j] > RELATIVE_RANK * largest)
        .collect();
    if kept.is_empty() {
        return Err(Error::NotIdentified {
            method: "the permutation test",
            why: "all rows of a fold have the same probabilities".into(),
        });
    }
    Ok((eigen, kept))
}

/// When the p-value of the chi-square limit can be trusted.
pub(super) const LIMIT: &str =
    "the chi-square limit of the permutations, if the classifier of a fold has seen none of its rows";

impl Whitened {
    fn new(sample: &Sample<'_>, plan: &FoldPlan) -> Result<Self, Error> {
        let (posteriors, labels) = (sample.posteriors(), sample.labels());
        let (n, k) = (labels.len(), sample.n_classes());
        if plan.folds().len() != n {
            return Err(Error::LengthMismatch { what: "the fold column", found: plan.folds().len(), expected: n });
        }
        let members = plan.members();
        let observed: Vec<Vec<usize>> = members
            .iter()
            .map(|members| members.iter().copied().filter(|&i| labels.is_labelled(i)).collect())
            .collect();
        let mut centred = vec![0.0; n * k];
        let mut covariance = DMatrix::zeros(k, k);
        for (members, labelled) in members.iter().zip(&observed) {
            let size = members.len() as f64;
            let mut fold_covariance = DMatrix::zeros(k, k);
            for j in 0..k {
                let column = posteriors.column(j);
                let mean = members.iter().map(|&i| column[i]).sum::<f64>() / size;
                members.iter().for_each(|&i| centred[i * k + j] = column[i] - mean);
            }
            for &i in members {
                let row = &centred[i * k..(i + 1) * k];
                for a in 0..k {
                    for b in 0..=a {
                        fold_covariance[(a, b)] += row[a] * row[b];
                    }
                }
            }
            // Variance of a sum of n_l of n_f values drawn without replacement.
            let n_l = labelled.len() as f64;
            if size > 1.0 {
                covariance += fold_covariance * (n_l * (size - n_l) / (size * (size - 1.0)));
            }
        }
        let (eigen, kept) = directions(covariance)?;
        let rank = kept.len();
        let mut z = vec![0.0; n * rank];
        for i in 0..n {
            for (a, &j) in kept.iter().enumerate() {
                let direction = eigen.eigenvectors.column(j);
                let sum: f64 = direction.iter().zip(&centred[i * k..(i + 1) * k]).map(|(v, s)| v * s).sum();
                z[i * rank + a] = sum / eigen.eigenvalues[j].sqrt();
            }
        }
        Ok(Self { z, rank, members, observed })
    }

    fn statistic(&self, rows: impl Iterator<Item = usize>) -> f64 {
        self.signed_statistic(&[(1.0, rows.collect())])
    }

    fn signed_statistic(&self, chosen: &[(f64, Vec<usize>)]) -> f64 {
        let mut total = vec![0.0; self.rank];
        let mut part = vec![0.0; self.rank];
        for (sign, rows) in chosen {
            part.fill(0.0);
            for &i in rows {
                part.iter_mut().zip(&self.z[i * self.rank..]).for_each(|(sum, z)| *sum += z);
            }
            total.iter_mut().zip(&part).for_each(|(total, part)| *total += sign * part);
        }
        total.iter().map(|sum| sum * sum).sum()
    }
}

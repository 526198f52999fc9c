//! Tests of MCAR against self-masked MNAR, and a test of self-masking itself.
//!
//! The classifier must not have seen the rows it scores. Comparing a likelihood ratio with chi-square is unsafe either
//! way: the label-shift ratio, which treats the labelled shares as known, rejects a true MCAR hypothesis nearly always,
//! and the paper's ratio with a classifier learnt from the same labels hardly ever does (`results/README.md` measures
//! both). Permuting r within folds needs no such reference.

pub mod beyond_columns;
pub mod bootstrap;
pub mod likelihood_ratio;
pub mod permutation;
pub mod profiled;
pub mod self_masking;
mod streamed;

pub use beyond_columns::BeyondColumns;
pub use bootstrap::{BootstrapTest, BootstrapTests};
pub use likelihood_ratio::likelihood_ratio;
pub use permutation::PermutationTest;
pub(crate) use permutation::affordable_permutations;
pub use profiled::ProfiledRatio;
pub use self_masking::{InSampleCheck, SelfMaskingCheck, in_sample_check, self_masking_check};
pub(crate) use streamed::FoldScores;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor};
use std::borrow::Cow;

/// The outcome of a test of MCAR.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestResult {
    /// Name of the test.
    pub test: Cow<'static, str>,
    /// The test statistic.
    pub statistic: f64,
    /// Its degrees of freedom, if it has any.
    pub df: Option<usize>,
    /// The p-value.
    pub p_value: f64,
    /// The p-value of the chi-square approximation, where `p_value` comes from draws.
    pub p_value_chi_square: Option<f64>,
    /// Number of permutations or bootstrap replicates behind the p-value; 0 for a formula.
    pub draws: usize,
    /// When the p-value can be trusted.
    pub condition: Cow<'static, str>,
}

/// P(chi-square(df) ≥ statistic), computed with the survival function: 1 − cdf would be 0 from about 70 on.
///
/// ```
/// assert!((mnar::test::chi_square_p(5.991464547107979, 2) - 0.05).abs() < 1e-12);
/// ```
pub fn chi_square_p(statistic: f64, df: usize) -> f64 {
    if df == 0 {
        return 1.0;
    }
    ChiSquared::new(df as f64).expect("positive degrees of freedom").sf(statistic.max(0.0))
}

/// The tail of Hotelling's T²: a quadratic form in `df` directions whose covariance was estimated with this many degrees of
/// freedom.
pub(crate) fn hotelling_p(statistic: f64, df: usize, freedom: f64) -> f64 {
    let rest = freedom - df as f64 + 1.0;
    // NaN counts as too few.
    if df == 0 || rest.is_nan() || rest <= 1.0 {
        return 1.0;
    }
    let f = statistic.max(0.0) * rest / (df as f64 * freedom);
    FisherSnedecor::new(df as f64, rest).map_or(1.0, |distribution| distribution.sf(f))
}

/// The p-value from a drawn reference: (1 + draws at least as large) / (1 + draws).
pub(crate) fn drawn_p(statistic: f64, reference: &[f64]) -> f64 {
    let bar = bar(statistic);
    (1 + reference.iter().filter(|value| **value >= bar).count()) as f64 / (1 + reference.len()) as f64
}

/// Values that differ only by the order of summation count as equal.
fn bar(statistic: f64) -> f64 {
    statistic - 1e-9 * statistic.abs()
}

/// Draws at least as large as the statistic after which no more are drawn: the p-value is known to 7% of itself.
const ENOUGH: usize = 200;
/// Draws between two looks at the p-value.
const BATCH: usize = 500;

/// The p-value from at most `most` draws, and how many were made. Once [`ENOUGH`] draws are as large as the statistic, the
/// p-value is their share of the draws up to the last of them (Besag and Clifford's sequential p-value), so a test that is far
/// from rejecting ends early. The same seed gives the same p-value on any number of threads.
pub(crate) fn sequential_p(statistic: f64, most: usize, draw: impl Fn(u64) -> f64 + Sync) -> (f64, usize) {
    let bar = bar(statistic);
    let (mut larger, mut made) = (0, 0);
    while made < most {
        let end = (made + BATCH).min(most);
        let batch: Vec<bool> = (made as u64..end as u64).into_par_iter().map(|number| draw(number) >= bar).collect();
        for is_larger in batch {
            made += 1;
            larger += usize::from(is_larger);
            if larger == ENOUGH {
                return (larger as f64 / made as f64, made);
            }
        }
    }
    ((1 + larger) as f64 / (1 + made) as f64, made)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws 0, 1, ..., 9 over and over: a tenth of them reach 9, and the p-value is exact wherever the draws end.
    #[test]
    fn draws_end_once_the_p_value_is_known() {
        let draw = |number: u64| (number % 10) as f64;
        assert_eq!(sequential_p(9.0, 9_999, draw), (0.1, 10 * ENOUGH));
        assert_eq!(sequential_p(5.0, 9_999, draw), (0.5, 2 * ENOUGH));
        assert_eq!(sequential_p(9.5, 999, draw), (1.0 / 1000.0, 999));
        assert_eq!(sequential_p(9.0, 99, draw), (10.0 / 100.0, 99));
    }
}

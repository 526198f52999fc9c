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

pub use beyond_columns::BeyondColumns;
pub use bootstrap::{BootstrapTest, BootstrapTests};
pub use likelihood_ratio::likelihood_ratio;
pub use permutation::PermutationTest;
pub use profiled::ProfiledRatio;
pub use self_masking::{InSampleCheck, SelfMaskingCheck, in_sample_check, self_masking_check};

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
    // Values that differ only by the order of summation count as equal.
    let bar = statistic - 1e-9 * statistic.abs();
    (1 + reference.iter().filter(|value| **value >= bar).count()) as f64 / (1 + reference.len()) as f64
}

//! The paper's likelihood-ratio statistic for fixed theta, with its chi-square(K−1) reference.

use super::{TestResult, chi_square_p};
use crate::error::Error;
use crate::estimate::Likelihood;
use crate::rows::Rows;
use crate::solver::Solver;
use crate::sums::Tally;

/// 2(ℓ(phi_MCAR) − ℓ(phi̇)), where ℓ is the observed negative log-likelihood at fixed theta. Under MCAR the labelled
/// and the population posterior are the same, so either may be given.
pub fn likelihood_ratio<R: Rows>(rows: &R, solver: &Solver) -> Result<TestResult, Error> {
    let statistic = likelihood_ratio_statistic(rows, solver)?;
    let df = rows.n_classes() - 1;
    Ok(TestResult {
        test: "lrt".into(),
        statistic,
        df: Some(df),
        p_value: chi_square_p(statistic, df),
        p_value_chi_square: None,
        draws: 0,
        condition: "valid if the posteriors are the true ones, such as those of a classifier trained on many other, fully labelled rows; a classifier learnt from these labels matches their counts, which makes the test conservative".into(),
    })
}

pub(crate) fn likelihood_ratio_statistic<R: Rows>(rows: &R, solver: &Solver) -> Result<f64, Error> {
    let tally = Tally::of(rows)?;
    let best = Likelihood { solver: *solver }.solve(rows, &tally)?.value;
    // At phi = n_l/n every A_i equals n_u/n, which gives the binomial log-likelihood of r.
    let (n_l, n_u, n) = (tally.n_labelled(), tally.n_unlabelled, tally.n());
    let mcar = n_l * (n_l / n).ln() + n_u * (n_u / n).ln();
    Ok((2.0 * (best - mcar)).max(0.0))
}

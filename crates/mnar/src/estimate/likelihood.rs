//! Maximum of the observed likelihood for fixed theta, for population posteriors.
//!
//! In u = 1 − phi it is the mixture problem with b_k = n_k: Newton with the Hessian of the paper's appendix, n_k/phi_k²
//! [k = l] + Σ_{i∈U} p_ik p_il / A_i², A_i = Σ_k p_ik (1 − phi_k). The paper's constraint Σ c_k/phi_k = 1 holds by
//! itself at an interior optimum, and a class at phi_k = 1 stays there as long as the gradient points beyond the
//! boundary.

use super::{Covariance, Estimator, PhiEstimate, at_one, blank, inverse_over};
use crate::error::Error;
use crate::phi::Phi;
use crate::rows::Rows;
use crate::shares::ClassShares;
use crate::solver::{Solution, Solver, Terms, maximise};
use crate::sums::Tally;
use nalgebra::DMatrix;

/// The maximum likelihood estimator for fixed theta.
#[derive(Clone, Copy, Debug, Default)]
pub struct Likelihood {
    /// Settings of the solver.
    pub solver: Solver,
}

impl Likelihood {
    /// The observed likelihood as a problem in u = 1 − phi.
    pub(crate) fn terms(tally: &Tally) -> Terms {
        let k = tally.counts.len();
        Terms { log_v: vec![0.0; k], log_rest: tally.counts.clone(), cost: vec![0.0; k], held: None }
    }

    /// The optimum, whichever kind the posteriors are: under MCAR both kinds are the same, and tests of MCAR need that.
    pub(crate) fn solve<R: Rows>(&self, rows: &R, tally: &Tally) -> Result<Solution, Error> {
        let start = vec![tally.n_unlabelled / tally.n(); tally.counts.len()];
        maximise(rows, &Self::terms(tally), start, tally.n_unlabelled, &self.solver)
    }
}

impl Estimator for Likelihood {
    fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        let tally = Tally::of(rows)?;
        let solution = self.solve(rows, &tally)?;
        let k = tally.counts.len();
        let (n, n_u) = (tally.n(), tally.n_unlabelled);
        let phi = Phi::new(solution.v.iter().map(|u| 1.0 - u).collect())?;
        // u_k G_k is the expected number of unlabelled rows of class k; together with n_k it sums to n even on the
        // boundary.
        let expected: Vec<f64> = solution.v.iter().zip(&solution.sums.gradient).map(|(u, g)| u * g).collect();
        let covariance =
            (k <= self.solver.full_matrix_classes).then(|| self.covariance(&tally, &phi, &solution)).flatten();
        Ok(PhiEstimate {
            method: "likelihood",
            clipped: at_one(&phi),
            prevalence: ClassShares::estimated(
                expected.iter().zip(&tally.counts).map(|(m, count)| (m + count) / n).collect(),
            ),
            unlabelled_shares: ClassShares::estimated(expected.iter().map(|m| m / n_u).collect()),
            phi,
            covariance,
            stop: solution.stop,
            log_likelihood: Some(solution.value),
            prior_weight: 0.0,
            tally,
            shape: None,
        })
    }
}

impl Likelihood {
    /// The inverse of the observed information, and the delta method for c_k/phi_k.
    fn covariance(&self, tally: &Tally, phi: &Phi, solution: &Solution) -> Option<Covariance> {
        let k = phi.len();
        let n = tally.n();
        let free: Vec<usize> = (0..k).filter(|&j| solution.v[j] > 0.0).collect();
        let inverse = inverse_over(&Self::terms(tally).hessian(&solution.sums, &solution.v), &free)?;
        // Cov(r 1[y=k], score_j) = δ_kj c_k/phi_k, so Cov(c_k, phi_j) = (c_k/phi_k) (I⁻¹)_kj.
        let c: Vec<f64> = tally.counts.iter().map(|count| count / n).collect();
        let prevalence = DMatrix::from_fn(k, k, |a, b| {
            let counts = (if a == b { c[a] } else { 0.0 } - c[a] * c[b]) / n;
            let cross_ab = c[a] / phi[a] * inverse[(a, b)];
            let cross_ba = c[b] / phi[b] * inverse[(b, a)];
            let (da, db) = (c[a] / phi[a].powi(2), c[b] / phi[b].powi(2));
            counts / (phi[a] * phi[b]) - db / phi[a] * cross_ab - da / phi[b] * cross_ba + da * db * inverse[(a, b)]
        });
        let mut covariance = Covariance { phi: inverse, prevalence };
        for j in (0..k).filter(|&j| solution.v[j] == 0.0) {
            blank(&mut covariance.phi, j);
        }
        Some(covariance)
    }
}

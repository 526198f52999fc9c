//! Estimators of the mechanism phi, one per file. They take posteriors and labels, never features, so any model of any
//! framework can be used.

pub mod confusion;
pub mod known;
pub mod label_shift;
pub mod likelihood;
pub mod moments;

pub use confusion::ConfusionInversion;
pub use known::KnownPhi;
pub use label_shift::{LabelShift, SharePrior, SourceShares};
pub use likelihood::Likelihood;
pub use moments::{Moments, Shares};

use crate::error::Error;
use crate::labels::Class;
use crate::phi::Phi;
use crate::rows::Rows;
use crate::shares::ClassShares;
use crate::sums::Tally;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

/// Estimates the mechanism from posteriors and labels.
pub trait Estimator {
    /// Estimates phi, the class shares, and their uncertainty.
    fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error>;
}

/// Why an estimator stopped. Not converging is a result, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "stop", rename_all = "snake_case")]
pub enum Stop {
    /// A formula: nothing was iterated.
    ClosedForm,
    /// No entry moved by more than the tolerance.
    Converged {
        /// Number of steps taken.
        iterations: usize,
        /// Number of passes over the rows.
        passes: usize,
    },
    /// The maximum number of steps was reached.
    MaxIterations {
        /// Number of steps taken.
        iterations: usize,
        /// Number of passes over the rows.
        passes: usize,
    },
    /// No step improved the likelihood further, although the tolerance was not met.
    NoProgress {
        /// Number of steps taken.
        iterations: usize,
        /// Number of passes over the rows.
        passes: usize,
    },
}

impl Stop {
    /// The same after earlier passes.
    pub(crate) fn after(self, earlier: usize) -> Self {
        match self {
            Stop::ClosedForm => self,
            Stop::Converged { iterations, passes } => Stop::Converged { iterations, passes: passes + earlier },
            Stop::MaxIterations { iterations, passes } => Stop::MaxIterations { iterations, passes: passes + earlier },
            Stop::NoProgress { iterations, passes } => Stop::NoProgress { iterations, passes: passes + earlier },
        }
    }

    /// Whether the result is an optimum (or a formula).
    pub fn converged(self) -> bool {
        matches!(self, Stop::ClosedForm | Stop::Converged { .. })
    }
}

/// Covariances, conditional on the classifier. Entries of classes on the boundary are NaN, since they have no normal
/// limit; use a profile-likelihood interval for them instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariance {
    /// Covariance of phi.
    pub phi: DMatrix<f64>,
    /// Covariance of the class shares.
    pub prevalence: DMatrix<f64>,
}

/// An estimated mechanism.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PhiEstimate {
    /// Name of the estimator.
    pub method: &'static str,
    /// P(labelled | class).
    pub phi: Phi,
    /// P(class) in the whole population.
    pub prevalence: ClassShares,
    /// P(class | unlabelled).
    pub unlabelled_shares: ClassShares,
    /// Covariances; `None` where they would need a K × K matrix that was not asked for.
    pub covariance: Option<Covariance>,
    /// Why the estimator stopped.
    pub stop: Stop,
    /// Classes whose phi is 1 (the estimate would exceed it, or the boundary is the optimum).
    pub clipped: Vec<Class>,
    /// The maximised log-likelihood, where there is one.
    pub log_likelihood: Option<f64>,
    /// Weight of the Dirichlet prior, in rows; 0 without one.
    pub prior_weight: f64,
    /// Label counts and sums that the estimate rests on.
    pub tally: Tally,
    /// Matrices that tell how well phi is identified, where a pass had them anyway.
    pub(crate) shape: Option<Shape>,
}

/// Matrices of classes by classes at an estimate.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Σ_U s s' / (w·s)² at the estimated ratios w.
    pub(crate) information: DMatrix<f64>,
    /// Σ_L 1[y = k] s_j at (j, k).
    pub(crate) confusion: DMatrix<f64>,
}

impl PhiEstimate {
    /// Standard errors of phi, NaN for a class on the boundary.
    pub fn standard_errors(&self) -> Option<Vec<f64>> {
        self.covariance.as_ref().map(|covariance| square_roots(&covariance.phi))
    }

    /// Standard errors of the class shares.
    pub fn prevalence_standard_errors(&self) -> Option<Vec<f64>> {
        self.covariance.as_ref().map(|covariance| square_roots(&covariance.prevalence))
    }

    /// Normal intervals on the logit scale, so that they stay inside (0, 1). They are conditional on the classifier and
    /// ignore that the posteriors were learnt. NaN for a class on the boundary.
    pub fn conf_int(&self, level: f64) -> Option<Vec<(f64, f64)>> {
        let se = self.standard_errors()?;
        Some(self.phi.as_slice().iter().zip(se).map(|(&phi, se)| logit_interval(phi, se, level)).collect())
    }

    /// Intervals of the class shares, like [`PhiEstimate::conf_int`].
    pub fn prevalence_conf_int(&self, level: f64) -> Option<Vec<(f64, f64)>> {
        let se = self.prevalence_standard_errors()?;
        Some(self.prevalence.iter().zip(se).map(|(&share, se)| logit_interval(share, se, level)).collect())
    }
}

fn square_roots(covariance: &DMatrix<f64>) -> Vec<f64> {
    covariance.diagonal().iter().map(|variance| variance.sqrt()).collect()
}

/// logit⁻¹(logit(p) ± z·se/(p(1−p))).
pub(crate) fn logit_interval(p: f64, se: f64, level: f64) -> (f64, f64) {
    let logit = (p / (1.0 - p)).ln();
    let half = normal_quantile(level) * se / (p * (1.0 - p));
    let back = |x: f64| 1.0 / (1.0 + (-x).exp());
    (back(logit - half), back(logit + half))
}

/// z with P(|Z| ≤ z) = level.
pub(crate) fn normal_quantile(level: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + level / 2.0)
}

/// phi_k = 1/(1 + (n_u/n_l) w_k) and what follows from it, shared by the estimators of the class ratios w.
pub(crate) struct FromRatios<'a> {
    pub(crate) tally: &'a Tally,
    /// w = q_u / π_l, non-negative.
    pub(crate) w: &'a [f64],
    /// The π_l that w refers to.
    pub(crate) source: &'a [f64],
}

impl FromRatios<'_> {
    pub(crate) fn phi(&self) -> Result<Phi, Error> {
        let odds = self.tally.n_unlabelled / self.tally.n_labelled();
        Phi::new(self.w.iter().map(|w| 1.0 / (1.0 + odds * w)).collect())
    }

    /// q_k = π_k w_k.
    pub(crate) fn unlabelled_shares(&self) -> ClassShares {
        ClassShares::estimated(self.source.iter().zip(self.w).map(|(pi, w)| pi * w).collect())
    }

    /// p(y) = (n_k + n_u q_k) / n.
    pub(crate) fn prevalence(&self) -> ClassShares {
        let n = self.tally.n();
        let unlabelled = self.unlabelled_shares();
        let shares = unlabelled.iter().zip(&self.tally.counts);
        ClassShares::estimated(shares.map(|(q, count)| (count + self.tally.n_unlabelled * q) / n).collect())
    }

    /// The delta method from (ρ, labelled statistics, w). In `parts`, all given n_l and n_u, `w` is Cov(w), `source`
    /// the covariance of the source shares π, `label_source` that of the label shares n_k/n_l with π, `label_w` that of
    /// the label shares with w and `source_w` that of π with w. Classes on the boundary get NaN.
    pub(crate) fn covariance(&self, parts: &RatioCovariance) -> Covariance {
        let k = self.w.len();
        let (n_l, n_u) = (self.tally.n_labelled(), self.tally.n_unlabelled);
        let (n, odds) = (self.tally.n(), n_u / n_l);
        let rho = n_l / n;
        let w = self.w;
        // e = (n_u/n_l) w; Var log(n_u/n_l) = 1/n_l + 1/n_u; dphi = −phi² de.
        let phi = |j: usize| 1.0 / (1.0 + odds * w[j]);
        let phi_cov = DMatrix::from_fn(k, k, |a, b| {
            let e = odds * odds * (parts.w[(a, b)] + w[a] * w[b] * (1.0 / n_l + 1.0 / n_u));
            (phi(a) * phi(b)).powi(2) * e
        });
        // p_k = ρ l_k + (1−ρ) π_k w_k with l the label shares: a linear map of (ρ, l, π, w).
        let labels = self.tally.labelled_shares();
        let rho_variance = rho * (1.0 - rho) / n;
        let prevalence_cov = DMatrix::from_fn(k, k, |a, b| {
            let d_rho = |j: usize| labels[j] - self.source[j] * w[j];
            let (da_pi, db_pi) = ((1.0 - rho) * w[a], (1.0 - rho) * w[b]);
            let (da_w, db_w) = ((1.0 - rho) * self.source[a], (1.0 - rho) * self.source[b]);
            let label_cov = (if a == b { labels[a] } else { 0.0 } - labels[a] * labels[b]) / n_l;
            d_rho(a) * d_rho(b) * rho_variance
                + rho * rho * label_cov
                + rho * (db_pi * parts.label_source[(a, b)] + da_pi * parts.label_source[(b, a)])
                + rho * (db_w * parts.label_w[(a, b)] + da_w * parts.label_w[(b, a)])
                + da_pi * db_pi * parts.source[(a, b)]
                + da_pi * db_w * parts.source_w[(a, b)]
                + da_w * db_pi * parts.source_w[(b, a)]
                + da_w * db_w * parts.w[(a, b)]
        });
        let mut covariance = Covariance { phi: phi_cov, prevalence: prevalence_cov };
        for (j, &ratio) in w.iter().enumerate() {
            if ratio == 0.0 {
                blank(&mut covariance.phi, j);
            }
        }
        covariance
    }
}

/// The covariances [`FromRatios::covariance`] starts from, all given n_l and n_u.
pub(crate) struct RatioCovariance {
    pub(crate) w: DMatrix<f64>,
    pub(crate) source: DMatrix<f64>,
    pub(crate) label_source: DMatrix<f64>,
    pub(crate) label_w: DMatrix<f64>,
    pub(crate) source_w: DMatrix<f64>,
}

/// Marks a class as having no normal limit.
pub(crate) fn blank(covariance: &mut DMatrix<f64>, j: usize) {
    covariance.row_mut(j).fill(f64::NAN);
    covariance.column_mut(j).fill(f64::NAN);
}

/// Classes whose phi is exactly one.
pub(crate) fn at_one(phi: &Phi) -> Vec<Class> {
    phi.as_slice().iter().enumerate().filter(|(_, phi)| **phi == 1.0).map(|(k, _)| Class::from(k)).collect()
}

/// (M_FF)⁻¹ placed into a K × K matrix of zeros; `None` where it is singular.
pub(crate) fn inverse_over(matrix: &DMatrix<f64>, free: &[usize]) -> Option<DMatrix<f64>> {
    let inverse = matrix.select_rows(free).select_columns(free).try_inverse()?;
    let mut out = DMatrix::zeros(matrix.nrows(), matrix.ncols());
    for (a, &j) in free.iter().enumerate() {
        for (b, &l) in free.iter().enumerate() {
            out[(j, l)] = inverse[(a, b)];
        }
    }
    out.iter().all(|value| value.is_finite()).then_some(out)
}

/// diag(π) − ππ'.
pub(crate) fn multinomial(shares: &[f64]) -> DMatrix<f64> {
    DMatrix::from_fn(shares.len(), shares.len(), |a, b| if a == b { shares[a] } else { 0.0 } - shares[a] * shares[b])
}

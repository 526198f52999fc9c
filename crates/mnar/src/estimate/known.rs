//! A known mechanism: the oracle of a simulation, or a survey whose sampling rates are documented.

use super::{Covariance, Estimator, PhiEstimate, Stop};
use crate::error::Error;
use crate::phi::Phi;
use crate::rows::Rows;
use crate::shares::ClassShares;
use crate::sums::Tally;
use nalgebra::DMatrix;

/// Known phi. The class shares are then c_k/phi_k, divided by their sum.
#[derive(Clone, Debug)]
pub struct KnownPhi(pub Phi);

impl Estimator for KnownPhi {
    fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        let k = rows.n_classes();
        let phi = self.0.clone();
        if phi.len() != k {
            return Err(Error::ClassCountMismatch {
                found: phi.len(),
                expected: k,
                classes: crate::error::list_names(rows.names()),
            });
        }
        let tally = Tally::of(rows)?;
        let n = tally.n();
        let c: Vec<f64> = tally.counts.iter().map(|count| count / n).collect();
        let inverse: Vec<f64> = c.iter().zip(phi.as_slice()).map(|(c, phi)| c / phi).collect();
        let total: f64 = inverse.iter().sum();
        let prevalence: Vec<f64> = inverse.iter().map(|p| p / total).collect();
        // dp_k = Σ_j (δ_kj − p_k) dc_j / (phi_j total).
        let counts = super::multinomial(&c) / n;
        let jacobian =
            DMatrix::from_fn(k, k, |a, j| (if a == j { 1.0 } else { 0.0 } - prevalence[a]) / (phi[j] * total));
        let unlabelled: Vec<f64> = (0..k).map(|j| prevalence[j] * (1.0 - phi[j])).collect();
        let unlabelled_total: f64 = unlabelled.iter().sum();
        if unlabelled_total == 0.0 {
            return Err(Error::OutOfRange {
                name: "phi",
                value: "1 for every class".into(),
                range: "below 1 for at least one class, since there are unlabelled rows",
            });
        }
        Ok(PhiEstimate {
            method: "known",
            phi,
            unlabelled_shares: ClassShares::estimated(unlabelled.iter().map(|q| q / unlabelled_total).collect()),
            prevalence: ClassShares::estimated(prevalence),
            covariance: Some(Covariance {
                phi: DMatrix::zeros(k, k),
                prevalence: &jacobian * counts * jacobian.transpose(),
            }),
            stop: Stop::ClosedForm,
            clipped: Vec::new(),
            log_likelihood: None,
            prior_weight: 0.0,
            tally,
            shape: None,
        })
    }
}

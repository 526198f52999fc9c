//! Risk weights: inverse propensity weighting (the IPW risk) and its extension to any semi-supervised loss (the
//! debiased SSL risk). Weights are exact; they are never renormalised per batch, which would bias the risk again.

use crate::error::Error;
use crate::labels::Class;
use crate::phi::Phi;

/// The factors that multiply a row's losses in n·R̂, with R̂ the debiased SSL risk.
#[derive(Clone, Debug, PartialEq)]
pub struct RiskWeights {
    /// 1/phi_k: factor of the labelled loss of a row labelled k.
    pub ell: Vec<f64>,
    /// −(1 − phi_k)/phi_k: factor of lambda times the unlabelled loss of a row labelled k.
    pub h_labelled: Vec<f64>,
    /// 1: factor of lambda times the unlabelled loss of an unlabelled row.
    pub h_unlabelled: f64,
}

impl RiskWeights {
    /// The weights of a mechanism.
    ///
    /// ```
    /// use mnar::{Phi, risk::RiskWeights};
    /// let weights = RiskWeights::new(&Phi::new(vec![0.25, 1.0])?);
    /// assert_eq!(weights.ell, [4.0, 1.0]);
    /// assert_eq!(weights.h_labelled, [-3.0, 0.0]);
    /// # Ok::<(), mnar::Error>(())
    /// ```
    pub fn new(phi: &Phi) -> Self {
        Self {
            ell: phi.as_slice().iter().map(|phi| 1.0 / phi).collect(),
            h_labelled: phi.as_slice().iter().map(|phi| -(1.0 - phi) / phi).collect(),
            h_unlabelled: 1.0,
        }
    }

    /// Factor of the labelled loss of a row.
    pub fn ell(&self, label: Option<Class>) -> f64 {
        label.map_or(0.0, |class| self.ell[class.index()])
    }

    /// Factor of lambda times the unlabelled loss of a row: −(r − phi_y)/phi_y.
    pub fn h(&self, label: Option<Class>) -> f64 {
        label.map_or(self.h_unlabelled, |class| self.h_labelled[class.index()])
    }
}

/// The IPW risk, (1/n) Σ r_i ℓ_i / phi_{y_i}. `losses` has one entry per row; those of unlabelled rows are not read.
pub fn ipw_risk(losses: &[f64], labels: &[Option<Class>], phi: &Phi) -> Result<f64, Error> {
    check_length("the list of losses", losses.len(), labels.len())?;
    let weights = RiskWeights::new(phi);
    let sum: f64 = labels
        .iter()
        .zip(losses)
        .filter(|(label, _)| label.is_some())
        .map(|(label, loss)| weights.ell(*label) * loss)
        .sum();
    Ok(sum / labels.len() as f64)
}

/// The debiased SSL risk: the IPW risk minus (lambda/n) Σ (r_i − phi_{y_i})/phi_{y_i} · h_i, with h the unlabelled loss
/// of every row. For an unlabelled row the factor is 1, whatever its class.
pub fn ssl_risk(
    losses: &[f64],
    unlabelled_losses: &[f64],
    labels: &[Option<Class>],
    phi: &Phi,
    lambda: f64,
) -> Result<f64, Error> {
    check_length("the list of unlabelled losses", unlabelled_losses.len(), labels.len())?;
    let weights = RiskWeights::new(phi);
    let sum: f64 = labels.iter().zip(unlabelled_losses).map(|(label, h)| weights.h(*label) * h).sum();
    Ok(ipw_risk(losses, labels, phi)? + lambda * sum / labels.len() as f64)
}

fn check_length(what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::LengthMismatch { what, found, expected }) }
}

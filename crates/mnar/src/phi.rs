//! The mechanism: phi_k = P(r = 1 | y = k).

use crate::error::Error;
use crate::shares::ClassShares;
use serde::{Deserialize, Serialize};

/// P(labelled | class), one entry per class, each in (0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Phi(Vec<f64>);

impl Phi {
    /// Checks that every entry is in (0, 1].
    pub fn new(phi: Vec<f64>) -> Result<Self, Error> {
        match phi.iter().find(|&&value| !(value > 0.0 && value <= 1.0)) {
            Some(value) => Err(Error::OutOfRange {
                name: "phi",
                value: value.to_string(),
                range: "above 0 and at most 1 for every class",
            }),
            None => Ok(Self(phi)),
        }
    }

    /// The constant mechanism of the MCAR hypothesis, n_l / n for every class.
    pub fn constant(n_labelled: usize, n: usize, n_classes: usize) -> Result<Self, Error> {
        Self::new(vec![n_labelled as f64 / n as f64; n_classes])
    }

    /// The mechanism where every row is labelled.
    pub fn all_labelled(n_classes: usize) -> Self {
        Self(vec![1.0; n_classes])
    }

    /// The mechanism that follows from known class shares: phi_k = (n_k / n) / p(k), at most 1.
    ///
    /// ```
    /// use mnar::{ClassShares, Phi};
    /// let phi = Phi::from_shares(&[10, 30], 100, &ClassShares::new(vec![0.5, 0.5])?)?;
    /// assert_eq!(phi.as_slice(), [0.2, 0.6]);
    /// # Ok::<(), mnar::Error>(())
    /// ```
    pub fn from_shares(label_counts: &[usize], n: usize, shares: &ClassShares) -> Result<Self, Error> {
        let n = n as f64;
        let phi = label_counts.iter().zip(shares.iter()).map(|(&count, share)| (count as f64 / n / share).min(1.0));
        Self::new(phi.collect())
    }

    /// The entries as a slice.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// K, the number of classes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, one by one.
    pub fn iter(&self) -> std::slice::Iter<'_, f64> {
        self.0.iter()
    }

    /// The largest entry.
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::MIN, f64::max)
    }

    /// Σ(φ̂−φ*)² / Σφ*², the "MSE φ" of the paper's tables, `self` being the estimate.
    ///
    /// ```
    /// use mnar::Phi;
    /// let truth = Phi::new(vec![0.3, 0.4])?;
    /// assert!((Phi::new(vec![0.3, 0.1])?.normalised_mse(&truth) - 0.36).abs() < 1e-12);
    /// # Ok::<(), mnar::Error>(())
    /// ```
    pub fn normalised_mse(&self, truth: &Phi) -> f64 {
        let error: f64 = self.0.iter().zip(&truth.0).map(|(a, b)| (a - b).powi(2)).sum();
        error / truth.0.iter().map(|b| b * b).sum::<f64>()
    }
}

impl From<Phi> for Vec<f64> {
    fn from(phi: Phi) -> Self {
        phi.0
    }
}

impl TryFrom<Vec<f64>> for Phi {
    type Error = Error;
    fn try_from(phi: Vec<f64>) -> Result<Self, Error> {
        Self::new(phi)
    }
}

impl std::ops::Index<usize> for Phi {
    type Output = f64;
    fn index(&self, k: usize) -> &f64 {
        &self.0[k]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_outside_the_half_open_interval_are_refused() {
        for bad in [0.0, -0.1, 1.0 + 1e-12, f64::NAN, f64::INFINITY] {
            assert!(Phi::new(vec![0.5, bad]).is_err(), "{bad}");
        }
        assert!(Phi::new(vec![1.0, 1e-300]).is_ok());
        assert!(serde_json::from_str::<Phi>("[0.5, 1.5]").is_err());
    }
}

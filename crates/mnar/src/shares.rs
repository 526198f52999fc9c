//! Class shares: how common each class is.

use crate::error::Error;
use serde::{Deserialize, Serialize};

/// The share of each class, in the order of the classes.
///
/// [`ClassShares::new`] checks shares that someone claims to know. Estimated shares are kept as the estimator found them:
/// a moment estimator that had to clip a class returns shares that do not sum to one.
///
/// ```
/// use mnar::ClassShares;
/// assert_eq!(ClassShares::new(vec![0.25, 0.75])?.as_slice(), [0.25, 0.75]);
/// assert!(ClassShares::new(vec![0.5, 0.6]).is_err());
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ClassShares(Vec<f64>);

impl ClassShares {
    /// Known shares: every one positive, together one (within 1e-6).
    pub fn new(shares: Vec<f64>) -> Result<Self, Error> {
        if let Some(value) = shares.iter().find(|value| !(**value > 0.0 && value.is_finite())) {
            return Err(Error::OutOfRange {
                name: "a class share",
                value: value.to_string(),
                range: "above 0 for every class",
            });
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(Error::OutOfRange { name: "the sum of the class shares", value: sum.to_string(), range: "1" });
        }
        Ok(Self(shares))
    }

    /// Shares as an estimator found them.
    pub(crate) fn estimated(shares: Vec<f64>) -> Self {
        Self(shares)
    }

    /// The share of each class in complete counts.
    ///
    /// ```
    /// assert_eq!(mnar::ClassShares::of_counts(&[1, 3]).as_slice(), [0.25, 0.75]);
    /// ```
    pub fn of_counts(counts: &[usize]) -> Self {
        let total: usize = counts.iter().sum();
        Self(counts.iter().map(|&count| count as f64 / total as f64).collect())
    }

    /// The shares as a slice.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The shares, one by one.
    pub fn iter(&self) -> std::slice::Iter<'_, f64> {
        self.0.iter()
    }
}

impl std::ops::Index<usize> for ClassShares {
    type Output = f64;
    fn index(&self, k: usize) -> &f64 {
        &self.0[k]
    }
}

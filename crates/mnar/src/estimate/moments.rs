//! The moment estimator, phi_k = c_k / p(k), with the class shares p known or averaged from the posteriors.
//!
//! With mean posteriors it is consistent for *population* posteriors only. With labelled posteriors it is the
//! classify-and-count of the quantification literature, which is not consistent.

use super::{Covariance, Estimator, PhiEstimate, blank};
use crate::error::Error;
use crate::labels::Class;
use crate::phi::Phi;
use crate::posteriors::PosteriorKind;
use crate::rows::Rows;
use crate::shares::ClassShares;
use crate::sums::{SecondMoments, Tally};
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

/// Where the class shares p(y) come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "GivenShares", into = "GivenShares")]
pub enum Shares {
    /// The mean population posterior.
    MeanPosterior,
    /// All classes equally common.
    Balanced,
    /// Known from elsewhere.
    Known(ClassShares),
}

/// [`Shares`] as they are written: a word, or one share per class.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "the class shares must be \"balanced\", \"mean-posterior\" or one number per class")]
enum GivenShares {
    Word(SharesWord),
    Known(Vec<f64>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SharesWord {
    MeanPosterior,
    Balanced,
}

impl TryFrom<GivenShares> for Shares {
    type Error = Error;
    fn try_from(given: GivenShares) -> Result<Self, Error> {
        Ok(match given {
            GivenShares::Word(SharesWord::MeanPosterior) => Self::MeanPosterior,
            GivenShares::Word(SharesWord::Balanced) => Self::Balanced,
            GivenShares::Known(shares) => Self::Known(ClassShares::new(shares)?),
        })
    }
}

impl From<Shares> for GivenShares {
    fn from(shares: Shares) -> Self {
        match shares {
            Shares::MeanPosterior => Self::Word(SharesWord::MeanPosterior),
            Shares::Balanced => Self::Word(SharesWord::Balanced),
            Shares::Known(shares) => Self::Known(shares.as_slice().to_vec()),
        }
    }
}

/// The moment estimator.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Where p(y) comes from.
    pub shares: Shares,
    /// Up to this many classes the K × K covariance is formed.
    pub full_matrix_classes: usize,
}

impl Moments {
    /// A moment estimator with the given class shares.
    pub fn new(shares: Shares) -> Self {
        Self { shares, full_matrix_classes: 256 }
    }
}

impl Estimator for Moments {
    fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        let k = rows.n_classes();
        let tally = Tally::of(rows)?;
        let n = tally.n();
        let c: Vec<f64> = tally.counts.iter().map(|count| count / n).collect();
        let prevalence = match &self.shares {
            Shares::Balanced => vec![1.0 / k as f64; k],
            Shares::Known(shares) => per_class(shares, k)?,
            Shares::MeanPosterior if rows.kind() == PosteriorKind::Labelled => {
                return Err(Error::WrongPosterior {
                    method: "the moment estimator with mean posteriors",
                    needed: PosteriorKind::Population.name(),
                    given: PosteriorKind::Labelled.name(),
                    hint: "a classifier trained on the labelled rows alone makes it inconsistent; use the label-shift estimator",
                });
            }
            Shares::MeanPosterior => {
                tally.labelled_mass.iter().zip(&tally.unlabelled_mass).map(|(l, u)| (l + u) / n).collect()
            }
        };
        let raw: Vec<f64> = c.iter().zip(&prevalence).map(|(c, p)| c / p).collect();
        let clipped: Vec<Class> = (0..k).filter(|&j| raw[j] > 1.0).map(Class::from).collect();
        let covariance = if k <= self.full_matrix_classes {
            Some(self.covariance(rows, &tally, &c, &prevalence, &raw)?)
        } else {
            None
        };
        Ok(PhiEstimate {
            method: match self.shares {
                Shares::MeanPosterior => "moments",
                Shares::Balanced | Shares::Known(_) => "moments-known-shares",
            },
            phi: Phi::new(raw.iter().map(|phi| phi.min(1.0)).collect())?,
            // Shares of the unlabelled rows: what is left of p(y) once the labelled rows are taken out.
            unlabelled_shares: ClassShares::estimated(
                prevalence.iter().zip(&c).map(|(p, c)| (p - c).max(0.0) * n / tally.n_unlabelled).collect(),
            ),
            prevalence: ClassShares::estimated(prevalence),
            covariance,
            stop: super::Stop::ClosedForm,
            clipped,
            log_likelihood: None,
            prior_weight: 0.0,
            tally,
            shape: None,
        })
    }
}

impl Moments {
    /// Rows are independent draws of (r 1[y=k], p_k): dphi_k = (dc_k − phi_k dp_k) / p_k.
    fn covariance<R: Rows>(
        &self,
        rows: &R,
        tally: &Tally,
        c: &[f64],
        p: &[f64],
        raw: &[f64],
    ) -> Result<Covariance, Error> {
        let k = c.len();
        let n = tally.n();
        let counts = super::multinomial(c) / n;
        let (cross, shares) = if self.shares == Shares::MeanPosterior {
            let moments = SecondMoments::of(rows, vec![1.0; k], true)?;
            let confusion = moments.confusion() / n;
            let second = (moments.labelled() + moments.unlabelled()) / n;
            (
                DMatrix::from_fn(k, k, |a, b| (confusion[(b, a)] - c[a] * p[b]) / n),
                DMatrix::from_fn(k, k, |a, b| (second[(a, b)] - p[a] * p[b]) / n),
            )
        } else {
            (DMatrix::zeros(k, k), DMatrix::zeros(k, k))
        };
        let mut phi = DMatrix::from_fn(k, k, |a, b| {
            let sum =
                counts[(a, b)] - raw[b] * cross[(a, b)] - raw[a] * cross[(b, a)] + raw[a] * raw[b] * shares[(a, b)];
            sum / (p[a] * p[b])
        });
        for j in (0..k).filter(|&j| raw[j] > 1.0) {
            blank(&mut phi, j);
        }
        Ok(Covariance { phi, prevalence: shares })
    }
}

/// One share per class, divided by their sum, which is 1 but for rounding.
fn per_class(shares: &ClassShares, k: usize) -> Result<Vec<f64>, Error> {
    let sum: f64 = shares.iter().sum();
    if shares.len() != k {
        return Err(Error::OutOfRange {
            name: "the known class shares",
            value: format!("a list of {}", shares.len()),
            range: "one share per class",
        });
    }
    Ok(shares.iter().map(|share| share / sum).collect())
}

//! The moment estimator, phi_k = c_k / p(k), with class shares p that are known, averaged from the posteriors (the mean
//! posterior), or supplied by a training loop through a running average (the share buffer).
//!
//! With mean posteriors it is consistent for *population* posteriors only. With labelled posteriors it is the
//! classify-and-count of the quantification literature, which is not consistent.

use super::{Covariance, Estimator, PhiEstimate, blank};
use crate::error::Error;
use crate::labels::Class;
use crate::phi::Phi;
use crate::posteriors::PosteriorKind;
use crate::rows::Rows;
use crate::sums::{SecondMoments, Tally};
use nalgebra::DMatrix;

/// Where the class shares p(y) come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Shares {
    /// The mean population posterior.
    MeanPosterior,
    /// All classes equally common.
    Balanced,
    /// Known from elsewhere: one positive share per class, summing to 1.
    Known(Vec<f64>),
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
            Shares::Known(shares) => check_shares(shares, k)?,
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
            // Shares of the unlabelled rows: what remains of p(y) once the labelled rows are taken out.
            unlabelled_shares: prevalence
                .iter()
                .zip(&c)
                .map(|(p, c)| (p - c).max(0.0) * n / tally.n_unlabelled)
                .collect(),
            prevalence,
            covariance,
            stop: super::Stop::ClosedForm,
            clipped,
            log_likelihood: None,
            prior_weight: 0.0,
            tally,
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

fn check_shares(shares: &[f64], k: usize) -> Result<Vec<f64>, Error> {
    let sum: f64 = shares.iter().sum();
    let valid = shares.len() == k && shares.iter().all(|share| *share > 0.0) && (sum - 1.0).abs() <= 1e-6;
    if !valid {
        return Err(Error::OutOfRange {
            name: "the known class shares",
            value: format!("{shares:?} (sum {sum})"),
            range: "one positive share per class, summing to 1",
        });
    }
    Ok(shares.iter().map(|share| share / sum).collect())
}

/// The share buffer: class shares as a moving average over the batches of a training loop, starting at 1/K.
///
/// ```
/// let mut buffer = mnar::estimate::ShareBuffer::new(2, 0.99);
/// buffer.update(&[1.0, 0.0]);
/// assert!((buffer.shares()[0] - 0.505).abs() < 1e-12);
/// // 30 of 1000 rows are labelled 0 and 10 are labelled 1:
/// let phi = buffer.phi(&[30, 10], 1000)?;
/// assert!((phi[0] - 0.03 / 0.505).abs() < 1e-12);
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ShareBuffer {
    momentum: f64,
    shares: Vec<f64>,
}

impl ShareBuffer {
    /// Starts at 1/K for every class; `momentum` is the paper's mu, 0.99 in its experiments.
    pub fn new(n_classes: usize, momentum: f64) -> Self {
        Self { momentum, shares: vec![1.0 / n_classes as f64; n_classes] }
    }

    /// Adds the mean posterior of a batch.
    pub fn update(&mut self, batch_mean: &[f64]) {
        for (share, mean) in self.shares.iter_mut().zip(batch_mean) {
            *share = self.momentum * *share + (1.0 - self.momentum) * mean;
        }
    }

    /// The current class shares.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The moment estimator with the buffered shares, at most 1.
    pub fn phi(&self, counts: &[usize], n: usize) -> Result<Phi, Error> {
        Phi::new(self.shares.iter().zip(counts).map(|(p, &count)| (count as f64 / n as f64 / p).min(1.0)).collect())
    }
}

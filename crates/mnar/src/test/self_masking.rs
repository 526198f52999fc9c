//! Tests whether self-masking (A2) is plausible. Under it, the scores of a class have the same distribution whether its
//! rows are labelled or not, so score moments beyond those needed for the class shares must fit as well: an
//! over-identification test.
//!
//! With C and mu of the confusion-matrix estimator, w = C⁻¹mu, extra moments h and H_ek = mean over L of h_e 1[y=k],
//! the misfit is R = mean_U h − H w. With B = H C⁻¹ a row contributes h − B s (unlabelled) or −w_y (h − B s)
//! (labelled), so V = Var_U(h − B s)/n_u + Var_L(w_y (h − B s))/n_l, and R'V⁻¹R is Hotelling's T². A few
//! hard rows can hold most of V, which is then imprecise: its degrees of freedom are (Σ f²)²/Σ f⁴ over the contributions f.
//!
//! Where labelling also depends on columns, labelled rows weighted by their odds of being unlabelled take the place of the
//! labelled rows: within a class they have the columns of the unlabelled ones. The odds are taken as known.

use super::hotelling_p;
use crate::error::Error;
use crate::posteriors::Posteriors;
use crate::rows::{Rows, Sample};
use crate::sums::{SecondMoments, Tally};
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};
use std::ops::Range;

/// The outcome of the over-identification test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfMaskingCheck {
    /// R'V⁻¹R.
    pub statistic: f64,
    /// Degrees of freedom: the number of directions in which the extra moments vary.
    pub df: usize,
    /// The p-value. If it is small, the labels depend on more than the class, or the classifier has seen the rows.
    pub p_value: f64,
    /// The misfit of the mean uncertainty (1 − largest probability): positive where unlabelled rows are harder than
    /// labelled rows of the same classes.
    pub excess_uncertainty: f64,
}

/// Whether the labelled rows look as if the classifier had been trained on them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InSampleCheck {
    /// The misfit of the mean uncertainty divided by its standard error.
    pub z: f64,
    /// One-sided p-value: small where labelled rows are scored with suspicious confidence.
    pub p_value: f64,
    /// Whether z exceeds 4, more than chance explains, so that the user should be warned.
    pub suspicious: bool,
}

/// A group of predicted classes needs this many labelled rows for a moment of its own: with 30, the check rejected 16%
/// of true self-masking at the 5% level on optdigits (450 labels, 10 classes) because the variances were too noisy.
const MIN_GROUP: usize = 100;

/// Tests self-masking with one extra moment per predicted class (its uncertainty); rare predicted classes are pooled. Rows
/// count by the weights of the sample.
pub fn self_masking_check(sample: &Sample<'_>) -> Result<SelfMaskingCheck, Error> {
    let (posteriors, labels) = (sample.posteriors(), sample.labels());
    let k = sample.n_classes();
    let mut predicted = vec![0; k];
    for (i, _) in labels.labelled() {
        predicted[top(posteriors.row(i).iter()).0] += 1;
    }
    let large: Vec<usize> = (0..k).filter(|&j| predicted[j] >= MIN_GROUP).collect();
    let pooled = large.len();
    let groups: Vec<usize> = (0..k).map(|j| large.iter().position(|&large| large == j).unwrap_or(pooled)).collect();
    let rest: usize = (0..k).filter(|&j| groups[j] == pooled).map(|j| predicted[j]).sum();
    // A pool too small for a moment of its own is left out rather than tested badly.
    let n_groups = if pooled == 0 || rest >= MIN_GROUP { pooled + 1 } else { pooled };
    let misfit = Misfit::new(sample, n_groups, |row, h| {
        let (best, p) = top(row.iter());
        if groups[best] < h.len() {
            h[groups[best]] = 1.0 - p;
        }
    })?;
    let (statistic, df) = misfit.wald()?;
    Ok(SelfMaskingCheck {
        statistic,
        df,
        p_value: hotelling_p(statistic, df, misfit.freedom),
        excess_uncertainty: misfit.residual.sum(),
    })
}

/// Compares the mean uncertainty of unlabelled rows with that of labelled rows of the same classes.
pub fn in_sample_check(sample: &Sample<'_>) -> Result<InSampleCheck, Error> {
    let misfit = Misfit::new(sample, 1, |row, h| h[0] = 1.0 - top(row.iter()).1)?;
    let z = misfit.residual[0] / misfit.covariance[(0, 0)].sqrt();
    let z = if z.is_finite() { z } else { 0.0 };
    Ok(InSampleCheck { z, p_value: Normal::standard().sf(z), suspicious: z > 4.0 })
}

fn top<'a>(row: impl Iterator<Item = &'a f64>) -> (usize, f64) {
    row.enumerate().fold((0, f64::NEG_INFINITY), |best, (j, &p)| if p > best.1 { (j, p) } else { best })
}

/// Rows summed by one thread at a time. Blocks are added in order, so the number of threads does not change the sums.
const BLOCK: usize = 1 << 14;

fn in_blocks<T: Send>(n: usize, sum: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let starts: Vec<usize> = (0..n).step_by(BLOCK).collect();
    starts.into_par_iter().map(|start| sum(start..(start + BLOCK).min(n))).collect()
}

/// The probabilities of row `i`, and its extra moments.
fn moments(
    posteriors: &Posteriors,
    i: usize,
    h: &impl Fn(&[f64], &mut [f64]),
    row: &mut DVector<f64>,
    values: &mut DVector<f64>,
) {
    row.iter_mut().zip(posteriors.row(i)).for_each(|(value, p)| *value = *p);
    values.fill(0.0);
    h(row.as_slice(), values.as_mut_slice());
}

struct Misfit {
    residual: DVector<f64>,
    covariance: DMatrix<f64>,
    /// How many rows of equal influence would give variances as precise as these.
    freedom: f64,
}

impl Misfit {
    fn new(sample: &Sample<'_>, extra: usize, h: impl Fn(&[f64], &mut [f64]) + Sync) -> Result<Self, Error> {
        let (posteriors, labels) = (sample.posteriors(), sample.labels());
        let (n, k) = (labels.len(), sample.n_classes());
        let tally = Tally::of(sample)?;
        let (n_l, n_u) = (tally.n_labelled(), tally.n_unlabelled);
        let confusion = SecondMoments::of(sample, vec![1.0; k], false)?.confusion() / n_l;
        let singular = confusion.singular_values();
        // NaN counts as singular.
        let inverse = if singular.min() > 1e-8 * singular.max() { confusion.try_inverse() } else { None };
        let Some(inverse) = inverse else {
            return Err(Error::NotIdentified {
                method: "the check of self-masking",
                why: "the confusion matrix is singular".into(),
            });
        };
        let mu = DVector::from_iterator(k, tally.unlabelled_mass.iter().map(|mass| mass / n_u));
        let w = &inverse * mu;

        let weight = |i: usize| sample.weight(i);
        let first = in_blocks(n, |rows| {
            let mut by_class = DMatrix::zeros(extra, k);
            let mut unlabelled = DVector::zeros(extra);
            let (mut row, mut values) = (DVector::zeros(k), DVector::zeros(extra));
            for i in rows {
                moments(posteriors, i, &h, &mut row, &mut values);
                match labels.get(i) {
                    Some(class) => by_class.column_mut(class.index()).axpy(weight(i) / n_l, &values, 1.0),
                    None => unlabelled.axpy(weight(i) / n_u, &values, 1.0),
                }
            }
            (by_class, unlabelled)
        });
        let (by_class, unlabelled) = first
            .into_iter()
            .fold((DMatrix::zeros(extra, k), DVector::zeros(extra)), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        let residual = &unlabelled - &by_class * &w;
        let b = by_class * inverse;
        let second = in_blocks(n, |rows| {
            let mut covariance = DMatrix::zeros(extra, extra);
            let mut fourth = DVector::zeros(extra);
            let mut means = [DVector::zeros(extra), DVector::zeros(extra)];
            let (mut row, mut influence) = (DVector::zeros(k), DVector::zeros(extra));
            for i in rows {
                moments(posteriors, i, &h, &mut row, &mut influence);
                influence.gemv(-1.0, &b, &row, 1.0);
                influence *= weight(i);
                let (side, size) = match labels.get(i) {
                    Some(class) => {
                        influence *= w[class.index()];
                        (0, n_l)
                    }
                    None => (1, n_u),
                };
                influence /= size;
                covariance.ger(1.0, &influence, &influence, 1.0);
                fourth += influence.map(|value| value.powi(4));
                means[side] += &influence;
            }
            (covariance, fourth, means)
        });
        let mut covariance = DMatrix::zeros(extra, extra);
        let mut fourth: DVector<f64> = DVector::zeros(extra);
        let mut means = [DVector::zeros(extra), DVector::zeros(extra)];
        for (part, powers, [labelled, unlabelled]) in second {
            covariance += part;
            fourth += powers;
            means[0] += labelled;
            means[1] += unlabelled;
        }
        let precise = (0..extra).filter(|&j| fourth[j] > 0.0).map(|j| covariance[(j, j)].powi(2) / fourth[j]);
        let (count, sum) = precise.fold((0.0, 0.0), |(count, sum), rows| (count + 1.0, sum + rows));
        covariance -= &means[0] * means[0].transpose() / n_l;
        covariance -= &means[1] * means[1].transpose() / n_u;
        Ok(Self { residual, covariance, freedom: sum / count })
    }

    /// R'V⁺R over the directions that have variance, and their number.
    fn wald(&self) -> Result<(f64, usize), Error> {
        let eigen = self.covariance.clone().symmetric_eigen();
        let largest = eigen.eigenvalues.max();
        let mut statistic = 0.0;
        let mut df = 0;
        for j in 0..eigen.eigenvalues.len() {
            if largest > 0.0 && eigen.eigenvalues[j] > 1e-9 * largest {
                statistic += eigen.eigenvectors.column(j).dot(&self.residual).powi(2) / eigen.eigenvalues[j];
                df += 1;
            }
        }
        if df == 0 {
            return Err(Error::NotIdentified {
                method: "the check of self-masking",
                why: "the probabilities are all 0 or 1, so there is no uncertainty to compare".into(),
            });
        }
        Ok((statistic, df))
    }
}

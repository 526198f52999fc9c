//! Confusion-matrix inversion (BBSE), soft: a cross-check of the label-shift estimate that needs no calibration.
//!
//! C_jk = mean over L of s_j 1[y=k] and mu_j = mean over U of s_j give C w = mu.

use super::{Estimator, FromRatios, PhiEstimate, RatioCovariance, Stop, at_one, multinomial};
use crate::error::Error;
use crate::posteriors::PosteriorKind;
use crate::rows::Rows;
use crate::shares::ClassShares;
use crate::sums::{SecondMoments, Tally};
use nalgebra::{DMatrix, DVector};

/// The confusion-matrix estimator. It always forms K × K matrices.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfusionInversion;

/// Above this condition number the solution is dominated by rounding error.
const MAX_CONDITION: f64 = 1e12;

impl Estimator for ConfusionInversion {
    fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        const METHOD: &str = "the confusion-matrix estimator";
        if rows.kind() != PosteriorKind::Labelled {
            return Err(Error::WrongPosterior {
                method: METHOD,
                needed: PosteriorKind::Labelled.name(),
                given: rows.kind().name(),
                hint: "use the likelihood or the moment estimator for population posteriors",
            });
        }
        let k = rows.n_classes();
        let tally = Tally::of(rows)?;
        let (n_l, n_u) = (tally.n_labelled(), tally.n_unlabelled);
        let moments = SecondMoments::of(rows, vec![1.0; k], true)?;
        let confusion = moments.confusion() / n_l;
        let mu = DVector::from_iterator(k, tally.unlabelled_mass.iter().map(|mass| mass / n_u));
        let values = confusion.singular_values();
        let condition = values.max() / values.min();
        if condition.is_nan() || condition > MAX_CONDITION {
            return Err(Error::NotIdentified {
                method: METHOD,
                why: format!("the confusion matrix has condition number {condition:.1e}"),
            });
        }
        let inverse = confusion.try_inverse().expect("well conditioned");
        let raw = &inverse * &mu;
        let w: Vec<f64> = raw.iter().map(|w| w.max(0.0)).collect();
        let source = tally.labelled_shares();
        let from = FromRatios { tally: &tally, w: &w, source: &source };
        let phi = from.phi()?;

        // dw = C⁻¹(dmu − dC w); a labelled row contributes s w_y to C w.
        let outer = DMatrix::from_fn(k, k, |a, b| mu[a] * mu[b]);
        let weighted = SecondMoments::of(rows, raw.iter().map(|w| w * w).collect(), false)?;
        let labelled = (weighted.labelled() / n_l - &outer) / n_l;
        let unlabelled = (moments.unlabelled() / n_u - &outer) / n_u;
        // Cov(1[y=k], s_j w_y) = C_jk w_k − π_k mu_j within the labelled rows.
        let confusion = moments.confusion() / n_l;
        let cross = DMatrix::from_fn(k, k, |a, j| (confusion[(j, a)] * raw[a] - source[a] * mu[j]) / n_l);
        let label_w = -(cross * inverse.transpose());
        let label_cov = multinomial(&source) / n_l;
        let covariance = from.covariance(&RatioCovariance {
            w: &inverse * (labelled + unlabelled) * inverse.transpose(),
            source: label_cov.clone(),
            label_source: label_cov,
            label_w: label_w.clone(),
            source_w: label_w,
        });
        // Truncated ratios no longer give shares that sum to 1.
        let total: f64 = from.unlabelled_shares().iter().sum();
        let unlabelled_shares: Vec<f64> = from.unlabelled_shares().iter().map(|q| q / total).collect();
        let prevalence: Vec<f64> =
            unlabelled_shares.iter().zip(&tally.counts).map(|(q, count)| (count + n_u * q) / tally.n()).collect();
        Ok(PhiEstimate {
            method: "confusion",
            clipped: at_one(&phi),
            prevalence: ClassShares::estimated(prevalence),
            unlabelled_shares: ClassShares::estimated(unlabelled_shares),
            phi,
            covariance: Some(covariance),
            stop: Stop::ClosedForm,
            log_likelihood: None,
            prior_weight: 0.0,
            tally,
            shape: None,
        })
    }
}

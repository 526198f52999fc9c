//! An audit: rows whose label was requested at random. Whatever decided the other labels, the audited rows stand for all rows.
//!
//! The audited labels are hidden from the classifier and from the mechanism, which therefore can be checked against them. The
//! class shares are the audit's, made more precise by the predictions f of all rows (prediction-powered inference):
//! p = mean_audit(y) + λ (mean_all(f) − mean_audit(f)). It is right for any f and any λ; λ is chosen for precision.

use super::LEVEL;
use super::intervals::CONFIDENCE;
use super::labelling::holm;
use crate::error::Error;
use crate::estimate::normal_quantile;
use crate::interval::wilson_at;
use crate::labels::{Class, Labels};
use crate::phi::Phi;
use crate::posteriors::Posteriors;
use crate::shares::ClassShares;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Rows whose label was requested at random, with their labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    rows: Vec<(usize, Class)>,
}

/// Fewer audited rows say next to nothing: of 20, a share of 0.3 is known to ± 0.2.
const FEWEST: usize = 20;

impl Audit {
    /// Takes the audited rows out of the labels: what is left is what the mechanism labelled.
    ///
    /// ```
    /// use mnar::Labels;
    /// use mnar::analysis::Audit;
    /// let labels = Labels::from_values((0..60).map(|i| Some(if i % 3 == 0 { "sick" } else { "well" })).chain([None; 40]))?;
    /// let audited: Vec<bool> = (0..100).map(|row| row < 30).collect();
    /// let (rest, audit) = Audit::split(&labels, &audited)?;
    /// assert_eq!((rest.n_labelled(), audit.len()), (30, 30));
    /// # Ok::<(), mnar::Error>(())
    /// ```
    pub fn split(labels: &Labels, audited: &[bool]) -> Result<(Labels, Self), Error> {
        if audited.len() != labels.len() {
            return Err(Error::LengthMismatch {
                what: "the audit column",
                found: audited.len(),
                expected: labels.len(),
            });
        }
        let mut y = labels.as_slice().to_vec();
        let mut rows = Vec::new();
        for row in (0..labels.len()).filter(|&row| audited[row]) {
            let Some(class) = y[row].take() else {
                return Err(Error::AuditWithoutLabel { row: row + 1 });
            };
            rows.push((row, class));
        }
        if rows.len() < FEWEST {
            return Err(Error::OutOfRange {
                name: "the number of audited rows",
                value: rows.len().to_string(),
                range: "at least 20, drawn at random from all rows",
            });
        }
        Ok((Labels::new(y, labels.names().to_vec())?, Self { rows }))
    }

    /// The number of audited rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row was audited.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The audited rows and their labels.
    pub fn rows(&self) -> &[(usize, Class)] {
        &self.rows
    }
}

/// What the audit says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AuditFindings {
    /// The number of audited rows.
    pub rows: usize,
    /// How far the predictions of all rows were relied on, from 0 (the audit alone) to 1.
    pub reliance: f64,
    /// Whether the mechanism agrees with the audit: the p-value, corrected for the number of classes (Holm).
    pub p_value: f64,
    /// Whether it is rejected that the mechanism explains the labels.
    pub contradicts: bool,
    /// The class shares that the mechanism would give without the audit.
    pub mechanism_prevalence: ClassShares,
    /// The shares of the classes among the audited rows.
    pub audited_shares: ClassShares,
}

/// The estimate that rests on the audit.
pub(super) struct Audited {
    pub(super) findings: AuditFindings,
    pub(super) phi: Phi,
    pub(super) phi_se: Vec<f64>,
    pub(super) phi_ci95: Vec<(f64, f64)>,
    pub(super) prevalence: ClassShares,
    pub(super) prevalence_se: Vec<f64>,
    pub(super) prevalence_ci95: Vec<(f64, f64)>,
}

impl Audit {
    /// Class shares and phi from the audit and the population posteriors `f` of all rows; `mechanism` are the shares that the
    /// mechanism gives, with standard errors if there are some.
    pub(super) fn estimate(
        &self,
        f: &Posteriors,
        labels: &Labels,
        mechanism: &ClassShares,
        mechanism_se: Option<&[f64]>,
    ) -> Result<Audited, Error> {
        let (n, m, k) = (labels.len() as f64, self.rows.len() as f64, labels.n_classes());
        let is = |class: Class, k: usize| f64::from(u8::from(class.index() == k));
        let mean_all: Vec<f64> = (0..k).map(|k| f.column(k).iter().sum::<f64>() / n).collect();
        let mean_audit: Vec<f64> =
            (0..k).map(|k| self.rows.iter().map(|(row, _)| f.column(k)[*row]).sum::<f64>() / m).collect();
        let audited: Vec<f64> =
            (0..k).map(|k| self.rows.iter().map(|(_, class)| is(*class, k)).sum::<f64>() / m).collect();
        // One λ for all classes keeps the shares summing to one.
        let (mut together, mut own) = (0.0, 0.0);
        for (row, class) in &self.rows {
            for k in 0..k {
                let off = f.column(k)[*row] - mean_audit[k];
                together += off * (is(*class, k) - audited[k]);
                own += off * off;
            }
        }
        let reliance = if own > 0.0 { (together / own / (1.0 + m / n)).clamp(0.0, 1.0) } else { 0.0 };
        let shares: Vec<f64> =
            (0..k).map(|k| (audited[k] + reliance * (mean_all[k] - mean_audit[k])).clamp(0.5 / n, 1.0)).collect();
        let total: f64 = shares.iter().sum();
        let shares: Vec<f64> = shares.iter().map(|share| share / total).collect();
        let variance: Vec<f64> = (0..k)
            .map(|k| {
                let residual = |(row, class): &(usize, Class)| is(*class, k) - reliance * f.column(k)[*row];
                let mean = self.rows.iter().map(residual).sum::<f64>() / m;
                let of_audit = self.rows.iter().map(|at| (residual(at) - mean).powi(2)).sum::<f64>() / (m - 1.0) / m;
                let of_all = f.column(k).iter().map(|f| (f - mean_all[k]).powi(2)).sum::<f64>() / n / n;
                of_audit + reliance * reliance * of_all
            })
            .collect();
        let t = StudentsT::new(0.0, 1.0, m - 1.0)
            .map_or(normal_quantile(CONFIDENCE), |t| t.inverse_cdf(0.5 + CONFIDENCE / 2.0));
        let prevalence_ci95: Vec<(f64, f64)> =
            shares.iter().zip(&variance).map(|(&share, &variance)| wilson(share, variance, m, t)).collect();

        // phi_k = P(labelled, k)/P(k), over the rows that were not audited.
        let rest = n - m;
        let (mut phi, mut phi_se, mut phi_ci95) = (Vec::new(), Vec::new(), Vec::new());
        for k in 0..k {
            let count = labels.counts()[k] as f64;
            let value = (count / rest / shares[k]).clamp(1e-12, 1.0);
            let relative = ((1.0 - count / rest) / count.max(1.0) + variance[k] / (shares[k] * shares[k])).sqrt();
            phi.push(value);
            phi_se.push(value * relative);
            let (low, high) = prevalence_ci95[k];
            let by_count = (t * ((1.0 - count / rest) / count.max(1.0)).sqrt()).exp();
            // Both errors matter; the larger of the two dominates, so they are combined on the log scale.
            let widen = |bound: f64| ((bound / shares[k]).ln().powi(2) + by_count.ln().powi(2)).sqrt().exp();
            phi_ci95.push(((value / widen(high)).min(value), (value * widen(low.max(1e-12))).min(1.0)));
        }
        let normal = Normal::standard();
        let p: Vec<f64> = (0..k)
            .map(|k| {
                let se = (variance[k] + mechanism_se.map_or(0.0, |se| se[k] * se[k])).sqrt();
                2.0 * normal.sf((mechanism[k] - shares[k]).abs() / se)
            })
            .collect();
        let p_value = holm(&p).into_iter().fold(1.0, f64::min);
        Ok(Audited {
            findings: AuditFindings {
                rows: self.rows.len(),
                reliance,
                p_value,
                contradicts: p_value <= LEVEL,
                mechanism_prevalence: mechanism.clone(),
                audited_shares: ClassShares::estimated(audited),
            },
            phi: Phi::new(phi)?,
            phi_se,
            phi_ci95,
            prevalence: ClassShares::estimated(shares),
            prevalence_se: variance.iter().map(|variance| variance.sqrt()).collect(),
            prevalence_ci95,
        })
    }
}

/// Wilson's interval for a share with this variance, as if it came from independent rows: it does not collapse where no audited row
/// is of the class. The predictions are not taken to be worth more than three times the audit.
fn wilson(share: f64, variance: f64, audited: f64, z: f64) -> (f64, f64) {
    let n = (share * (1.0 - share) / variance.max(1e-300)).clamp(1.0, 4.0 * audited);
    wilson_at(share, n, z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posteriors::PosteriorKind;
    use ndarray::Array2;

    /// Predictions that say nothing leave the audit alone; certain ones leave no error of the audit.
    #[test]
    fn predictions_count_as_far_as_they_help() {
        let n = 1000;
        let y = |row: usize| usize::from(row % 10 < 3);
        let labels = Labels::new(
            (0..n).map(|row| (row < 200).then(|| Class::from(y(row)))).collect(),
            vec!["a".into(), "b".into()],
        )
        .unwrap();
        let audited: Vec<bool> = (0..n).map(|row| row < 100).collect();
        let (rest, audit) = Audit::split(&labels, &audited).unwrap();
        assert_eq!((rest.n_labelled(), audit.len()), (100, 100));
        let posteriors = |p: &dyn Fn(usize) -> f64| {
            let table = Array2::from_shape_fn((n, 2), |(i, k)| if k == 1 { p(i) } else { 1.0 - p(i) });
            Posteriors::new(table, PosteriorKind::Population).unwrap()
        };
        let shares = ClassShares::new(vec![0.7, 0.3]).unwrap();
        let alone = audit.estimate(&posteriors(&|_| 0.4), &rest, &shares, None).unwrap();
        assert_eq!(alone.findings.reliance, 0.0);
        assert!((alone.prevalence[1] - 0.3).abs() < 1e-12);
        assert!((alone.prevalence_se[1] - (0.3f64 * 0.7 / 99.0).sqrt()).abs() < 1e-12);
        let known = audit.estimate(&posteriors(&|i| y(i) as f64), &rest, &shares, None).unwrap();
        assert!(known.findings.reliance > 0.9);
        assert!(known.prevalence_se[1] < 0.5 * alone.prevalence_se[1]);
        assert!(known.prevalence_ci95[1].0 < 0.3 && 0.3 < known.prevalence_ci95[1].1);
        assert!(!known.findings.contradicts);
    }

    #[test]
    fn an_audited_row_needs_its_label() {
        let labels =
            Labels::from_values((0..60).map(|i| (i > 0).then_some(if i % 2 == 0 { "a" } else { "b" }))).unwrap();
        let error = Audit::split(&labels, &[true; 60]).unwrap_err().to_string();
        assert!(error.contains("row 1"), "{error}");
    }
}

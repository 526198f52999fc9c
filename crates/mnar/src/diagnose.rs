//! Diagnostics of an estimate: whether the classes can be told apart, the effective sample size of the weights, how the
//! estimate would change if labels also depended on x, and how many labels a given precision needs.

use crate::error::Error;
use crate::estimate::{LabelShift, PhiEstimate, Shape, normal_quantile};
use crate::labels::{Class, Labels};
use crate::mechanism::{ClassAndColumns, Mechanism, Tilted};
use crate::mixture::LogMixture;
use crate::phi::Phi;
use crate::posteriors::Posteriors;
use crate::rows::{Rows, Sample};
use crate::shares::ClassShares;
use crate::sums::{SecondMoments, Tally};
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// How well the classifier tells the classes apart, which is what identifies phi. The fixed-theta Fisher matrix
/// cannot show it: its label counts alone make it positive definite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identifiability {
    /// Condition number of the label-shift information, in units of each class's share; not finite (null) where a
    /// class has no share.
    #[serde(deserialize_with = "crate::nullable::number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub condition: f64,
    /// Smallest singular value of the soft confusion matrix, columns summing to 1: 1 is perfect, 0 is blind.
    pub smallest_singular_value: f64,
    /// The largest standard error of logit(phi_k) for this classifier and these rows, of the classes that are not at
    /// the bound 1, where there is none; NaN without a covariance.
    #[serde(deserialize_with = "crate::nullable::number")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub largest_logit_se: f64,
    /// How little the labels say about which classes the classifier confuses, from 0 to 1 (nothing). Older reports do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// How well the mechanism is identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The classes are told apart well.
    Good,
    /// Estimates are usable, but depend on good calibration or are imprecise for some class.
    Weak,
    /// The data say little about some class.
    Poor,
}

impl Verdict {
    /// One sentence for the user.
    pub fn sentence(self) -> &'static str {
        match self {
            Verdict::Good => "the classifier tells the classes apart well enough to identify the mechanism",
            Verdict::Weak => {
                "the classifier confuses some classes: the mechanism is identified, but depends on good calibration and on the number of rows"
            }
            Verdict::Poor => {
                "the data say little about some classes, which the classifier can hardly tell apart: read their intervals, not their phi"
            }
        }
    }

    /// Separation (the smallest singular value) decides how much calibration matters, precision what can be said at
    /// all: many rows make up for poor separation, as on five grades of malignancy (0.02, yet intervals of ±25%).
    /// A class at its bound has no precision; with good separation it may well be there, else nothing is known of it.
    fn of(smallest_singular_value: f64, largest_logit_se: f64, at_bound: bool) -> Self {
        let precision = match largest_logit_se {
            se if se <= 0.35 => Verdict::Good,
            se if se <= 1.0 => Verdict::Weak,
            _ => Verdict::Poor,
        };
        match precision {
            Verdict::Good | Verdict::Weak if at_bound && smallest_singular_value < 0.2 => Verdict::Poor,
            Verdict::Good if smallest_singular_value < 0.2 => Verdict::Weak,
            _ => precision,
        }
    }
}

/// Measures identifiability at an estimate. Forms K × K matrices.
pub fn identifiability<R: Rows>(rows: &R, estimate: &PhiEstimate) -> Result<Identifiability, Error> {
    let tally = &estimate.tally;
    let k = tally.counts.len();
    let pi = tally.labelled_shares();
    let w: Vec<f64> = estimate.unlabelled_shares.iter().zip(&pi).map(|(q, pi)| (q / pi).max(1e-9)).collect();
    let Shape { information, confusion } = match &estimate.shape {
        Some(shape) => shape.clone(),
        None => {
            let zero = (LogMixture::at(&w, true), SecondMoments::of_labels(k));
            let (mixture, moments) = rows.scan(&zero)?;
            Shape { information: mixture.hessian(), confusion: moments.confusion() }
        }
    };
    let information = information / tally.n_unlabelled;
    // In units of w_k and per share: the identity where posteriors are one-hot.
    let scale: Vec<f64> = (0..k).map(|j| (w[j] / pi[j]).sqrt()).collect();
    let scaled = DMatrix::from_fn(k, k, |a, b| information[(a, b)] * scale[a] * scale[b]);
    let eigenvalues = scaled.symmetric_eigenvalues();
    let condition = eigenvalues.max() / eigenvalues.min().max(0.0);
    let smallest_singular_value = by_class(&confusion, &tally.counts).singular_values().min();
    let largest_logit_se = estimate.standard_errors().map_or(f64::NAN, |se| {
        let inside = (0..k).filter(|&class| !estimate.clipped.contains(&Class::from(class)));
        let logit_se = inside.map(|class| se[class] / (estimate.phi[class] * (1.0 - estimate.phi[class])));
        logit_se.fold(0.0, |max: f64, se| if se.is_nan() { f64::INFINITY } else { max.max(se) })
    });
    let doubt = doubt(&confusion, &tally.counts);
    let verdict = match doubt < 1.0 {
        true => Verdict::of(smallest_singular_value, largest_logit_se, !estimate.clipped.is_empty()),
        false => Verdict::Poor,
    };
    Ok(Identifiability { condition, smallest_singular_value, largest_logit_se, doubt: Some(doubt), verdict })
}

/// The soft confusion matrix, columns summing to 1.
fn by_class(confusion: &DMatrix<f64>, counts: &[f64]) -> DMatrix<f64> {
    DMatrix::from_fn(counts.len(), counts.len(), |j, class| confusion[(j, class)] / counts[class])
}

/// The error of the confusion matrix from which on nothing is known, in units of its smallest singular value.
const LARGEST_ERROR: f64 = 10.0;

/// How little the labels say about which classes the classifier confuses, from 0 to 1 (nothing): the confusion matrix is learnt from
/// them, and its squared error is compared with the square of its smallest singular value, which decides how errors grow when
/// the matrix is inverted. Standard errors take the matrix as known. `confusion` has the sums of s_j over the labelled rows of a class
/// at (j, class).
///
/// Networks on CIFAR-10 with two labels of the rarest class would have had 1.5 to 4, and estimates that were off by factors of up to
/// a thousand; on dermaMNIST with 70 labels per class it is 0.024, on MNIST S2 0.0007.
pub(crate) fn doubt(confusion: &DMatrix<f64>, counts: &[f64]) -> f64 {
    let matrix = by_class(confusion, counts);
    let columns = matrix.column_iter().zip(counts);
    // At most that of a classifier that names one class per row.
    let error = columns.map(|(column, n)| column.iter().map(|p| p * (1.0 - p)).sum::<f64>() / n).sum::<f64>();
    let smallest = LARGEST_ERROR * matrix.singular_values().min();
    (error / counts.len() as f64 / (smallest * smallest)).min(1.0)
}

/// Kish's effective sample size of the labelled rows under 1/phi weights, (Σ 1/phi)² / Σ 1/phi².
///
/// ```
/// use mnar::{Phi, diagnose::effective_sample_size};
/// let ess = effective_sample_size(&[50.0, 50.0], &Phi::new(vec![0.1, 0.1])?);
/// assert!((ess - 100.0).abs() < 1e-9);
/// # Ok::<(), mnar::Error>(())
/// ```
pub fn effective_sample_size(counts: &[f64], phi: &Phi) -> f64 {
    let sum = |power: i32| counts.iter().zip(phi.as_slice()).map(|(n, phi)| n * phi.powi(-power)).sum::<f64>();
    sum(1).powi(2) / sum(2)
}

/// Labelled rows of about the same confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReliabilityBin {
    /// Rows.
    pub rows: usize,
    /// The mean probability of the most probable class.
    pub confidence: f64,
    /// The share that is right.
    pub accuracy: f64,
}

/// How often the classifier is right, by how sure it is: labelled rows in `bins` bins of equal width, empty ones left
/// out. The rows must not have been trained on.
///
/// ```
/// # use mnar::{Labels, PosteriorKind, Posteriors, Sample, diagnose::reliability};
/// # use ndarray::arr2;
/// let p = Posteriors::new(arr2(&[[0.9, 0.1], [0.92, 0.08], [0.4, 0.6], [0.5, 0.5]]), PosteriorKind::Labelled)?;
/// let labels = Labels::from_values(vec![Some("a"), Some("b"), Some("b"), None])?;
/// let bins = reliability(&Sample::new(&p, &labels)?, 10);
/// assert_eq!((bins.len(), bins[1].rows, bins[1].accuracy), (2, 2, 0.5));
/// # Ok::<(), mnar::Error>(())
/// ```
pub fn reliability(sample: &Sample<'_>, bins: usize) -> Vec<ReliabilityBin> {
    let mut sums = vec![(0usize, 0.0, 0usize); bins.max(1)];
    for (row, class) in sample.labels().labelled() {
        let (top, confidence) = most_probable(sample, row);
        let place = ((confidence * bins as f64) as usize).min(sums.len() - 1);
        sums[place].0 += 1;
        sums[place].1 += confidence;
        sums[place].2 += usize::from(top == class.index());
    }
    let filled = sums.into_iter().filter(|(rows, ..)| *rows > 0);
    filled
        .map(|(rows, confidence, right)| ReliabilityBin {
            rows,
            confidence: confidence / rows as f64,
            accuracy: right as f64 / rows as f64,
        })
        .collect()
}

/// How many labelled rows of class k are taken for class j: `confusion(..)[k][j]`.
///
/// ```
/// # use mnar::{Labels, PosteriorKind, Posteriors, Sample, diagnose::confusion};
/// # use ndarray::arr2;
/// let p = Posteriors::new(arr2(&[[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.5, 0.5]]), PosteriorKind::Labelled)?;
/// let labels = Labels::from_values(vec![Some("a"), Some("b"), Some("b"), None])?;
/// assert_eq!(confusion(&Sample::new(&p, &labels)?), [[1, 0], [1, 1]]);
/// # Ok::<(), mnar::Error>(())
/// ```
pub fn confusion(sample: &Sample<'_>) -> Vec<Vec<usize>> {
    let k = sample.n_classes();
    let mut counts = vec![vec![0; k]; k];
    for (row, class) in sample.labels().labelled() {
        counts[class.index()][most_probable(sample, row).0] += 1;
    }
    counts
}

fn most_probable(sample: &Sample<'_>, row: usize) -> (usize, f64) {
    let p = sample.posteriors().row(row);
    p.iter().copied().enumerate().fold((0, f64::NEG_INFINITY), |best, (k, p)| if p > best.1 { (k, p) } else { best })
}

/// An unlabelled row whose class is uncertain.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainRow {
    /// The row, from 0.
    pub row: usize,
    /// p(y | x, unlabelled), one entry per class.
    pub probabilities: Vec<f64>,
}

/// The `most` unlabelled rows of largest entropy of p(y | x, unlabelled), the most uncertain first.
///
/// ```
/// # use mnar::{Labels, Phi, PosteriorKind, Posteriors, diagnose::most_uncertain};
/// # use ndarray::arr2;
/// let p = Posteriors::new(arr2(&[[0.5, 0.5], [0.9, 0.1], [0.55, 0.45], [0.99, 0.01]]), PosteriorKind::Population)?;
/// let labels = Labels::from_values(vec![Some("a"), None, None, Some("b")])?;
/// let rows = most_uncertain(&p, &labels, &Phi::new(vec![0.5, 0.5])?, 12);
/// assert_eq!((rows.len(), rows[0].row, rows[0].probabilities[0]), (2, 2, 0.55));
/// // An unlabelled row never belongs to a class that is always labelled.
/// assert_eq!(most_uncertain(&p, &labels, &Phi::new(vec![1.0, 0.5])?, 1)[0].probabilities, [0.0, 1.0]);
/// # Ok::<(), mnar::Error>(())
/// ```
pub fn most_uncertain(posteriors: &Posteriors, labels: &Labels, phi: &Phi, most: usize) -> Vec<UncertainRow> {
    most_uncertain_by(posteriors, labels, |_| phi, most)
}

/// The same where labelling depends on columns too: `phi` gives P(labelled | class) of each row.
pub fn most_uncertain_by<'a>(
    posteriors: &Posteriors,
    labels: &Labels,
    phi: impl Fn(usize) -> &'a Phi,
    most: usize,
) -> Vec<UncertainRow> {
    let unlabelled = (0..labels.len()).filter(|&row| !labels.is_labelled(row));
    let mut rows: Vec<(f64, UncertainRow)> = unlabelled
        .filter_map(|row| {
            let probabilities = posteriors.given_unlabelled(row, phi(row))?;
            let entropy = -probabilities.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
            Some((entropy, UncertainRow { row, probabilities }))
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.row.cmp(&b.1.row)));
    rows.into_iter().take(most).map(|(_, row)| row).collect()
}

/// One point of the sensitivity curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SensitivityPoint {
    /// Odds factor: how many times the odds of a label of the easiest row are those of the hardest row of its class.
    pub odds_factor: f64,
    /// phi under this factor.
    pub phi: Vec<f64>,
    /// The class shares under this factor.
    pub prevalence: ClassShares,
}

/// How phi and the shares move when labels also depend on how easy a row is.
///
/// Let the odds of a label be multiplied by Γ^h(x), h the rank of the classifier's confidence scaled to
/// [−1/2, 1/2]. Then P(r=0, y|x)/P(r=1, y|x) = e_y Γ^−h(x): the factor drops out of the mixture likelihood in w and
/// tilts only the source shares, π_k(Γ) = Σ_{i∈L, y_i=k} Γ^−h(x_i) / n_l. So each point costs one label-shift fit, with
/// 1/phi_k = 1 + (n_u/n_l) w_k π_k(Γ)/π_k.
pub fn sensitivity(
    sample: &Sample<'_>,
    estimator: &LabelShift,
    odds_factors: &[f64],
) -> Result<Vec<SensitivityPoint>, Error> {
    let (posteriors, labels) = (sample.posteriors(), sample.labels());
    let (n, k) = (labels.len(), sample.n_classes());
    let tally = Tally::of(sample)?;
    let rank = confidence_ranks(posteriors);
    let pi = tally.labelled_shares();
    odds_factors
        .iter()
        .map(|&factor| {
            check_factor(factor)?;
            let mut tilted = vec![0.0; k];
            for (i, class) in labels.labelled() {
                tilted[class.index()] += factor.powf(-rank[i]) / tally.n_labelled();
            }
            let w = estimator.ratios_against(sample, &tally, tilted.clone())?.solution.v;
            let odds = tally.n_unlabelled / tally.n_labelled();
            let phi = (0..k).map(|j| 1.0 / (1.0 + odds * w[j] * tilted[j] / pi[j])).collect();
            let prevalence =
                (0..k).map(|j| (tally.counts[j] + tally.n_unlabelled * w[j] * tilted[j]) / n as f64).collect();
            Ok(SensitivityPoint { odds_factor: factor, phi, prevalence: ClassShares::estimated(prevalence) })
        })
        .collect()
}

fn check_factor(factor: f64) -> Result<(), Error> {
    match factor.is_finite() && factor > 0.0 {
        true => Ok(()),
        false => Err(Error::OutOfRange {
            name: "an odds factor",
            value: factor.to_string(),
            range: "a positive number (1 means the labels depend on the class alone)",
        }),
    }
}

/// [`sensitivity`] of a mechanism that also depends on columns: logit P(labelled | y, z, x) = a_y + b'z + h(x) log Γ, where a and
/// b are estimated anew for every factor. At Γ = 1 this is the mechanism itself.
pub(crate) struct ByColumns<'a> {
    posteriors: &'a Posteriors,
    labels: &'a Labels,
    /// The terms of the columns, and last the rank of the classifier's confidence.
    columns: Vec<&'a [f64]>,
    mechanism: &'a Mechanism,
    tally: Tally,
}

impl<'a> ByColumns<'a> {
    /// `rank` is what [`confidence_ranks`] gives for the posteriors of the sample.
    pub(crate) fn new(
        sample: &Sample<'a>,
        mechanism: &'a Mechanism,
        terms: &'a [Vec<f64>],
        rank: &'a [f64],
    ) -> Result<Self, Error> {
        let columns = terms.iter().map(Vec::as_slice).chain([rank]).collect();
        let (posteriors, labels) = (sample.posteriors(), sample.labels());
        Ok(Self { posteriors, labels, columns, mechanism, tally: Tally::of(sample)? })
    }

    /// The mechanism under this factor, from one nearby.
    fn at(&self, factor: f64, start: &Mechanism) -> Result<Tilted, Error> {
        check_factor(factor)?;
        let sample = Sample::new(self.posteriors, self.labels)?.given(&self.columns)?;
        ClassAndColumns::default().tilted(&sample, start, &self.tally, factor.ln())
    }

    /// phi and the shares under every factor.
    pub(crate) fn sensitivity(&self, odds_factors: &[f64]) -> Result<Vec<SensitivityPoint>, Error> {
        let point = |&factor: &f64| {
            let Tilted { phi, prevalence, .. } = self.at(factor, self.mechanism)?;
            Ok(SensitivityPoint { odds_factor: factor, phi, prevalence })
        };
        odds_factors.iter().map(point).collect()
    }

    /// The effect of class `most` over that of class `least`, under factors that start at 1: one after the other, each from the
    /// mechanism before it.
    pub(crate) fn contrasts(
        &self,
        most: usize,
        least: usize,
        factors: impl Iterator<Item = f64>,
    ) -> impl Iterator<Item = f64> {
        let mut start = self.mechanism.clone();
        factors.map_while(move |factor| {
            start = self.at(factor, &start).ok()?.mechanism;
            Some(start.classes[most] - start.classes[least])
        })
    }
}

/// Ranks of the largest probability over all rows, scaled to [−1/2, 1/2], ties sharing their mean.
pub(crate) fn confidence_ranks(posteriors: &Posteriors) -> Vec<f64> {
    let n = posteriors.len();
    let confidence: Vec<f64> = (0..n).map(|i| posteriors.row(i).iter().copied().fold(0.0, f64::max)).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| confidence[a].total_cmp(&confidence[b]));
    let mut rank = vec![0.0; n];
    let mut start = 0;
    while start < n {
        let mut end = start;
        while end < n && confidence[order[end]] == confidence[order[start]] {
            end += 1;
        }
        let middle = (start + end - 1) as f64 / 2.0 / (n.max(2) - 1) as f64 - 0.5;
        order[start..end].iter().for_each(|&i| rank[i] = middle);
        start = end;
    }
    rank
}

/// How many labels, and rows, would be needed if more of both were drawn by the same mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Needed {
    /// Labels in all.
    pub labels: usize,
    /// Rows in all.
    pub rows: usize,
}

impl Needed {
    fn scaled(tally: &Tally, factor: f64) -> Self {
        Self { labels: (tally.n_labelled() * factor).ceil() as usize, rows: (tally.n() * factor).ceil() as usize }
    }
}

/// Labels needed for an interval of phi_k of the given total width at the given level: standard errors shrink with
/// the square root of the rows. The classifier would learn from the new labels as well, so this errs on the safe side.
pub fn labels_for_width(estimate: &PhiEstimate, standard_error: f64, width: f64, level: f64) -> Result<Needed, Error> {
    if !(width > 0.0 && width < 1.0) {
        return Err(Error::OutOfRange {
            name: "the interval width",
            value: width.to_string(),
            range: "between 0 and 1",
        });
    }
    let now = 2.0 * normal_quantile(level) * standard_error;
    Ok(Needed::scaled(&estimate.tally, (now / width).powi(2)))
}

/// Labels needed for the permutation test to reject with the given power at the given level, if the mechanism is as
/// far from MCAR as the data suggest: the noncentrality, estimated by statistic − df, grows with the rows. `None`
/// where the statistic does not exceed its degrees of freedom: there is no sign of a departure to scale up.
pub fn labels_for_power(
    tally: &Tally,
    statistic: f64,
    df: usize,
    level: f64,
    power: f64,
) -> Result<Option<Needed>, Error> {
    for (name, value) in [("the level", level), ("the power", power)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(Error::OutOfRange { name, value: value.to_string(), range: "between 0 and 1" });
        }
    }
    let excess = statistic - df as f64;
    if excess <= 0.0 {
        return Ok(None);
    }
    let critical = ChiSquared::new(df as f64).expect("positive degrees of freedom").inverse_cdf(1.0 - level);
    let (mut low, mut high) = (0.0, 1.0);
    while noncentral_sf(critical, df, high) < power {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if noncentral_sf(critical, df, middle) < power { low = middle } else { high = middle }
    }
    Ok(Some(Needed::scaled(tally, high / excess)))
}

/// P(noncentral chi-square ≥ x): central ones with df + 2j, mixed by Poisson(λ/2).
fn noncentral_sf(x: f64, df: usize, lambda: f64) -> f64 {
    let half = lambda / 2.0;
    let mut log_weight = -half;
    let (mut total, mut weight_sum) = (0.0, 0.0);
    for j in 0..10_000 {
        let weight = log_weight.exp();
        weight_sum += weight;
        total += weight * ChiSquared::new((df + 2 * j) as f64).expect("positive").sf(x);
        if j as f64 > half && weight < 1e-17 {
            break;
        }
        log_weight += half.ln() - ((j + 1) as f64).ln();
    }
    total + (1.0 - weight_sum).max(0.0)
}

/// Below this many labels, phi of a class rests on its count alone.
const FEW_LABELS: usize = 10;

/// A warning if some classes have few labels.
pub fn few_labels(names: &[String], counts: &[usize]) -> Option<String> {
    let few = names.iter().zip(counts).filter(|(_, count)| **count < FEW_LABELS);
    let few: Vec<String> = few.map(|(name, _)| format!("`{name}`")).collect();
    let more = if few.len() > 5 { format!(" and {} more", few.len() - 5) } else { String::new() };
    let shown = few.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    (!few.is_empty()).then(|| format!("fewer than {FEW_LABELS} labels for {shown}{more}: expect wide intervals"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes that are confused in a share e of their n labelled rows: the squared error of a column is 2e(1 − e)/n, and the
    /// smallest singular value 1 − 2e.
    #[test]
    fn doubt_in_closed_form() {
        let of = |e: f64, n: f64| {
            let confusion = DMatrix::from_row_slice(2, 2, &[1.0 - e, e, e, 1.0 - e]) * n;
            doubt(&confusion, &[n, n])
        };
        for (e, n) in [(0.1, 30.0), (0.3, 4.0), (0.45_f64, 100.0)] {
            let expected = 2.0 * e * (1.0 - e) / n / (10.0 * (1.0 - 2.0 * e)).powi(2);
            assert!((of(e, n) - expected).abs() < 1e-12 * expected, "{e} {n}");
        }
        // Nothing is known of classes that look alike, and nothing is in doubt where none is ever confused.
        assert_eq!((of(0.5, 1000.0), of(0.0, 2.0)), (1.0, 0.0));
    }

    /// scipy.stats.ncx2.sf(x, df, nc)
    #[test]
    fn noncentral_survival_agrees_with_scipy() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(noncentral_sf(5.991464547107979, 2, 7.0), 0.6554386597603611);
        near(noncentral_sf(16.918977604620448, 9, 15.0), 0.7790688730346783);
    }
}

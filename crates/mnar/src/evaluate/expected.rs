//! What the labels of all rows are expected to be, given those that are there.

use crate::error::Error;
use crate::labels::Labels;
use crate::mechanism::Mechanism;
use crate::phi::Phi;
use crate::posteriors::{PosteriorKind, Posteriors};
use crate::rows::Sample;
use crate::shares::ClassShares;
use ndarray::{Array2, ShapeBuilder};
use serde::{Deserialize, Serialize};

/// The rows that a metric speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Population {
    /// All rows.
    All,
    /// The rows without a label: the ones that a model is needed for.
    Unlabelled,
}

/// The expected label of every row: a_ik, which has the mean P(y_i = k | x_i) where the mechanism is right.
///
/// With t_ik = p(k | x_i, unlabelled) and the odds o_i = (1 − φ)/φ of a labelled row's own class and columns,
///
/// - an unlabelled row counts a_ik = t_ik;
/// - a labelled row counts a_ik = 1{y_i = k} + o_i (1{y_i = k} − t_ik): itself, and what its unlabelled likes are expected to
///   differ from t by.
///
/// E[r_i/φ_i − 1 | x_i] = 0, so the mean of a_ik is right whatever t is, and a_i sums to 1. Among all functions of x that could
/// stand in place of t, this one gives a_ik the smallest variance: minimising E[(W 1{y=k} − (W − 1) h)² | x] over h, where W = r/φ,
/// gives h = p_k (1/φ_k − 1) / Σ_j p_j (1/φ_j − 1) = t_k.
#[derive(Clone, Debug)]
pub struct ExpectedLabels<'a> {
    labels: &'a Labels,
    t: Posteriors,
    /// o_i of the labelled rows.
    odds: Vec<f64>,
    /// The odds of being unlabelled, of every class and, times these, of every row.
    class_odds: Vec<f64>,
    row_factor: Option<Vec<f64>>,
    /// P(unlabelled | x) of every row.
    unlabelled: Vec<f64>,
    augmented: bool,
}

impl<'a> ExpectedLabels<'a> {
    /// Under a mechanism by class.
    pub fn by_class(posteriors: &Posteriors, labels: &'a Labels, phi: &Phi) -> Result<Self, Error> {
        let odds: Vec<f64> = phi.iter().map(|phi| (1.0 - phi) / phi).collect();
        Self::new(posteriors, labels, &odds, None)
    }

    /// Under a mechanism by class and columns, whose terms are `terms`.
    pub fn by_columns(
        posteriors: &Posteriors,
        labels: &'a Labels,
        mechanism: &Mechanism,
        terms: &[Vec<f64>],
    ) -> Result<Self, Error> {
        let odds: Vec<f64> = mechanism.classes.iter().map(|a| (-a).exp()).collect();
        let factor: Vec<f64> = (0..labels.len())
            .map(|i| (-mechanism.terms.iter().zip(terms).map(|(b, z)| b * z[i]).sum::<f64>()).exp())
            .collect();
        Self::new(posteriors, labels, &odds, Some(&factor))
    }

    /// The odds of being unlabelled are those of the class times those of the row.
    pub(super) fn new(
        posteriors: &Posteriors,
        labels: &'a Labels,
        class_odds: &[f64],
        row_factor: Option<&[f64]>,
    ) -> Result<Self, Error> {
        Sample::new(posteriors, labels)?;
        let odds = labels
            .as_slice()
            .iter()
            .enumerate()
            .map(|(i, label)| label.map_or(0.0, |class| class_odds[class.index()] * row_factor.map_or(1.0, |of| of[i])))
            .collect();
        // The factor of a row is the same for all its classes, so it cancels in t.
        let tilt: Vec<f64> = match posteriors.kind() {
            PosteriorKind::Labelled => class_odds.to_vec(),
            PosteriorKind::Population => class_odds.iter().map(|odds| odds / (1.0 + odds)).collect(),
        };
        let (t, total) = tilted(posteriors, &tilt)?;
        let unlabelled = match posteriors.kind() {
            // Σ s o = P(unlabelled | x)/P(labelled | x).
            PosteriorKind::Labelled => total
                .iter()
                .enumerate()
                .map(|(i, total)| {
                    let odds = total * row_factor.map_or(1.0, |of| of[i]);
                    odds / (1.0 + odds)
                })
                .collect(),
            PosteriorKind::Population => total,
        };
        let (class_odds, row_factor) = (class_odds.to_vec(), row_factor.map(<[f64]>::to_vec));
        Ok(Self { labels, t, odds, class_odds, row_factor, unlabelled, augmented: true })
    }

    /// The same by weighting alone, as Horvitz and Thompson do: a labelled row counts 1/φ times, an unlabelled row not at all.
    pub fn weighting_alone(self) -> Self {
        Self { augmented: false, ..self }
    }

    /// a_ik of a population as base_i 1{y_i = k} + share_i t_ik, times the weight of the row.
    pub fn of(&self, population: Population, weights: Option<&[f64]>) -> Counted<'_> {
        let rows = self.labels.len();
        let (mut base, mut share) = (vec![0.0; rows], vec![0.0; rows]);
        for i in 0..rows {
            let weight = weights.map_or(1.0, |weights| weights[i]);
            if self.labels.is_labelled(i) {
                let own = if population == Population::All { 1.0 } else { 0.0 };
                base[i] = weight * (own + self.odds[i]);
                share[i] = if self.augmented { -weight * self.odds[i] } else { 0.0 };
            } else if self.augmented {
                share[i] = weight;
            }
        }
        Counted { labels: self.labels, t: &self.t, base, share }
    }

    /// How much larger the variance of Σ_i Σ_k a_ik g_ik, given x, is expected to be than the labelled rows at hand show; 0 if
    /// it is not. They show Σ_L o² (g_y − Σ_j t_j g_j)², of which a few rows that are rarely labelled can be most, and which is
    /// too small in the samples that lack them. It is expected to be the sum over all rows of P(unlabelled | x) Σ_k t_k o_k (g_k −
    /// Σ_j t_j g_j)². `g` fills in a row's values.
    pub(super) fn unseen_variance(&self, rows: &[u32], mut g: impl FnMut(usize, &mut [f64])) -> f64 {
        if !self.augmented {
            return 0.0;
        }
        let k = self.class_odds.len();
        let (mut seen, mut expected, mut values) = (0.0, 0.0, vec![0.0; k]);
        for &row in rows {
            let i = row as usize;
            g(i, &mut values);
            let mean: f64 = (0..k).map(|j| self.t.column(j)[i] * values[j]).sum();
            let factor = self.row_factor.as_ref().map_or(1.0, |of| of[i]);
            let spread: f64 =
                (0..k).map(|j| self.t.column(j)[i] * self.class_odds[j] * (values[j] - mean).powi(2)).sum();
            expected += self.unlabelled[i] * factor * spread;
            if let Some(class) = self.labels.get(i) {
                seen += (self.odds[i] * (values[class.index()] - mean)).powi(2);
            }
        }
        (expected - seen).max(0.0)
    }

    /// p(k | x, unlabelled) of every row.
    pub fn given_unlabelled(&self) -> &Posteriors {
        &self.t
    }

    /// The class shares and phi by class that follow from the expected labels under row weights.
    pub(crate) fn marginal(&self, weights: Option<&[f64]>) -> Result<(Phi, ClassShares), Error> {
        let counted = self.of(Population::All, weights);
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
        let mut labelled = vec![0.0; self.class_odds.len()];
        self.labels.labelled().for_each(|(i, class)| labelled[class.index()] += weight(i));
        let total: f64 = (0..self.labels.len()).map(weight).sum();
        let mass: Vec<f64> = (0..labelled.len())
            .map(|k| counted.column(k).iter().map(|[own, _]| own).sum::<f64>().max(labelled[k]))
            .collect();
        let phi = labelled.iter().zip(&mass).map(|(of, all)| (of / all).clamp(f64::MIN_POSITIVE, 1.0)).collect();
        let shares = mass.iter().map(|mass| mass / total).collect();
        Ok((Phi::new(phi)?, ClassShares::estimated(shares)))
    }

    /// The labelled rows as they are.
    pub fn naive(&self) -> Counted<'_> {
        let base = self.labels.as_slice().iter().map(|label| f64::from(u8::from(label.is_some()))).collect();
        Counted { labels: self.labels, t: &self.t, base, share: vec![0.0; self.labels.len()] }
    }

    /// 1/φ of every labelled row, 0 of the others.
    pub fn inverse_phi(&self) -> Vec<f64> {
        let labels = self.labels.as_slice().iter();
        labels.zip(&self.odds).map(|(label, odds)| label.map_or(0.0, |_| 1.0 + odds)).collect()
    }
}

/// t_ik ∝ p_ik tilt_k, as it is where every class that a row may be has a tilt of 0; and what it was divided by.
fn tilted(posteriors: &Posteriors, tilt: &[f64]) -> Result<(Posteriors, Vec<f64>), Error> {
    let (n, k) = (posteriors.len(), posteriors.n_classes());
    let mut total = vec![0.0; n];
    for j in 0..k {
        total.iter_mut().zip(posteriors.column(j)).for_each(|(total, p)| *total += p * tilt[j]);
    }
    let mut t = Array2::zeros((n, k).f());
    for (j, mut column) in t.columns_mut().into_iter().enumerate() {
        for ((t, &p), &total) in column.iter_mut().zip(posteriors.column(j)).zip(&total) {
            *t = if total > 0.0 { p * tilt[j] / total } else { p };
        }
    }
    Ok((Posteriors::new(t, posteriors.kind())?, total))
}

/// How much every row counts for every class.
#[derive(Clone, Debug)]
pub struct Counted<'a> {
    pub(super) labels: &'a Labels,
    pub(super) t: &'a Posteriors,
    pub(super) base: Vec<f64>,
    pub(super) share: Vec<f64>,
}

impl Counted<'_> {
    /// a_ik.
    pub fn get(&self, i: usize, k: usize) -> f64 {
        let own = match self.labels.get(i) {
            Some(class) if class.index() == k => self.base[i],
            _ => 0.0,
        };
        own + self.share[i] * self.t.column(k)[i]
    }

    /// Σ_k a_ik: how much the row counts.
    pub fn mass(&self, i: usize) -> f64 {
        self.base[i] + self.share[i]
    }

    /// (a_ik, Σ_k a_ik) of all rows for one class.
    pub(super) fn column(&self, k: usize) -> Vec<[f64; 2]> {
        let t = self.t.column(k);
        let labels = self.labels.as_slice();
        (0..labels.len())
            .map(|i| {
                let own = if labels[i].is_some_and(|class| class.index() == k) { self.base[i] } else { 0.0 };
                [own + self.share[i] * t[i], self.base[i] + self.share[i]]
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Class;

    #[test]
    fn the_mean_over_who_is_labelled_is_the_true_posterior_whatever_the_scores() {
        // One x with P(y = 1) = 0.3, phi = 0.2 and 0.5, scored badly.
        let (p, phi) = ([0.7, 0.3], [0.2, 0.5]);
        let scores = Posteriors::new(ndarray::arr2(&[[0.1, 0.9]]), PosteriorKind::Labelled).unwrap();
        for population in [Population::All, Population::Unlabelled] {
            let mut mean = [0.0; 2];
            for (label, chance) in
                [(Some(0), p[0] * phi[0]), (Some(1), p[1] * phi[1]), (None, 1.0 - p[0] * phi[0] - p[1] * phi[1])]
            {
                let label = label.map(|k: usize| Class::from(k));
                let labels = Labels::allow_degenerate(vec![label], vec!["a".into(), "b".into()]).unwrap();
                let known = Phi::new(phi.to_vec()).unwrap();
                let expected = ExpectedLabels::by_class(&scores, &labels, &known).unwrap();
                let counted = expected.of(population, None);
                (0..2).for_each(|k| mean[k] += chance * counted.get(0, k));
                let sum = counted.get(0, 0) + counted.get(0, 1);
                assert!((sum - counted.mass(0)).abs() < 1e-12);
            }
            for k in 0..2 {
                let truth = if population == Population::All { p[k] } else { p[k] * (1.0 - phi[k]) };
                assert!((mean[k] - truth).abs() < 1e-12, "{population:?} {mean:?}");
            }
        }
    }
}

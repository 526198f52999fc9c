//! Odds ratios of being labelled, of columns and of products of columns.

use super::{CONFIDENCE, ColumnEffect, LabellingRate, TermEffect};
use crate::covariates::{TermAbout, TermEncoder};
use crate::estimate::normal_quantile;
use crate::mechanism::MechanismEstimate;

/// A sum of coefficients: their positions among the terms, and the sign of each.
type Contrast = Vec<(usize, f64)>;

/// The effects of the terms of a mechanism, with intervals from replicates of its coefficients or from the information.
pub(super) struct Effects<'a> {
    pub(super) encoder: &'a TermEncoder,
    pub(super) fitted: &'a MechanismEstimate,
    /// The coefficients in every replicate of a bootstrap.
    pub(super) replicates: &'a [Vec<f64>],
    /// In how many rows each term is not 0.
    pub(super) rows: &'a [usize],
}

impl Effects<'_> {
    /// One entry per column and product. `rates` gives the labelling rates along the column of a name.
    pub(super) fn all(&self, mut rates: impl FnMut(&str) -> Vec<LabellingRate>) -> Vec<ColumnEffect> {
        let about = self.encoder.about();
        let reference = |column: usize| self.reference(&about, column);
        let mut effects = Vec::new();
        for (position, column) in self.encoder.groups().into_iter().enumerate() {
            let terms: Vec<usize> = (0..about.len()).filter(|&term| about[term].column == position).collect();
            let factors = terms.first().and_then(|&term| about[term].factors);
            let (compared_with, contrasts) = match factors {
                None => self.of_column(&about, &terms, reference(position)),
                Some((a, b)) => {
                    let references = (reference(about[a].column), reference(about[b].column));
                    self.of_product(&about, &terms, references)
                }
            };
            let rates = if factors.is_none() { rates(&column) } else { Vec::new() };
            let terms = contrasts.into_iter().map(|(term, contrast)| self.effect(term, &contrast)).collect();
            effects.push(ColumnEffect { column, compared_with, terms, rates });
        }
        effects
    }

    /// The most common name of a column of names, which its other names are compared with.
    fn reference(&self, about: &[TermAbout], column: usize) -> Option<usize> {
        let terms = (0..about.len()).filter(|&term| about[term].column == column);
        terms.filter(|_| self.encoder.is_categorical(column)).max_by_key(|&term| self.rows[term])
    }

    fn of_column(
        &self,
        about: &[TermAbout],
        terms: &[usize],
        reference: Option<usize>,
    ) -> (String, Vec<(String, Contrast)>) {
        let contrast = |term: usize| {
            let label = match (&about[term].level, about[term].unit) {
                (Some(level), _) => level.clone(),
                (None, unit) => format!("per {} (one standard deviation)", significant(unit.unwrap_or(1.0))),
            };
            let other = reference.map(|other| (other, -1.0));
            (label, [(term, 1.0)].into_iter().chain(other).collect())
        };
        let compared_with = match reference {
            Some(term) => about[term].level.clone().unwrap_or_default(),
            None => "one standard deviation less".to_owned(),
        };
        (compared_with, terms.iter().copied().filter(|term| Some(*term) != reference).map(contrast).collect())
    }

    /// What a product adds to both of its columns: how much an effect differs from that at the most common names.
    fn of_product(
        &self,
        about: &[TermAbout],
        terms: &[usize],
        (first, second): (Option<usize>, Option<usize>),
    ) -> (String, Vec<(String, Contrast)>) {
        let term_of = |a: usize, b: usize| terms.iter().copied().find(|&term| about[term].factors == Some((a, b)));
        let contrast = |&term: &usize| {
            let (a, b) = about[term].factors?;
            if first == Some(a) || second == Some(b) || self.rows[term] == 0 {
                return None;
            }
            // Names have the effect of the reference taken off; of two columns of names, both ways.
            let mut contrast = vec![(term, 1.0)];
            contrast.extend(first.and_then(|a| term_of(a, b)).map(|other| (other, -1.0)));
            contrast.extend(second.and_then(|b| term_of(a, b)).map(|other| (other, -1.0)));
            contrast.extend(first.zip(second).and_then(|(a, b)| term_of(a, b)).map(|other| (other, 1.0)));
            Some((about[term].level.clone().unwrap_or_default(), contrast))
        };
        let names: Vec<String> =
            [first, second].into_iter().flatten().filter_map(|term| about[term].level.clone()).collect();
        let compared_with = match names.is_empty() {
            true => "one standard deviation less".to_owned(),
            false => names.join(", "),
        };
        (compared_with, terms.iter().filter_map(contrast).collect())
    }

    fn effect(&self, term: String, contrast: &Contrast) -> TermEffect {
        let sum = |b: &[f64]| contrast.iter().map(|&(term, sign)| sign * b[term]).sum::<f64>();
        let centre = sum(&self.fitted.mechanism.terms);
        let sd = match self.replicates.len() {
            0 | 1 => {
                let k = self.fitted.mechanism.classes.len();
                let covariance = |a: usize, b: usize| self.fitted.covariance[(k + a, k + b)];
                let pairs = contrast.iter().flat_map(|a| contrast.iter().map(move |b| (a, b)));
                let variance: f64 = pairs.map(|(a, b)| a.1 * b.1 * covariance(a.0, b.0)).sum();
                variance.max(0.0).sqrt()
            }
            draws => {
                let values: Vec<f64> = self.replicates.iter().map(|b| sum(b)).collect();
                let mean = values.iter().sum::<f64>() / draws as f64;
                let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
                (squares / (draws - 1) as f64).sqrt()
            }
        };
        // Within what JSON can hold, however little is known.
        let bound = |value: f64| value.clamp(-300.0, 300.0).exp();
        let half = normal_quantile(CONFIDENCE) * sd;
        TermEffect { term, odds_ratio: centre.exp(), ci95: (bound(centre - half), bound(centre + half)) }
    }
}

/// Three digits that matter.
fn significant(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-12).log10().floor() as i32).clamp(0, 12) as usize;
    format!("{value:.digits$}")
}

//! What follows if labels also favour rows that are easy, or hard, to classify.

use super::recipe::Recipe;
use crate::diagnose::{ByColumns, SensitivityPoint, confidence_ranks, sensitivity};
use crate::error::Error;
use crate::mechanism::Mechanism;
use crate::phi::Phi;
use crate::rows::Sample;

/// The mechanism that is tilted: by class alone, or by class and columns.
pub(super) struct Tilt<'a> {
    mechanism: Option<&'a Mechanism>,
    terms: &'a [Vec<f64>],
    /// How easy each row is; empty where the class alone decides.
    rank: Vec<f64>,
}

/// How far the factor of the breakdown point is searched, and in how many steps either way.
const FURTHEST: f64 = 20.0;
const STEPS: i32 = 24;

impl<'a> Tilt<'a> {
    pub(super) fn new(sample: &Sample<'_>, mechanism: Option<&'a Mechanism>, terms: &'a [Vec<f64>]) -> Self {
        let rank = mechanism.map_or_else(Vec::new, |_| confidence_ranks(sample.posteriors()));
        Self { mechanism, terms, rank }
    }

    fn by_columns<'b>(&'b self, sample: &Sample<'b>) -> Option<Result<ByColumns<'b>, Error>> {
        self.mechanism.map(|mechanism| ByColumns::new(sample, mechanism, self.terms, &self.rank))
    }

    /// phi and the shares under every odds factor.
    pub(super) fn curve(
        &self,
        sample: &Sample<'_>,
        recipe: &Recipe,
        factors: &[f64],
    ) -> Result<Vec<SensitivityPoint>, Error> {
        match self.by_columns(sample) {
            Some(by_columns) => by_columns?.sensitivity(factors),
            None => sensitivity(sample, &recipe.label_shift(), factors),
        }
    }

    /// The odds factor nearest to 1 at which the classes that are labelled most and least are labelled alike; where labelling
    /// depends on columns, among rows with the same columns.
    pub(super) fn breakdown(&self, sample: &Sample<'_>, recipe: &Recipe, phi: &Phi) -> Option<f64> {
        let effects: Vec<f64> = match self.mechanism {
            Some(mechanism) => mechanism.classes.clone(),
            None => phi.iter().map(|phi| phi.ln()).collect(),
        };
        let order = |a: &usize, b: &usize| effects[*a].total_cmp(&effects[*b]);
        let (most, least) = ((0..phi.len()).max_by(order)?, (0..phi.len()).min_by(order)?);
        let by_columns = self.by_columns(sample).transpose().ok()?;
        let mut found: Option<f64> = None;
        for direction in [1.0, -1.0] {
            let factor = |step: i32| (direction * FURTHEST.ln() * f64::from(step) / f64::from(STEPS)).exp();
            let factors = (1..=STEPS).map(factor);
            let mut contrasts: Box<dyn Iterator<Item = f64>> = match &by_columns {
                Some(by_columns) => Box::new(by_columns.contrasts(most, least, factors)),
                None => Box::new(factors.map_while(|factor| {
                    let curve = sensitivity(sample, &recipe.label_shift(), &[factor]).ok()?;
                    Some((curve[0].phi[most] / curve[0].phi[least]).ln())
                })),
            };
            let mut before = match self.mechanism {
                Some(_) => effects[most] - effects[least],
                None => (phi[most] / phi[least]).ln(),
            };
            for step in 1..=STEPS {
                let Some(now) = contrasts.next() else { break };
                if now <= 0.0 {
                    // Between the last two factors, as far as the effect had gone.
                    let part = before / (before - now);
                    let at = factor(step - 1).ln() + part * (factor(step).ln() - factor(step - 1).ln());
                    let nearer = found.is_none_or(|other: f64| at.abs() < other.ln().abs());
                    found = if nearer { Some(at.exp()) } else { found };
                    break;
                }
                before = now;
            }
        }
        found
    }
}

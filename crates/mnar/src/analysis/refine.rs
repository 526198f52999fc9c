//! A second estimate of phi, by a model that was trained with the first one.

use super::Findings;
use super::findings::at_bound;
use super::intervals::{CONFIDENCE, extend};
use super::labelling::holm;
use super::verdict::{Circumstances, VerdictKind};
use crate::diagnose::effective_sample_size;
use crate::estimate::{PhiEstimate, normal_quantile};
use crate::phi::Phi;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

/// What the trained model said about phi, where it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refinement {
    /// phi by the cross-fitted classifier, which the intervals were made around.
    pub cross_fitted: Phi,
    /// phi by the trained model: the maximum of the observed likelihood of its predictions.
    pub trained: Phi,
    /// Whether the findings took over the second one: the two agree, corrected for the number of classes (Holm), and the trained
    /// model leaves unlabelled rows to every class.
    pub agrees: bool,
}

impl Findings {
    /// Takes over the phi that a trained model leads to, unless the cross-fitted one contradicts it. Intervals stay those of the
    /// cross-fitted one, and are extended where they do not hold the new estimate.
    ///
    /// A model that was trained on all rows tells the classes apart better than classifiers that saw a part of the labels. But it
    /// also believes itself: only the cross-fitted estimate comes from labels that no model had seen, so that it has the last word
    /// where the two differ by more than chance.
    ///
    /// Nothing changes where phi came from an audit, depends on columns, or the data contradict the mechanism, nor where the model
    /// gives all unlabelled rows to other classes than one: its likelihood has no prior against that.
    pub fn refine(&mut self, estimate: &PhiEstimate) {
        let by_class =
            self.audit.is_none() && self.row_phi.is_none() && self.mechanism.is_none() && self.groups.is_none();
        let unclear = self.verdict.as_ref().is_none_or(|verdict| verdict.kind == VerdictKind::Unclear);
        let Some(errors) = self.prevalence_se.as_ref().filter(|_| by_class && !unclear) else { return };
        let z = normal_quantile(CONFIDENCE);
        let p: Vec<f64> = (0..errors.len())
            .map(|k| {
                let (first, second) = (self.prevalence[k], estimate.prevalence[k]);
                // At a bound of phi the standard error knows nothing of the other side; the interval does.
                let to_end = self.prevalence_ci95.as_ref().map_or(0.0, |ends| match second > first {
                    true => ends[k].1 - first,
                    false => first - ends[k].0,
                });
                2.0 * Normal::standard().sf((first - second).abs() / errors[k].max(to_end / z))
            })
            .collect();
        let sound = estimate.stop.converged() && estimate.clipped.is_empty() && p.iter().all(|p| p.is_finite());
        let agrees = sound && holm(&p).iter().all(|p| *p > super::LEVEL);
        self.refinement = Some(Refinement { cross_fitted: self.phi.clone(), trained: estimate.phi.clone(), agrees });
        if agrees {
            self.take_over(estimate);
        }
    }

    fn take_over(&mut self, estimate: &PhiEstimate) {
        extend(&mut self.phi_ci95, estimate.phi.as_slice());
        extend(&mut self.prevalence_ci95, estimate.prevalence.as_slice());
        self.phi = estimate.phi.clone();
        self.prevalence = estimate.prevalence.clone();
        self.unlabelled_shares = estimate.unlabelled_shares.clone();
        // What was said of the estimate before, and does not hold of this one.
        self.warnings.retain(|warning| *warning != at_bound(&self.clipped));
        self.clipped.clear();
        (self.converged, self.stop, self.prior_weight) = (true, estimate.stop.clone(), estimate.prior_weight);
        (self.sensitivity, self.breakdown, self.labels_for_width) = (None, None, None);
        self.effective_sample_size = effective_sample_size(&estimate.tally.counts, &estimate.phi);
        // Its words name how far apart the phi of classes are. There are no doubts, or the verdict would be unclear.
        let words = self.labelling.as_ref().map(|labelling| {
            labelling.verdict(&Circumstances {
                classes: &self.about.classes,
                phi: &self.phi,
                self_masking: self.self_masking.as_ref().map(|check| check.p_value),
                identified: true,
                audit: None,
                unexplained: None,
            })
        });
        self.verdict = words.or(self.verdict.take());
    }
}

//! A second estimate of phi, by a model that was trained with the first one.

use super::Findings;
use super::findings::{at_bound, not_converged};
use super::intervals::{CONFIDENCE, extend};
use super::labelling::holm;
use super::verdict::{Circumstances, VerdictKind};
use crate::diagnose::{Verdict, effective_sample_size};
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
    /// Whether the findings took over the second one: the two agree, corrected for the number of classes (Holm), the second one
    /// converged, and it leaves unlabelled rows to every class.
    pub agrees: bool,
}

impl Findings {
    /// Takes over the phi that a trained model leads to, unless the cross-fitted one contradicts it. Intervals, the sensitivity curve
    /// and what follows from them stay those of the cross-fitted one; intervals are extended where they do not hold the new estimate.
    ///
    /// A model that was trained on all rows tells the classes apart better than classifiers that saw a part of the labels. But it
    /// also believes itself: only the cross-fitted estimate comes from labels that no model had seen, so that it has the last word
    /// where the two differ by more than chance.
    ///
    /// Nothing changes where the findings [cannot be refined](Self::can_be_refined), nor where the model leaves some class without
    /// unlabelled rows: its likelihood has no prior against that.
    pub fn refine(&mut self, estimate: &PhiEstimate) {
        let Some(errors) = self.prevalence_se.as_ref().filter(|_| self.can_be_refined()) else { return };
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

    /// Whether a trained model may refine phi: it depends on the class alone, the data do not contradict that, no groups or audit
    /// rest on it, and the data say enough about every class to contradict the model.
    pub fn can_be_refined(&self) -> bool {
        let by_class =
            self.audit.is_none() && self.row_phi.is_none() && self.mechanism.is_none() && self.groups.is_none();
        let clear = self.verdict.as_ref().is_some_and(|verdict| verdict.kind != VerdictKind::Unclear);
        let known = self.identifiability.as_ref().is_some_and(|found| found.verdict != Verdict::Poor);
        by_class && clear && known && self.prevalence_se.is_some()
    }

    fn take_over(&mut self, estimate: &PhiEstimate) {
        extend(&mut self.phi_ci95, estimate.phi.as_slice());
        extend(&mut self.prevalence_ci95, estimate.prevalence.as_slice());
        self.phi = estimate.phi.clone();
        self.prevalence = estimate.prevalence.clone();
        self.unlabelled_shares = estimate.unlabelled_shares.clone();
        // What was said of the estimate before, and does not hold of this one.
        let stopped = not_converged(&self.stop);
        self.warnings.retain(|warning| *warning != at_bound(&self.clipped) && *warning != stopped);
        self.clipped.clear();
        (self.converged, self.stop) = (true, estimate.stop);
        (self.prior_weight, self.prior_by_default) = (estimate.prior_weight, false);
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
                no_labels: None,
                lost_class: None,
            })
        });
        self.verdict = words.or(self.verdict.take());
    }
}

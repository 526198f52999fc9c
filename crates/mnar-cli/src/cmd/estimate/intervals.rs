//! Intervals of phi and of the class shares.

use super::recipe::Recipe;
use crate::output::IntervalOutput;
use crate::plan::Estimator;
use anyhow::{Result, bail};
use mnar::estimate::{PhiEstimate, SharePrior};
use mnar::interval::{ProfileOf, Replicates, profile_interval};
use mnar::{Class, Rows, Sample, Solver};
use mnar_report::IntervalKind;

/// Intervals, and how they came about.
pub(super) struct Intervals {
    pub(super) about: IntervalOutput,
    pub(super) phi_se: Option<Vec<f64>>,
    pub(super) phi: Option<Vec<(f64, f64)>>,
    pub(super) prevalence_se: Option<Vec<f64>>,
    pub(super) prevalence: Option<Vec<(f64, f64)>>,
}

pub(super) const LEVEL: f64 = 0.95;

impl Intervals {
    pub(super) fn information(estimate: &PhiEstimate) -> Self {
        Self {
            about: IntervalOutput {
                kind: "information",
                made: IntervalKind::Information,
                level: LEVEL,
                replicates: 0,
                failed_replicates: 0,
                conditional_on_classifier: true,
            },
            phi_se: estimate.standard_errors(),
            phi: estimate.conf_int(LEVEL),
            prevalence_se: estimate.prevalence_standard_errors(),
            prevalence: estimate.prevalence_conf_int(LEVEL),
        }
    }

    pub(super) fn from_replicates(
        estimate: &PhiEstimate,
        replicates: &Replicates,
        asked: usize,
        conditional: bool,
    ) -> Self {
        Self {
            about: IntervalOutput {
                kind: if conditional { "bootstrap" } else { "bootstrap with refit" },
                made: if conditional { IntervalKind::Bootstrap } else { IntervalKind::BootstrapWithRefit },
                level: LEVEL,
                replicates: asked,
                failed_replicates: replicates.failed,
                conditional_on_classifier: conditional,
            },
            phi_se: Some(replicates.phi_standard_errors()),
            phi: Some(replicates.phi_intervals(estimate.phi.as_slice(), LEVEL)),
            prevalence_se: Some(replicates.prevalence_standard_errors()),
            prevalence: Some(replicates.prevalence_intervals(&estimate.prevalence, LEVEL)),
        }
    }

    pub(super) fn profile(sample: &Sample<'_>, recipe: &Recipe, estimate: &PhiEstimate) -> Result<Self> {
        let of = match recipe.estimator {
            Estimator::LabelShift if recipe.prior == SharePrior::None => ProfileOf::LabelShift,
            Estimator::Likelihood => ProfileOf::Population,
            _ => bail!("--interval profile goes with --method label-shift (without a prior) or likelihood"),
        };
        let phi = (0..sample.n_classes())
            .map(|k| profile_interval(sample, of, Class::from(k), LEVEL, &Solver::default()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut intervals = Self::information(estimate);
        intervals.about.kind = "profile likelihood";
        intervals.about.made = IntervalKind::Profile;
        intervals.phi = Some(phi);
        Ok(intervals)
    }
}

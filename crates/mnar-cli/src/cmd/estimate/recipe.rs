//! Which estimator runs on what, worked out once from the command line.

use crate::args::EstimateArgs;
use crate::plan::{self, Estimator};
use anyhow::{Result, bail};
use mnar::calibrate::{Bcts, Calibration};
use mnar::estimate::{
    ConfusionInversion, Estimator as _, KnownPhi, LabelShift, Likelihood, Moments, PhiEstimate, SharePrior, Shares,
};
use mnar::{Labels, Phi, PosteriorKind, Posteriors, Rows, Sample};

/// What to compute once the posteriors are there; bootstraps repeat it.
pub(super) struct Recipe {
    pub(super) estimator: Estimator,
    pub(super) calibration: Option<Calibration>,
    pub(super) prior: SharePrior,
    known: Option<Known>,
    pub(super) kind: PosteriorKind,
}

enum Known {
    Shares(Shares),
    Phi(Phi),
}

impl Recipe {
    pub(super) fn new(args: &EstimateArgs, kind: PosteriorKind, names: &[String]) -> Result<Self> {
        let estimator = plan::estimator(args.method, kind, !args.shares.is_empty())?;
        if (estimator == Estimator::Known) == args.phi.is_empty() {
            bail!("--phi and --method known go together: the known mechanism, one probability a class");
        }
        if args.prior_weight != 0.0 && estimator != Estimator::LabelShift {
            bail!("--prior-weight goes with --method label-shift, the only estimator with a prior");
        }
        if !(args.prior_weight >= 0.0 && args.prior_weight.is_finite()) {
            bail!("--prior-weight is {}, but must be a number of rows, at least 0", args.prior_weight);
        }
        if !args.sensitivity.is_empty() && estimator != Estimator::LabelShift {
            bail!("--sensitivity goes with --method label-shift");
        }
        let known = match estimator {
            Estimator::Known => Some(Known::Phi(Phi::new(plan::by_class("--phi", &args.phi, names)?)?)),
            Estimator::Moments if args.shares.is_empty() => Some(Known::Shares(Shares::MeanPosterior)),
            Estimator::Moments if args.shares == ["balanced"] => Some(Known::Shares(Shares::Balanced)),
            Estimator::Moments => Some(Known::Shares(Shares::Known(plan::by_class("--shares", &args.shares, names)?))),
            _ => None,
        };
        let calibration = plan::calibrate(args.calibrate, kind, estimator)?.then(Calibration::default);
        let prior = match args.prior_weight {
            0.0 => SharePrior::None,
            weight => SharePrior::Labelled { weight },
        };
        Ok(Self { estimator, calibration, prior, known, kind })
    }

    pub(super) fn label_shift(&self) -> LabelShift {
        LabelShift { prior: self.prior, ..Default::default() }
    }

    pub(super) fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, mnar::Error> {
        match (self.estimator, &self.known) {
            (_, Some(Known::Phi(phi))) => KnownPhi(phi.clone()).estimate(rows),
            (_, Some(Known::Shares(shares))) => Moments::new(shares.clone()).estimate(rows),
            (Estimator::Confusion, _) => ConfusionInversion.estimate(rows),
            (Estimator::Likelihood, _) => Likelihood::default().estimate(rows),
            (Estimator::LabelShift | Estimator::Moments | Estimator::Known, _) => self.label_shift().estimate(rows),
        }
    }

    /// Calibrates and estimates under row weights, all in memory.
    pub(super) fn run(
        &self,
        posteriors: &Posteriors,
        labels: &Labels,
        weights: Option<&[f64]>,
    ) -> Result<(PhiEstimate, Option<(Bcts, Posteriors)>), mnar::Error> {
        let weighted = |posteriors| -> Result<Sample<'_>, mnar::Error> {
            let sample = Sample::new(posteriors, labels)?;
            match weights {
                Some(weights) => sample.weighted(weights),
                None => Ok(sample),
            }
        };
        match self.calibration {
            None => Ok((self.estimate(&weighted(posteriors)?)?, None)),
            Some(calibration) => {
                // A class without labels is better reported as such than by a calibration that chases it.
                mnar::sums::Tally::of(&weighted(posteriors)?)?;
                let bcts = calibration.fit(&weighted(posteriors)?)?;
                let calibrated = bcts.apply(posteriors)?;
                let estimate = {
                    let sample = Sample::new(&calibrated, labels)?;
                    match weights {
                        Some(weights) => self.estimate(&sample.weighted(weights)?)?,
                        None => self.estimate(&sample)?,
                    }
                };
                Ok((estimate, Some((bcts, calibrated))))
            }
        }
    }
}

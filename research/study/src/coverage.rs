//! Do 95% intervals cover phi 95% of the time when everything is learnt from a few hundred labels?

use crate::draws::{Failed, Share, mean_and_sd, run};
use crate::fit::{FOLDS, cross_fit, default_estimate};
use crate::worlds::{self, PRIOR, World};
use anyhow::{Context, Result};
use mnar::analysis::CONFIDENCE;
use mnar::calibrate::Calibration;
use mnar::classify::SoftmaxRegression;
use mnar::crossfit::{CrossFit, FoldPlan};
use mnar::estimate::LabelShift;
use mnar::interval::Bootstrap;
use mnar::{Estimator, Labels, PhiEstimate, Sample};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Results for one number of labels.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) expected_labels: usize,
    pub(crate) n: usize,
    pub(crate) phi: Vec<f64>,
    pub(crate) draws: usize,
    pub(crate) replicates: usize,
    pub(crate) failed: Failed,
    /// Number of bootstrap replicates without an estimate, over all draws.
    pub(crate) failed_replicates: usize,
    /// Target range for the pooled coverage of the intervals of phi that the program reports.
    pub(crate) target: [f64; 2],
    /// Mean of (estimate − phi)/phi, by class.
    pub(crate) relative_bias: Vec<f64>,
    /// Standard deviation of estimate/phi, by class.
    pub(crate) relative_sd: Vec<f64>,
    pub(crate) intervals: Vec<Coverage>,
}

/// Coverage of one kind of interval.
#[derive(Serialize, Deserialize)]
pub(crate) struct Coverage {
    pub(crate) of: String,
    pub(crate) interval: String,
    pub(crate) per_class: Vec<Share>,
    pub(crate) pooled: Share,
    /// Mean of (upper − lower)/truth, by class.
    pub(crate) relative_width: Vec<f64>,
    /// How often the truth was below the interval.
    pub(crate) below: Share,
    /// How often the truth was above the interval.
    pub(crate) above: Share,
}

/// Quantity and kind of each interval, in the order of [`Outcome::intervals`].
const KINDS: [(&str, &str); 6] = [
    ("phi", "bootstrap with refit, normal on the logit scale"),
    ("phi", "bootstrap with refit, percentiles"),
    ("phi", "formula, conditional on the classifier"),
    ("phi", "formula, true posteriors given"),
    ("prevalence", "bootstrap with refit, normal on the logit scale"),
    ("prevalence", "formula, conditional on the classifier"),
];
/// Index into [`KINDS`] of the intervals that the program reports.
pub(crate) const PROGRAM: usize = 0;

struct Outcome {
    phi: Vec<f64>,
    intervals: [Vec<(f64, f64)>; KINDS.len()],
    failed_replicates: usize,
}

/// Runs 300 labels (base seed 2,000,000) and 100 labels (base seed 3,000,000).
pub(crate) fn study(draws: usize, replicates: usize) -> Result<Vec<Setting>> {
    [(300, 2_000_000, [0.92, 0.97]), (100, 3_000_000, [0.90, 1.0])]
        .into_iter()
        .map(|(labels, base, target)| setting(labels, base, target, draws, replicates))
        .collect()
}

fn setting(labels: usize, base: u64, target: [f64; 2], draws: usize, replicates: usize) -> Result<Setting> {
    let phi = worlds::skewed_phi(labels as f64)?;
    let regression = SoftmaxRegression::default();
    let drawn = run(&format!("coverage, {labels} labels"), base, draws, |seeds| {
        let rows = World::Gaussians.draw(seeds.data);
        let labels = worlds::self_masked(&rows, &phi, seeds.mask)?;
        let evidence = cross_fit(&rows.x, &labels, &regression, FOLDS, seeds.folds)?;
        let found = default_estimate().run(&evidence, &())?;
        let bootstrap = Bootstrap { replicates, seed: seeds.resample, until: None };
        let replicates = bootstrap.run(labels.len(), &(), |weights, replicate| {
            let plan = FoldPlan::for_labels(&labels, FOLDS, seeds.other_folds.wrapping_add(replicate))?;
            refit(&CrossFit { classifier: &regression, x: &rows.x, seed: 0 }, &labels, &plan, weights)
        })?;
        let truth = worlds::true_labelled_posteriors(&rows.x, &phi)?;
        let oracle = LabelShift::default().estimate(&Sample::new(&truth, &labels)?)?;
        let none = "the estimate has no covariance";
        Ok(Outcome {
            intervals: [
                replicates.phi_intervals(&found.phi, CONFIDENCE),
                replicates.phi_percentiles(CONFIDENCE),
                found.phi_ci95.context(none)?,
                oracle.conf_int(CONFIDENCE).context(none)?,
                replicates.prevalence_intervals(&found.prevalence, CONFIDENCE),
                found.prevalence_ci95.context(none)?,
            ],
            phi: found.phi.into(),
            failed_replicates: replicates.failed,
        })
    })?;
    let outcomes = &drawn.values;
    let classes = 0..PRIOR.len();
    let (relative_bias, relative_sd) = classes
        .map(|k| {
            let relative: Vec<f64> = outcomes.iter().map(|outcome| outcome.phi[k] / phi[k] - 1.0).collect();
            mean_and_sd(&relative)
        })
        .unzip();
    Ok(Setting {
        expected_labels: labels,
        n: worlds::N,
        draws,
        replicates,
        failed_replicates: outcomes.iter().map(|outcome| outcome.failed_replicates).sum(),
        failed: drawn.failed,
        target,
        relative_bias,
        relative_sd,
        intervals: (0..KINDS.len())
            .map(|kind| coverage(kind, outcomes, if KINDS[kind].0 == "phi" { phi.as_slice() } else { &PRIOR }))
            .collect(),
        phi: phi.as_slice().to_vec(),
    })
}

/// The default estimate of a bootstrap replicate, in which every row counts `weights[i]` times.
///
/// The bootstrap of [`mnar::analysis`] does the same, but draws weights and folds from one seed and does not keep the
/// replicates, which percentiles need.
fn refit(
    cross_fit: &CrossFit<'_, Array2<f64>>,
    labels: &Labels,
    plan: &FoldPlan,
    weights: &[f64],
) -> Result<PhiEstimate, mnar::Error> {
    let raw = cross_fit.run(labels, plan, Some(weights), &())?.posteriors;
    let calibrated = Calibration::default().fit(&Sample::new(&raw, labels)?.weighted(weights)?)?.apply(&raw)?;
    LabelShift::default().estimate(&Sample::new(&calibrated, labels)?.weighted(weights)?)
}

fn coverage(kind: usize, outcomes: &[Outcome], truth: &[f64]) -> Coverage {
    // An interval with a NaN end (a class on the boundary) covers nothing.
    let covered: Vec<Vec<bool>> = outcomes
        .iter()
        .map(|outcome| {
            outcome.intervals[kind]
                .iter()
                .zip(truth)
                .map(|((low, high), truth)| low <= truth && truth <= high)
                .collect()
        })
        .collect();
    let ends = || outcomes.iter().flat_map(|outcome| outcome.intervals[kind].iter().zip(truth));
    Coverage {
        of: KINDS[kind].0.into(),
        interval: KINDS[kind].1.into(),
        per_class: (0..truth.len()).map(|k| Share::of(covered.iter().map(|draw| draw[k]))).collect(),
        pooled: Share::pooled(&covered),
        relative_width: (0..truth.len())
            .map(|k| {
                let widths: Vec<f64> = outcomes
                    .iter()
                    .map(|outcome| (outcome.intervals[kind][k].1 - outcome.intervals[kind][k].0) / truth[k])
                    .filter(|width| width.is_finite())
                    .collect();
                mean_and_sd(&widths).0
            })
            .collect(),
        below: Share::of(ends().map(|((low, _), truth)| truth < low)),
        above: Share::of(ends().map(|((_, high), truth)| truth > high)),
    }
}

//! The self-masking check: silent where only the class decides, and a warning where easy rows are labelled more often.

use crate::draws::{Failed, Share, run};
use crate::fit::{FOLDS, REGRESSION, cross_fit, default_estimate};
use crate::size::in_sample;
use crate::worlds::{self, PRIOR, World, complete};
use anyhow::{Context, Result};
use mnar::test::{in_sample_check, self_masking_check};
use mnar::{Phi, Sample};
use mnar_data::FullyLabelled;
use serde::{Deserialize, Serialize};

/// Results for a world and a mechanism.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) world: String,
    pub(crate) mechanism: String,
    pub(crate) mean_labels: f64,
    pub(crate) draws: usize,
    pub(crate) failed: Failed,
    /// How often the check has p <= 5% on cross-fitted posteriors, calibrated as for an estimate.
    pub(crate) check: Share,
    /// The same on cross-fitted posteriors without calibration.
    pub(crate) check_uncalibrated: Share,
    /// Mean number of extra moments.
    pub(crate) mean_df: f64,
    /// How often the in-sample check has z > 4 on the cross-fitted, calibrated posteriors.
    pub(crate) alarm_cross_fitted: Share,
    /// The same on cross-fitted posteriors without calibration.
    pub(crate) alarm_uncalibrated: Share,
    /// The same for a classifier that was trained on the rows it scores.
    pub(crate) alarm_in_sample: Share,
    /// Mean of z in the last three cases.
    pub(crate) mean_z: [f64; 3],
}

struct Outcome {
    labels: usize,
    p: f64,
    p_uncalibrated: f64,
    df: usize,
    z: [f64; 3],
}

/// Odds of a label for easy rows, relative to hard rows of the same class.
pub(crate) const ODDS: f64 = 3.0;

/// Runs the Gaussians with base seeds 4,000,000 (300 labels) and 5,000,000 (1,000 labels).
pub(crate) fn gaussians(draws: usize) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for (labels, base) in [(300, 4_000_000), (1000, 5_000_000)] {
        let phi = worlds::skewed_phi(f64::from(labels))?;
        let at_class: fn(&FullyLabelled) -> Result<Vec<f64>> = |rows| {
            Ok(rows
                .x
                .rows()
                .into_iter()
                .zip(&rows.y)
                .map(|(x, y)| worlds::true_posterior(x, &PRIOR)[y.index()])
                .collect())
        };
        settings.extend(both(&format!("gaussians, {labels} labels"), &World::Gaussians, &phi, base, draws, at_class)?);
    }
    Ok(settings)
}

/// Runs optdigits with base seeds 6,000,000 (450 labels) and 7,000,000 (three times as many). The posterior that ranks
/// the rows is cross-fitted with all labels.
pub(crate) fn optdigits(world: &World, draws: usize) -> Result<Vec<Setting>> {
    let rows = world.draw(0);
    let labels = complete(&rows)?;
    let fitted = cross_fit(&rows.x, &labels, &REGRESSION, FOLDS, 0)?;
    let ease: Vec<f64> = rows.y.iter().enumerate().map(|(i, y)| fitted.posteriors.column(y.index())[i]).collect();
    let phi = worlds::digit_phi()?;
    let mut settings = Vec::new();
    for (times, base) in [(1.0, 6_000_000), (3.0, 7_000_000)] {
        let phi = Phi::new(phi.as_slice().iter().map(|phi| phi * times).collect())?;
        let labels: f64 = rows.y.iter().map(|y| phi[y.index()]).sum();
        settings
            .extend(both(&format!("optdigits, {labels:.0} labels"), world, &phi, base, draws, |_| Ok(ease.clone()))?);
    }
    Ok(settings)
}

fn both(
    name: &str,
    world: &World,
    phi: &Phi,
    base: u64,
    draws: usize,
    ease: impl Fn(&FullyLabelled) -> Result<Vec<f64>> + Sync,
) -> Result<Vec<Setting>> {
    [false, true].into_iter().map(|easy_first| setting(name, world, phi, base, draws, easy_first, &ease)).collect()
}

fn setting(
    name: &str,
    world: &World,
    phi: &Phi,
    base: u64,
    draws: usize,
    easy_first: bool,
    ease: &(impl Fn(&FullyLabelled) -> Result<Vec<f64>> + Sync),
) -> Result<Setting> {
    let mechanism = if easy_first { "easy rows first" } else { "self-masked" };
    let drawn = run(&format!("self-masking, {name}, {mechanism}"), base, draws, |seeds| {
        let rows = world.draw(seeds.data);
        let labels = if easy_first {
            worlds::masked_by_row(&rows, &easy_rows_first(&rows, phi, &ease(&rows)?), seeds.mask)?
        } else {
            worlds::self_masked(&rows, phi, seeds.mask)?
        };
        let evidence = cross_fit(&rows.x, &labels, &REGRESSION, FOLDS, seeds.folds)?;
        let found = default_estimate().run(&evidence, &())?;
        let calibrated = found.calibrated.context("the estimate calibrates")?;
        let memorised = in_sample(&rows, &labels)?;
        let calibrated = Sample::new(&calibrated, &labels)?;
        let raw = Sample::new(&evidence.posteriors, &labels)?;
        let check = self_masking_check(&calibrated)?;
        Ok(Outcome {
            labels: labels.n_labelled(),
            p: check.p_value,
            df: check.df,
            p_uncalibrated: self_masking_check(&raw)?.p_value,
            z: [
                in_sample_check(&calibrated)?.z,
                in_sample_check(&raw)?.z,
                in_sample_check(&Sample::new(&memorised, &labels)?)?.z,
            ],
        })
    })?;
    let outcomes = &drawn.values;
    let mean = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64;
    // The check's own threshold for a warning.
    let alarm = |j: usize| Share::of(outcomes.iter().map(|outcome| outcome.z[j] > 4.0));
    Ok(Setting {
        world: name.into(),
        mechanism: mechanism.into(),
        mean_labels: mean(&|outcome| outcome.labels as f64),
        draws,
        check: Share::of(outcomes.iter().map(|outcome| outcome.p <= 0.05)),
        check_uncalibrated: Share::of(outcomes.iter().map(|outcome| outcome.p_uncalibrated <= 0.05)),
        mean_df: mean(&|outcome| outcome.df as f64),
        alarm_cross_fitted: alarm(0),
        alarm_uncalibrated: alarm(1),
        alarm_in_sample: alarm(2),
        mean_z: [0, 1, 2].map(|j| mean(&|outcome| outcome.z[j])),
        failed: drawn.failed,
    })
}

/// P(labelled) of each row: within class k, the half that is easier by the posterior has [`ODDS`] times the odds of the
/// other half, and the mean is phi_k.
fn easy_rows_first(rows: &FullyLabelled, phi: &Phi, ease: &[f64]) -> Vec<f64> {
    let mut probability = vec![0.0; rows.y.len()];
    for k in 0..phi.len() {
        let mut members: Vec<usize> = (0..rows.y.len()).filter(|&i| rows.y[i].index() == k).collect();
        members.sort_by(|&a, &b| ease[a].total_cmp(&ease[b]));
        let half = members.len() / 2;
        let rate = |odds: f64| odds / (1.0 + odds);
        let (mut low, mut high) = (0.0, phi[k] / (1.0 - phi[k]));
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            let mean = (half as f64 * rate(middle) + (members.len() - half) as f64 * rate(ODDS * middle))
                / members.len() as f64;
            if mean < phi[k] { low = middle } else { high = middle }
        }
        for (rank, &i) in members.iter().enumerate() {
            probability[i] = rate(if rank < half { low } else { ODDS * low });
        }
    }
    probability
}

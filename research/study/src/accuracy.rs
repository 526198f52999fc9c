//! How close is the estimated phi to the truth on MNIST, in the paper's settings S1 and S2?

use crate::draws::mean_and_sd;
use crate::fit::{FOLDS, REGRESSION, cross_fit, default_estimate};
use crate::worlds::Mnist;
use anyhow::{Context, Result, ensure};
use mnar::analysis::{Calibrate, EstimateSettings, Evidence, Method};
use mnar::calibrate::{Calibration, Shrinkage};
use mnar::{Class, Labels, Phi, Sample};
use ndarray::Array2;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::time::Instant;

const LABELLED: [usize; 10] = [400, 310, 240, 186, 144, 111, 86, 67, 52, 40];
const UNLABELLED_S2: [usize; 10] = [400, 517, 667, 862, 1113, 1438, 1857, 2398, 3097, 4000];

/// Results of setting S1 or S2.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) setting: String,
    pub(crate) n: usize,
    pub(crate) labels: usize,
    pub(crate) seeds: usize,
    pub(crate) phi: Vec<f64>,
    /// Error of the best of the paper's six methods.
    pub(crate) paper: f64,
    pub(crate) target: f64,
    /// Seconds of the cross-fit that all estimates share, averaged over seeds.
    pub(crate) seconds_cross_fit: f64,
    pub(crate) estimates: Vec<Estimate>,
}

/// Results of one way to estimate phi.
#[derive(Serialize, Deserialize)]
pub(crate) struct Estimate {
    pub(crate) method: String,
    pub(crate) normalised_mse: Vec<f64>,
    pub(crate) mean: f64,
    pub(crate) sd: Option<f64>,
    /// Seconds of the estimate and its checks, in addition to the cross-fit, averaged over seeds.
    pub(crate) seconds: f64,
    /// Estimated phi, averaged over seeds.
    pub(crate) mean_phi: Vec<f64>,
}

const METHODS: [&str; 4] = ["calibrated (default)", "not calibrated", "calibrated, free biases", "confusion matrix"];

/// Runs both settings, with base seed 8,000,000.
pub(crate) fn study(mnist: &Mnist, seeds: usize) -> Result<Vec<Setting>> {
    [("S2", 0.022, 0.006), ("S1", 0.004, 0.003)]
        .into_iter()
        .map(|(name, paper, target)| setting(mnist, name, paper, target, seeds))
        .collect()
}

fn setting(mnist: &Mnist, name: &str, paper: f64, target: f64, seeds: usize) -> Result<Setting> {
    let mut outcomes: Vec<Vec<(Phi, f64, f64)>> = (0..METHODS.len()).map(|_| Vec::new()).collect();
    let mut cross_fit_seconds = Vec::new();
    let mut shape = None;
    for seed in 0..seeds as u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(8_000_000 + seed);
        let (x, labels, truth) = draw(mnist, name, &mut rng)?;
        let start = Instant::now();
        let evidence = cross_fit(&x, &labels, &REGRESSION, FOLDS, rng.random())?;
        cross_fit_seconds.push(start.elapsed().as_secs_f64());
        for (method, outcomes) in outcomes.iter_mut().enumerate() {
            let start = Instant::now();
            let phi = estimate(method, &evidence)?;
            let mse = phi.normalised_mse(&truth);
            eprintln!("accuracy, {name}, seed {seed}, {}: {mse:.5}", METHODS[method]);
            outcomes.push((phi, mse, start.elapsed().as_secs_f64()));
        }
        shape = Some((labels.len(), labels.n_labelled(), truth));
    }
    let (n, n_labelled, truth) = shape.context("no seeds")?;
    let estimates = METHODS
        .iter()
        .zip(&outcomes)
        .map(|(method, outcomes)| {
            let normalised_mse: Vec<f64> = outcomes.iter().map(|(_, mse, _)| *mse).collect();
            let (mean, sd) = mean_and_sd(&normalised_mse);
            let seeds = outcomes.len() as f64;
            Estimate {
                method: (*method).into(),
                mean,
                sd: sd.is_finite().then_some(sd),
                normalised_mse,
                seconds: outcomes.iter().map(|(_, _, seconds)| seconds).sum::<f64>() / seeds,
                mean_phi: (0..10).map(|k| outcomes.iter().map(|(phi, _, _)| phi[k]).sum::<f64>() / seeds).collect(),
            }
        })
        .collect();
    Ok(Setting {
        setting: name.into(),
        n,
        labels: n_labelled,
        seeds,
        phi: truth.as_slice().to_vec(),
        paper,
        target,
        seconds_cross_fit: mean_and_sd(&cross_fit_seconds).0,
        estimates,
    })
}

/// Estimates phi by one of [`METHODS`].
fn estimate(method: usize, evidence: &Evidence<'_>) -> Result<Phi> {
    let uncalibrated = EstimateSettings { calibrate: Calibrate::None, ..default_estimate() };
    let found = match method {
        0 => default_estimate().run(evidence, &())?,
        1 => uncalibrated.run(evidence, &())?,
        2 => {
            let shrinkage = Shrinkage::Fixed { bias: 0.0, temperature: 0.0 };
            let calibration = Calibration { shrinkage, ..Calibration::default() };
            let calibration = calibration.fit(&Sample::new(&evidence.posteriors, evidence.labels)?)?;
            let calibrated = calibration.apply(&evidence.posteriors)?;
            uncalibrated.run(&Evidence::predictions(&calibrated, evidence.labels).cross_fitted(&evidence.plan), &())?
        }
        _ => EstimateSettings { method: Method::Confusion, ..uncalibrated }.run(evidence, &())?,
    };
    Ok(found.phi)
}

/// Draws the rows of a setting: pixels from 0 to 1, the labels that are kept, and the true phi.
fn draw(mnist: &Mnist, name: &str, rng: &mut ChaCha8Rng) -> Result<(Array2<f64>, Labels, Phi)> {
    let mut rows: Vec<(usize, Class, bool)> = Vec::new();
    let mut phi = Vec::new();
    for k in 0..10 {
        let mut members: Vec<usize> = (0..mnist.digits.len()).filter(|&i| usize::from(mnist.digits[i]) == k).collect();
        members.shuffle(rng);
        ensure!(members.len() > LABELLED[k], "only {} images of the digit {k}", members.len());
        let rest = members.len() - LABELLED[k];
        let unlabelled = if name == "S2" { UNLABELLED_S2[k].min(rest) } else { rest };
        let used = LABELLED[k] + unlabelled;
        rows.extend(members[..used].iter().enumerate().map(|(j, &i)| (i, Class::from(k), j < LABELLED[k])));
        phi.push(LABELLED[k] as f64 / used as f64);
    }
    // Sorted by position in the file, so that the order of rows carries no information about the class.
    rows.sort_by_key(|(i, _, _)| *i);
    let width = mnist.width;
    let mut x = Vec::with_capacity(rows.len() * width);
    for (i, _, _) in &rows {
        x.extend(mnist.pixels[i * width..(i + 1) * width].iter().map(|pixel| f64::from(*pixel) / 255.0));
    }
    let x = Array2::from_shape_vec((rows.len(), width), x)?;
    let names = (0..10).map(|digit| digit.to_string()).collect();
    let labels = Labels::new(rows.iter().map(|(_, class, kept)| kept.then_some(*class)).collect(), names)?;
    Ok((x, labels, Phi::new(phi)?))
}

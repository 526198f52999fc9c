//! Tables whose labels are hidden by a known mechanism: our methods, training on labelled rows only, and plain
//! pseudo-labels.

use crate::methods::{ALL, Score, Setting, learn, score};
use crate::{TablesArgs, print, write_results};
use anyhow::{Context, Result, bail};
use mnar::{Class, Labels, Phi};
use mnar_train::consistency::PseudoLabels;
use mnar_train::model::Architecture;
use mnar_train::{Examples, TrainSettings};
use ndarray::Array2;
use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;

/// A fully labelled data set, and the mechanism that hides its labels.
struct Complete {
    name: &'static str,
    x: Array2<f64>,
    y: Vec<usize>,
    /// P(labelled | class).
    phi: Vec<f64>,
}

#[derive(Serialize)]
struct Row {
    data: &'static str,
    mechanism: &'static str,
    method: String,
    seeds: u64,
    accuracy: f64,
    accuracy_sd: f64,
    log_loss: f64,
    log_loss_sd: f64,
    phi_normalised_mse: f64,
}

pub(crate) fn run(args: &TablesArgs) -> Result<()> {
    let folder = &args.data;
    let methods = args.methods.clone().unwrap_or_else(|| ALL.map(String::from).to_vec());
    let sets = [
        optdigits(folder)?,
        sample("breast cancer", mnar_data::samples::breast_cancer(), vec![0.6, 0.1]),
        pneumonia(folder)?,
    ];
    print(&format!(
        "{:<14} {:<5} {:<14} {:>16} {:>18} {:>8}",
        "data", "", "method", "accuracy", "log-loss", "MSE phi"
    ))?;
    let mut rows = Vec::new();
    let wanted = |set: &&Complete| args.sets.as_ref().is_none_or(|names| names.iter().any(|name| name == set.name));
    for set in sets.iter().filter(wanted) {
        let shares: f64 = set.y.iter().map(|&k| set.phi[k]).sum::<f64>() / set.y.len() as f64;
        for (mechanism, phi) in [("MNAR", set.phi.clone()), ("MCAR", vec![shares; set.phi.len()])] {
            for method in &methods {
                let phi = Phi::new(phi.clone())?;
                let runs: Vec<_> =
                    (0..args.seeds).into_par_iter().map(|seed| one(set, &phi, method, seed)).collect::<Result<_>>()?;
                let (scores, errors): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
                let (accuracy, accuracy_sd) = moments(scores.iter().map(|score| score.accuracy));
                let (log_loss, log_loss_sd) = moments(scores.iter().map(|score| score.log_loss));
                let phi_normalised_mse = moments(errors.into_iter()).0;
                print(&format!(
                    "{:<14} {:<5} {:<14} {:>8.2}% ±{:>5.2} {:>9.4} ±{:>7.4} {:>8.4}",
                    set.name,
                    mechanism,
                    method,
                    100.0 * accuracy,
                    100.0 * accuracy_sd,
                    log_loss,
                    log_loss_sd,
                    phi_normalised_mse
                ))?;
                let method = method.clone();
                rows.push(Row {
                    data: set.name,
                    mechanism,
                    method,
                    seeds: args.seeds,
                    accuracy,
                    accuracy_sd,
                    log_loss,
                    log_loss_sd,
                    phi_normalised_mse,
                });
            }
        }
    }
    write_results("training_tables.json", &format!("{}\n", serde_json::to_string_pretty(&rows)?))
}

fn one(set: &Complete, truth: &Phi, method: &str, seed: u64) -> Result<(Score, f64)> {
    let names = (0..set.phi.len()).map(|k| k.to_string()).collect();
    let complete = Labels::allow_degenerate(set.y.iter().map(|&k| Some(Class::from(k))).collect(), names)?;
    let kept = mnar::simulate::mask(&complete, truth, seed)?;
    let labels = mnar::simulate::apply_mask(&complete, &kept)?;
    let x = mnar::classify::Standardise::learn(set.x.view())?.apply(set.x.view());
    let examples = Examples::from_rows(x.view());
    let steps = (labels.n_labelled() / 64).max(1);
    let epochs = (1500 / steps).clamp(20, 300);
    let settings = TrainSettings { epochs, seed, ..Default::default() };
    let fold_settings = TrainSettings { epochs: epochs / 2, ..settings.clone() };
    let learnt = learn(
        method,
        &Setting {
            examples: &examples,
            labels: &labels,
            architecture: &Architecture::Mlp { hidden: vec![128] },
            consistency: &PseudoLabels,
            settings: &settings,
            fold_settings: &fold_settings,
        },
    )?;
    // The whole population, labelled rows included: the risk is an expectation over all of them.
    let all: Vec<usize> = (0..set.y.len()).collect();
    let error = learnt.phi.normalised_mse(truth);
    Ok((score(&learnt, &examples, &all, &set.y), error))
}

fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    (mean, (values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt())
}

fn sample(name: &'static str, data: mnar_data::FullyLabelled, phi: Vec<f64>) -> Complete {
    Complete { name, x: data.x, y: data.y.iter().map(|class| class.index()).collect(), phi }
}

/// Handwritten digits; the share that is labelled falls from 30% of the zeros to 3% of the nines.
fn optdigits(folder: &Path) -> Result<Complete> {
    let path = folder.join("optdigits/optdigits.tra");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut values = Vec::new();
    let mut y = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut cells: Vec<f64> = line.split(',').map(|cell| cell.trim().parse()).collect::<Result<_, _>>()?;
        y.push(cells.pop().context("an empty line")? as usize);
        values.extend(cells);
    }
    let x = Array2::from_shape_vec((y.len(), values.len() / y.len()), values)?;
    Ok(Complete { name: "optdigits", x, y, phi: (0..10).map(|k| 0.3 * 0.1f64.powf(k as f64 / 9.0)).collect() })
}

/// Chest X-rays, averaged to 14 × 14 pixels; the sick are labelled six times as often as the healthy.
fn pneumonia(folder: &Path) -> Result<Complete> {
    let path = folder.join("pneumoniamnist/pneumoniamnist.npz");
    let data = mnar_data::read_dataset(&path, &mnar_data::ReadOptions::default())?;
    let mnar_data::Inputs::Images(images) = &data.inputs else { bail!("{} holds no images", path.display()) };
    let side = images.shape().height / 2;
    let x = Array2::from_shape_fn((images.len(), side * side), |(i, j)| {
        let (row, column) = (2 * (j / side), 2 * (j % side));
        let at = |r: usize, c: usize| f64::from(images.pixels(i)[(row + r) * 2 * side + column + c]);
        (at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1)) / 4.0
    });
    let y = data.labels.as_slice().iter().flatten().map(|class| class.index()).collect();
    Ok(Complete { name: "pneumonia", x, y, phi: vec![0.02, 0.12] })
}

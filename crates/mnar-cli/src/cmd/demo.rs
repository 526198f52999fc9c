//! `mnar demo`: the embedded sample, masked by a known mechanism, from test to debiased classifier.

use super::test::{most_and_least, verdict};
use crate::Outcome;
use crate::args::{Dataset, DemoArgs, Format};
use crate::input::progress;
use crate::output;
use crate::table::{TextTable, interval, number};
use anyhow::Result;
use mnar::crossfit::FoldPlan;
use mnar::interval::Bootstrap;
use mnar::linear::{SoftmaxRegression, Standardise};
use mnar::pipeline::Pipeline;
use mnar::risk::RiskWeights;
use mnar::test::{PermutationTest, TestResult};
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors, Sample};
use mnar_data::FullyLabelled;
use ndarray::{ArrayView2, Axis};
use serde::Serialize;
use std::time::Instant;

#[derive(Serialize)]
struct DemoOutput {
    version: &'static str,
    dataset: &'static str,
    classes: Vec<String>,
    n: usize,
    n_labelled: usize,
    labelled_per_class: Vec<usize>,
    true_phi: Vec<f64>,
    phi: Vec<f64>,
    phi_ci95: Vec<(f64, f64)>,
    phi_normalised_mse: f64,
    constant_normalised_mse: f64,
    true_prevalence: Vec<f64>,
    prevalence: Vec<f64>,
    #[serde(flatten)]
    result: TestResult,
    unlabelled_rows: Scores,
    seed: u64,
    seconds: f64,
}

/// How two classifiers do on the rows whose labels were hidden.
#[derive(Serialize)]
struct Scores {
    labelled_only: Score,
    debiased: Score,
}

#[derive(Clone, Copy, Serialize)]
struct Score {
    accuracy: f64,
    log_loss: f64,
}

const REPLICATES: usize = 200;

pub(crate) fn run(args: DemoArgs) -> Result<Outcome> {
    let start = Instant::now();
    let (dataset, sample, truth) = match args.dataset {
        // From 0 to 9 a digit is less and less likely to be labelled: 60% to 8%.
        Dataset::Digits => ("digits", mnar_data::samples::digits(), (0..10).map(|k| 0.6 * 0.8f64.powi(k)).collect()),
        // The sick are noticed: malignant tumours are labelled six times as often.
        Dataset::BreastCancer => ("breast cancer", mnar_data::samples::breast_cancer(), vec![0.6, 0.1]),
    };
    let FullyLabelled { x, y, names, .. } = sample;
    let truth = Phi::new(truth)?;
    let complete = Labels::allow_degenerate(y.iter().copied().map(Some).collect(), names)?;
    let kept = mnar::simulate::mask(&complete, &truth, args.seed)?;
    let labels = mnar::simulate::apply_mask(&complete, &kept)?;
    let x = Standardise::learn(x.view())?.apply(x.view());

    let pipeline = Pipeline { seed: args.seed, ..Default::default() };
    let fit = pipeline.run(x.view(), &labels)?;
    let result =
        PermutationTest { seed: args.seed, ..Default::default() }.run(&Sample::new(&fit.raw, &labels)?, &fit.plan)?;
    let bar = progress(args.quiet, "bootstrap", REPLICATES);
    let replicates =
        Bootstrap { replicates: REPLICATES, seed: args.seed }.run(labels.len(), |weights, replicate| {
            let plan = FoldPlan::for_labels(&labels, pipeline.folds, args.seed.wrapping_add((replicate + 1) << 20))?;
            let estimate = pipeline.run_on(x.view(), &labels, plan, Some(weights))?.estimate;
            bar.inc(1);
            Ok(estimate)
        })?;
    bar.finish_and_clear();

    let phi = &fit.estimate.phi;
    let unlabelled_rows = Scores {
        labelled_only: score(&pipeline.regression, x.view(), &labels, &y, None)?,
        debiased: score(&pipeline.regression, x.view(), &labels, &y, Some(phi))?,
    };
    let n = labels.len() as f64;
    let shown = DemoOutput {
        version: env!("CARGO_PKG_VERSION"),
        dataset,
        classes: labels.names().to_vec(),
        n: labels.len(),
        n_labelled: labels.n_labelled(),
        labelled_per_class: labels.counts().to_vec(),
        phi: phi.as_slice().to_vec(),
        phi_ci95: replicates.phi_intervals(phi.as_slice(), 0.95),
        phi_normalised_mse: phi.normalised_mse(&truth),
        constant_normalised_mse: Phi::constant(labels.n_labelled(), labels.len(), truth.len())?.normalised_mse(&truth),
        true_phi: truth.as_slice().to_vec(),
        true_prevalence: complete.counts().iter().map(|count| *count as f64 / n).collect(),
        prevalence: fit.estimate.prevalence.clone(),
        result,
        unlabelled_rows,
        seed: args.seed,
        seconds: start.elapsed().as_secs_f64(),
    };
    match args.format {
        Format::Json => output::print_json(&shown)?,
        Format::Text => output::print(&text(&shown))?,
    }
    Ok(Outcome::Done)
}

/// Trains on the labelled rows, weighted by 1/phi where phi is given, and scores the unlabelled ones.
///
/// The weights are scaled to sum to the number of labels, so that the ridge penalty is the same for both.
fn score(
    regression: &SoftmaxRegression,
    x: ArrayView2<'_, f64>,
    labels: &Labels,
    y: &[Class],
    phi: Option<&Phi>,
) -> Result<Score> {
    let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
    let weights: Option<Vec<f64>> = phi.map(|phi| {
        let risk = RiskWeights::new(phi);
        let raw: Vec<f64> = classes.iter().map(|class| risk.ell(Some(*class))).collect();
        let scale = rows.len() as f64 / raw.iter().sum::<f64>();
        raw.iter().map(|weight| scale * weight).collect()
    });
    let fit = regression.fit(x.select(Axis(0), &rows).view(), &classes, labels.n_classes(), weights.as_deref())?;
    let p = Posteriors::from_logits(fit.logits(x).view(), PosteriorKind::Population)?;
    let hidden: Vec<usize> = (0..labels.len()).filter(|&i| !labels.is_labelled(i)).collect();
    let n = hidden.len() as f64;
    let correct = hidden.iter().filter(|&&i| {
        let row = p.row(i);
        row.iter().all(|other| *other <= row[y[i].index()])
    });
    let accuracy = correct.count() as f64 / n;
    let log_loss = hidden.iter().map(|&i| -p.row(i)[y[i].index()].max(1e-15).ln()).sum::<f64>() / n;
    Ok(Score { accuracy, log_loss })
}

fn text(shown: &DemoOutput) -> String {
    let ratio = most_and_least(&shown.classes, &shown.phi);
    let mut out = format!(
        "The {} sample, {} rows. Labels were hidden by a known mechanism; {} are left.\n\n{}\n\n",
        shown.dataset,
        shown.n,
        shown.n_labelled,
        verdict(&shown.result, shown.result.p_value <= 0.05, 0.05, &ratio)
    );
    let mut table = TextTable::new(&["class", "labels", "true phi", "phi", "95% interval", "true share", "share"]);
    for (k, class) in shown.classes.iter().enumerate() {
        table.row(vec![
            class.clone(),
            shown.labelled_per_class[k].to_string(),
            number(shown.true_phi[k]),
            number(shown.phi[k]),
            interval(shown.phi_ci95[k]),
            number(shown.true_prevalence[k]),
            number(shown.prevalence[k]),
        ]);
    }
    out.push_str(&table.render());
    out.push_str(&format!(
        "\n  normalised error of phi {:.4} (a constant mechanism: {:.4})\n",
        shown.phi_normalised_mse, shown.constant_normalised_mse
    ));
    let scores = &shown.unlabelled_rows;
    out.push_str("\nSoftmax regression on the rows whose labels were hidden:\n");
    let mut table = TextTable::new(&["trained on", "accuracy", "log-loss"]);
    for (name, score) in
        [("the labels as they are", scores.labelled_only), ("labels weighted by 1/phi", scores.debiased)]
    {
        table.row(vec![name.into(), format!("{:.2}%", 100.0 * score.accuracy), format!("{:.4}", score.log_loss)]);
    }
    out.push_str(&table.render());
    out.push_str(&format!(
        "\n{:.1} s, seed {}. Next: `mnar test --help` and `mnar estimate --help`, for your own table.\n",
        shown.seconds, shown.seed
    ));
    out
}

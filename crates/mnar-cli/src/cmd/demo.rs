//! `mnar demo`: the embedded sample, masked by a known mechanism, from test to debiased classifier and report.

use super::fit::typed_origin;
use crate::Outcome;
use crate::args::{Dataset, DemoArgs, Format};
use crate::output;
use anyhow::{Context as _, Result, bail};
use mnar::analysis::Watch;
use mnar::crossfit::FoldPlan;
use mnar::diagnose::{confusion, effective_sample_size, identifiability, sensitivity};
use mnar::interval::Bootstrap;
use mnar::linear::{SoftmaxRegression, Standardise};
use mnar::pipeline::Pipeline;
use mnar::risk::RiskWeights;
use mnar::test::{PermutationTest, self_masking_check};
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors, Sample};
use mnar_data::{AtomicFile, FullyLabelled, Inputs};
use mnar_report::{
    Calibration, HeldOut, IntervalKind, Model, ODDS_FACTORS, Report, SCHEMA, Test, Truth, most_uncertain,
};
use ndarray::{ArrayView2, Axis};
use std::path::Path;
use std::time::{Instant, SystemTime};

const REPLICATES: usize = 200;

pub(crate) fn run(args: DemoArgs) -> Result<Outcome> {
    let start = Instant::now();
    if args.out.is_file() {
        bail!("{} is a file, but --out names a folder", args.out.display());
    }
    if args.out.join("settings.toml").exists() {
        bail!("{} holds a run of `mnar fit`; choose another folder with --out", args.out.display());
    }
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
    let hidden = Hidden { labels: &labels, complete: &complete, y: &y, truth: &truth };
    let report = analyse(&args, dataset, x.view(), &hidden, start)?;

    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let page = args.out.join("report.html");
    AtomicFile::write_text(&page, &report.to_html()?)?;
    AtomicFile::write_text(&args.out.join("report.json"), &report.to_json()?)?;
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&text(&report, &page))?,
    }
    Ok(Outcome::Done)
}

/// A sample with hidden labels, and what they hide.
struct Hidden<'a> {
    labels: &'a Labels,
    complete: &'a Labels,
    y: &'a [Class],
    truth: &'a Phi,
}

fn analyse(
    args: &DemoArgs,
    dataset: &str,
    x: ArrayView2<'_, f64>,
    hidden: &Hidden<'_>,
    start: Instant,
) -> Result<Report> {
    let Hidden { labels, complete, y, truth } = *hidden;
    let pipeline = Pipeline { seed: args.seed, ..Default::default() };
    let fit = pipeline.run(x, labels)?;
    let raw = Sample::new(&fit.raw, labels)?;
    let calibrated = Sample::new(&fit.posteriors, labels)?;
    let result = PermutationTest { seed: args.seed, ..Default::default() }.run(&raw, &fit.plan)?;
    let bar = output::Bar::new(args.quiet);
    bar.begins("bootstrap", REPLICATES);
    let replicates =
        Bootstrap { replicates: REPLICATES, seed: args.seed }.run(labels.len(), |weights, replicate| {
            let plan = FoldPlan::for_labels(labels, pipeline.folds, args.seed.wrapping_add((replicate + 1) << 20))?;
            let estimate = pipeline.run_on(x, labels, plan, Some(weights))?.estimate;
            bar.step();
            Ok(estimate)
        })?;
    bar.ends();

    let phi = &fit.estimate.phi;
    let (_, baseline) = trained(&pipeline.regression, x, labels, y, None)?;
    let (population, debiased) = trained(&pipeline.regression, x, labels, y, Some(phi))?;
    let n = labels.len() as f64;
    let counts: Vec<f64> = labels.counts().iter().map(|&count| count as f64).collect();
    let images = match args.dataset {
        Dataset::Digits => Some(mnar_data::samples::digits_as_images().inputs),
        Dataset::BreastCancer => None,
    };
    let png = |row: usize| match &images {
        Some(Inputs::Images(images)) => images.png(row),
        _ => None,
    };
    let constant = Phi::constant(labels.n_labelled(), labels.len(), truth.len())?;
    Ok(Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        title: format!("the {dataset} sample"),
        created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: typed_origin(Path::new(dataset)).command,
        classes: labels.names().to_vec(),
        n: labels.len(),
        n_labelled: labels.n_labelled(),
        labelled_per_class: labels.counts().to_vec(),
        phi: phi.as_slice().to_vec(),
        phi_se: Some(replicates.phi_standard_errors()),
        phi_ci95: Some(replicates.phi_intervals(phi.as_slice(), 0.95)),
        prevalence: fit.estimate.prevalence.clone(),
        prevalence_ci95: Some(replicates.prevalence_intervals(&fit.estimate.prevalence, 0.95)),
        interval: IntervalKind::BootstrapWithRefit,
        method: fit.estimate.method.to_owned(),
        converged: fit.estimate.stop.converged(),
        result: Some(Test::from(&result)),
        self_masking: self_masking_check(&raw).ok(),
        identifiability: identifiability(&calibrated, &fit.estimate).ok(),
        effective_sample_size: Some(effective_sample_size(&counts, phi)),
        out_of_fold_accuracy: None,
        calibration: fit.bcts.as_ref().map(|bcts| Calibration::of(bcts, &raw, &calibrated)),
        confusion: Some(confusion(&calibrated)),
        sensitivity: sensitivity(&calibrated, &pipeline.estimator, &ODDS_FACTORS)?,
        training_phi: phi.as_slice().to_vec(),
        debiased: Some(debiased),
        baseline: Some(baseline),
        uncertain: most_uncertain(&population, labels, phi.as_slice(), |_| None, png),
        truth: Some(Truth {
            phi: truth.as_slice().to_vec(),
            prevalence: complete.counts().iter().map(|count| *count as f64 / n).collect(),
            phi_normalised_mse: phi.normalised_mse(truth),
            constant_normalised_mse: constant.normalised_mse(truth),
        }),
        settings: serde_json::json!({
            "classifier": "softmax regression",
            "l2": pipeline.regression.l2,
            "folds": pipeline.folds,
            "replicates": REPLICATES,
            "permutations": result.draws,
        }),
        seed: args.seed,
        computed_on: "cpu".to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        warnings: Vec::new(),
    })
}

/// Trains on the labelled rows, weighted by 1/phi where phi is given: p(y | x) of all rows, and how it does on the
/// unlabelled ones.
///
/// The weights are scaled to sum to the number of labels, so that the ridge penalty is the same for both.
fn trained(
    regression: &SoftmaxRegression,
    x: ArrayView2<'_, f64>,
    labels: &Labels,
    y: &[Class],
    phi: Option<&Phi>,
) -> Result<(Posteriors, Model)> {
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
    let is_right = |i: usize| {
        let row = p.row(i);
        row.iter().all(|other| *other <= row[y[i].index()])
    };
    let share = |rows: &[usize]| rows.iter().filter(|&&i| is_right(i)).count() as f64 / rows.len() as f64;
    let log_loss = hidden.iter().map(|&i| -p.row(i)[y[i].index()].max(1e-15).ln()).sum::<f64>() / hidden.len() as f64;
    let by_class = (0..labels.n_classes()).map(|k| {
        let of: Vec<usize> = hidden.iter().copied().filter(|&i| y[i].index() == k).collect();
        (!of.is_empty()).then(|| share(&of))
    });
    let model = Model {
        ended: "finished".to_owned(),
        chosen_epoch: 0,
        temperature: 1.0,
        clipped_steps: 0,
        held_out: Some(HeldOut { rows: hidden.len(), accuracy: share(&hidden), log_loss }),
        held_out_accuracy_per_class: by_class.collect(),
        history: Vec::new(),
    };
    Ok((p, model))
}

fn text(report: &Report, page: &Path) -> String {
    format!(
        "{}, {} rows. Labels were hidden by a known mechanism; {} are left.\n\n{}\n{:.1} s, seed {}. The report: {}\nNext: `mnar fit DATA --label COLUMN` for your own table or images, `mnar test --help` for predictions you have.\n",
        report.title.replacen("the", "The", 1),
        report.n,
        report.n_labelled,
        report.to_text(),
        report.seconds,
        report.seed,
        page.display()
    )
}

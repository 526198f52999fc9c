//! `mnar test`: are the labels informative?

use crate::Outcome;
use crate::args::{Format, TestArgs, TestMethod};
use crate::input::{Input, pipeline, progress};
use crate::output::{self, About, TestOutput, warning_lines};
use anyhow::{Result, bail};
use mnar::crossfit::{FoldPlan, cross_fit};
use mnar::diagnose::labels_for_power;
use mnar::estimate::{Estimator as _, LabelShift};
use mnar::linear::{SoftmaxRegression, Standardise};
use mnar::sums::Tally;
use mnar::test::{
    BootstrapTest, PermutationTest, ProfiledRatio, TestResult, in_sample_check, likelihood_ratio, self_masking_check,
};
use mnar::{Labels, Posteriors, Sample, Solver};
use mnar_report::{most_and_least, percent, self_masking_line, verdict};
use ndarray::Array2;

pub(crate) fn run(args: TestArgs) -> Result<Outcome> {
    if !(args.level > 0.0 && args.level < 1.0) {
        bail!("--level is {}, but must be between 0 and 1", args.level);
    }
    let mut warnings = Vec::new();
    let (labels, posteriors, plan, features) = match Input::read(&args.table, false, false)? {
        Input::Predictions { labels, posteriors, plan, .. } => (labels, posteriors, plan, None),
        Input::Features { labels, x, plan, .. } => {
            let posteriors = cross_fit(x.view(), &labels, &plan, &pipeline(&args.table).regression, None)?;
            if plan.redrawn() > 0 {
                warnings.push(format!(
                    "the folds were drawn {} times because a class had all its labels in one fold",
                    plan.redrawn() + 1
                ));
            }
            (labels, posteriors, plan, Some(x))
        }
        Input::Stream(_) => bail!("the test needs the table in memory"),
    };
    let sample = Sample::new(&posteriors, &labels)?;
    let tally = Tally::of(&sample)?;
    let result = match args.method {
        TestMethod::Auto | TestMethod::Permutation => {
            if args.permutations == 0 {
                bail!("--permutations is 0, but must be at least 1");
            }
            PermutationTest { permutations: args.permutations, seed: args.table.seed }.run(&sample, &plan)?
        }
        TestMethod::Lrt => match &features {
            // On raw data theta is profiled, as eq:stattest_ll has it; predictions are taken as they are.
            Some(x) => profiled(&args, x, &labels)?,
            None => likelihood_ratio(&sample, &Solver::default())?,
        },
        TestMethod::LrtBootstrap | TestMethod::MomentsBootstrap => {
            bootstrap(&args, &labels, &posteriors, &plan, features.as_ref())?
        }
    };
    let in_sample = in_sample_check(&sample).ok();
    let self_masking = self_masking_check(&sample).ok();
    if features.is_none() && in_sample.is_some_and(|check| check.suspicious) {
        warnings.push(IN_SAMPLE.to_owned());
    }
    if posteriors.renormalised().rows > 0 {
        let done = posteriors.renormalised();
        warnings.push(format!(
            "{} rows did not sum to 1 (off by {:.1e} at most) and were renormalised",
            done.rows, done.largest_drift
        ));
    }
    let needed = match args.power {
        None => None,
        Some(power) => {
            let test = PermutationTest { permutations: 1, seed: args.table.seed }.run(&sample, &plan)?;
            labels_for_power(&tally, test.statistic, test.df.unwrap_or(1), args.level, power)?
        }
    };
    let reject = result.p_value <= args.level;
    let shown = TestOutput {
        version: env!("CARGO_PKG_VERSION"),
        level: args.level,
        reject,
        about: About::labels(&labels),
        folds: plan.n_folds(),
        in_sample,
        self_masking: self_masking.clone(),
        labels_for_power: needed,
        seed: args.table.seed,
        warnings,
        result,
    };
    match args.table.format {
        Format::Json => output::print_json(&shown)?,
        Format::Text => {
            let ratio = extremes(&sample)?;
            output::print(&text(&shown, &ratio, args.power, features.is_some()))?;
        }
    }
    Ok(if reject && args.fail_on_reject { Outcome::Rejected } else { Outcome::Done })
}

/// Said wherever labelled rows are scored with suspicious confidence.
pub(crate) const IN_SAMPLE: &str = "labelled rows are scored with more confidence than unlabelled rows of the same \
classes, as if the classifier had been trained on them (or labels favour easy rows); the results cannot be trusted \
then. Use out-of-fold predictions for the labelled rows and name their folds with --fold";

fn profiled(args: &TestArgs, x: &Array2<f64>, labels: &Labels) -> Result<TestResult> {
    let bar = progress(args.table.quiet, "bootstrap", args.replicates);
    let ratio = ProfiledRatio {
        regression: SoftmaxRegression { l2: args.table.l2, ..Default::default() },
        replicates: args.replicates,
        seed: args.table.seed,
        ..Default::default()
    };
    let result = ratio.run_with(x.view(), labels, || bar.inc(1))?;
    bar.finish_and_clear();
    Ok(result)
}

/// The bootstrap tests refit: the classifier on the features, or, where only predictions are given, a softmax
/// regression on their logits.
fn bootstrap(
    args: &TestArgs,
    labels: &Labels,
    posteriors: &Posteriors,
    plan: &FoldPlan,
    features: Option<&Array2<f64>>,
) -> Result<TestResult> {
    let logits;
    let x = match features {
        Some(x) => x,
        None => {
            logits = standardised_logits(posteriors)?;
            &logits
        }
    };
    let regression = SoftmaxRegression { l2: args.table.l2, ..Default::default() };
    let bar = progress(args.table.quiet, "bootstrap", args.replicates + 1);
    let folds = if features.is_some() { plan.n_folds() } else { args.table.folds };
    let test = BootstrapTest { replicates: args.replicates, seed: args.table.seed, ..Default::default() };
    let tests = test.run(labels, |labels, replicate| {
        let plan = FoldPlan::for_labels(labels, folds, args.table.seed.wrapping_add(replicate << 20))?;
        let posteriors = cross_fit(x.view(), labels, &plan, &regression, None);
        bar.inc(1);
        posteriors
    })?;
    bar.finish_and_clear();
    Ok(if args.method == TestMethod::LrtBootstrap { tests.likelihood_ratio } else { tests.moments })
}

fn standardised_logits(posteriors: &Posteriors) -> Result<Array2<f64>> {
    let mut logits = posteriors.view().mapv(|p| p.max(mnar::calibrate::FLOOR).ln());
    for mut row in logits.rows_mut() {
        let mean = row.mean().unwrap_or(0.0);
        row.mapv_inplace(|value| value - mean);
    }
    Ok(Standardise::learn(logits.view())?.apply(logits.view()))
}

/// The most and the least labelled class with their phi, by label shift: words for the verdict.
fn extremes(sample: &Sample<'_>) -> Result<Option<(String, String, f64)>> {
    let population = sample.posteriors().kind() == mnar::PosteriorKind::Population;
    let estimate = if population {
        mnar::estimate::Likelihood::default().estimate(sample)?
    } else {
        LabelShift::default().estimate(sample)?
    };
    Ok(most_and_least(sample.labels().names(), estimate.phi.as_slice()))
}

/// The p-value; where the draws cannot show a smaller one, the chi-square approximation says how small it might be.
fn p_value_line(result: &TestResult) -> String {
    let smallest = 1.0 / (1 + result.draws) as f64;
    match result.p_value_chi_square {
        Some(approximate) if result.draws > 0 && result.p_value <= smallest => format!(
            "{} (no smaller one can be drawn with {}; chi-square approximation {approximate:.1e})",
            result.p_value, result.draws
        ),
        Some(approximate) if result.draws > 0 => {
            format!("{:.4} (chi-square approximation {approximate:.4})", result.p_value)
        }
        _ if result.p_value < 0.0001 => format!("{:.1e}", result.p_value),
        _ => format!("{:.4}", result.p_value),
    }
}

fn text(shown: &TestOutput, ratio: &Option<(String, String, f64)>, power: Option<f64>, features: bool) -> String {
    let TestOutput { result, about, .. } = shown;
    let mut out = format!("{}\n\n", verdict(result.p_value, shown.reject, shown.level, ratio));
    let statistic = match result.df {
        Some(df) => format!("{:.3} on {df} degrees of freedom", result.statistic),
        None => format!("{:.3}", result.statistic),
    };
    let draws = if result.draws > 0 { format!(", {} draws, seed {}", result.draws, shown.seed) } else { String::new() };
    out.push_str(&format!("  test        {}{draws}\n  statistic   {statistic}\n", result.test));
    out.push_str(&format!("  p-value     {}\n", p_value_line(result)));
    out.push_str(&format!("  valid       {}\n", result.condition.trim_start_matches("valid ")));
    out.push_str(&format!(
        "  rows        {} ({} labelled), {} classes{}\n",
        about.n,
        about.n_labelled,
        about.classes.len(),
        if shown.folds > 1 { format!(", {} folds", shown.folds) } else { String::new() }
    ));
    if let Some(check) = &shown.self_masking {
        out.push_str(&format!("  check       {}\n", self_masking_line(check)));
    }
    match (power, shown.labels_for_power) {
        (Some(power), Some(needed)) => out.push_str(&format!(
            "  power       {} would need about {} labels of {} rows labelled by the same mechanism\n",
            percent(power),
            needed.labels,
            needed.rows
        )),
        (Some(_), None) => {
            out.push_str("  power       no departure from MCAR to scale up: the statistic is below its expectation\n")
        }
        (None, _) => {}
    }
    if !features && shown.folds == 1 {
        out.push_str("\nThe predictions of labelled rows must come from a classifier that has not seen them; with cross-fitted\npredictions, name the fold column with --fold.\n");
    }
    out.push_str(&warning_lines(&shown.warnings));
    out
}

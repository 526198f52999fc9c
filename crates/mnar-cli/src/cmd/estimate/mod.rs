//! `mnar estimate`: phi and the class shares.

mod intervals;
mod page;
mod recipe;
mod text;

use self::intervals::{Intervals, LEVEL};
use self::page::{Scores, write_page};
use self::recipe::Recipe;
use super::test::IN_SAMPLE;
use crate::Outcome;
use crate::args::{EstimateArgs, Format, Interval};
use crate::input::{Input, pipeline, progress};
use crate::output::{self, About, EstimateOutput};
use crate::plan::Estimator;
use anyhow::{Result, bail};
use mnar::calibrate::{Bcts, Calibrated};
use mnar::crossfit::{FoldPlan, cross_fit};
use mnar::diagnose::{effective_sample_size, identifiability, labels_for_width, sensitivity};
use mnar::estimate::PhiEstimate;
use mnar::interval::{Bootstrap, Replicates};
use mnar::risk::RiskWeights;
use mnar::test::{in_sample_check, self_masking_check};
use mnar::{Labels, Phi, PosteriorKind, Posteriors, Rows, Sample, Solver};
use mnar_data::{Column, ParquetPredictions};
use ndarray::Array2;
use std::time::Instant;

pub(crate) fn run(args: EstimateArgs) -> Result<Outcome> {
    if args.replicates < 20 {
        bail!("--replicates is {}, but intervals need at least 20", args.replicates);
    }
    let start = Instant::now();
    if args.report.is_some() && args.stream {
        bail!("--report needs the table in memory, and --stream leaves it in its file; use one of them");
    }
    let may_stream = args.sensitivity.is_empty() && args.weights.is_none() && args.report.is_none();
    let input = Input::read(&args.table, args.stream, may_stream)?;
    let kind = match &args.table.features {
        Some(_) => PosteriorKind::Labelled,
        None => args.table.posterior.into(),
    };
    let names = match &input {
        Input::Predictions { labels, .. } | Input::Features { labels, .. } => labels.names().to_vec(),
        Input::Stream(table) => table.names().to_vec(),
    };
    let recipe = Recipe::new(&args, kind, &names)?;
    let shown = match input {
        Input::Stream(table) => streamed(&args, &recipe, &table)?,
        Input::Predictions { labels, posteriors, plan } => {
            in_memory(&args, &recipe, &labels, &Given { raw: &posteriors, plan: &plan, start }, None)?
        }
        Input::Features { labels, x, names, plan } => {
            let raw = cross_fit(x.view(), &labels, &plan, &pipeline(&args.table).regression, None)?;
            let features = FeatureTable { x: &x, names, plan: &plan };
            in_memory(&args, &recipe, &labels, &Given { raw: &raw, plan: &plan, start }, Some(features))?
        }
    };
    match args.table.format {
        Format::Json => output::print_json(&shown)?,
        Format::Text => output::print(&text::text(&shown, &args))?,
    }
    Ok(Outcome::Done)
}

struct FeatureTable<'a> {
    x: &'a Array2<f64>,
    names: Vec<String>,
    plan: &'a FoldPlan,
}

/// Predictions, their folds, and since when they are looked at.
struct Given<'a> {
    raw: &'a Posteriors,
    plan: &'a FoldPlan,
    start: Instant,
}

/// Up to this many numbers are walked over by the bootstrap that `auto` chooses: some ten seconds.
const AFFORDABLE: usize = 400_000_000;

fn in_memory(
    args: &EstimateArgs,
    recipe: &Recipe,
    labels: &Labels,
    given: &Given<'_>,
    features: Option<FeatureTable<'_>>,
) -> Result<EstimateOutput> {
    let raw = given.raw;
    let (estimate, calibration) = recipe.run(raw, labels, None)?;
    let (bcts, calibrated) = calibration.unzip();
    let posteriors = calibrated.as_ref().unwrap_or(raw);
    let sample = Sample::new(posteriors, labels)?;
    let k = labels.n_classes();
    let matrices = k <= Solver::default().full_matrix_classes;

    let wanted = match args.interval {
        Interval::Auto if recipe.estimator == Estimator::Known => Interval::Information,
        Interval::Auto if features.is_some() || labels.len() * k * args.replicates <= AFFORDABLE => Interval::Bootstrap,
        Interval::Auto => Interval::Information,
        asked => asked,
    };
    let mut warnings = Vec::new();
    let intervals = match wanted {
        Interval::Bootstrap => {
            let replicates = bootstrap(args, recipe, labels, raw, features.as_ref())?;
            Intervals::from_replicates(&estimate, &replicates, args.replicates, features.is_none())
        }
        Interval::Profile => Intervals::profile(&sample, recipe, &estimate)?,
        Interval::Auto | Interval::Information => Intervals::information(&estimate),
    };
    if intervals.about.failed_replicates > 0 {
        warnings.push(format!("{} bootstrap replicates failed and were left out", intervals.about.failed_replicates));
    }
    if let Some(features) = &features
        && features.plan.redrawn() > 0
    {
        warnings.push(format!(
            "the folds were drawn {} times because a class had all its labels in one fold",
            features.plan.redrawn() + 1
        ));
    }
    let labelled = recipe.kind == PosteriorKind::Labelled;
    // The checks compare scores, so they take the classifier's own, not the calibrated ones.
    let raw_sample = Sample::new(raw, labels)?;
    let in_sample = if labelled && matrices { in_sample_check(&raw_sample).ok() } else { None };
    let self_masking = if labelled && matrices { self_masking_check(&raw_sample).ok() } else { None };
    if features.is_none() && in_sample.is_some_and(|check| check.suspicious) {
        warnings.push(IN_SAMPLE.to_owned());
    }
    let curve = match args.sensitivity.as_slice() {
        [] => None,
        factors => Some(sensitivity(&sample, &recipe.label_shift(), factors)?),
    };
    let identified = if matrices { Some(identifiability(&sample, &estimate)?) } else { None };
    if let Some(path) = &args.weights {
        write_weights(path, labels, &estimate.phi)?;
    }
    let shown = assemble(
        args,
        recipe,
        About::labels(labels),
        estimate,
        Parts {
            intervals,
            bcts,
            in_sample,
            self_masking,
            sensitivity: curve,
            identifiability: identified,
            renormalised: raw.renormalised(),
            features: features.map(|features| features.names),
            warnings,
        },
    )?;
    if let Some(path) = &args.report {
        let scores = Scores { raw, calibrated: posteriors, plan: given.plan };
        write_page(path, args, labels, &scores, &shown, given.start)?;
    }
    Ok(shown)
}

fn bootstrap(
    args: &EstimateArgs,
    recipe: &Recipe,
    labels: &Labels,
    raw: &Posteriors,
    features: Option<&FeatureTable<'_>>,
) -> Result<Replicates> {
    let bar = progress(args.table.quiet, "bootstrap", args.replicates);
    let settings = Bootstrap { replicates: args.replicates, seed: args.table.seed };
    let regression = pipeline(&args.table).regression;
    let replicates = settings.run(labels.len(), |weights, replicate| {
        let refitted;
        let posteriors = match features {
            None => raw,
            Some(features) => {
                // New folds as well: their draw is part of what makes the estimate vary.
                let seed = args.table.seed.wrapping_add((replicate + 1) << 20);
                let plan = FoldPlan::for_labels(labels, features.plan.n_folds(), seed)?;
                refitted = cross_fit(features.x.view(), labels, &plan, &regression, Some(weights))?;
                &refitted
            }
        };
        let estimate = recipe.run(posteriors, labels, Some(weights)).map(|(estimate, _)| estimate);
        bar.inc(1);
        estimate
    })?;
    bar.finish_and_clear();
    Ok(replicates)
}

fn streamed(args: &EstimateArgs, recipe: &Recipe, table: &ParquetPredictions) -> Result<EstimateOutput> {
    if !matches!(args.interval, Interval::Auto | Interval::Information) {
        bail!(
            "a streamed table has intervals from the observed information only; use --interval information, or load it without --stream"
        );
    }
    let bcts = match recipe.calibration {
        Some(calibration) => {
            mnar::sums::Tally::of(table)?;
            Some(calibration.fit(table)?)
        }
        None => None,
    };
    let matrices = table.n_classes() <= Solver::default().full_matrix_classes;
    let (estimate, identified) = match &bcts {
        Some(bcts) => {
            let rows = Calibrated { rows: table, bcts };
            let estimate = recipe.estimate(&rows)?;
            let identified = if matrices { Some(identifiability(&rows, &estimate)?) } else { None };
            (estimate, identified)
        }
        None => {
            let estimate = recipe.estimate(table)?;
            let identified = if matrices { Some(identifiability(table, &estimate)?) } else { None };
            (estimate, identified)
        }
    };
    let about = About {
        classes: table.names().to_vec(),
        n: table.rows(),
        n_labelled: table.n_labelled(),
        labelled_per_class: table.counts().to_vec(),
    };
    let parts = Parts {
        intervals: Intervals::information(&estimate),
        bcts,
        in_sample: None,
        self_masking: None,
        sensitivity: None,
        identifiability: identified,
        renormalised: table.renormalised(),
        features: None,
        warnings: vec![
            "the table was streamed: the checks of held-out predictions and of self-masking were not run".into(),
        ],
    };
    assemble(args, recipe, about, estimate, parts)
}

/// Everything beside the estimate itself.
struct Parts {
    intervals: Intervals,
    bcts: Option<Bcts>,
    in_sample: Option<mnar::test::InSampleCheck>,
    self_masking: Option<mnar::test::SelfMaskingCheck>,
    sensitivity: Option<Vec<mnar::diagnose::SensitivityPoint>>,
    identifiability: Option<mnar::diagnose::Identifiability>,
    renormalised: mnar::posteriors::Renormalised,
    features: Option<Vec<String>>,
    warnings: Vec<String>,
}

fn assemble(
    args: &EstimateArgs,
    recipe: &Recipe,
    about: About,
    estimate: PhiEstimate,
    parts: Parts,
) -> Result<EstimateOutput> {
    let mut warnings = parts.warnings;
    let names = &about.classes;
    let clipped: Vec<String> = estimate.clipped.iter().map(|class| names[class.index()].clone()).collect();
    if !clipped.is_empty() {
        warnings.push(format!(
            "phi of {} is at its bound 1: no unlabelled row seems to belong there; with few labels that is often chance, and --prior-weight steadies it",
            quote(&clipped.iter().collect::<Vec<_>>())
        ));
    }
    if !estimate.stop.converged() {
        warnings.push(format!("the estimator stopped before it converged: {:?}", estimate.stop));
    }
    if parts.bcts.as_ref().is_some_and(|bcts| !bcts.converged) {
        warnings.push("the calibration stopped before it converged; compare with --calibrate none".into());
    }
    warnings.extend(mnar_report::few_labels(names, &about.labelled_per_class));
    if let Some(found) = &parts.identifiability
        && found.verdict != mnar::diagnose::Verdict::Good
    {
        warnings.push(format!(
            "{} (smallest singular value of the confusion matrix {:.3})",
            found.verdict.sentence(),
            found.smallest_singular_value
        ));
    }
    if parts.renormalised.rows > 0 {
        warnings.push(format!(
            "{} rows did not sum to 1 (off by {:.1e} at most) and were renormalised",
            parts.renormalised.rows, parts.renormalised.largest_drift
        ));
    }
    let needed = match (args.width, &parts.intervals.phi_se) {
        (None, _) => None,
        (Some(_), None) => bail!("--width needs standard errors; use --interval bootstrap"),
        (Some(width), Some(se)) => Some(
            se.iter()
                .map(|&se| se.is_finite().then(|| labels_for_width(&estimate, se, width, LEVEL)).transpose())
                .collect::<Result<Vec<_>, _>>()?,
        ),
    };
    Ok(EstimateOutput {
        version: env!("CARGO_PKG_VERSION"),
        phi_se: parts.intervals.phi_se,
        phi_ci95: parts.intervals.phi,
        prevalence_se: parts.intervals.prevalence_se,
        prevalence_ci95: parts.intervals.prevalence,
        method: estimate.method.to_owned(),
        posterior: recipe.kind.name(),
        converged: estimate.stop.converged(),
        stop: estimate.stop,
        clipped,
        prior_weight: estimate.prior_weight,
        interval: parts.intervals.about,
        calibration: parts.bcts,
        effective_sample_size: effective_sample_size(&estimate.tally.counts, &estimate.phi),
        identifiability: parts.identifiability,
        in_sample: parts.in_sample,
        self_masking: parts.self_masking,
        sensitivity: parts.sensitivity,
        labels_for_width: needed,
        renormalised: parts.renormalised,
        features: parts.features,
        seed: args.table.seed,
        warnings,
        phi: estimate.phi.as_slice().to_vec(),
        prevalence: estimate.prevalence,
        unlabelled_shares: estimate.unlabelled_shares,
        about,
    })
}

/// Class names for a sentence: the first ones where there are many.
fn quote(classes: &[&String]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = classes.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match classes.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more classes", shown.join(", ")),
    }
}

fn write_weights(path: &std::path::Path, labels: &Labels, phi: &Phi) -> Result<()> {
    let weights = RiskWeights::new(phi);
    let rows: Vec<u64> = (1..=labels.len() as u64).collect();
    let names = labels.as_slice().iter().map(|label| label.map(|class| labels.name(class))).collect();
    let ell: Vec<f64> = labels.as_slice().iter().map(|label| weights.ell(*label)).collect();
    let h: Vec<f64> = labels.as_slice().iter().map(|label| weights.h(*label)).collect();
    mnar_data::write_table(
        path,
        &[
            ("row", Column::Integers(&rows)),
            ("label", Column::Texts(names)),
            ("weight_labelled_loss", Column::Numbers(&ell)),
            ("weight_unlabelled_loss", Column::Numbers(&h)),
        ],
    )?;
    Ok(())
}
